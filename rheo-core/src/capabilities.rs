//! What a backend declares: promises, means, optional operations and limits.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{Error, MAX_JSON_BYTES, Operation};

macro_rules! declared {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident => $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum $type { $($(#[$variant_doc])* $variant,)+ }

        impl $type {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name in documents and messages.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

declared! {
    /// What is promised. Guarantees gate cases of the contract (CAP-3).
    Guarantee {
        /// What was confirmed survives closing, killing and restarting (DUR-1).
        Durable => "durable",
        /// Handles in several processes may fetch one group at once (CAP-5, DST-1).
        Distributed => "distributed",
        /// Nothing is missed (DLV-6). Always declared.
        AtLeastOnce => "at_least_once",
        /// Only the current claim settles (LSE-2). Always declared.
        LeaseFencing => "lease_fencing",
        /// Streams may have more than one partition (STR-1). Without it, `create_stream` with more
        /// is `Unsupported`.
        Partitions => "partitions",
        /// `lag` is exact (FRN-1 to FRN-4). Without it, `lag` is `Unsupported`.
        ContiguousFrontier => "contiguous_frontier",
        /// Groups can go back (RPL-1 to RPL-7). Without it, `replay` and `reset_group` are
        /// `Unsupported`.
        Replay => "replay",
        /// Events can be queried by partition, sequence and time in a total order (QRY-1 to
        /// QRY-4). Without it, `query` is `Unsupported`.
        OrderedRangeScan => "ordered_range_scan",
        /// Queries may filter by type, key, payload and metadata (QRY-1). Without it, such a query
        /// is `Unsupported`. Needs `ordered_range_scan`.
        SecondaryIndexes => "secondary_indexes",
        /// Batches are written whole (LOG-3). Without it, `append_batch` of more than one event is
        /// `Unsupported`.
        BatchWrites => "batch_writes",
    }
}

declared! {
    /// How it is done. Mechanisms never excuse a case; they may only add some (CAP-3).
    Mechanism {
        /// Writes that succeed only if nothing changed in between.
        AtomicCompareAndSet => "atomic_compare_and_set",
        /// The store tells its clients that something happened.
        Notifications => "notifications",
        /// The store offers its changes as a feed.
        ChangeFeed => "change_feed",
        /// The store has consumer groups of its own.
        NativeConsumerGroups => "native_consumer_groups",
        /// The store lists unsettled deliveries of its own.
        NativePendingList => "native_pending_list",
        /// The store hands expired deliveries on by itself.
        NativeReclaim => "native_reclaim",
        /// Reads can wait for events in the store.
        BlockingReads => "blocking_reads",
        /// The store computes a group's lag itself.
        NativeGroupLag => "native_group_lag",
    }
}

declared! {
    /// An operation of [`Backend`](crate::Backend) that a backend may lack. Undeclared, it is
    /// `Unsupported` (CAP-6).
    OptionalOperation {
        /// List the streams (OPS-1).
        ListStreams => "list_streams",
        /// List the groups of a stream (OPS-2).
        ListGroups => "list_groups",
        /// Page through a group's dead letters (DLQ-5).
        DeadLetters => "dead_letters",
        /// Describe a group (OPS-3).
        GroupInfo => "group_info",
        /// Wait until work might be there (OPS-4).
        WaitForWork => "wait_for_work",
    }
}

impl OptionalOperation {
    /// The operation it is about.
    pub fn operation(self) -> Operation {
        match self {
            Self::ListStreams => Operation::ListStreams,
            Self::ListGroups => Operation::ListGroups,
            Self::DeadLetters => Operation::DeadLetters,
            Self::GroupInfo => Operation::GroupInfo,
            Self::WaitForWork => Operation::WaitForWork,
        }
    }
}

/// Bounds that are smaller than the ones every backend has; input beyond them is `Invalid`.
///
/// There are least values, so that applications can rely on some room everywhere (CAP-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Limits {
    /// The longest payload, and the longest metadata, in bytes of compact JSON; at least
    /// [`MIN_JSON_BYTES`](Self::MIN_JSON_BYTES), default and at most [`MAX_JSON_BYTES`] (LOG-8).
    pub json_bytes: usize,
    /// The most events in a batch; at least [`MIN_BATCH_EVENTS`](Self::MIN_BATCH_EVENTS), default
    /// `None`, no bound.
    pub batch_events: Option<usize>,
    /// The most bytes of payload and metadata in a batch, as compact JSON; at least
    /// [`MIN_BATCH_BYTES`](Self::MIN_BATCH_BYTES), default `None`, no bound.
    pub batch_bytes: Option<usize>,
}

impl Limits {
    /// The least [`json_bytes`](Self::json_bytes): 16 KiB.
    pub const MIN_JSON_BYTES: usize = 16_384;
    /// The least [`batch_events`](Self::batch_events).
    pub const MIN_BATCH_EVENTS: usize = 50;
    /// The least [`batch_bytes`](Self::batch_bytes): 64 KiB.
    pub const MIN_BATCH_BYTES: usize = 65_536;

    /// No bounds of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Payload and metadata of at most `bytes` each.
    #[must_use]
    pub fn with_json_bytes(mut self, bytes: usize) -> Self {
        self.json_bytes = bytes;
        self
    }

    /// At most `events` in a batch.
    #[must_use]
    pub fn with_batch_events(mut self, events: usize) -> Self {
        self.batch_events = Some(events);
        self
    }

    /// At most `bytes` of payload and metadata in a batch.
    #[must_use]
    pub fn with_batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = Some(bytes);
        self
    }

    /// Checks the events of one append.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] that names the argument and the limit.
    pub fn check(&self, events: &[crate::NewEvent]) -> Result<(), Error> {
        if let Some(max) = self.batch_events.filter(|max| events.len() > *max) {
            return Err(Error::invalid(
                "events",
                format_args!("{} events", events.len()),
                format!("at most {max} in a batch on this backend"),
            ));
        }
        if self.batch_bytes.is_none() && self.json_bytes >= MAX_JSON_BYTES {
            return Ok(());
        }
        let mut total = 0_usize;
        for event in events {
            for (argument, object) in [("payload", &event.payload), ("metadata", &event.metadata)] {
                let bytes = object.byte_len();
                total = total.saturating_add(bytes);
                if bytes > self.json_bytes {
                    return Err(Error::invalid(
                        argument,
                        format_args!("{bytes} bytes of JSON"),
                        format!("at most {} bytes on this backend", self.json_bytes),
                    ));
                }
            }
        }
        match self.batch_bytes.filter(|max| total > *max) {
            Some(max) => Err(Error::invalid(
                "events",
                format_args!("{total} bytes of JSON"),
                format!("at most {max} bytes in a batch on this backend"),
            )),
            None => Ok(()),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            json_bytes: MAX_JSON_BYTES,
            batch_events: None,
            batch_bytes: None,
        }
    }
}

/// What a backend declares: validated, and constant for a handle (CAP-1, CAP-2).
///
/// ```
/// use rheo_core::{Capabilities, Guarantee, Mechanism, OptionalOperation};
///
/// let capabilities = Capabilities::builder()
///     .guarantees([Guarantee::Partitions, Guarantee::ContiguousFrontier])
///     .mechanisms([Mechanism::AtomicCompareAndSet])
///     .operations([OptionalOperation::DeadLetters])
///     .build()?;
/// assert!(capabilities.guarantees(Guarantee::AtLeastOnce));
/// assert!(!capabilities.guarantees(Guarantee::Durable));
/// # Ok::<(), rheo_core::Error>(())
/// ```
///
/// A backend builds its declaration in its constructor, which returns a `Result` anyway, and gives
/// out clones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    guarantees: BTreeSet<Guarantee>,
    mechanisms: BTreeSet<Mechanism>,
    operations: BTreeSet<OptionalOperation>,
    limits: Limits,
}

impl Capabilities {
    /// Starts a declaration: `at_least_once` and `lease_fencing`, and nothing else.
    pub fn builder() -> CapabilitiesBuilder {
        CapabilitiesBuilder::default()
    }

    /// Whether the guarantee is declared.
    pub fn guarantees(&self, guarantee: Guarantee) -> bool {
        self.guarantees.contains(&guarantee)
    }

    /// Whether the mechanism is declared.
    pub fn uses(&self, mechanism: Mechanism) -> bool {
        self.mechanisms.contains(&mechanism)
    }

    /// Whether the optional operation is declared.
    pub fn offers(&self, operation: OptionalOperation) -> bool {
        self.operations.contains(&operation)
    }

    /// The declared limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The error of an operation that needs an undeclared guarantee; `Ok` if it is declared.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] that names operation and guarantee.
    pub fn require(&self, operation: Operation, guarantee: Guarantee) -> Result<(), Error> {
        if self.guarantees(guarantee) {
            return Ok(());
        }
        Err(Error::unsupported(operation, guarantee))
    }
}

/// Collects a declaration; [`build`](Self::build) validates it.
#[derive(Debug, Clone, Default)]
pub struct CapabilitiesBuilder {
    guarantees: BTreeSet<Guarantee>,
    denied: BTreeSet<Guarantee>,
    mechanisms: BTreeSet<Mechanism>,
    operations: BTreeSet<OptionalOperation>,
    limits: Limits,
}

impl CapabilitiesBuilder {
    /// Declares guarantees.
    #[must_use]
    pub fn guarantees(mut self, guarantees: impl IntoIterator<Item = Guarantee>) -> Self {
        self.guarantees.extend(guarantees);
        self
    }

    /// Declares that a guarantee is not given; an error for the two that always are (CAP-1).
    #[must_use]
    pub fn without(mut self, guarantee: Guarantee) -> Self {
        self.denied.insert(guarantee);
        self
    }

    /// Declares mechanisms.
    #[must_use]
    pub fn mechanisms(mut self, mechanisms: impl IntoIterator<Item = Mechanism>) -> Self {
        self.mechanisms.extend(mechanisms);
        self
    }

    /// Declares optional operations.
    #[must_use]
    pub fn operations(mut self, operations: impl IntoIterator<Item = OptionalOperation>) -> Self {
        self.operations.extend(operations);
        self
    }

    /// Declares limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Validates the declaration.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for `capabilities` or `limits`: `at_least_once` or `lease_fencing`
    /// denied, a guarantee both declared and denied, `secondary_indexes` without
    /// `ordered_range_scan`, or a limit below its least value or above the common bound.
    pub fn build(self) -> Result<Capabilities, Error> {
        let always = [Guarantee::AtLeastOnce, Guarantee::LeaseFencing];
        for guarantee in &self.denied {
            if always.contains(guarantee) {
                return Err(Error::invalid(
                    "capabilities",
                    format_args!("{guarantee}: false"),
                    "at_least_once and lease_fencing always true",
                ));
            }
            if self.guarantees.contains(guarantee) {
                return Err(Error::invalid(
                    "capabilities",
                    format_args!("{guarantee} both true and false"),
                    "each guarantee declared once",
                ));
            }
        }
        let mut guarantees = self.guarantees;
        guarantees.extend(always);
        if guarantees.contains(&Guarantee::SecondaryIndexes)
            && !guarantees.contains(&Guarantee::OrderedRangeScan)
        {
            return Err(Error::invalid(
                "capabilities",
                "secondary_indexes without ordered_range_scan",
                "both or neither, since filters are part of a query",
            ));
        }
        let limits = self.limits;
        if !(Limits::MIN_JSON_BYTES..=MAX_JSON_BYTES).contains(&limits.json_bytes) {
            return Err(Error::invalid(
                "limits.json_bytes",
                limits.json_bytes,
                format!("{} to {MAX_JSON_BYTES}", Limits::MIN_JSON_BYTES),
            ));
        }
        for (argument, bound, least) in [
            (
                "limits.batch_events",
                limits.batch_events,
                Limits::MIN_BATCH_EVENTS,
            ),
            (
                "limits.batch_bytes",
                limits.batch_bytes,
                Limits::MIN_BATCH_BYTES,
            ),
        ] {
            if let Some(bound) = bound.filter(|bound| *bound < least) {
                let allowed = format!("{least} or more, or none");
                return Err(Error::invalid(argument, bound, allowed));
            }
        }
        Ok(Capabilities {
            guarantees,
            mechanisms: self.mechanisms,
            operations: self.operations,
            limits,
        })
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Declared {
            guarantees: BTreeSet<Guarantee>,
            mechanisms: BTreeSet<Mechanism>,
            operations: BTreeSet<OptionalOperation>,
            limits: Limits,
        }
        use serde::de::Error as _;
        let declared = Declared::deserialize(deserializer)?;
        for always in [Guarantee::AtLeastOnce, Guarantee::LeaseFencing] {
            if !declared.guarantees.contains(&always) {
                return Err(D::Error::custom(format_args!("{always} must be declared")));
            }
        }
        Self::builder()
            .guarantees(declared.guarantees)
            .mechanisms(declared.mechanisms)
            .operations(declared.operations)
            .limits(declared.limits)
            .build()
            .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_always_promised_cannot_be_denied() {
        for guarantee in [Guarantee::AtLeastOnce, Guarantee::LeaseFencing] {
            let denied = Capabilities::builder().without(guarantee).build();
            assert!(matches!(denied, Err(Error::Invalid(_))));
            let declared = Capabilities::builder().build().expect("valid");
            assert!(declared.guarantees(guarantee));
        }
        assert!(
            Capabilities::builder()
                .without(Guarantee::Durable)
                .build()
                .is_ok()
        );
    }

    #[test]
    fn contradictions_are_invalid() {
        let both = Capabilities::builder()
            .guarantees([Guarantee::Durable])
            .without(Guarantee::Durable);
        assert!(both.build().is_err());
        let filters = Capabilities::builder().guarantees([Guarantee::SecondaryIndexes]);
        assert!(filters.build().is_err());
        for limits in [
            Limits::new().with_json_bytes(Limits::MIN_JSON_BYTES - 1),
            Limits::new().with_json_bytes(MAX_JSON_BYTES + 1),
            Limits::new().with_batch_events(Limits::MIN_BATCH_EVENTS - 1),
            Limits::new().with_batch_bytes(Limits::MIN_BATCH_BYTES - 1),
        ] {
            assert!(Capabilities::builder().limits(limits).build().is_err());
        }
        let least = Limits::new()
            .with_json_bytes(Limits::MIN_JSON_BYTES)
            .with_batch_events(Limits::MIN_BATCH_EVENTS)
            .with_batch_bytes(Limits::MIN_BATCH_BYTES);
        assert!(Capabilities::builder().limits(least).build().is_ok());
    }

    #[test]
    fn a_declaration_is_validated_when_read_too() {
        let declared = Capabilities::builder()
            .guarantees([Guarantee::Replay])
            .operations([OptionalOperation::GroupInfo])
            .build()
            .expect("valid");
        let mut text = serde_json::to_value(&declared).expect("serializes");
        assert_eq!(
            serde_json::from_value::<Capabilities>(text.clone()).expect("reads"),
            declared
        );
        text["guarantees"] = json!(["replay", "at_least_once"]);
        assert!(serde_json::from_value::<Capabilities>(text).is_err());
    }

    #[test]
    fn limits_name_the_argument() {
        let event = crate::NewEvent::new("t", json!({"a": "x".repeat(100)})).expect("allowed");
        let argument = |limits: Limits| match limits.check(&[event.clone(), event.clone()]) {
            Err(Error::Invalid(invalid)) => invalid.argument,
            other => panic!("{other:?}"),
        };
        assert_eq!(argument(Limits::new().with_json_bytes(50)), "payload");
        assert_eq!(argument(Limits::new().with_batch_events(1)), "events");
        assert_eq!(argument(Limits::new().with_batch_bytes(150)), "events");
        assert!(Limits::new().check(&[event]).is_ok());
    }
}
