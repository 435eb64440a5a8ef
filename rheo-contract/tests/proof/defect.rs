//! A backend with one thing done differently: a defect overrides the method it spoils, the rest goes to
//! the memory backend.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rheo_core::{
    Backend, Capabilities, Clock, DeadLetter, DeadLetterOptions, Event, FetchOptions, GroupInfo,
    GroupName, GroupOptions, Guarantee, Lag, Lease, LeaseDuration, ListOptions, Mechanism,
    NewEvent, OptionalOperation, Page, Query, ReadOptions, Reason, Replay, ResetOptions, Result,
    RetryOptions, RetryOutcome, StreamInfo, StreamName, StreamOptions, Timestamp, Wakeup,
    async_trait,
};

use crate::journal::{Beside, Journal, Late};

/// What no error may show.
pub(crate) const SECRET: &str = "correct horse battery staple";

/// The backend underneath, which is right.
pub(crate) struct Real {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The same without a line to it: calls do not wait, and are not written down.
    pub(crate) store: Arc<dyn Backend>,
    /// What was done in the store, by all handles.
    pub(crate) journal: Arc<Journal>,
    /// What a defect keeps in the store.
    pub(crate) beside: Arc<Beside>,
    /// Which handle this is.
    pub(crate) handle: usize,
    /// How many connections it has.
    pub(crate) pool: usize,
    /// What is held back on its way to the store.
    pub(crate) late: Arc<Late>,
}

impl Real {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// Methods that hand a call on to the real backend: what `async_trait` makes of an `async fn`, but with
/// the future of the backend itself. There are hundreds of defects, and building a future in each of
/// their methods would take minutes to compile.
macro_rules! handed_on {
    ($($method:ident($($life:lifetime $arg:ident: $type:ty),* $(; $last:ident: $last_type:ty)?) -> $result:ty;)+) => {$(
        fn $method<'me, 'real, $($life,)* 'async_trait>(
            &'me self,
            real: &'real Real,
            $($arg: $type,)*
            $($last: $last_type,)?
        ) -> Pin<Box<dyn Future<Output = $result> + Send + 'async_trait>>
        where
            'me: 'async_trait,
            'real: 'async_trait,
            $($life: 'async_trait,)*
            Self: 'async_trait,
        {
            real.backend.$method($($arg,)* $($last)?)
        }
    )+};
}

/// What is done differently. Appending one event is a batch of one, and the batches of settles loop,
/// so that each behaviour has one place.
#[async_trait]
pub(crate) trait Defect: Send + Sync + 'static {
    fn capabilities(&self, real: &Real) -> Capabilities {
        of_a_server(&real.backend.capabilities())
    }
    async fn append(&self, real: &Real, stream: &StreamName, event: NewEvent) -> Result<Event> {
        let mut events = self.append_batch(real, stream, vec![event]).await?;
        Ok(events.remove(0))
    }
    async fn renew_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        duration: LeaseDuration,
    ) -> Vec<Result<Lease>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            results.push(self.renew(real, lease, duration).await);
        }
        results
    }
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            results.push(self.ack(real, lease).await);
        }
        results
    }
    async fn retry_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            results.push(self.retry(real, lease, options).await);
        }
        results
    }
    async fn reject_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        reason: &Reason,
    ) -> Vec<Result<()>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            results.push(self.reject(real, lease, reason).await);
        }
        results
    }
    handed_on! {
        close() -> Result<()>;
        ensure_indexes() -> Result<()>;
        ping() -> Result<()>;
        create_stream('s stream: &'s StreamName, 'o options: &'o StreamOptions) -> Result<()>;
        create_group('s stream: &'s StreamName, 'g group: &'g GroupName, 'o options: &'o GroupOptions) -> Result<()>;
        append_batch('s stream: &'s StreamName; events: Vec<NewEvent>) -> Result<Vec<Event>>;
        read('s stream: &'s StreamName, 'o options: &'o ReadOptions) -> Result<Vec<Event>>;
        query('s stream: &'s StreamName, 'q query: &'q Query) -> Result<Page>;
        fetch('s stream: &'s StreamName, 'g group: &'g GroupName, 'o options: &'o FetchOptions) -> Result<Vec<Lease>>;
        renew('l lease: &'l Lease; duration: LeaseDuration) -> Result<Lease>;
        ack('l lease: &'l Lease) -> Result<()>;
        retry('l lease: &'l Lease, 'o options: &'o RetryOptions) -> Result<RetryOutcome>;
        reject('l lease: &'l Lease, 'r reason: &'r Reason) -> Result<()>;
        replay('s stream: &'s StreamName, 'g group: &'g GroupName, 'r replay: &'r Replay) -> Result<()>;
        reset_group('s stream: &'s StreamName, 'g group: &'g GroupName, 'o options: &'o ResetOptions) -> Result<()>;
        lag('s stream: &'s StreamName, 'g group: &'g GroupName) -> Result<Lag>;
        list_streams('o options: &'o ListOptions<StreamName>) -> Result<Vec<StreamInfo>>;
        list_groups('s stream: &'s StreamName, 'o options: &'o ListOptions<GroupName>) -> Result<Vec<GroupName>>;
        dead_letters('s stream: &'s StreamName, 'g group: &'g GroupName, 'o options: &'o DeadLetterOptions) -> Result<Vec<DeadLetter>>;
        group_info('s stream: &'s StreamName, 'g group: &'g GroupName) -> Result<GroupInfo>;
        wait_for_work('s stream: &'s StreamName, 'g group: &'g GroupName; timeout: Duration) -> Result<Wakeup>;
    }
}

/// The declaration of a server in front of the memory backend: it outlives its handles.
pub(crate) fn of_a_server(declared: &Capabilities) -> Capabilities {
    without(declared, &[])
}

/// As [`of_a_server`], without some guarantees.
pub(crate) fn without(declared: &Capabilities, missing: &[Guarantee]) -> Capabilities {
    let added = [Guarantee::Durable, Guarantee::Distributed];
    let guarantees = Guarantee::ALL.iter().copied().filter(|guarantee| {
        (declared.guarantees(*guarantee) || added.contains(guarantee))
            && !missing.contains(guarantee)
    });
    Capabilities::builder()
        .guarantees(guarantees)
        .mechanisms(Mechanism::ALL.iter().copied().filter(|m| declared.uses(*m)))
        .operations(
            OptionalOperation::ALL
                .iter()
                .copied()
                .filter(|o| declared.offers(*o)),
        )
        .limits(*declared.limits())
        .build()
        .expect("a subset of a valid declaration")
}

/// The memory backend with a defect in front.
pub(crate) struct Wrapped {
    pub(crate) real: Real,
    pub(crate) defect: Box<dyn Defect>,
}

#[async_trait]
impl Backend for Wrapped {
    fn capabilities(&self) -> Capabilities {
        self.defect.capabilities(&self.real)
    }
    async fn append(&self, stream: &StreamName, event: NewEvent) -> Result<Event> {
        self.defect.append(&self.real, stream, event).await
    }
    async fn close(&self) -> Result<()> {
        self.defect.close(&self.real).await
    }
    async fn ensure_indexes(&self) -> Result<()> {
        self.defect.ensure_indexes(&self.real).await
    }
    async fn ping(&self) -> Result<()> {
        self.defect.ping(&self.real).await
    }
    async fn create_stream(&self, stream: &StreamName, options: &StreamOptions) -> Result<()> {
        self.defect.create_stream(&self.real, stream, options).await
    }
    async fn create_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.defect
            .create_group(&self.real, stream, group, options)
            .await
    }
    async fn append_batch(&self, stream: &StreamName, events: Vec<NewEvent>) -> Result<Vec<Event>> {
        self.defect.append_batch(&self.real, stream, events).await
    }
    async fn read(&self, stream: &StreamName, options: &ReadOptions) -> Result<Vec<Event>> {
        self.defect.read(&self.real, stream, options).await
    }
    async fn query(&self, stream: &StreamName, query: &Query) -> Result<Page> {
        self.defect.query(&self.real, stream, query).await
    }
    async fn fetch(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.defect.fetch(&self.real, stream, group, options).await
    }
    async fn renew(&self, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        self.defect.renew(&self.real, lease, duration).await
    }
    async fn ack(&self, lease: &Lease) -> Result<()> {
        self.defect.ack(&self.real, lease).await
    }
    async fn retry(&self, lease: &Lease, options: &RetryOptions) -> Result<RetryOutcome> {
        self.defect.retry(&self.real, lease, options).await
    }
    async fn reject(&self, lease: &Lease, reason: &Reason) -> Result<()> {
        self.defect.reject(&self.real, lease, reason).await
    }
    async fn renew_batch(&self, leases: &[Lease], duration: LeaseDuration) -> Vec<Result<Lease>> {
        self.defect.renew_batch(&self.real, leases, duration).await
    }
    async fn ack_batch(&self, leases: &[Lease]) -> Vec<Result<()>> {
        self.defect.ack_batch(&self.real, leases).await
    }
    async fn retry_batch(
        &self,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        self.defect.retry_batch(&self.real, leases, options).await
    }
    async fn reject_batch(&self, leases: &[Lease], reason: &Reason) -> Vec<Result<()>> {
        self.defect.reject_batch(&self.real, leases, reason).await
    }
    async fn replay(&self, stream: &StreamName, group: &GroupName, replay: &Replay) -> Result<()> {
        self.defect.replay(&self.real, stream, group, replay).await
    }
    async fn reset_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        self.defect
            .reset_group(&self.real, stream, group, options)
            .await
    }
    async fn lag(&self, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        self.defect.lag(&self.real, stream, group).await
    }
    async fn list_streams(&self, options: &ListOptions<StreamName>) -> Result<Vec<StreamInfo>> {
        self.defect.list_streams(&self.real, options).await
    }
    async fn list_groups(
        &self,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        self.defect.list_groups(&self.real, stream, options).await
    }
    async fn dead_letters(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        self.defect
            .dead_letters(&self.real, stream, group, options)
            .await
    }
    async fn group_info(&self, stream: &StreamName, group: &GroupName) -> Result<GroupInfo> {
        self.defect.group_info(&self.real, stream, group).await
    }
    async fn wait_for_work(
        &self,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        self.defect
            .wait_for_work(&self.real, stream, group, timeout)
            .await
    }
}
