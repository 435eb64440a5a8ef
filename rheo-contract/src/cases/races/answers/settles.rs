//! What holders do with their leases, each with another duration, delay or reason.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rheo_core::{
    Backend, ErrorKind, Gate, Lease, OptionalOperation, Partition, Reason, RetryDelay,
    RetryOptions, RetryOutcome, Timestamp,
};

use super::{Ask, DAY, Scene, ask, days, offers};
use crate::expect::{Outcome, expect, expect_eq, expect_error};
use crate::recorder::Recorder;
use crate::scene::{Group, places_of};

/// How far from each other two delays are: farther than the suite ever takes for a round.
const APART: Duration = Duration::from_secs(3_600);

/// What is to be seen of a group afterwards.
struct Left {
    group: Group,
    /// The reasons of its dead letters, by place.
    reasons: Vec<((u32, u64), Reason)>,
    /// What is claimable at once.
    open: Vec<(u32, u64)>,
    /// What is claimable later, and when.
    waiting: Vec<(Timestamp, (u32, u64))>,
}

impl Scene {
    /// Everything that is left is claimed; then each lease is renewed, retried, rejected or acked.
    pub(super) async fn settle(&self) -> Outcome {
        let mut asks = Vec::new();
        let mut all_left = Vec::new();
        let first = self.t.random(4);
        for progress in &self.groups {
            let group = &progress.group;
            let letters = progress.dead.iter().map(|letter| {
                let event = &letter.event;
                let place = (event.partition.number(), event.sequence.get());
                (place, letter.reason.clone())
            });
            let mut left = Left {
                group: group.clone(),
                reasons: letters.collect(),
                open: Vec::new(),
                waiting: Vec::new(),
            };
            for partition in (0..self.partitions).map(Partition::new) {
                let leases = self.claim_all(group, partition).await?;
                for lease in leases.into_iter().take(3) {
                    let number = asks.len() as u64;
                    asks.push(self.settled((first + number) % 4, number, lease, &mut left)?);
                }
            }
            all_left.push(left);
        }
        let stale = self.groups[0].acked[0].clone();
        let handle = self.handle(asks.len());
        asks.push(ask(async move {
            expect_error(handle.ack(&stale).await, ErrorKind::StaleLease).map(drop)
        }));
        self.all_at_once(asks).await?;
        for left in &mut all_left {
            left.expect_letters().await?;
            left.expect_open("b", &left.open).await?;
        }
        self.expect_waiting(&all_left).await
    }

    fn settled(&self, how: u64, number: u64, lease: Lease, left: &mut Left) -> Outcome<Ask> {
        let place = (lease.event.partition.number(), lease.event.sequence.get());
        let handle = self.handle(usize::try_from(number).unwrap_or(0));
        Ok(match how {
            0 => self.renewed(number, lease, handle)?,
            1 => {
                let reason = Reason::new(format!("no good: {number}"));
                left.reasons.push((place, reason.clone()));
                ask(async move { Ok(handle.reject(&lease, &reason).await?) })
            }
            2 => {
                let delay = APART * u32::try_from(number / 4).unwrap_or(1);
                let options = RetryOptions::new().with_delay(RetryDelay::new(delay)?);
                if delay.is_zero() {
                    left.open.push(place);
                } else {
                    let due = self.t.now().saturating_add(delay);
                    left.waiting.push((due, place));
                }
                ask(async move {
                    let outcome = handle.retry(&lease, &options).await?;
                    expect_eq("the outcome", outcome, RetryOutcome::Retrying)
                })
            }
            _ => ask(async move { Ok(handle.ack(&lease).await?) }),
        })
    }

    fn renewed(&self, number: u64, lease: Lease, handle: Recorder) -> Outcome<Ask> {
        let (t, duration) = (self.t.clone(), days(number + 10)?);
        Ok(ask(async move {
            let renewed = handle.renew(&lease, duration).await?;
            let end = t.now().saturating_add(duration.as_duration());
            let seen = renewed.expires_at;
            let off = seen.saturating_since(end).max(end.saturating_since(seen));
            // The store's own clock is off by what it is off, and no two durations are as near as that.
            let is_right = off.is_zero() || (!t.sets_the_clock() && off.as_secs() < DAY / 2);
            expect(
                is_right && renewed.lease_id == lease.lease_id,
                format!("this lease to be renewed until {end}"),
                format!("{renewed:?}"),
            )
        }))
    }

    /// Where the clock can be set, each delay ends when its own time has come, and not before.
    async fn expect_waiting(&self, all_left: &[Left]) -> Outcome {
        if !self.t.sets_the_clock() {
            return Ok(());
        }
        let mut waiting = Vec::new();
        for left in all_left {
            waiting.extend(left.waiting.iter().map(|(due, place)| (*due, left, *place)));
        }
        waiting.sort_by_key(|(due, _, place)| (*due, *place));
        for (due, left, place) in waiting {
            self.t.until_just_before(due).await;
            left.expect_open("c", &[]).await?;
            self.t.until(due).await;
            left.expect_open("c", &[place]).await?;
        }
        Ok(())
    }
}

impl Left {
    async fn expect_open(&self, consumer: &str, places: &[(u32, u64)]) -> Outcome {
        let options = rheo_core::FetchOptions::new(rheo_core::ConsumerId::new(consumer)?)
            .with_lease_duration(days(300)?);
        let leases = self.group.gather(options, usize::from(u8::MAX)).await?;
        let mut places = places.to_vec();
        places.sort_unstable();
        let group = &self.group.name;
        expect_eq(
            &format!("the claimable places of {group}"),
            places_of(&leases),
            places,
        )
    }

    async fn expect_letters(&mut self) -> Outcome {
        let letters = Gate::Operation(OptionalOperation::DeadLetters);
        if !offers(&self.group.backend, letters) {
            return Ok(());
        }
        self.reasons.sort_by_key(|(place, _)| *place);
        let letters = self.group.dead_letters().await?.into_iter();
        let seen = letters.map(|letter| {
            let event = &letter.event;
            let place = (event.partition.number(), event.sequence.get());
            (place, letter.reason)
        });
        let group = &self.group.name;
        expect_eq(
            &format!("the reasons of the dead letters of {group}"),
            seen.collect(),
            self.reasons.clone(),
        )
    }
}

/// What calls at once have given, in no order.
pub(super) type Given<T> = Arc<Mutex<Vec<T>>>;

pub(super) fn take<T>(given: &Given<T>) -> Vec<T> {
    std::mem::take(&mut *given.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(super) fn give<T>(given: &Given<T>, more: impl IntoIterator<Item = T>) {
    let mut given = given.lock().unwrap_or_else(PoisonError::into_inner);
    given.extend(more);
}
