//! The transitions of a delivery that are easy to get wrong.

use std::time::Duration;

use super::*;

/// A state of a log with three events, leases of ten microseconds and two attempts.
pub(super) struct Fixture {
    pub(super) state: Delivery,
    pub(super) high_watermark: Sequence,
}

/// A lease, as the tests need it.
#[derive(Debug, Clone)]
pub(super) struct Got {
    pub(super) sequence: u64,
    pub(super) attempt: u32,
    pub(super) given: Given,
}

impl Fixture {
    pub(super) fn starting_at(start: u64) -> Self {
        Self {
            state: Delivery::new(seq(start)),
            high_watermark: seq(3),
        }
    }

    pub(super) fn fetch(&mut self, limit: usize, now: i64) -> Vec<Got> {
        let term = Term {
            now: at(now),
            expires_at: at(now).saturating_add(Duration::from_micros(10)),
            holder: Holder {
                token: Uuid::new_v4(),
                consumer: ConsumerId::new("c").expect("allowed"),
            },
        };
        self.state.version += 1;
        let high_watermark = self.high_watermark;
        let claimed = self
            .state
            .fetch(|s| s <= high_watermark, limit, attempts(), &term);
        let got = claimed.into_iter().map(|claim| Got {
            sequence: claim.sequence.get(),
            attempt: claim.attempt,
            given: Given {
                sequence: claim.sequence,
                lease_id: claim.lease_id,
                receipt: None,
            },
        });
        got.collect()
    }

    fn fetch_one(&mut self, now: i64) -> Got {
        self.fetch(1, now).pop().expect("something is claimable")
    }

    /// Sequence and attempt of everything that is claimable.
    fn fetch_all(&mut self, now: i64) -> Vec<(u64, u32)> {
        let got = self.fetch(usize::MAX, now).into_iter();
        got.map(|got| (got.sequence, got.attempt)).collect()
    }

    pub(super) fn settle(&mut self, got: &Got, settle: &Settle, now: i64) -> Result<Settled> {
        self.state.version += 1;
        self.state.settle(&got.given, settle, attempts(), at(now))
    }

    fn ack(&mut self, got: &Got) -> Result<Settled> {
        self.settle(got, &Settle::Ack, 0)
    }

    fn retry(&mut self, got: &Got, now: i64) -> Result<Settled> {
        self.settle(got, &Settle::Retry(RetryOptions::new()), now)
    }

    fn reject(&mut self, got: &Got) -> Result<Settled> {
        self.settle(got, &Settle::Reject(Reason::new("bad")), 0)
    }

    pub(super) fn replay_after(&mut self, sequence: u64) {
        self.state.version += 1;
        self.state.replay_after(seq(sequence));
    }

    pub(super) fn replay_event(&mut self, sequence: u64) {
        self.state.version += 1;
        self.state.replay_event(seq(sequence));
    }

    fn frontier(&self) -> u64 {
        self.state.frontier().get()
    }

    /// Sequence, attempt and reason of the dead, as far as the facts say.
    fn dead(&self) -> Vec<(u64, u32, &str)> {
        let dead = self.state.facts.iter().filter_map(|fact| match fact {
            Fact::Dead { sequence, dead, .. } => {
                Some((sequence.get(), dead.attempt, dead.reason.as_str()))
            }
            _ => None,
        });
        dead.collect()
    }
}

pub(super) fn attempts() -> MaxAttempts {
    MaxAttempts::new(2).expect("allowed")
}

pub(super) fn micros(number: u64) -> LeaseDuration {
    LeaseDuration::new(Duration::from_micros(number)).expect("allowed")
}

pub(super) fn seq(number: u64) -> Sequence {
    Sequence::new(number).expect("in range")
}

pub(super) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

const STALE: Result<Settled> = Err(Error::StaleLease);
const DONE: Result<Settled> = Ok(Settled::Done);

#[test]
fn a_hole_holds_the_frontier() {
    let mut f = Fixture::starting_at(0);
    let got = f.fetch(3, 0);
    assert_eq!(f.frontier(), 0);
    assert_eq!(f.ack(&got[2]), DONE);
    assert_eq!(f.ack(&got[0]), DONE);
    assert_eq!(f.frontier(), 1);
    assert_eq!(f.ack(&got[1]), DONE);
    assert_eq!(f.frontier(), 3);
}

#[test]
fn what_is_done_leaves_nothing_behind() {
    let mut f = Fixture::starting_at(0);
    for got in f.fetch(3, 0) {
        assert_eq!(f.ack(&got), DONE);
    }
    assert!(f.state.claims.is_empty() && f.state.facts.is_empty());
}

#[test]
fn what_is_fetched_together_is_one_claim_of_one_range() {
    let mut f = Fixture::starting_at(0);
    f.fetch(3, 0);
    assert_eq!(f.state.claims.len(), 1);
    assert_eq!(f.state.claims[0].open.ranges(), [(1, 3)]);
}

#[test]
fn a_dead_letter_lets_the_frontier_pass() {
    let mut f = Fixture::starting_at(0);
    let got = f.fetch(2, 0);
    assert_eq!(f.ack(&got[0]), DONE);
    assert_eq!(f.reject(&got[1]), DONE);
    assert_eq!(f.frontier(), 2);
    assert_eq!(f.dead(), [(2, 1, "bad")]);
    assert_eq!(f.ack(&got[1]), STALE);
}

#[test]
fn a_lease_is_reclaimable_from_its_expiry_on_and_not_before() {
    let mut f = Fixture::starting_at(2);
    let old = f.fetch_one(0);
    assert_eq!(f.fetch_all(9), []);
    let new = f.fetch_one(10);
    assert_eq!((new.sequence, new.attempt), (3, 2));
    assert_eq!(f.ack(&old), STALE);
    assert_eq!(f.ack(&new), DONE);
}

#[test]
fn an_expired_lease_settles_until_it_is_reclaimed() {
    let mut f = Fixture::starting_at(0);
    let got = f.fetch(3, 0);
    assert_eq!(f.fetch_one(10).sequence, 1);

    assert_eq!(f.ack(&got[0]), STALE);
    assert_eq!(f.ack(&got[1]), DONE);
    assert_eq!(f.retry(&got[2], 11), Ok(Settled::Retrying));
    assert_eq!(f.fetch_all(11), [(3, 2)]);
}

#[test]
fn a_lease_can_be_renewed_to_expire_sooner_or_later() {
    let mut f = Fixture::starting_at(1);
    let got = f.fetch(2, 0);
    let renewed = f.settle(&got[0], &Settle::Renew(micros(2)), 1);
    assert_eq!(renewed, Ok(Settled::Until(at(3))));
    let renewed = f.settle(&got[1], &Settle::Renew(micros(30)), 1);
    assert_eq!(renewed, Ok(Settled::Until(at(31))));
    assert_eq!(f.fetch_all(2), []);
    assert_eq!(f.fetch_all(3), [(2, 2)]);
    assert_eq!(f.fetch_all(10), [], "the first expiry of 3 is forgotten");
    assert_eq!(f.ack(&got[1]), DONE);
}

#[test]
fn a_retry_waits_for_its_delay_and_the_lowest_comes_first() {
    let mut f = Fixture::starting_at(0);
    let got = f.fetch(2, 0);
    assert_eq!(f.retry(&got[1], 0), Ok(Settled::Retrying));
    let delay = RetryDelay::new(Duration::from_micros(5)).expect("allowed");
    let later = Settle::Retry(RetryOptions::new().with_delay(delay));
    assert_eq!(f.settle(&got[0], &later, 1), Ok(Settled::Retrying));
    assert_eq!(f.fetch_all(5), [(2, 2), (3, 1)]);
    assert_eq!(f.fetch_all(6), [(1, 2)]);
}

#[test]
fn a_retry_at_the_last_attempt_is_a_dead_letter() {
    let mut f = Fixture::starting_at(2);
    let first = f.fetch_one(0);
    assert_eq!(f.retry(&first, 0), Ok(Settled::Retrying));
    let last = f.fetch_one(0);
    assert_eq!(f.retry(&last, 0), Ok(Settled::DeadLettered));
    assert_eq!(f.dead(), [(3, 2, Reason::max_attempts().as_str())]);
}

#[test]
fn a_lease_that_expires_at_the_last_attempt_is_a_dead_letter_once_reclaimed() {
    let mut f = Fixture::starting_at(1);
    f.fetch(2, 0);
    let last = f.fetch(2, 10);
    assert_eq!(last.len(), 2);

    assert!(f.fetch(0, 20).is_empty());
    assert_eq!(f.ack(&last[1]), DONE);
    assert_eq!(f.fetch_all(20), []);
    assert_eq!(f.dead(), [(2, 2, Reason::lease_expired().as_str())]);
    assert_eq!(f.ack(&last[0]), STALE);
    assert_eq!(f.frontier(), 3);
}

#[test]
fn a_clock_that_goes_back_does_not_delay_a_retry_without_delay() {
    let mut f = Fixture::starting_at(2);
    let got = f.fetch_one(100);
    assert_eq!(f.retry(&got, 100), Ok(Settled::Retrying));
    assert_eq!(f.fetch_all(50), [(3, 2)]);
}

#[test]
fn a_receipt_that_was_not_given_is_a_mismatch_of_a_current_lease_only() {
    let mut f = Fixture::starting_at(2);
    let got = f.fetch_one(0);
    let mut other = got.clone();
    other.given.receipt = Some(Receipt::new("r"));
    assert_eq!(f.ack(&other), Err(Error::ReceiptMismatch));
    assert_eq!(f.ack(&got), DONE);
    assert_eq!(f.ack(&other), STALE);
}

#[test]
fn at_the_bound_nothing_new_is_claimed_but_what_is_due_is() {
    let mut f = Fixture::starting_at(0);
    f.high_watermark = seq(MOST_OPEN + 5);
    let got = f.fetch(usize::MAX, 0);
    assert_eq!(got.len() as u64, MOST_OPEN);
    assert_eq!(f.fetch_all(0), []);
    assert!(!f.state.has_room());

    assert_eq!(f.retry(&got[7], 0), Ok(Settled::Retrying));
    assert_eq!(f.fetch_all(0), [(8, 2)]);
    assert_eq!(f.ack(&got[0]), DONE);
    assert_eq!(f.fetch_all(0), [(MOST_OPEN + 1, 1)]);
}

#[test]
fn replay_between_frontier_and_cursor_parts_the_leases() {
    let mut f = Fixture::starting_at(0);
    let got = f.fetch(3, 0);
    assert_eq!(f.ack(&got[1]), DONE);
    f.replay_after(1);
    assert_eq!(f.frontier(), 0, "1 is still leased");
    assert_eq!(f.ack(&got[2]), STALE);
    assert_eq!(f.ack(&got[0]), DONE);
    assert_eq!(f.frontier(), 1);
    assert_eq!(f.fetch_all(1), [(2, 1), (3, 1)]);
}

#[test]
fn replay_from_what_was_not_claimed_changes_nothing() {
    for sequence in [1, 2, 3, u64::MAX / 2] {
        let mut f = Fixture::starting_at(0);
        let got = f.fetch_one(0);
        let before = f.state.clone();
        f.replay_after(sequence);
        assert!(!f.state.differs_from(&before));
        assert_eq!(f.ack(&got), DONE);
        assert_eq!(f.fetch_all(0), [(2, 1), (3, 1)]);
    }
}

#[test]
fn replay_below_the_start_moves_the_start_back() {
    let mut f = Fixture::starting_at(3);
    f.replay_after(1);
    assert_eq!(f.frontier(), 1);
    assert_eq!(f.fetch_all(0), [(2, 1), (3, 1)]);
}

#[test]
fn replay_of_one_event_reopens_it_whatever_became_of_it() {
    let become_of: [fn(&mut Fixture, &Got); 4] = [
        |f, got| assert_eq!(f.ack(got), DONE),
        |f, got| assert_eq!(f.reject(got), DONE),
        |f, got| assert_eq!(f.retry(got, 0), Ok(Settled::Retrying)),
        |_, _| {},
    ];
    for settle in become_of {
        let mut f = Fixture::starting_at(0);
        let got = f.fetch(2, 0);
        assert_eq!(f.ack(&got[0]), DONE);
        settle(&mut f, &got[1]);
        f.replay_event(2);
        assert_eq!(f.frontier(), 1);
        assert_eq!(f.dead(), []);
        assert_eq!(f.ack(&got[1]), STALE);
        assert_eq!(f.fetch_all(0), [(2, 1), (3, 1)]);
    }
}

#[test]
fn a_reset_forgets_everything_and_may_go_ahead() {
    let mut f = Fixture::starting_at(0);
    let got = f.fetch(2, 0);
    f.state.version += 1;
    f.state.reset(seq(2));
    assert_eq!(f.frontier(), 2);
    assert_eq!(f.ack(&got[0]), STALE);
    assert_eq!(f.fetch_all(0), [(3, 1)]);
}
