//! A fetch that goes out with others gives none only if nothing is claimable when its turn comes.

use std::collections::BTreeSet;
use std::time::Duration;

use rheo_core::RetryOptions;

use super::*;
use crate::delivery::Settled;

/// A log, and how much of it arrives at once.
#[derive(Debug, Clone, Copy)]
struct Log {
    end: u64,
    most: usize,
}

impl Log {
    fn of(end: u64) -> Self {
        Self {
            end,
            most: usize::MAX,
        }
    }

    /// As the store does: from the lowest on, without a gap after the cursor.
    fn read(self, state: &Delivery, claimable: &Claimable) -> Vec<Sequence> {
        let cursor = state.cursor.get();
        let until = self.end.min(cursor.saturating_add(claimable.unclaimed));
        let unclaimed = (cursor + 1..=until).map(seq);
        let all = claimable.due.iter().copied().chain(unclaimed);
        all.take(self.most).collect()
    }
}

/// What became of operations that went out together.
struct Ran {
    next: Delivery,
    /// What each fetch gave: sequence and attempt.
    fetched: Vec<Vec<(u64, u32)>>,
    leases: Vec<Given>,
    settled: Vec<Result<Settled, rheo_core::Error>>,
    reads: usize,
}

fn run(state: &Delivery, ops: &[Op], log: Log, now: i64) -> Ran {
    let mut applying = Applying::to(state.successor(), attempts(), at(now));
    let mut at_hand = BTreeSet::new();
    let mut wanted = Some(applying.claimable(ops));
    let mut reads = 0;
    while let Some(claimable) = wanted {
        reads += 1;
        at_hand.extend(log.read(&applying.next, &claimable));
        wanted = applying.go_on(ops, |sequence| at_hand.contains(&sequence));
    }
    let mut ran = Ran {
        next: applying.next,
        fetched: Vec::new(),
        leases: Vec::new(),
        settled: Vec::new(),
        reads,
    };
    assert_eq!(applying.found.len(), ops.len());
    for found in applying.found {
        match found {
            Found::Claimed(claimed, _) => {
                let each = claimed.iter().map(|c| (c.sequence.get(), c.attempt));
                ran.fetched.push(each.collect());
                ran.leases.extend(claimed.into_iter().map(|claimed| Given {
                    sequence: claimed.sequence,
                    lease_id: claimed.lease_id,
                    receipt: None,
                }));
            }
            Found::Other(Done::Settled(each)) => ran.settled.extend(each),
            Found::Other(_) => {}
        }
    }
    ran
}

/// A state with that many leased, until 10, and their leases.
fn leased(count: u64) -> (Delivery, Vec<Given>) {
    let ran = run(&Delivery::new(seq(0)), &[fetch(count)], Log::of(count), 0);
    assert_eq!(ran.leases.len() as u64, count);
    (ran.next, ran.leases)
}

fn fetch(limit: u64) -> Op {
    Op::Fetch {
        consumer: ConsumerId::new("c").expect("allowed"),
        limit,
        duration: LeaseDuration::new(Duration::from_micros(10)).expect("allowed"),
    }
}

fn settle(leases: &[Given], settle: Settle) -> Op {
    Op::Settle {
        leases: leases.to_vec(),
        settle,
    }
}

fn retry(leases: &[Given]) -> Op {
    settle(leases, Settle::Retry(RetryOptions::new()))
}

fn attempts() -> MaxAttempts {
    MaxAttempts::new(2).expect("allowed")
}

fn seq(number: u64) -> Sequence {
    Sequence::new(number).expect("in range")
}

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

#[test]
fn a_fetch_goes_on_when_settles_take_the_expired_lease_that_was_read_for_it() {
    for taken in [
        Settle::Ack,
        Settle::Reject(rheo_core::Reason::new("bad")),
        Settle::Renew(LeaseDuration::new(Duration::from_micros(5)).expect("allowed")),
    ] {
        let (state, leases) = leased(1);
        let ran = run(&state, &[settle(&leases, taken), fetch(1)], Log::of(2), 10);
        assert_eq!(ran.fetched, [[(2, 1)]]);
        assert!(ran.settled[0].is_ok());
    }
}

#[test]
fn a_fetch_goes_on_to_the_next_lease_that_expired() {
    let (state, leases) = leased(3);
    let acked = settle(&leases[..1], Settle::Ack);
    let ran = run(&state, &[acked, fetch(1)], Log::of(3), 10);
    assert_eq!(ran.fetched, [[(2, 2)]]);
}

#[test]
fn a_fetch_finds_what_is_retried_beside_it() {
    let (state, leases) = leased(2);
    let ran = run(&state, &[retry(&leases[1..]), fetch(1)], Log::of(2), 0);
    assert_eq!(ran.fetched, [[(2, 2)]]);
}

/// DLV-4: what is lower and was not read is not passed over.
#[test]
fn a_fetch_gives_nothing_above_what_became_claimable_beside_it() {
    let (state, leases) = leased(2);
    let ran = run(&state, &[retry(&leases), fetch(9)], Log::of(4), 0);
    assert_eq!(ran.fetched, [[(1, 2), (2, 2), (3, 1), (4, 1)]]);
}

#[test]
fn a_fetch_finds_what_going_back_opens_beside_it() {
    let (state, leases) = leased(3);
    let state = run(&state, &[settle(&leases, Settle::Ack)], Log::of(3), 0).next;
    for (back, given) in [
        (Op::ReplayAfter(seq(1)), 2),
        (Op::ReplayEvents(vec![seq(3)]), 3),
        (Op::Reset(seq(0)), 1),
    ] {
        let ran = run(&state, &[back, fetch(1)], Log::of(3), 0);
        assert_eq!(ran.fetched, [[(given, 1)]]);
    }
}

#[test]
fn a_fetch_reads_on_when_another_took_all_that_arrived() {
    let log = Log { end: 5, most: 2 };
    let both = [fetch(4), fetch(4)];
    let ran = run(&Delivery::new(seq(0)), &both, log, 0);
    assert_eq!(ran.fetched, [[(1, 1), (2, 1)], [(3, 1), (4, 1)]]);
}

#[test]
fn a_fetch_finds_the_room_that_is_made_beside_it() {
    let (state, leases) = leased(MOST_OPEN);
    let acked = settle(&leases[..1], Settle::Ack);
    let ran = run(&state, &[acked, fetch(1)], Log::of(MOST_OPEN + 1), 0);
    assert_eq!(ran.fetched, [[(MOST_OPEN + 1, 1)]]);
}

#[test]
fn a_fetch_finds_the_room_that_it_makes_by_giving_up() {
    let (state, _) = leased(MOST_OPEN);
    let again = run(&state, &[fetch(MOST_OPEN)], Log::of(MOST_OPEN), 10);
    let ran = run(&again.next, &[fetch(1)], Log::of(MOST_OPEN + 1), 20);
    assert_eq!(ran.fetched, [[(MOST_OPEN + 1, 1)]]);
}

#[test]
fn with_nothing_claimable_it_is_not_read_again_and_again() {
    let (state, leases) = leased(2);
    let acked = settle(&leases[..1], Settle::Ack);
    let ops = [acked, fetch(1), fetch(1), fetch(0), fetch(1)];
    let ran = run(&state, &ops, Log::of(2), 0);
    assert_eq!(ran.fetched, [[], [], [], []] as [[(u64, u32); 0]; 4]);
    assert_eq!(ran.reads, 2);
}

/// Each fetch is compared with one that meets the same state and has the whole log at hand.
#[test]
fn whatever_goes_out_together_no_fetch_gives_none_or_passes_anything_over() {
    for seed in 0..2_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let log = Log {
            end: random.u64(0..12),
            most: random.usize(1..4),
        };
        let (mut state, mut leases, mut now) = (Delivery::new(seq(random.u64(0..3))), vec![], 0);
        for _ in 0..10 {
            now += random.i64(0..7);
            let ops: Vec<Op> = (0..random.usize(1..6))
                .map(|_| any_op(&mut random, &leases, log.end))
                .collect();
            check_each(&state, &ops, log, now, seed);
            let ran = run(&state, &ops, log, now);
            state = ran.next;
            leases.extend(ran.leases);
        }
    }
}

fn any_op(random: &mut fastrand::Rng, leases: &[Given], end: u64) -> Op {
    let some = random.choice(leases).cloned();
    let sequence = seq(random.u64(0..=end));
    match (random.u32(0..10), some) {
        (0..=1, Some(lease)) => settle(&[lease], Settle::Ack),
        (2, Some(lease)) => retry(&[lease]),
        (3, Some(lease)) => settle(&[lease], Settle::Reject(rheo_core::Reason::new("bad"))),
        (4, _) => Op::ReplayAfter(sequence),
        (5, _) if sequence > Sequence::ZERO => Op::ReplayEvents(vec![sequence]),
        (6, _) if random.u32(0..4) == 0 => Op::Reset(sequence),
        _ => fetch(random.u64(0..4)),
    }
}

fn check_each(state: &Delivery, ops: &[Op], log: Log, now: i64, seed: u64) {
    let mut applying = Applying::to(state.successor(), attempts(), at(now));
    let claimable = applying.claimable(ops);
    let mut at_hand: BTreeSet<_> = log.read(&applying.next, &claimable).into_iter().collect();
    for count in 1..=ops.len() {
        let mut ideal = Applying::to(applying.next.clone(), attempts(), at(now));
        ideal.go_on(&ops[count - 1..count], |sequence| sequence <= seq(log.end));
        while let Some(claimable) =
            applying.go_on(&ops[..count], |sequence| at_hand.contains(&sequence))
        {
            at_hand.extend(log.read(&applying.next, &claimable));
        }
        if let (Some(Found::Claimed(ideal, _)), Some(Found::Claimed(got, _))) =
            (ideal.found.first(), applying.found.last())
        {
            let places = |claimed: &[Claimed]| -> Vec<_> {
                claimed.iter().map(|c| (c.sequence, c.attempt)).collect()
            };
            let (ideal, got) = (places(ideal), places(got));
            assert!(ideal.starts_with(&got), "seed {seed}: {got:?} of {ideal:?}");
            assert_eq!(ideal.is_empty(), got.is_empty(), "seed {seed}");
        }
    }
}
