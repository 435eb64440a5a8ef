//! The stage of a case: a stream, a group on it, and the usual steps with both.

use std::sync::Arc;
use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, DeadLetter, DeadLetterOptions, ErrorKind, Event, FetchOptions, GroupName,
    GroupOptions, Lag, Lease, LeaseDuration, MaxAttempts, NewEvent, Page, Partition,
    PartitionCount, Query, ReadOptions, Reason, Replay, ResetOptions, RetryDelay, RetryOptions,
    RetryOutcome, Sequence, Start, StreamName, StreamOptions, Timestamp,
};

use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::durations::MICROSECOND;
use crate::expect::{Outcome, broken, expect, expect_empty, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::recorder::Recorder;

/// Partition 0.
pub(crate) const P0: Partition = Partition::ZERO;
/// Partition 1.
pub(crate) const P1: Partition = Partition::new(1);

/// Sequences that no case reaches, around the bounds of numbers that are too small for them.
pub(crate) const FAR: [u64; 12] = [
    (1 << 31) - 1,
    1 << 31,
    (1 << 31) + 1,
    (1 << 32) - 1,
    1 << 32,
    (1 << 32) + 1,
    (1 << 32) + 2,
    1 << 53,
    (1 << 53) + 1,
    (1 << 62) + 1,
    i64::MAX.unsigned_abs() - 1,
    i64::MAX.unsigned_abs(),
];

/// The most calls that gathering something takes before the suite gives up on it.
const MOST_CALLS: usize = 5_000;

/// A stream of the case.
#[derive(Clone)]
pub(crate) struct Stream {
    pub(crate) t: Fixture,
    pub(crate) backend: Recorder,
    pub(crate) name: StreamName,
}

/// A consumer group of the case.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) stream: Stream,
    pub(crate) backend: Recorder,
    pub(crate) name: GroupName,
}

impl Fixture {
    /// Makes a stream of that many partitions.
    pub(crate) async fn stream(&self, partitions: u32) -> Outcome<Stream> {
        self.stream_named(&format!("orders-{}", self.number()), partitions)
            .await
    }

    /// Makes a stream of that name.
    pub(crate) async fn stream_named(&self, name: &str, partitions: u32) -> Outcome<Stream> {
        let name = StreamName::new(name)?;
        let options = StreamOptions::new().with_partition_count(PartitionCount::new(partitions)?);
        self.backend.create_stream(&name, &options).await?;
        Ok(self.existing_stream(name))
    }

    /// A stream that may or may not be there.
    pub(crate) fn existing_stream(&self, name: StreamName) -> Stream {
        Stream {
            t: self.clone(),
            backend: self.backend.clone(),
            name,
        }
    }

    /// Makes a stream of one partition with a group on it.
    pub(crate) async fn group(&self) -> Outcome<Group> {
        self.stream(1).await?.group("billing").await
    }

    /// As [`group`](Self::group), with events on it: sequences 1 to `count`.
    pub(crate) async fn group_with_events(&self, count: usize) -> Outcome<Group> {
        let group = self.group().await?;
        group.stream.append(count).await?;
        Ok(group)
    }

    /// Makes a group that hands an event out that often, on a stream of its own, with so many events that
    /// are all leased for the second time.
    pub(crate) async fn second_attempts(
        &self,
        attempts: u32,
        count: usize,
        lasts: LeaseDuration,
    ) -> Outcome<(Group, Vec<Lease>)> {
        let stream = self.stream(1).await?;
        let group = stream.group_of_attempts("billing", attempts).await?;
        stream.append(count).await?;
        for lease in group.fetch_exactly("a", count).await? {
            self.backend.retry(&lease, &RetryOptions::new()).await?;
        }
        let fetch = FetchOptions::new(ConsumerId::new("a")?).with_lease_duration(lasts);
        let leases = group.gather_exactly(fetch, count).await?;
        expect_eq("the attempt", leases[count - 1].attempt, 2)?;
        Ok((group, leases))
    }
}

impl Stream {
    /// The same stream through another handle.
    pub(crate) fn via(&self, backend: &Recorder) -> Self {
        Self {
            backend: backend.clone(),
            ..self.clone()
        }
    }

    /// Appends `count` events to partition 0, one by one.
    pub(crate) async fn append(&self, count: usize) -> Outcome<Vec<Event>> {
        self.append_to(P0, count).await
    }

    /// Appends `count` events to a partition, one by one.
    pub(crate) async fn append_to(
        &self,
        partition: Partition,
        count: usize,
    ) -> Outcome<Vec<Event>> {
        let mut events = Vec::with_capacity(count);
        for _ in 0..count {
            let event = self.t.new_event().with_partition(partition);
            events.push(self.backend.append(&self.name, event).await?);
        }
        Ok(events)
    }

    /// Appends one event as it is given.
    pub(crate) async fn append_event(&self, event: NewEvent) -> Outcome<Event> {
        Ok(self.backend.append(&self.name, event).await?)
    }

    /// All events of a partition, read in pages.
    pub(crate) async fn read(&self, partition: Partition) -> Outcome<Vec<Event>> {
        let mut events: Vec<Event> = Vec::new();
        for _ in 0..MOST_CALLS {
            let after = events.last().map_or(Sequence::ZERO, |event| event.sequence);
            let options = ReadOptions::new()
                .with_partition(partition)
                .with_after(after);
            let page = self
                .backend
                .read(&self.name, &options.with_limit(500))
                .await?;
            let Some(first) = page.first() else {
                return Ok(events);
            };
            expect(
                first.sequence > after,
                format_args!("a read after {after} to begin above it (LOG-9)"),
                format_args!("sequence {} first", first.sequence),
            )?;
            events.extend(page);
        }
        Err(broken(
            "reading on to come to an end",
            format!("{MOST_CALLS} pages"),
        ))
    }

    /// The first page of a query.
    pub(crate) async fn query(&self, query: &Query) -> Outcome<Page> {
        Ok(self.backend.query(&self.name, query).await?)
    }

    /// All events of a query, page by page.
    pub(crate) async fn query_all(&self, query: Query) -> Outcome<Vec<Event>> {
        let mut events = Vec::new();
        let mut query = query;
        for _ in 0..MOST_CALLS {
            let page = self.query(&query).await?;
            events.extend(page.events);
            match page.next {
                Some(next) => query = query.with_cursor(next),
                None => return Ok(events),
            }
        }
        Err(broken(
            "paging to come to an end",
            format!("{MOST_CALLS} pages with a next one"),
        ))
    }

    /// Makes a group with the default options.
    pub(crate) async fn group(&self, name: &str) -> Outcome<Group> {
        self.group_with(name, GroupOptions::new()).await
    }

    /// Makes a group that starts there.
    pub(crate) async fn group_from(&self, name: &str, start: Start) -> Outcome<Group> {
        self.group_with(name, GroupOptions::new().with_start(start))
            .await
    }

    /// Makes a group that hands an event out that often.
    pub(crate) async fn group_of_attempts(&self, name: &str, attempts: u32) -> Outcome<Group> {
        let options = GroupOptions::new().with_max_attempts(MaxAttempts::new(attempts)?);
        self.group_with(name, options).await
    }

    /// Makes a group.
    pub(crate) async fn group_with(&self, name: &str, options: GroupOptions) -> Outcome<Group> {
        let group = self.existing_group(GroupName::new(name)?);
        self.backend
            .create_group(&self.name, &group.name, &options)
            .await?;
        Ok(group)
    }

    /// A group that may or may not be there.
    pub(crate) fn existing_group(&self, name: GroupName) -> Group {
        Group {
            stream: self.clone(),
            backend: self.backend.clone(),
            name,
        }
    }
}

impl Group {
    /// The same group through another handle.
    pub(crate) fn via(&self, backend: &Recorder) -> Self {
        self.stream.via(backend).existing_group(self.name.clone())
    }

    /// One fetch, as given.
    pub(crate) async fn fetch_with(&self, options: &FetchOptions) -> Outcome<Vec<Lease>> {
        Ok(self
            .backend
            .fetch(&self.stream.name, &self.name, options)
            .await?)
    }

    /// Fetches until `count` leases of 30 s are there or a fetch gives none.
    pub(crate) async fn fetch(&self, consumer: &str, count: usize) -> Outcome<Vec<Lease>> {
        self.gather(FetchOptions::new(ConsumerId::new(consumer)?), count)
            .await
    }

    /// As [`fetch`](Self::fetch), with leases that the case will wait for.
    pub(crate) async fn fetch_briefly(&self, consumer: &str, count: usize) -> Outcome<Vec<Lease>> {
        let options = FetchOptions::new(ConsumerId::new(consumer)?);
        self.gather(
            options.with_lease_duration(self.stream.t.brief_lease()),
            count,
        )
        .await
    }

    /// Fetches with these options until `count` leases are there or a fetch gives none.
    pub(crate) async fn gather(&self, options: FetchOptions, count: usize) -> Outcome<Vec<Lease>> {
        let mut leases: Vec<Lease> = Vec::new();
        while leases.len() < count {
            let missing = u32::try_from(count - leases.len()).unwrap_or(u32::MAX);
            let fetched = self
                .fetch_with(&options.clone().with_limit(missing))
                .await?;
            if fetched.is_empty() {
                break;
            }
            expect(
                fetched.len() <= missing as usize,
                format!("at most {missing} leases"),
                format!("{} leases", fetched.len()),
            )?;
            leases.extend(fetched);
        }
        Ok(leases)
    }

    /// Fetches with these options until exactly `count` leases are there.
    pub(crate) async fn gather_exactly(
        &self,
        options: FetchOptions,
        count: usize,
    ) -> Outcome<Vec<Lease>> {
        let leases = self.gather(options, count).await?;
        expect_leases(&leases, count)?;
        Ok(leases)
    }

    /// Fetches exactly `count` leases of 30 s.
    pub(crate) async fn fetch_exactly(&self, consumer: &str, count: usize) -> Outcome<Vec<Lease>> {
        let leases = self.fetch(consumer, count).await?;
        expect_leases(&leases, count)?;
        Ok(leases)
    }

    /// As [`fetch_exactly`](Self::fetch_exactly), with leases that the case will wait for.
    pub(crate) async fn fetch_exactly_briefly(
        &self,
        consumer: &str,
        count: usize,
    ) -> Outcome<Vec<Lease>> {
        let leases = self.fetch_briefly(consumer, count).await?;
        expect_leases(&leases, count)?;
        Ok(leases)
    }

    /// Fetches one lease of 30 s, which must be there.
    pub(crate) async fn fetch_one(&self, consumer: &str) -> Outcome<Lease> {
        one(self.fetch(consumer, 1).await?)
    }

    /// Fetches one lease that the case will wait for, which must be there.
    pub(crate) async fn fetch_one_briefly(&self, consumer: &str) -> Outcome<Lease> {
        one(self.fetch_briefly(consumer, 1).await?)
    }

    /// Fetches everything that is claimable, with leases of 30 s.
    pub(crate) async fn fetch_all(&self, consumer: &str) -> Outcome<Vec<Lease>> {
        self.fetch(consumer, MOST_CALLS).await
    }

    /// Demands that nothing is claimable.
    pub(crate) async fn expect_nothing(&self, consumer: &str) -> Outcome {
        expect_empty("claimable event", &self.fetch(consumer, 1).await?)
    }

    /// Demands that just these sequences of partition 0 are claimable; claims them.
    pub(crate) async fn expect_claimable(
        &self,
        consumer: &str,
        sequences: &[u64],
    ) -> Outcome<Vec<Lease>> {
        let leases = self.fetch_all(consumer).await?;
        expect_eq(
            "the claimable sequences",
            sequences_of(&leases),
            sequences.to_vec(),
        )?;
        Ok(leases)
    }

    /// Appends an event, claims it and gives the lease.
    pub(crate) async fn append_and_fetch_one(&self, consumer: &str) -> Outcome<Lease> {
        self.stream.append(1).await?;
        self.fetch_one(consumer).await
    }

    /// Acks leases one by one.
    pub(crate) async fn ack(&self, leases: &[Lease]) -> Outcome {
        for lease in leases {
            self.backend.ack(lease).await?;
        }
        Ok(())
    }

    /// Rejects one lease.
    pub(crate) async fn reject(&self, lease: &Lease, reason: &str) -> Outcome {
        Ok(self.backend.reject(lease, &Reason::new(reason)).await?)
    }

    /// Replays everything after a sequence, in all partitions.
    pub(crate) async fn replay_after(&self, sequence: u64) -> Outcome {
        self.replay(&Replay::after(Sequence::new(sequence)?)).await
    }

    /// Replays.
    pub(crate) async fn replay(&self, replay: &Replay) -> Outcome {
        Ok(self
            .backend
            .replay(&self.stream.name, &self.name, replay)
            .await?)
    }

    /// Resets.
    pub(crate) async fn reset(&self, options: &ResetOptions) -> Outcome {
        Ok(self
            .backend
            .reset_group(&self.stream.name, &self.name, options)
            .await?)
    }

    /// The group's lag.
    pub(crate) async fn lag(&self) -> Outcome<Lag> {
        Ok(self.backend.lag(&self.stream.name, &self.name).await?)
    }

    /// The frontier of a partition.
    pub(crate) async fn frontier(&self, partition: Partition) -> Outcome<u64> {
        let lag = self.lag().await?;
        match lag.partition(partition) {
            Some(progress) => Ok(progress.frontier.get()),
            None => Err(broken(
                format!("a lag of partition {partition}"),
                format!("{lag:?}"),
            )),
        }
    }

    /// Demands a frontier of partition 0.
    pub(crate) async fn expect_frontier(&self, frontier: u64) -> Outcome {
        expect_eq("the frontier", self.frontier(P0).await?, frontier)
    }

    /// All dead letters, in pages of 100.
    pub(crate) async fn dead_letters(&self) -> Outcome<Vec<DeadLetter>> {
        let mut dead: Vec<DeadLetter> = Vec::new();
        for _ in 0..MOST_CALLS {
            let mut options = DeadLetterOptions::new();
            options.after = dead.last().map(|letter| letter.event.id);
            let page = self.dead_letters_with(&options).await?;
            if page.is_empty() {
                return Ok(dead);
            }
            dead.extend(page);
        }
        Err(broken(
            "paging to come to an end",
            format!("{MOST_CALLS} pages of dead letters"),
        ))
    }

    /// The first hundred dead letters.
    pub(crate) async fn first_dead_letters(&self) -> Outcome<Vec<DeadLetter>> {
        self.dead_letters_with(&DeadLetterOptions::new()).await
    }

    /// One page of dead letters.
    pub(crate) async fn dead_letters_with(
        &self,
        options: &DeadLetterOptions,
    ) -> Outcome<Vec<DeadLetter>> {
        Ok(self
            .backend
            .dead_letters(&self.stream.name, &self.name, options)
            .await?)
    }

    /// Fetches one lease of that duration, which must be there.
    pub(crate) async fn fetch_one_for(
        &self,
        consumer: &str,
        duration: LeaseDuration,
    ) -> Outcome<Lease> {
        let options = FetchOptions::new(ConsumerId::new(consumer)?);
        one(self
            .gather(options.with_lease_duration(duration), 1)
            .await?)
    }
}

fn one(leases: Vec<Lease>) -> Outcome<Lease> {
    leases
        .into_iter()
        .next()
        .ok_or_else(|| broken("one lease, since an event is claimable", "none"))
}

fn expect_leases(leases: &[Lease], count: usize) -> Outcome {
    expect(
        leases.len() == count,
        format!("{count} leases, since that many events are claimable"),
        format!("{} leases", leases.len()),
    )
}

/// The sequences of leases, in their order.
pub(crate) fn sequences_of(leases: &[Lease]) -> Vec<u64> {
    leases
        .iter()
        .map(|lease| lease.event.sequence.get())
        .collect()
}

/// The sequences of events, in their order.
pub(crate) fn sequences(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.sequence.get()).collect()
}

/// The places of leases, partition and sequence, ascending: the order between partitions is free.
pub(crate) fn places_of(leases: &[Lease]) -> Vec<(u32, u64)> {
    let place = |lease: &Lease| (lease.event.partition.number(), lease.event.sequence.get());
    let mut places: Vec<_> = leases.iter().map(place).collect();
    places.sort_unstable();
    places
}

impl Group {
    /// Demands that just these places are claimable, whatever the order; claims them.
    pub(crate) async fn expect_claimable_at(
        &self,
        consumer: &str,
        places: &[(u32, u64)],
    ) -> Outcome<Vec<Lease>> {
        let leases = self.fetch_all(consumer).await?;
        expect_eq(
            "the claimable places (partition, sequence)",
            places_of(&leases),
            places.to_vec(),
        )?;
        Ok(leases)
    }

    /// Gives a lease back so that its event waits for an hour.
    pub(crate) async fn retry_in_an_hour(&self, lease: &Lease) -> Outcome<RetryOutcome> {
        let delay = RetryDelay::new(Duration::from_secs(3_600))?;
        let options = RetryOptions::new().with_delay(delay);
        Ok(self.backend.retry(lease, &options).await?)
    }

    /// Demands that a lease is the current claim, by renewing it.
    pub(crate) async fn expect_current(&self, lease: &Lease) -> Outcome {
        self.backend.renew(lease, LeaseDuration::default()).await?;
        Ok(())
    }

    /// Demands that a lease can neither be renewed nor settled in any way.
    pub(crate) async fn expect_stale(&self, lease: &Lease) -> Outcome {
        let (backend, stale) = (&self.backend, ErrorKind::StaleLease);
        expect_error(backend.renew(lease, LeaseDuration::default()).await, stale)?;
        expect_error(backend.ack(lease).await, stale)?;
        expect_error(backend.retry(lease, &RetryOptions::new()).await, stale)?;
        expect_error(backend.reject(lease, &Reason::new("stale")).await, stale)?;
        Ok(())
    }

    /// Appends five events and brings them into every state: 1 acked, 2 leased, 3 waiting for an hour,
    /// 4 a dead letter, 5 never claimed. Gives the leases of 1 to 4.
    pub(crate) async fn bring_into_every_state(&self) -> Outcome<Vec<Lease>> {
        self.stream.append(5).await?;
        let leases = self.fetch_exactly("a", 4).await?;
        self.ack(&leases[..1]).await?;
        self.retry_in_an_hour(&leases[2]).await?;
        self.reject(&leases[3], "broken").await?;
        Ok(leases)
    }
}

/// Demands that every lease is the first attempt at its event.
pub(crate) fn expect_first_attempts(leases: &[Lease]) -> Outcome {
    let attempts: Vec<u32> = leases.iter().map(|lease| lease.attempt).collect();
    expect_eq("the attempts", attempts, vec![1; leases.len()])
}

/// What tasks that run at once come to, in no order.
pub(crate) async fn finished<T: 'static>(mut tasks: JoinSet<Outcome<T>>) -> Outcome<Vec<T>> {
    let mut values = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        values.push(joined??);
    }
    Ok(values)
}

/// What that many calls come to that begin at the same moment, in no order.
pub(crate) async fn at_once<T, Call>(count: usize, call: impl Fn(usize) -> Call) -> Outcome<Vec<T>>
where
    T: Send + 'static,
    Call: Future<Output = T> + Send + 'static,
{
    let line = Arc::new(Barrier::new(count));
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let (line, call) = (Arc::clone(&line), call(number));
        tasks.spawn(async move {
            line.wait().await;
            Ok(call.await)
        });
    }
    finished(tasks).await
}

impl Group {
    /// Demands that just the next event, which somebody holds or which waits, is claimable from that
    /// moment on and not a microsecond before; acks it. Where time cannot be set and the moment is far,
    /// that it is not claimable now.
    pub(crate) async fn expect_claimable_from(&self, moment: Timestamp, attempt: u32) -> Outcome {
        let t = &self.stream.t;
        if !t.jump_to(moment.saturating_sub(MICROSECOND)) {
            let is_far = moment > t.now().saturating_add(Duration::from_secs(60));
            if is_far {
                return self.expect_nothing("b").await;
            }
            t.until(moment).await;
        } else {
            let early = self.fetch("b", 1).await?;
            expect(
                early.is_empty(),
                format!("nothing to be claimable before {moment}"),
                format!("{early:?}"),
            )?;
            t.jump_to(moment);
        }
        let claimed = self.fetch("b", 1).await?;
        let attempts: Vec<u32> = claimed.iter().map(|lease| lease.attempt).collect();
        expect_eq(
            &format!("the attempts that are claimable at {moment}"),
            attempts,
            vec![attempt],
        )?;
        self.ack(&claimed).await
    }
}
