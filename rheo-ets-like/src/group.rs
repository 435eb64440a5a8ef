//! A consumer group: its delivery state in every partition of a stream.

use std::collections::BTreeMap;

use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, EventId, FetchOptions, GroupInfo, GroupName,
    GroupOptions, Lag, Lease, MaxAttempts, Partition, PartitionLag, Partitions, Replay,
    ResetOptions, Result, Sequence, Start, StreamName, Timestamp,
};

use crate::delivery::{Delivery, Term};
use crate::log::{Log, Place};

/// A group on a stream; the stream's log is passed to what needs it.
pub(crate) struct Group {
    name: GroupName,
    max_attempts: MaxAttempts,
    /// By partition number.
    deliveries: Vec<Delivery>,
    /// The partitions, the one that was served longest ago first (DLV-5).
    turns: BTreeMap<u64, Partition>,
}

impl Group {
    /// A group that gets every event after its start (DLV-2).
    pub(crate) fn new(name: &GroupName, options: &GroupOptions, log: &Log) -> Result<Self> {
        let max_attempts = options.max_attempts;
        let starts = starts(&options.start, &Partitions::All, log)?;
        Ok(Self {
            name: name.clone(),
            max_attempts,
            deliveries: starts
                .iter()
                .map(|place| Delivery::new(place.sequence, max_attempts))
                .collect(),
            turns: (0..).zip(log.partition_count().partitions()).collect(),
        })
    }

    /// The delivery state in a partition, if there is such a partition.
    pub(crate) fn delivery(&mut self, partition: Partition) -> Option<&mut Delivery> {
        self.deliveries.get_mut(partition.number() as usize)
    }

    /// Claims from the selected partitions, the one that was served longest ago first (DLV-5).
    pub(crate) fn fetch(
        &mut self,
        log: &Log,
        options: &FetchOptions,
        now: Timestamp,
    ) -> Result<Vec<Lease>> {
        options.partitions.resolve(log.partition_count())?;
        let limit = options.limit as usize;
        let term = Term {
            now,
            expires_at: now.saturating_add(options.lease_duration.as_duration()),
        };

        let mut leases = Vec::new();
        let mut served = Vec::new();
        for (turn, partition) in &self.turns {
            let room = limit - leases.len();
            if room == 0 {
                break;
            }
            if !options.partitions.contains(*partition) {
                continue;
            }
            let events = &log[*partition];
            let delivery = &mut self.deliveries[partition.number() as usize];
            let claims = delivery.fetch(events.high_watermark(), room, &term);
            if !claims.is_empty() {
                served.push(*turn);
            }
            leases.extend(claims.into_iter().map(|claim| Lease {
                event: events[claim.sequence].clone(),
                group: self.name.clone(),
                consumer: options.consumer.clone(),
                lease_id: claim.lease_id,
                receipt: None,
                attempt: claim.attempt,
                leased_at: term.now,
                expires_at: term.expires_at,
            }));
        }
        self.move_to_the_end(served);
        Ok(leases)
    }

    fn move_to_the_end(&mut self, served: Vec<u64>) {
        for turn in served {
            let next = self.turns.last_key_value().map_or(0, |(last, _)| last + 1);
            if let Some(partition) = self.turns.remove(&turn) {
                self.turns.insert(next, partition);
            }
        }
    }

    /// When something is claimable, as far as is known now; long ago if it is already.
    pub(crate) fn next_due(&self, log: &Log) -> Option<Timestamp> {
        self.partitions()
            .filter_map(|(partition, delivery)| delivery.next_due(log[partition].high_watermark()))
            .min()
    }

    /// Makes delivered events claimable again; all is checked before anything is done.
    pub(crate) fn replay(&mut self, log: &Log, replay: &Replay) -> Result<()> {
        match replay {
            Replay::After {
                sequence,
                partitions,
            } => {
                for partition in partitions.resolve(log.partition_count())? {
                    self.deliveries[partition.number() as usize].replay_after(*sequence);
                }
            }
            Replay::AfterEach(sequences) => {
                let named = Partitions::only(sequences.keys().copied());
                named.resolve(log.partition_count())?;
                for (partition, sequence) in sequences {
                    self.deliveries[partition.number() as usize].replay_after(*sequence);
                }
            }
            Replay::Events(ids) => {
                for place in places(log, ids)? {
                    self.deliveries[place.partition.number() as usize].replay_event(place.sequence);
                }
            }
        }
        Ok(())
    }

    /// Starts again in the selected partitions (RPL-5).
    pub(crate) fn reset(&mut self, log: &Log, options: &ResetOptions) -> Result<()> {
        for place in starts(&options.start, &options.partitions, log)? {
            self.deliveries[place.partition.number() as usize] =
                Delivery::new(place.sequence, self.max_attempts);
        }
        Ok(())
    }

    /// Frontier and high watermark in every partition (FRN-4).
    pub(crate) fn lag(&self, log: &Log) -> Lag {
        let of = |(partition, delivery): (Partition, &Delivery)| PartitionLag {
            partition,
            frontier: delivery.frontier(),
            high_watermark: log[partition].high_watermark(),
        };
        Lag {
            partitions: self.partitions().map(of).collect(),
        }
    }

    /// A page of dead letters by partition, then sequence (DLQ-5).
    pub(crate) fn dead_letters(
        &self,
        log: &Log,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let after = match options.after {
            Some(id) => Some(self.place_of_dead(log, id)?),
            None => None,
        };
        let is_behind =
            |partition: Partition| after.is_none_or(|after| partition >= after.partition);
        let pages = self
            .partitions()
            .filter(|(partition, _)| is_behind(*partition));
        let places = pages.flat_map(|(partition, delivery)| {
            let above = after.filter(|after| after.partition == partition);
            let dead = delivery.dead_after(above.map_or(Sequence::ZERO, |above| above.sequence));
            dead.map(move |(sequence, dead)| (&log[partition][sequence], dead))
        });
        let letters = places.map(|(event, dead)| DeadLetter {
            event: event.clone(),
            group: self.name.clone(),
            attempt: dead.attempt,
            reason: dead.reason.clone(),
            dead_at: dead.dead_at,
        });
        Ok(letters.take(options.limit as usize).collect())
    }

    fn place_of_dead(&self, log: &Log, id: EventId) -> Result<Place> {
        let is_dead = |place: &Place| {
            self.deliveries[place.partition.number() as usize].is_dead(place.sequence)
        };
        let place = log.place(id).filter(is_dead);
        place.ok_or(Error::CursorNotFound { after: id })
    }

    /// What it is and how it stands.
    pub(crate) fn info(&self, stream: &StreamName, log: &Log) -> GroupInfo {
        GroupInfo {
            stream: stream.clone(),
            group: self.name.clone(),
            max_attempts: self.max_attempts,
            leased: self.deliveries.iter().map(Delivery::leased).sum(),
            dead_letters: self.deliveries.iter().map(Delivery::dead_count).sum(),
            lag: self.lag(log),
        }
    }

    fn partitions(&self) -> impl Iterator<Item = (Partition, &Delivery)> {
        (0..).map(Partition::new).zip(&self.deliveries)
    }
}

/// Where a start is in each of the selected partitions.
fn starts(start: &Start, partitions: &Partitions, log: &Log) -> Result<Vec<Place>> {
    let selected = partitions.resolve(log.partition_count())?;
    start.check(log.partition_count(), partitions)?;
    let resolve = |partition: Partition| {
        let events = &log[partition];
        let first_at = |time| events.first_at(time);
        let sequence = start.resolve(partition, events.high_watermark(), first_at)?;
        Ok(Place {
            partition,
            sequence,
        })
    };
    selected.into_iter().map(resolve).collect()
}

/// Where events are that must be in the stream.
fn places(log: &Log, ids: &[EventId]) -> Result<Vec<Place>> {
    let place = |id: &EventId| {
        let missing = || Error::invalid("events", id, "ids of events that are in the stream");
        log.place(*id).ok_or_else(missing)
    };
    ids.iter().map(place).collect()
}

#[cfg(test)]
mod tests;
