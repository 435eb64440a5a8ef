//! Ways to do in a store what no backend may do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rheo_core::{
    Event, EventId, FetchOptions, Lease, LeaseDuration, NewEvent, Partition, Partitions,
    ReadOptions, Replay, Result, RetryOptions, StreamName,
};
use tokio::task::yield_now;

use crate::book::held;
use crate::defect::Real;
use crate::journal::What;

/// Lets others get in.
pub(crate) async fn pause(times: usize) {
    for _ in 0..times {
        yield_now().await;
    }
}

/// A fetch from the partition of an event.
fn from_its_partition(lease: &Lease) -> FetchOptions {
    FetchOptions::new(lease.consumer.clone())
        .with_partitions(Partitions::only([lease.event.partition]))
}

/// Takes a current claim away from its holder, for a fetch: claims until its event is the last claimed. One
/// at the last attempt stays.
pub(crate) async fn taken_over(
    real: &Real,
    lease: &Lease,
    options: &FetchOptions,
) -> Result<Vec<Lease>> {
    let (stream, group) = (&lease.event.stream, &lease.group);
    let info = real.store.group_info(stream, group).await?;
    if lease.attempt >= info.max_attempts.get() {
        return Ok(Vec::new());
    }
    real.store.retry(lease, &RetryOptions::new()).await?;
    let from = Partitions::only([lease.event.partition]);
    let options = options.clone().with_limit(1).with_partitions(from);
    let mut taken = Vec::new();
    loop {
        let claimed = real.store.fetch(stream, group, &options).await?;
        let is_over = claimed.is_empty() || claimed.iter().any(|c| c.event.id == lease.event.id);
        let noted = claimed.iter().cloned();
        let noted = noted.map(|claim| (claim, What::Claimed)).collect();
        real.journal.note(real.handle, noted);
        taken.extend(claimed);
        if is_over {
            return Ok(taken);
        }
    }
}

/// What was taken over, and what was fetched besides, as far as the limit goes and in order.
pub(crate) fn in_one_answer(
    taken: Vec<Lease>,
    fetched: Vec<Lease>,
    options: &FetchOptions,
) -> Vec<Lease> {
    let is_taken = |lease: &Lease| taken.iter().any(|t| t.event.id == lease.event.id);
    let others: Vec<Lease> = fetched.into_iter().filter(|l| !is_taken(l)).collect();
    let mut leases: Vec<Lease> = taken.into_iter().rev().chain(others).collect();
    leases.truncate(options.limit as usize);
    leases.sort_by_key(|lease| (lease.event.partition, lease.event.sequence));
    leases
}

/// Claims an event that was reopened, if it still is open; what else that claims is given back as new.
pub(crate) async fn claimed_again(real: &Real, lease: &Lease) -> Result<Option<Lease>> {
    let (stream, group) = (&lease.event.stream, &lease.group);
    let options = from_its_partition(lease).with_limit(u32::MAX);
    let claimed = real.store.fetch(stream, group, &options).await?;
    let (mut target, others): (Vec<_>, Vec<_>) = claimed
        .into_iter()
        .partition(|claim| claim.event.id == lease.event.id);
    let others = others.iter().map(|claim| claim.event.id).collect();
    let replay = Replay::Events(others);
    real.store.replay(stream, group, &replay).await?;
    Ok(target.pop())
}

/// Makes sure that the event of a current lease is not delivered any more.
pub(crate) async fn lose(real: &Real, lease: &Lease) -> Result<()> {
    let year = LeaseDuration::new(Duration::from_secs(365 * 24 * 3_600))?;
    real.store.renew(lease, year).await.map(drop)
}

/// Makes an event new for a group.
pub(crate) async fn reopen(real: &Real, lease: &Lease) -> Result<()> {
    let replay = Replay::Events(vec![lease.event.id]);
    let (stream, group) = (&lease.event.stream, &lease.group);
    real.store.replay(stream, group, &replay).await?;
    let reopened = vec![(lease.clone(), What::Reopened)];
    real.journal.note(real.handle, reopened);
    Ok(())
}

/// Things that are under way, as all handles see them.
pub(crate) struct UnderWay<T>(Arc<Mutex<Vec<T>>>);

impl<T> Default for UnderWay<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone + PartialEq> UnderWay<T> {
    /// It is under way until the guard is dropped.
    pub(crate) fn begin(&self, thing: T) -> Guard<T> {
        held(&self.0).push(thing.clone());
        Guard(Arc::clone(&self.0), thing)
    }

    pub(crate) fn has(&self, thing: &T) -> bool {
        held(&self.0).contains(thing)
    }

    pub(crate) fn is_any(&self) -> bool {
        !held(&self.0).is_empty()
    }

    pub(crate) fn all(&self) -> Vec<T> {
        held(&self.0).clone()
    }
}

/// Ends what is under way.
pub(crate) struct Guard<T: PartialEq>(Arc<Mutex<Vec<T>>>, T);

impl<T: PartialEq> Drop for Guard<T> {
    fn drop(&mut self) {
        let mut all = held(&self.0);
        if let Some(at) = all.iter().position(|thing| *thing == self.1) {
            all.remove(at);
        }
    }
}

/// Whether anything is there in a stream's partitions, by partition.
pub(crate) async fn first_events(real: &Real, stream: &StreamName) -> Vec<Option<Event>> {
    let mut first = Vec::new();
    for partition in (0..).map(Partition::new) {
        let options = ReadOptions::new().with_partition(partition).with_limit(1);
        match real.store.read(stream, &options).await {
            Ok(mut events) => first.push(events.pop()),
            Err(_) => break,
        }
    }
    first
}

/// How long an append takes: every other one is overtaken.
pub(crate) fn slowness(appends: &AtomicUsize) -> usize {
    const LONG: usize = 24;
    appends.fetch_add(1, Ordering::Relaxed) % 2 * LONG
}

/// Events whose appends are under way, by the ids that they were given.
pub(crate) type OpenAppends = UnderWay<EventId>;

/// Appends, which is under way for some pauses more.
pub(crate) async fn append_openly(
    real: &Real,
    stream: &StreamName,
    events: Vec<NewEvent>,
    pauses: usize,
) -> Result<Vec<Event>> {
    let open = real.beside.of::<OpenAppends>();
    let ids = events.iter().filter_map(|event| event.id);
    let _open: Vec<_> = ids.map(|id| open.begin(id)).collect();
    let events = real.backend.append_batch(stream, events).await;
    pause(pauses).await;
    events
}

/// All events of a stream as they are in the store, by partition, then sequence.
pub(crate) async fn stored_log(real: &Real, stream: &StreamName) -> Vec<Event> {
    let mut events = Vec::new();
    for partition in (0..).map(Partition::new) {
        let options = ReadOptions::new().with_partition(partition);
        match real.store.read(stream, &options.with_limit(u32::MAX)).await {
            Ok(read) => events.extend(read),
            Err(_) => break,
        }
    }
    events
}
