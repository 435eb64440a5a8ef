//! The trait that every backend implements.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    Capabilities, DeadLetter, DeadLetterOptions, Error, Event, FetchOptions, GroupInfo, GroupName,
    GroupOptions, Guarantee, Lag, Lease, LeaseDuration, ListOptions, NewEvent, Operation,
    OptionalOperation, Page, Query, ReadOptions, Reason, Replay, ResetOptions, Result,
    RetryOptions, RetryOutcome, StreamInfo, StreamName, StreamOptions, Wakeup,
};

/// A store with consumer-group semantics.
///
/// # For callers
///
/// Applications call the facade [`Rheo`](crate::Rheo), which holds an `Arc<dyn Backend>` and
/// validates input once for all backends.
///
/// # For implementers
///
/// The methods name what happens, not how: how deliveries are stored is private to the backend.
/// Every method takes `&self`; a handle is used by many tasks at once. The constructor is the
/// backend's own, and takes the [`Clock`](crate::Clock) that all time comes from.
///
/// The rules are in the specification, numbered; each method's docs name those it serves, and the
/// contract suite checks them. They hold for every method:
///
/// - **Errors** `Failed`, `Invalid` and `BackendUnavailable` mean no effect (ERR-1); an unknown
///   outcome is `Ambiguous` (ERR-2), but never of a read (ERR-3). Every method returns within the
///   operation timeout, also when the store is gone (ERR-4), and works again when it is back
///   (ERR-5). After [`close`](Self::close), every method that is declared gives
///   `BackendUnavailable` (ERR-7). What an error names is what the call gave (ERR-10).
/// - **Cancellation** Every future may be dropped at any await point. The effect is then whole or
///   none, and no lock, transaction or pool slot stays behind (CAN-1).
/// - **Input** Names, payloads and durations are valid by their types. What needs the store's state
///   is the backend's to check: partitions that are out of range, starts beyond the high watermark,
///   its own [`Limits`](crate::Limits) (ERR-8).
/// - **Order of errors** `BackendUnavailable` and `Unsupported` in either order, then
///   `StreamNotFound`, then `GroupNotFound`, then any other (ERR-6).
///
/// What is the same for all backends is in this crate, to be called: [`NewEvent::route`] and
/// [`Limits::check`](crate::Limits::check) when appending,
/// [`PartitionCount::check`](crate::PartitionCount::check) when reading,
/// [`Partitions::resolve`](crate::Partitions::resolve) for a selection, [`Start::check`] then
/// [`Start::resolve`] for a start, [`Query::matches`], [`Order::compare`](crate::Order::compare) and
/// [`Cursor`](crate::Cursor) for queries, [`EventId::generate`] and [`LeaseId::generate`] for ids,
/// [`Error::unsupported`] for what is not declared.
///
/// A backend that does not declare `dead_letters` need not keep them: that the event is not handed
/// out again, and lets the frontier pass, is enough.
///
/// [`Start::check`]: crate::Start::check
/// [`Start::resolve`]: crate::Start::resolve
/// [`EventId::generate`]: crate::EventId::generate
/// [`LeaseId::generate`]: crate::LeaseId::generate
#[async_trait]
pub trait Backend: Send + Sync {
    // Lifecycle and health

    /// What this backend promises, uses, offers and bounds.
    ///
    /// # Guarantees
    ///
    /// - The same for the life of the handle, and for all handles on one store that are opened alike
    ///   (CAP-2).
    fn capabilities(&self) -> Capabilities;

    /// Ends this handle; other handles go on. Closing again is `Ok`.
    ///
    /// # Guarantees
    ///
    /// - Every later call of what is declared gives `BackendUnavailable` on this handle (ERR-7).
    /// - What was confirmed stays, where `durable` is declared (DUR-1).
    async fn close(&self) -> Result<()>;

    /// Makes whatever tables, indexes or collections the backend needs.
    ///
    /// # Guarantees
    ///
    /// - May run at any time, again and again, from several processes at once, and loses nothing
    ///   (STR-5).
    async fn ensure_indexes(&self) -> Result<()>;

    /// Whether the store answers (ERR-9).
    ///
    /// # Errors
    ///
    /// - `BackendUnavailable` when it does not.
    async fn ping(&self) -> Result<()>;

    // Streams and groups

    /// Makes a stream.
    ///
    /// # Guarantees
    ///
    /// - It has the partitions asked for; of concurrent creators one wins (STR-1).
    /// - Any valid name works and collides with no other (STR-2); it is data, never code (STR-3).
    /// - It is isolated from other streams (STR-4).
    ///
    /// # Errors
    ///
    /// - `AlreadyExists`; the existing stream is unchanged.
    /// - `Unsupported` for more than one partition without the guarantee `partitions`.
    async fn create_stream(&self, stream: &StreamName, options: &StreamOptions) -> Result<()>;

    /// Makes a consumer group on a stream.
    ///
    /// # Guarantees
    ///
    /// - It gets every event after its start, whatever other groups do (DLV-1, DLV-2).
    /// - Its frontier begins at its start (FRN-2).
    /// - Of concurrent creators exactly one wins; the others get `AlreadyExists` (DLV-2).
    ///
    /// # Errors
    ///
    /// - `StreamNotFound`; `AlreadyExists`, the existing group is unchanged.
    /// - `Invalid` for `start`: beyond the high watermark, or a partition out of range.
    async fn create_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()>;

    // Log

    /// Appends one event and gives it back as it is in the log.
    ///
    /// # Guarantees
    ///
    /// As [`append_batch`](Self::append_batch) of one.
    ///
    /// # Errors
    ///
    /// As [`append_batch`](Self::append_batch).
    async fn append(&self, stream: &StreamName, event: NewEvent) -> Result<Event>;

    /// Appends events and gives them back, in input order, as they are in the log.
    ///
    /// # Guarantees
    ///
    /// - Sequences are 1, 2, 3 … in each partition, without gap or repeat (LOG-1), and become
    ///   visible in that order (LOG-2).
    /// - In each partition the batch is contiguous, in input order, and all or nothing; an error
    ///   other than `Ambiguous` means that nothing was written. An empty batch is `Ok` (LOG-3).
    /// - Routed by [`NewEvent::route`] (LOG-6). Generated ids are time-ordered (LOG-7).
    /// - Values come back equal (LOG-5, LOG-8); all see them at once (LOG-10), unchanged for ever
    ///   (LOG-4).
    ///
    /// # Errors
    ///
    /// - `StreamNotFound`, also for an empty batch.
    /// - `AlreadyExists` when an id is in the stream already, or twice in the batch (LOG-7).
    /// - `Invalid` for `partition` out of range, or for input beyond the declared limits.
    /// - `Unsupported` for more than one event without the guarantee `batch_writes`.
    async fn append_batch(&self, stream: &StreamName, events: Vec<NewEvent>) -> Result<Vec<Event>>;

    /// Reads a partition in ascending order of sequence.
    ///
    /// # Guarantees
    ///
    /// - As many events as there are above `after`, up to the limit (LOG-9).
    ///
    /// # Errors
    ///
    /// - `StreamNotFound`; `Invalid` for `partition` out of range.
    async fn read(&self, stream: &StreamName, options: &ReadOptions) -> Result<Vec<Event>>;

    /// Gives one page of the events that match, in the query's total order; the default is
    /// `Unsupported`.
    ///
    /// # Guarantees
    ///
    /// - Filters compare JSON by value and are all anded (QRY-1); ties have an order (QRY-2).
    /// - Paging by [`Page::next`] neither skips nor repeats (QRY-3).
    /// - No group notices (QRY-4).
    ///
    /// # Errors
    ///
    /// - `Unsupported` without `ordered_range_scan`, or for a filter without `secondary_indexes`.
    /// - `StreamNotFound`; `Invalid` for `partition` out of range or a damaged `cursor`.
    async fn query(&self, _stream: &StreamName, _query: &Query) -> Result<Page> {
        Err(Error::unsupported(
            Operation::Query,
            Guarantee::OrderedRangeScan,
        ))
    }

    // Delivery

    /// Claims events for a consumer.
    ///
    /// # Guarantees
    ///
    /// - At most `limit` leases, from the selected partitions; at least one if anything is
    ///   claimable and nothing else is fetching, unless the group is at the backend's bound on open
    ///   events of a partition, 10,000 or more (DLV-3).
    /// - In each partition the lowest claimable sequences, ascending (DLV-4); no partition starves
    ///   (DLV-5).
    /// - At most one unexpired lease per group and event (DLV-7), and no event is missed (DLV-6).
    /// - Each claim has a new unguessable lease id (LSE-1) and counts as an attempt (LSE-5); the
    ///   lease is whole (DLV-8).
    /// - Claimable is what was never claimed, what was retried once its delay is over (DLQ-1), and
    ///   what has a lease with `now >= expires_at` (LSE-4), unless its attempts are used up: then
    ///   it is dead-lettered instead (DLQ-3).
    ///
    /// # Errors
    ///
    /// - `StreamNotFound`, `GroupNotFound`; `Invalid` for `partitions` out of range.
    ///
    /// # Cancellation
    ///
    /// A claim whose answer is lost stands until it expires, and counts as an attempt.
    async fn fetch(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>>;

    /// Sets a lease's `expires_at` to now + `duration`, also to an earlier time, and gives the lease
    /// back with its id unchanged (LSE-6).
    ///
    /// # Guarantees
    ///
    /// - Only the current claim can be renewed (LSE-2), also after it expired as long as nobody
    ///   reclaimed it (LSE-4).
    ///
    /// # Errors
    ///
    /// - `StaleLease`, also when stream or group do not exist; `ReceiptMismatch` (LSE-3), also from a
    ///   backend without receipts when one is handed in, see [`Lease::receipt`].
    async fn renew(&self, lease: &Lease, duration: LeaseDuration) -> Result<Lease>;

    /// Settles a lease: the event is done for this group.
    ///
    /// # Guarantees
    ///
    /// - Only the current claim can be settled (LSE-2), once (LSE-7), also after it expired as long
    ///   as nobody reclaimed it (LSE-4).
    /// - The log is unchanged (LOG-4); the frontier follows (FRN-1).
    ///
    /// # Errors
    ///
    /// - `StaleLease`, also when stream or group do not exist; `ReceiptMismatch` (LSE-3).
    async fn ack(&self, lease: &Lease) -> Result<()>;

    /// Settles a lease: the event is claimable again, at once or after a delay (DLQ-1).
    ///
    /// # Guarantees
    ///
    /// - Without a delay it is claimable whatever the clock says next, also if it goes back: do not
    ///   store it as claimable from now on.
    /// - The moment at which a delay ends is never above the highest timestamp: a longer one ends then.
    /// - When the attempts are used up, the event is dead-lettered instead (DLQ-2).
    ///
    /// # Errors
    ///
    /// - `StaleLease`, also when stream or group do not exist; `ReceiptMismatch` (LSE-3).
    async fn retry(&self, lease: &Lease, options: &RetryOptions) -> Result<RetryOutcome>;

    /// Settles a lease: the event becomes a dead letter of this group alone (DLQ-4).
    ///
    /// # Guarantees
    ///
    /// - The dead letter keeps event, attempt, reason and time (DLQ-5), and lets the frontier pass
    ///   (DLQ-6).
    ///
    /// # Errors
    ///
    /// - `StaleLease`, also when stream or group do not exist; `ReceiptMismatch` (LSE-3).
    async fn reject(&self, lease: &Lease, reason: &Reason) -> Result<()>;

    /// Renews many leases; the default loops.
    ///
    /// # Guarantees
    ///
    /// - One result per lease, in order; a bad lease neither blocks nor carries the others (LSE-8).
    /// - Of a lease that is given twice, the first is served first.
    async fn renew_batch(&self, leases: &[Lease], duration: LeaseDuration) -> Vec<Result<Lease>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            results.push(self.renew(lease, duration).await);
        }
        results
    }

    /// Acks many leases; the default loops. As [`renew_batch`](Self::renew_batch).
    async fn ack_batch(&self, leases: &[Lease]) -> Vec<Result<()>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            results.push(self.ack(lease).await);
        }
        results
    }

    /// Retries many leases; the default loops. As [`renew_batch`](Self::renew_batch).
    async fn retry_batch(
        &self,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            results.push(self.retry(lease, options).await);
        }
        results
    }

    /// Rejects many leases; the default loops. As [`renew_batch`](Self::renew_batch).
    async fn reject_batch(&self, leases: &[Lease], reason: &Reason) -> Vec<Result<()>> {
        let mut results = Vec::with_capacity(leases.len());
        for lease in leases {
            results.push(self.reject(lease, reason).await);
        }
        results
    }

    // Group progress

    /// Makes delivered events claimable again; the default is `Unsupported`.
    ///
    /// # Guarantees
    ///
    /// - Everything above the sequence: attempts from 1, dead letters gone, live leases stale
    ///   (RPL-1); the frontier becomes the lower of itself and the sequence (RPL-2); never forward
    ///   (RPL-3). Below the group's start, the start moves back to the sequence.
    /// - Chosen events: just those (RPL-4); one that was not delivered yet stays as it is.
    /// - Other groups and the log are untouched (RPL-6); atomic against fetch and settle (RPL-7).
    ///
    /// # Errors
    ///
    /// - `Unsupported` without the guarantee `replay`.
    /// - `StreamNotFound`, `GroupNotFound`; `Invalid` for `partitions` out of range or for an id in
    ///   `events` that is not in the stream, and then nothing is reopened.
    async fn replay(
        &self,
        _stream: &StreamName,
        _group: &GroupName,
        _replay: &Replay,
    ) -> Result<()> {
        Err(Error::unsupported(Operation::Replay, Guarantee::Replay))
    }

    /// Drops a group's delivery state in the selected partitions and starts it again (RPL-5); the
    /// default is `Unsupported`.
    ///
    /// # Guarantees
    ///
    /// - The frontier is the new start; every lease from before is stale (RPL-7).
    /// - Other partitions, other groups and the log are untouched (RPL-6).
    ///
    /// # Errors
    ///
    /// - `Unsupported` without the guarantee `replay`.
    /// - `StreamNotFound`, `GroupNotFound`; `Invalid` for `partitions` or `start`.
    async fn reset_group(
        &self,
        _stream: &StreamName,
        _group: &GroupName,
        _options: &ResetOptions,
    ) -> Result<()> {
        Err(Error::unsupported(Operation::ResetGroup, Guarantee::Replay))
    }

    /// Gives a group's frontier, high watermark and lag in every partition; the default is
    /// `Unsupported`.
    ///
    /// # Guarantees
    ///
    /// - Exact when nothing is concurrent, and never ahead of the progress made (FRN-4).
    ///
    /// # Errors
    ///
    /// - `Unsupported` without the guarantee `contiguous_frontier`.
    /// - `StreamNotFound`, `GroupNotFound`.
    async fn lag(&self, _stream: &StreamName, _group: &GroupName) -> Result<Lag> {
        Err(Error::unsupported(
            Operation::Lag,
            Guarantee::ContiguousFrontier,
        ))
    }

    // Ops inspect, optional

    /// Lists streams by name, byte for byte (OPS-1); the default is `Unsupported`.
    async fn list_streams(&self, _options: &ListOptions<StreamName>) -> Result<Vec<StreamInfo>> {
        Err(Error::unsupported(
            Operation::ListStreams,
            OptionalOperation::ListStreams,
        ))
    }

    /// Lists a stream's groups by name, byte for byte (OPS-2); the default is `Unsupported`.
    ///
    /// # Errors
    ///
    /// - `StreamNotFound`.
    async fn list_groups(
        &self,
        _stream: &StreamName,
        _options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        Err(Error::unsupported(
            Operation::ListGroups,
            OptionalOperation::ListGroups,
        ))
    }

    /// Pages through a group's dead letters by partition, then sequence (DLQ-5); the default is
    /// `Unsupported`.
    ///
    /// # Errors
    ///
    /// - `StreamNotFound`, `GroupNotFound`.
    /// - `CursorNotFound` when no dead letter of the group has the id given as `after`.
    async fn dead_letters(
        &self,
        _stream: &StreamName,
        _group: &GroupName,
        _options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        Err(Error::unsupported(
            Operation::DeadLetters,
            OptionalOperation::DeadLetters,
        ))
    }

    /// Describes a group (OPS-3); the default is `Unsupported`.
    ///
    /// # Errors
    ///
    /// - `StreamNotFound`, `GroupNotFound`.
    async fn group_info(&self, _stream: &StreamName, _group: &GroupName) -> Result<GroupInfo> {
        Err(Error::unsupported(
            Operation::GroupInfo,
            OptionalOperation::GroupInfo,
        ))
    }

    // Wakeup, optional

    /// Waits until something might be claimable for the group, or until `timeout` has passed; the
    /// default is `Unsupported`. A hint: it may come for nothing, and fetching without it is right
    /// too (OPS-4).
    ///
    /// The timeout is real time, whatever the clock says, and may be as long as a `Duration` can be.
    /// With work that is there already, whatever made it claimable, the answer is `MaybeWork`.
    ///
    /// # Errors
    ///
    /// - `StreamNotFound`, `GroupNotFound`.
    async fn wait_for_work(
        &self,
        _stream: &StreamName,
        _group: &GroupName,
        _timeout: Duration,
    ) -> Result<Wakeup> {
        Err(Error::unsupported(
            Operation::WaitForWork,
            OptionalOperation::WaitForWork,
        ))
    }
}
