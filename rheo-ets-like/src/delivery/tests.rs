//! The transitions of a delivery that are easy to get wrong.

use std::time::Duration;

use rheo_core::{
    ConsumerId, Event, EventId, EventType, GroupName, JsonObject, Partition, Receipt, StreamName,
};

use super::*;

/// A delivery state with three events in its log, leases of ten microseconds and two attempts.
pub(super) struct Fixture {
    pub(super) delivery: Delivery,
    pub(super) high_watermark: Sequence,
}

impl Fixture {
    pub(super) fn starting_at(start: u64) -> Self {
        Self {
            delivery: Delivery::new(seq(start), MaxAttempts::new(2).expect("allowed")),
            high_watermark: seq(3),
        }
    }

    pub(super) fn fetch(&mut self, limit: usize, now: Timestamp) -> Vec<Lease> {
        let term = Term {
            now,
            expires_at: now.saturating_add(TEN),
        };
        let claims = self.delivery.fetch(self.high_watermark, limit, &term);
        claims
            .into_iter()
            .map(|claim| lease(claim, &term))
            .collect()
    }

    fn fetch_one(&mut self, now: i64) -> Lease {
        let mut leases = self.fetch(1, at(now));
        leases.pop().expect("something is claimable")
    }

    /// Sequence and attempt of everything that is claimable.
    fn fetch_all(&mut self, now: i64) -> Vec<(u64, u32)> {
        let leases = self.fetch(usize::MAX, at(now));
        let given = |lease: &Lease| (lease.event.sequence.get(), lease.attempt);
        leases.iter().map(given).collect()
    }

    fn ack(&mut self, lease: &Lease) -> Result<()> {
        self.delivery.ack(lease)
    }

    fn retry(&mut self, lease: &Lease, now: i64) -> Result<RetryOutcome> {
        self.delivery.retry(lease, &RetryOptions::new(), at(now))
    }

    fn reject(&mut self, lease: &Lease, now: i64) -> Result<()> {
        self.delivery.reject(lease, &Reason::new("bad"), at(now))
    }

    fn frontier(&self) -> u64 {
        self.delivery.frontier().get()
    }

    /// Sequence, attempt and reason of the dead.
    fn dead(&self) -> Vec<(u64, u32, &str)> {
        let dead = self.delivery.dead_after(Sequence::ZERO);
        dead.map(|(sequence, dead)| (sequence.get(), dead.attempt, dead.reason.as_str()))
            .collect()
    }
}

const TEN: Duration = Duration::from_micros(10);

pub(super) fn micros(number: u64) -> LeaseDuration {
    LeaseDuration::new(Duration::from_micros(number)).expect("allowed")
}

pub(super) fn seq(number: u64) -> Sequence {
    Sequence::new(number).expect("in range")
}

pub(super) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

fn lease(claim: Claim, term: &Term) -> Lease {
    Lease {
        event: Event {
            id: EventId::generate(term.now),
            stream: StreamName::new("s").expect("allowed"),
            partition: Partition::ZERO,
            sequence: claim.sequence,
            event_type: EventType::new("t").expect("allowed"),
            key: None,
            payload: JsonObject::default(),
            metadata: JsonObject::default(),
            timestamp: term.now,
        },
        group: GroupName::new("g").expect("allowed"),
        consumer: ConsumerId::new("c").expect("allowed"),
        lease_id: claim.lease_id,
        receipt: None,
        attempt: claim.attempt,
        leased_at: term.now,
        expires_at: term.expires_at,
    }
}

#[test]
fn a_hole_holds_the_frontier() {
    let mut f = Fixture::starting_at(0);
    let leases = f.fetch(3, at(0));
    assert_eq!(f.frontier(), 0);
    f.ack(&leases[2]).expect("current");
    f.ack(&leases[0]).expect("current");
    assert_eq!(f.frontier(), 1);
    f.ack(&leases[1]).expect("current");
    assert_eq!(f.frontier(), 3);
}

#[test]
fn what_is_done_leaves_nothing_behind() {
    let mut f = Fixture::starting_at(0);
    for lease in f.fetch(3, at(0)) {
        f.ack(&lease).expect("current");
    }
    let Delivery {
        open,
        waiting,
        ready,
        dead,
        ..
    } = &f.delivery;
    assert!(open.is_empty() && waiting.is_empty() && ready.is_empty() && dead.is_empty());
}

#[test]
fn a_dead_letter_lets_the_frontier_pass() {
    let mut f = Fixture::starting_at(0);
    let leases = f.fetch(2, at(0));
    f.ack(&leases[0]).expect("current");
    f.reject(&leases[1], 5).expect("current");
    assert_eq!(f.frontier(), 2);
    assert_eq!(f.dead(), [(2, 1, "bad")]);
    assert_eq!(f.ack(&leases[1]), Err(Error::StaleLease));
}

#[test]
fn a_lease_is_reclaimable_from_its_expiry_on_and_not_before() {
    let mut f = Fixture::starting_at(2);
    let old = f.fetch_one(0);
    assert_eq!(f.fetch_all(9), []);
    let new = f.fetch_one(10);
    assert_eq!((new.event.sequence, new.attempt), (seq(3), 2));
    assert_ne!(new.lease_id, old.lease_id);
    assert_eq!(f.ack(&old), Err(Error::StaleLease));
    assert_eq!(f.ack(&new), Ok(()));
}

#[test]
fn an_expired_lease_settles_until_it_is_reclaimed() {
    let mut f = Fixture::starting_at(0);
    let leases = f.fetch(3, at(0));
    let reclaimed = f.fetch_one(10);
    assert_eq!(reclaimed.event.sequence, seq(1));

    // The fetch found 2 and 3 due as well, but nobody took them.
    assert_eq!(f.ack(&leases[0]), Err(Error::StaleLease));
    assert_eq!(f.ack(&leases[1]), Ok(()));
    assert_eq!(f.retry(&leases[2], 11), Ok(RetryOutcome::Retrying));
    assert_eq!(f.fetch_all(11), [(3, 2)]);
}

#[test]
fn an_expired_lease_can_be_renewed_until_it_is_reclaimed() {
    let mut f = Fixture::starting_at(0);
    let leases = f.fetch(2, at(0));
    f.fetch_one(10);
    let renewed = f
        .delivery
        .renew(&leases[1], micros(5), at(12))
        .expect("current");
    assert_eq!(renewed.expires_at, at(17));
    assert_eq!(renewed.lease_id, leases[1].lease_id);
    assert_eq!(f.fetch_all(16), [(3, 1)]);
    assert_eq!(f.fetch_all(17), [(2, 2)]);
}

#[test]
fn a_lease_can_be_renewed_to_expire_sooner() {
    let mut f = Fixture::starting_at(2);
    let lease = f.fetch_one(0);
    let renewed = f.delivery.renew(&lease, micros(2), at(1)).expect("current");
    assert_eq!(renewed.expires_at, at(3));
    assert_eq!(f.fetch_all(2), []);
    assert_eq!(f.fetch_all(3), [(3, 2)]);
    assert_eq!(f.fetch_all(10), [], "the first expiry is forgotten");
}

#[test]
fn a_retry_waits_for_its_delay_and_the_lowest_comes_first() {
    let mut f = Fixture::starting_at(0);
    let leases = f.fetch(2, at(0));
    let options =
        RetryOptions::new().with_delay(RetryDelay::new(Duration::from_micros(5)).expect("allowed"));
    f.retry(&leases[1], 0).expect("current");
    f.delivery
        .retry(&leases[0], &options, at(1))
        .expect("current");
    let third = f.fetch(usize::MAX, at(5));
    assert_eq!(
        third.len(),
        2,
        "2 is claimable at once, 3 was never claimed"
    );
    f.retry(&third[0], 6).expect("current");
    assert_eq!(f.fetch_all(6), [(1, 2)]);
}

#[test]
fn a_retry_at_the_last_attempt_is_a_dead_letter() {
    let mut f = Fixture::starting_at(1);
    let lease = f.fetch_one(0);
    assert_eq!(f.retry(&lease, 1), Ok(RetryOutcome::Retrying));
    let lease = f.fetch_one(1);
    assert_eq!(lease.attempt, 2);
    assert_eq!(f.retry(&lease, 2), Ok(RetryOutcome::DeadLettered));

    let lease = f.fetch_one(3);
    f.retry(&lease, 3).expect("current");
    let lease = f.fetch_one(3);
    let options = RetryOptions::new().with_reason(Reason::new("no stock"));
    let outcome = f.delivery.retry(&lease, &options, at(4));
    assert_eq!(outcome, Ok(RetryOutcome::DeadLettered));
    let by_default = Reason::max_attempts();
    assert_eq!(f.dead(), [(2, 2, by_default.as_str()), (3, 2, "no stock")]);
}

#[test]
fn a_lease_that_expires_at_the_last_attempt_is_a_dead_letter_once_reclaimed() {
    let mut f = Fixture::starting_at(1);
    f.fetch(2, at(0));
    let last = f.fetch(2, at(10));
    assert_eq!(last.len(), 2);

    // Expired and used up, but a fetch that asks for nothing reclaims nothing.
    assert!(f.fetch(0, at(20)).is_empty());
    assert_eq!(f.ack(&last[1]), Ok(()));
    assert_eq!(f.fetch_all(20), []);
    assert_eq!(f.dead(), [(2, 2, Reason::lease_expired().as_str())]);
    assert_eq!(f.ack(&last[0]), Err(Error::StaleLease));
    assert_eq!(f.frontier(), 3);
}

#[test]
fn a_clock_that_goes_back_opens_no_unexpired_lease() {
    let mut f = Fixture::starting_at(0);
    let leases = f.fetch(3, at(0));
    f.fetch_one(10);
    assert_eq!(f.fetch_all(5), [], "2 and 3 were found due at 10");
    assert_eq!(f.ack(&leases[1]), Ok(()));
    assert_eq!(f.fetch_all(10), [(3, 2)]);
}

#[test]
fn a_clock_that_goes_back_does_not_delay_a_retry_without_delay() {
    let mut f = Fixture::starting_at(2);
    let lease = f.fetch_one(100);
    f.retry(&lease, 100).expect("current");
    assert_eq!(f.fetch_all(50), [(3, 2)]);
}

#[test]
fn at_the_end_of_time_one_fetch_gives_no_event_twice() {
    let mut f = Fixture::starting_at(0);
    let leases = f.fetch(usize::MAX, Timestamp::MAX);
    assert_eq!(leases.len(), 3);
}

#[test]
fn a_receipt_that_was_not_given_is_a_mismatch_of_a_current_lease_only() {
    let mut f = Fixture::starting_at(2);
    let lease = f.fetch_one(0);
    let mut other = lease.clone();
    other.receipt = Some(Receipt::new("r"));
    assert_eq!(f.ack(&other), Err(Error::ReceiptMismatch));
    assert_eq!(f.ack(&lease), Ok(()));
    assert_eq!(f.ack(&other), Err(Error::StaleLease));
}

#[test]
fn replay_between_frontier_and_cursor_parts_the_leases() {
    let mut f = Fixture::starting_at(0);
    let leases = f.fetch(3, at(0));
    f.ack(&leases[1]).expect("current");
    f.delivery.replay_after(seq(1));
    assert_eq!(f.frontier(), 0, "1 is still leased");
    assert_eq!(f.ack(&leases[2]), Err(Error::StaleLease));
    assert_eq!(f.ack(&leases[0]), Ok(()));
    assert_eq!(f.frontier(), 1);
    assert_eq!(f.fetch_all(1), [(2, 1), (3, 1)]);
}

#[test]
fn replay_takes_the_dead_above_and_leaves_those_below() {
    let mut f = Fixture::starting_at(0);
    for lease in f.fetch(3, at(0)) {
        f.reject(&lease, 0).expect("current");
    }
    assert_eq!(f.frontier(), 3);
    f.delivery.replay_after(seq(2));
    assert_eq!(f.dead(), [(1, 1, "bad"), (2, 1, "bad")]);
    assert_eq!(f.frontier(), 2);
    assert_eq!(f.fetch_all(0), [(3, 1)]);
}

#[test]
fn replay_from_what_was_not_claimed_skips_nothing() {
    for sequence in [1, 2, 3, u64::MAX / 2] {
        let mut f = Fixture::starting_at(0);
        let lease = f.fetch_one(0);
        f.delivery.replay_after(seq(sequence));
        assert_eq!(f.ack(&lease), Ok(()));
        assert_eq!(f.frontier(), 1);
        assert_eq!(f.fetch_all(0), [(2, 1), (3, 1)]);
    }
}

#[test]
fn replay_below_the_start_moves_the_start_back() {
    let mut f = Fixture::starting_at(3);
    f.delivery.replay_after(seq(1));
    assert_eq!(f.frontier(), 1);
    assert_eq!(f.fetch_all(0), [(2, 1), (3, 1)]);
}

#[test]
fn replay_of_an_expired_lease_makes_it_stale() {
    let mut f = Fixture::starting_at(0);
    let leases = f.fetch(2, at(0));
    f.fetch_one(10);
    f.delivery.replay_after(seq(0));
    assert_eq!(f.ack(&leases[1]), Err(Error::StaleLease));
    assert_eq!(f.fetch_all(10), [(1, 1), (2, 1), (3, 1)]);
}

#[test]
fn replay_of_one_event_reopens_it_whatever_became_of_it() {
    let become_of: [fn(&mut Fixture, &Lease); 5] = [
        |f, lease| f.ack(lease).expect("current"),
        |f, lease| f.reject(lease, 0).expect("current"),
        |f, lease| assert_eq!(f.retry(lease, 0), Ok(RetryOutcome::Retrying)),
        |f, lease| {
            let delay = RetryDelay::new(Duration::from_secs(60)).expect("allowed");
            let options = RetryOptions::new().with_delay(delay);
            f.delivery.retry(lease, &options, at(0)).expect("current");
        },
        |_, _| {},
    ];
    for settle in become_of {
        let mut f = Fixture::starting_at(0);
        let leases = f.fetch(2, at(0));
        f.ack(&leases[0]).expect("current");
        settle(&mut f, &leases[1]);
        f.delivery.replay_event(seq(2));
        assert_eq!(f.frontier(), 1);
        assert_eq!(f.dead(), []);
        assert_eq!(f.ack(&leases[1]), Err(Error::StaleLease));
        assert_eq!(f.fetch_all(0), [(2, 1), (3, 1)]);
    }
}

#[test]
fn replay_of_an_event_before_the_start_delivers_just_that() {
    let mut f = Fixture::starting_at(2);
    f.delivery.replay_event(seq(1));
    assert_eq!(f.frontier(), 0);
    let leases = f.fetch(usize::MAX, at(0));
    let given: Vec<u64> = leases
        .iter()
        .map(|lease| lease.event.sequence.get())
        .collect();
    assert_eq!(given, [1, 3]);
    f.ack(&leases[0]).expect("current");
    assert_eq!(f.frontier(), 2);
}

#[test]
fn replay_of_an_event_that_was_not_delivered_changes_nothing() {
    let mut f = Fixture::starting_at(0);
    f.delivery.replay_event(seq(3));
    assert_eq!(f.frontier(), 0);
    assert_eq!(f.fetch_all(0), [(1, 1), (2, 1), (3, 1)]);
}

#[test]
fn what_is_due_next_is_known() {
    let mut f = Fixture::starting_at(2);
    assert_eq!(f.delivery.next_due(f.high_watermark), Some(AT_ONCE));
    let lease = f.fetch_one(0);
    assert_eq!(f.delivery.next_due(f.high_watermark), Some(at(10)));
    f.ack(&lease).expect("current");
    assert_eq!(f.delivery.next_due(f.high_watermark), None);
}
