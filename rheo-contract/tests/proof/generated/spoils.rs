//! The signatures of a defect's methods, so that a defect is no longer than what it does.

/// `spoils! { Type { method(self, real, …) { body } … } }` implements `Defect`; the arguments have
/// the types that they have there.
macro_rules! spoils {
    ($defect:ty { $($rest:tt)* }) => {
        $crate::generated::spoils::spoils! { @ $defect [] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*]) => {
        #[rheo_core::async_trait]
        impl $crate::defect::Defect for $defect { $($done)* }
    };
    (@ $defect:ty [$($done:tt)*] ping($me:ident, $real:ident) { $($body:tt)* } $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn ping(&$me, $real: &$crate::defect::Real) -> rheo_core::Result<()> { $($body)* }
        ] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] append_batch($me:ident, $real:ident, $stream:ident, $events:ident) { $($body:tt)* } $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn append_batch(
                &$me,
                $real: &$crate::defect::Real,
                $stream: &rheo_core::StreamName,
                $events: Vec<rheo_core::NewEvent>,
            ) -> rheo_core::Result<Vec<rheo_core::Event>> { $($body)* }
        ] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] read($me:ident, $real:ident, $stream:ident, $options:ident) { $($body:tt)* } $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn read(
                &$me,
                $real: &$crate::defect::Real,
                $stream: &rheo_core::StreamName,
                $options: &rheo_core::ReadOptions,
            ) -> rheo_core::Result<Vec<rheo_core::Event>> { $($body)* }
        ] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] query($me:ident, $real:ident, $stream:ident, $query:ident) { $($body:tt)* } $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn query(
                &$me,
                $real: &$crate::defect::Real,
                $stream: &rheo_core::StreamName,
                $query: &rheo_core::Query,
            ) -> rheo_core::Result<rheo_core::Page> { $($body)* }
        ] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] renew($me:ident, $real:ident, $lease:ident, $duration:ident) { $($body:tt)* } $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn renew(
                &$me,
                $real: &$crate::defect::Real,
                $lease: &rheo_core::Lease,
                $duration: rheo_core::LeaseDuration,
            ) -> rheo_core::Result<rheo_core::Lease> { $($body)* }
        ] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] ack($me:ident, $real:ident, $lease:ident) { $($body:tt)* } $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn ack(
                &$me,
                $real: &$crate::defect::Real,
                $lease: &rheo_core::Lease,
            ) -> rheo_core::Result<()> { $($body)* }
        ] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] retry($me:ident, $real:ident, $lease:ident, $options:ident) { $($body:tt)* } $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn retry(
                &$me,
                $real: &$crate::defect::Real,
                $lease: &rheo_core::Lease,
                $options: &rheo_core::RetryOptions,
            ) -> rheo_core::Result<rheo_core::RetryOutcome> { $($body)* }
        ] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] reject($me:ident, $real:ident, $lease:ident, $reason:ident) { $($body:tt)* } $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn reject(
                &$me,
                $real: &$crate::defect::Real,
                $lease: &rheo_core::Lease,
                $reason: &rheo_core::Reason,
            ) -> rheo_core::Result<()> { $($body)* }
        ] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] ack_batch($me:ident, $real:ident, $leases:ident) { $($body:tt)* } $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn ack_batch(
                &$me,
                $real: &$crate::defect::Real,
                $leases: &[rheo_core::Lease],
            ) -> Vec<rheo_core::Result<()>> { $($body)* }
        ] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] wait_for_work($me:ident, $real:ident, $stream:ident, $group:ident, $timeout:ident) { $($body:tt)* } $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn wait_for_work(
                &$me,
                $real: &$crate::defect::Real,
                $stream: &rheo_core::StreamName,
                $group: &rheo_core::GroupName,
                $timeout: std::time::Duration,
            ) -> rheo_core::Result<rheo_core::Wakeup> { $($body)* }
        ] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] list_streams($me:ident, $real:ident, $options:ident) { $($body:tt)* } $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn list_streams(
                &$me,
                $real: &$crate::defect::Real,
                $options: &rheo_core::ListOptions<rheo_core::StreamName>,
            ) -> rheo_core::Result<Vec<rheo_core::StreamInfo>> { $($body)* }
        ] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] list_groups($me:ident, $real:ident, $stream:ident, $options:ident) { $($body:tt)* } $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn list_groups(
                &$me,
                $real: &$crate::defect::Real,
                $stream: &rheo_core::StreamName,
                $options: &rheo_core::ListOptions<rheo_core::GroupName>,
            ) -> rheo_core::Result<Vec<rheo_core::GroupName>> { $($body)* }
        ] $($rest)* }
    };
    // What is about a group, with options of some type or without.
    (@ $defect:ty [$($done:tt)*] create_group($($args:ident),*) $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*]
            (create_group($($args),*): rheo_core::GroupOptions => ()) $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] fetch($($args:ident),*) $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*]
            (fetch($($args),*): rheo_core::FetchOptions => Vec<rheo_core::Lease>) $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] replay($($args:ident),*) $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*]
            (replay($($args),*): rheo_core::Replay => ()) $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] reset_group($($args:ident),*) $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*]
            (reset_group($($args),*): rheo_core::ResetOptions => ()) $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] dead_letters($($args:ident),*) $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*]
            (dead_letters($($args),*): rheo_core::DeadLetterOptions => Vec<rheo_core::DeadLetter>) $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] lag($($args:ident),*) $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*]
            (lag($($args),*) => rheo_core::Lag) $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*] group_info($($args:ident),*) $($rest:tt)*) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*]
            (group_info($($args),*) => rheo_core::GroupInfo) $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*]
        ($method:ident($me:ident, $real:ident, $stream:ident, $group:ident, $options:ident): $type:ty => $gives:ty)
        { $($body:tt)* } $($rest:tt)*
    ) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn $method(
                &$me,
                $real: &$crate::defect::Real,
                $stream: &rheo_core::StreamName,
                $group: &rheo_core::GroupName,
                $options: &$type,
            ) -> rheo_core::Result<$gives> { $($body)* }
        ] $($rest)* }
    };
    (@ $defect:ty [$($done:tt)*]
        ($method:ident($me:ident, $real:ident, $stream:ident, $group:ident) => $gives:ty)
        { $($body:tt)* } $($rest:tt)*
    ) => {
        $crate::generated::spoils::spoils! { @ $defect [$($done)*
            async fn $method(
                &$me,
                $real: &$crate::defect::Real,
                $stream: &rheo_core::StreamName,
                $group: &rheo_core::GroupName,
            ) -> rheo_core::Result<$gives> { $($body)* }
        ] $($rest)* }
    };
}
pub(crate) use spoils;
