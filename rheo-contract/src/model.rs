//! The reference model: the semantics written down plainly. Every event and every delivery is
//! remembered, nothing is clever, nothing is stored.
//!
//! Where the rules leave freedom the model is told what the backend chose and says whether that was
//! allowed; everything else it predicts.

use std::collections::{BTreeMap, BTreeSet};

use rheo_core::{
    DeadLetter, ErrorKind, Event, EventId, FetchOptions, GroupName, GroupOptions, Lag, Lease,
    LeaseDuration, LeaseId, MaxAttempts, NewEvent, Partition, PartitionCount, PartitionLag,
    Partitions, Reason, Replay, RetryOptions, RetryOutcome, Sequence, Start, StreamName, Timestamp,
};

use crate::expect::{Outcome, broken, expect, expect_eq};

/// What a store holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Model {
    pub(crate) streams: BTreeMap<StreamName, Stream>,
    lease_ids: BTreeSet<LeaseId>,
    exact_times: bool,
}

/// A stream and its groups.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stream {
    pub(crate) count: PartitionCount,
    pub(crate) log: Vec<Vec<Event>>,
    pub(crate) groups: BTreeMap<GroupName, Group>,
}

/// A group: how often it hands out an event, and one delivery per event, partition by partition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    pub(crate) max_attempts: MaxAttempts,
    deliveries: Vec<Vec<Delivery>>,
}

/// Where one event stands for one group.
#[derive(Debug, Clone, PartialEq)]
enum Delivery {
    /// At or below the start, and not reopened.
    Skipped,
    /// Claimable, after that many attempts.
    Open { attempts: u32 },
    /// Waits for the delay of a retry.
    Waiting { attempts: u32, until: Timestamp },
    /// Claimed; expired or not.
    Leased(Box<Lease>),
    /// Acked.
    Acked,
    /// Dead.
    Dead(Box<DeadLetter>),
}

impl Delivery {
    const NEW: Self = Self::Open { attempts: 0 };

    /// FRN: whether the frontier may pass.
    fn is_done(&self) -> bool {
        matches!(self, Self::Skipped | Self::Acked | Self::Dead(_))
    }

    /// The attempts so far, if it is claimable.
    fn claimable(&self, now: Timestamp, max: MaxAttempts) -> Option<u32> {
        match self {
            Self::Open { attempts } => Some(*attempts),
            Self::Waiting { attempts, until } if *until <= now => Some(*attempts),
            Self::Leased(lease) if lease.expires_at <= now && lease.attempt < max.get() => {
                Some(lease.attempt)
            }
            _ => None,
        }
    }

    /// DLQ-3: whether the next reclaim makes it a dead letter.
    fn is_used_up(&self, now: Timestamp, max: MaxAttempts) -> bool {
        matches!(self, Self::Leased(lease) if lease.expires_at <= now && lease.attempt >= max.get())
    }
}

/// What the holder of a lease does.
#[derive(Debug, Clone)]
pub(crate) enum Settle {
    Renew(LeaseDuration),
    Ack,
    Retry(RetryOptions),
    Reject(Reason),
}

/// What that gives.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Settled {
    Renewed(Box<Lease>),
    Acked,
    Retried(RetryOutcome),
    Rejected,
}

type Predicted<T = ()> = Result<T, ErrorKind>;

impl Model {
    /// An empty store. Without exact times (the store's clock is its own) the time of a claim is the
    /// backend's choice, and that of a dead letter is not compared.
    pub(crate) fn new(exact_times: bool) -> Self {
        Self {
            streams: BTreeMap::new(),
            lease_ids: BTreeSet::new(),
            exact_times,
        }
    }

    /// Whether times are compared to the microsecond.
    pub(crate) fn has_exact_times(&self) -> bool {
        self.exact_times
    }

    pub(crate) fn create_stream(&mut self, name: &StreamName, count: PartitionCount) -> Predicted {
        if self.streams.contains_key(name) {
            return Err(ErrorKind::AlreadyExists);
        }
        let stream = Stream {
            count,
            log: vec![Vec::new(); count.get() as usize],
            groups: BTreeMap::new(),
        };
        self.streams.insert(name.clone(), stream);
        Ok(())
    }

    pub(crate) fn create_group(
        &mut self,
        stream: &StreamName,
        name: &GroupName,
        options: &GroupOptions,
    ) -> Predicted {
        let stream = self.stream(stream)?;
        if stream.groups.contains_key(name) {
            return Err(ErrorKind::AlreadyExists);
        }
        let starts = stream.starts(&options.start, &Partitions::All)?;
        let mut group = Group {
            max_attempts: options.max_attempts,
            deliveries: stream
                .log
                .iter()
                .map(|events| vec![Delivery::NEW; events.len()])
                .collect(),
        };
        group.start_again(&starts);
        stream.groups.insert(name.clone(), group);
        Ok(())
    }

    /// Whether an append of these is right, and where they go.
    pub(crate) fn route(
        &mut self,
        stream: &StreamName,
        events: &[NewEvent],
    ) -> Predicted<Vec<(Partition, Sequence)>> {
        let stream = self.stream(stream)?;
        let mut ids: BTreeSet<EventId> = stream.log.iter().flatten().map(|e| e.id).collect();
        let mut next: Vec<usize> = stream.log.iter().map(Vec::len).collect();
        let mut places = Vec::new();
        for event in events {
            let partition = event.route(stream.count).map_err(|error| error.kind())?;
            if event.id.is_some_and(|id| !ids.insert(id)) {
                return Err(ErrorKind::AlreadyExists);
            }
            let length = &mut next[partition.number() as usize];
            *length += 1;
            places.push((partition, sequence(*length)));
        }
        Ok(places)
    }

    /// Takes over events that were appended; their ids and times are the backend's choice.
    pub(crate) fn appended(
        &mut self,
        name: &StreamName,
        given: &[NewEvent],
        appended: &[Event],
    ) -> Outcome {
        let places = self
            .route(name, given)
            .map_err(|kind| broken(format!("Err({kind})"), "Ok"))?;
        expect_eq("the number of events appended", appended.len(), given.len())?;
        for ((given, event), (partition, sequence)) in given.iter().zip(appended).zip(places) {
            let expected = Event {
                id: given.id.unwrap_or(event.id),
                stream: name.clone(),
                partition,
                sequence,
                event_type: given.event_type.clone(),
                key: given.key.clone(),
                payload: given.payload.clone(),
                metadata: given.metadata.clone(),
                timestamp: event.timestamp,
            };
            expect_eq("the event appended (LOG-1, LOG-5, LOG-6)", event, &expected)?;
            self.take_over(expected);
        }
        Ok(())
    }

    fn take_over(&mut self, event: Event) {
        let at = event.partition.number() as usize;
        if let Some(stream) = self.streams.get_mut(&event.stream) {
            stream.log[at].push(event);
            for group in stream.groups.values_mut() {
                group.deliveries[at].push(Delivery::NEW);
            }
        }
    }

    /// Takes over what a fetch gave, and says whether it was allowed to.
    ///
    /// Expired leases with no attempts left become dead letters at a fetch that gives none (DLQ-3);
    /// one that gives some may leave them, so who calls this fetches on until there is nothing.
    pub(crate) fn fetched(
        &mut self,
        stream: &StreamName,
        name: &GroupName,
        options: &FetchOptions,
        now: Timestamp,
        leases: &[Lease],
    ) -> Outcome {
        let Some(stream) = self.streams.get_mut(stream) else {
            return Err(broken("Err(StreamNotFound)", "Ok"));
        };
        let Some(group) = stream.groups.get_mut(name) else {
            return Err(broken("Err(GroupNotFound)", "Ok"));
        };
        let max = group.max_attempts;
        expect(
            leases.len() <= options.limit as usize,
            format!("at most {} leases (DLV-3)", options.limit),
            leases.len(),
        )?;
        let mut claimable: BTreeMap<u32, Vec<(usize, u32)>> = BTreeMap::new();
        for partition in stream.count.partitions() {
            if options.partitions.contains(partition) {
                let deliveries = group.deliveries[partition.number() as usize].iter();
                let open = deliveries
                    .enumerate()
                    .filter_map(|(at, delivery)| Some((at, delivery.claimable(now, max)?)));
                claimable.insert(partition.number(), open.collect());
            }
        }
        let all: usize = claimable.values().map(Vec::len).sum();
        if options.limit > 0 && all > 0 {
            expect(
                !leases.is_empty(),
                format!("at least one lease, since {all} events are claimable (DLV-3, DLV-6)"),
                "none",
            )?;
        }
        let mut given: BTreeMap<u32, usize> = BTreeMap::new();
        for lease in leases {
            let partition = lease.event.partition.number();
            let nth = given.entry(partition).or_default();
            let Some((at, attempts)) = claimable.get(&partition).and_then(|c| c.get(*nth)) else {
                return Err(broken(
                    format!(
                        "nothing from partition {partition} beyond {nth} leases, since no more is \
                         claimable there (DLV-3, DLV-7, LSE-4)"
                    ),
                    format!("a lease of its sequence {}", lease.event.sequence),
                ));
            };
            *nth += 1;
            let event = &stream.log[partition as usize][*at];
            let leased_at = if self.exact_times {
                now
            } else {
                lease.leased_at
            };
            expect_eq(
                "the lowest claimable sequence of the partition (DLV-4)",
                lease.event.sequence,
                event.sequence,
            )?;
            let expected = Lease {
                event: event.clone(),
                group: name.clone(),
                consumer: options.consumer.clone(),
                lease_id: lease.lease_id.clone(),
                receipt: lease.receipt.clone(),
                attempt: attempts + 1,
                leased_at,
                expires_at: leased_at.saturating_add(options.lease_duration.as_duration()),
            };
            expect_eq("the lease (DLV-8, LSE-5)", lease, &expected)?;
            expect(
                self.lease_ids.insert(lease.lease_id.clone()),
                "a lease id that was never given out before (LSE-1)",
                &lease.lease_id,
            )?;
            group.deliveries[partition as usize][*at] = Delivery::Leased(Box::new(expected));
        }
        if options.limit > 0 && leases.is_empty() {
            group.bury_used_up(&options.partitions, now);
        }
        Ok(())
    }

    /// What a fetch from these partitions may claim, in order, and its attempts so far.
    pub(crate) fn claimable(
        &self,
        stream: &StreamName,
        group: &GroupName,
        partitions: &Partitions,
        now: Timestamp,
    ) -> Vec<(Event, u32)> {
        let Some(stream) = self.streams.get(stream) else {
            return Vec::new();
        };
        let Some(group) = stream.groups.get(group) else {
            return Vec::new();
        };
        let all = stream.log.iter().flatten();
        let deliveries = group.deliveries.iter().flatten();
        let selected = all.zip(deliveries);
        let selected = selected.filter(|(event, _)| partitions.contains(event.partition));
        let claimable = selected.filter_map(|(event, delivery)| {
            let attempts = delivery.claimable(now, group.max_attempts)?;
            Some((event.clone(), attempts))
        });
        claimable.collect()
    }

    /// Whether a fetch from these partitions would meet expired leases with no attempts left.
    pub(crate) fn has_used_up(
        &self,
        stream: &StreamName,
        group: &GroupName,
        partitions: &Partitions,
        now: Timestamp,
    ) -> bool {
        let Some(group) = self.streams.get(stream).and_then(|s| s.groups.get(group)) else {
            return false;
        };
        let selected = |at: &usize| partitions.contains(partition(*at));
        (0..group.deliveries.len()).filter(selected).any(|at| {
            let mut deliveries = group.deliveries[at].iter();
            deliveries.any(|delivery| delivery.is_used_up(now, group.max_attempts))
        })
    }

    /// Makes dead letters of expired leases with no attempts left (DLQ-3).
    pub(crate) fn bury_used_up(
        &mut self,
        stream: &StreamName,
        group: &GroupName,
        partitions: &Partitions,
        now: Timestamp,
    ) {
        let stream = self.streams.get_mut(stream);
        if let Some(group) = stream.and_then(|stream| stream.groups.get_mut(group)) {
            group.bury_used_up(partitions, now);
        }
    }

    /// Whether a lease is the current claim of its event, expired or not.
    pub(crate) fn is_current(&self, lease: &Lease) -> bool {
        let at = lease.event.partition.number() as usize;
        let stream = self.streams.get(&lease.event.stream);
        let group = stream.and_then(|stream| stream.groups.get(&lease.group));
        let deliveries = group.and_then(|group| group.deliveries.get(at));
        let delivery = deliveries.and_then(|all| all.get(position(lease.event.sequence)));
        matches!(delivery, Some(Delivery::Leased(current)) if current.lease_id == lease.lease_id)
    }

    /// What the holder of a lease gets for what it does.
    pub(crate) fn settle(
        &mut self,
        lease: &Lease,
        how: &Settle,
        now: Timestamp,
    ) -> Predicted<Settled> {
        let stale = ErrorKind::StaleLease;
        let at = lease.event.partition.number() as usize;
        let nth = usize::try_from(lease.event.sequence.get())
            .ok()
            .and_then(|sequence| sequence.checked_sub(1))
            .ok_or(stale)?;
        let stream = self.streams.get_mut(&lease.event.stream).ok_or(stale)?;
        let group = stream.groups.get_mut(&lease.group).ok_or(stale)?;
        let max = group.max_attempts;
        let delivery = group.deliveries.get_mut(at).and_then(|d| d.get_mut(nth));
        let delivery = delivery.ok_or(stale)?;
        let Delivery::Leased(current) = &mut *delivery else {
            return Err(stale);
        };
        if current.lease_id != lease.lease_id {
            return Err(stale);
        }
        if current.receipt != lease.receipt {
            return Err(ErrorKind::ReceiptMismatch);
        }
        let dead = |reason: Reason| {
            Delivery::Dead(Box::new(DeadLetter {
                event: current.event.clone(),
                group: current.group.clone(),
                attempt: current.attempt,
                reason,
                dead_at: now,
            }))
        };
        let (then, settled) = match how {
            Settle::Renew(duration) => {
                current.expires_at = now.saturating_add(duration.as_duration());
                return Ok(Settled::Renewed(current.clone()));
            }
            Settle::Ack => (Delivery::Acked, Settled::Acked),
            Settle::Reject(reason) => (dead(reason.clone()), Settled::Rejected),
            Settle::Retry(options) if current.attempt >= max.get() => {
                let reason = options.reason.clone().unwrap_or_else(Reason::max_attempts);
                (dead(reason), Settled::Retried(RetryOutcome::DeadLettered))
            }
            Settle::Retry(options) => {
                let attempts = current.attempt;
                let delay = options.delay.as_duration();
                let waits = if delay.is_zero() {
                    Delivery::Open { attempts }
                } else {
                    let until = now.saturating_add(delay);
                    Delivery::Waiting { attempts, until }
                };
                (waits, Settled::Retried(RetryOutcome::Retrying))
            }
        };
        *delivery = then;
        Ok(settled)
    }

    pub(crate) fn replay(
        &mut self,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Predicted {
        let stream = self.stream(stream)?;
        let count = stream.count.get() as usize;
        let group = stream.groups.get_mut(group);
        let group = group.ok_or(ErrorKind::GroupNotFound)?;
        let mut after = vec![None; count];
        match replay {
            Replay::After {
                sequence,
                partitions,
            } => {
                let in_all = 0..count;
                in_all
                    .filter(|at| partitions.contains(partition(*at)))
                    .for_each(|at| after[at] = Some(*sequence));
            }
            Replay::AfterEach(each) => {
                for (partition, sequence) in each {
                    let at = partition.number() as usize;
                    *after.get_mut(at).ok_or(ErrorKind::Invalid)? = Some(*sequence);
                }
            }
            Replay::Events(ids) => {
                let events: Vec<&Event> = stream.log.iter().flatten().collect();
                let find = |id: &EventId| events.iter().find(|event| event.id == *id);
                let chosen: Option<Vec<&&Event>> = ids.iter().map(find).collect();
                for event in chosen.ok_or(ErrorKind::Invalid)? {
                    group.deliveries[event.partition.number() as usize][position(event.sequence)] =
                        Delivery::NEW;
                }
            }
        }
        for (deliveries, after) in group.deliveries.iter_mut().zip(after) {
            if let Some(after) = after {
                for delivery in deliveries.iter_mut().skip(sequence_len(after)) {
                    *delivery = Delivery::NEW;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn reset(
        &mut self,
        stream: &StreamName,
        group: &GroupName,
        start: &Start,
        partitions: &Partitions,
    ) -> Predicted {
        let stream = self.stream(stream)?;
        if !stream.groups.contains_key(group) {
            return Err(ErrorKind::GroupNotFound);
        }
        let starts = stream.starts(start, partitions)?;
        if let Some(group) = stream.groups.get_mut(group) {
            group.start_again(&starts);
        }
        Ok(())
    }

    fn stream(&mut self, name: &StreamName) -> Predicted<&mut Stream> {
        self.streams.get_mut(name).ok_or(ErrorKind::StreamNotFound)
    }
}

impl Stream {
    /// The start in each of the partitions.
    fn starts(&self, start: &Start, partitions: &Partitions) -> Predicted<Vec<Option<Sequence>>> {
        start
            .check(self.count, partitions)
            .map_err(|error| error.kind())?;
        let start_in = |(at, events): (usize, &Vec<Event>)| {
            if !partitions.contains(partition(at)) {
                return Ok(None);
            }
            let sequence = match start {
                Start::Beginning => Sequence::ZERO,
                Start::AfterSequence(sequence) => *sequence,
                Start::AfterSequences(each) => {
                    let named = each.get(&partition(at));
                    named.copied().unwrap_or(Sequence::ZERO)
                }
                Start::AtTime(time) => {
                    let first = events.iter().position(|event| event.timestamp >= *time);
                    sequence(first.unwrap_or(events.len()))
                }
                Start::End => sequence(events.len()),
            };
            if sequence_len(sequence) > events.len() {
                return Err(ErrorKind::Invalid);
            }
            Ok(Some(sequence))
        };
        self.log.iter().enumerate().map(start_in).collect()
    }
}

impl Group {
    fn start_again(&mut self, starts: &[Option<Sequence>]) {
        for (deliveries, start) in self.deliveries.iter_mut().zip(starts) {
            if let Some(start) = start {
                for (at, delivery) in deliveries.iter_mut().enumerate() {
                    *delivery = if at < sequence_len(*start) {
                        Delivery::Skipped
                    } else {
                        Delivery::NEW
                    };
                }
            }
        }
    }

    fn bury_used_up(&mut self, partitions: &Partitions, now: Timestamp) {
        let max = self.max_attempts;
        for (at, deliveries) in self.deliveries.iter_mut().enumerate() {
            if !partitions.contains(partition(at)) {
                continue;
            }
            for delivery in deliveries {
                if delivery.is_used_up(now, max)
                    && let Delivery::Leased(lease) = &*delivery
                {
                    *delivery = Delivery::Dead(Box::new(DeadLetter {
                        event: lease.event.clone(),
                        group: lease.group.clone(),
                        attempt: lease.attempt,
                        reason: Reason::lease_expired(),
                        dead_at: now,
                    }));
                }
            }
        }
    }

    /// FRN-1, by its definition.
    pub(crate) fn lag(&self) -> Lag {
        let partition_lag = |(at, deliveries): (usize, &Vec<Delivery>)| {
            let done = deliveries.iter().take_while(|d| d.is_done()).count();
            PartitionLag {
                partition: partition(at),
                frontier: sequence(done),
                high_watermark: sequence(deliveries.len()),
            }
        };
        Lag {
            partitions: self
                .deliveries
                .iter()
                .enumerate()
                .map(partition_lag)
                .collect(),
        }
    }

    /// DLQ-5: by partition and sequence.
    pub(crate) fn dead_letters(&self) -> Vec<DeadLetter> {
        let dead = |delivery: &Delivery| match delivery {
            Delivery::Dead(dead) => Some((**dead).clone()),
            _ => None,
        };
        self.deliveries.iter().flatten().filter_map(dead).collect()
    }

    /// OPS-3: current leases, expired ones too.
    pub(crate) fn leased(&self) -> u64 {
        let leased = |delivery: &&Delivery| matches!(delivery, Delivery::Leased(_));
        self.deliveries.iter().flatten().filter(leased).count() as u64
    }
}

fn partition(at: usize) -> Partition {
    Partition::new(u32::try_from(at).unwrap_or(u32::MAX))
}

/// The sequence of the last of that many events.
fn sequence(length: usize) -> Sequence {
    Sequence::new(length as u64).unwrap_or(Sequence::MAX)
}

/// How many events there are up to that sequence.
fn sequence_len(sequence: Sequence) -> usize {
    usize::try_from(sequence.get()).unwrap_or(usize::MAX)
}

fn position(sequence: Sequence) -> usize {
    sequence_len(sequence).saturating_sub(1)
}
