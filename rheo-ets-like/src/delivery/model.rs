//! Random steps against a model that is plain instead of fast: it remembers every event.

use super::tests::{Fixture, at, micros, seq};
use super::*;

const ROUNDS: u64 = 500;
const STEPS: usize = 120;
const MAX_ATTEMPTS: u32 = 2;

#[derive(Debug, Clone, PartialEq)]
enum State {
    Fresh,
    Leased {
        id: LeaseId,
        attempt: u32,
        due: Timestamp,
    },
    Waiting {
        attempt: u32,
        due: Timestamp,
    },
    Acked,
    Dead {
        attempt: u32,
    },
}

/// The state of sequence n at index n - 1.
struct Model(Vec<State>);

impl Model {
    fn state(&mut self, sequence: Sequence) -> &mut State {
        &mut self.0[usize::try_from(sequence.get()).expect("small") - 1]
    }

    fn is_current(&mut self, lease: &Lease) -> bool {
        let state = self.state(lease.event.sequence);
        matches!(state, State::Leased { id, .. } if *id == lease.lease_id)
    }

    /// The sequence and attempt of each claim, and what is found dead on the way.
    fn fetch(&mut self, limit: usize, now: Timestamp) -> Vec<(u64, u32)> {
        let mut claims = Vec::new();
        for (sequence, state) in (1..).zip(&mut self.0) {
            if claims.len() == limit {
                break;
            }
            match *state {
                State::Leased { attempt, due, .. } if due <= now && attempt >= MAX_ATTEMPTS => {
                    *state = State::Dead { attempt };
                }
                State::Leased { attempt, due, .. } | State::Waiting { attempt, due }
                    if due <= now =>
                {
                    claims.push((sequence, attempt + 1));
                }
                State::Fresh => claims.push((sequence, 1)),
                _ => {}
            }
        }
        claims
    }

    fn replay_after(&mut self, sequence: Sequence) {
        let from = usize::try_from(sequence.get()).expect("small");
        for state in self.0.iter_mut().skip(from) {
            *state = State::Fresh;
        }
    }

    fn replay_event(&mut self, sequence: Sequence) {
        let state = self.state(sequence);
        if *state != State::Fresh {
            *state = State::Waiting {
                attempt: 0,
                due: AT_ONCE,
            };
        }
    }

    fn frontier(&self) -> u64 {
        let is_done = |state: &&State| matches!(state, State::Acked | State::Dead { .. });
        self.0.iter().take_while(is_done).count() as u64
    }

    fn leased(&self) -> u64 {
        self.0
            .iter()
            .filter(|state| matches!(state, State::Leased { .. }))
            .count() as u64
    }

    fn dead(&self) -> Vec<(u64, u32)> {
        let dead = |(sequence, state): (u64, &State)| match state {
            State::Dead { attempt } => Some((sequence, *attempt)),
            _ => None,
        };
        (1..).zip(&self.0).filter_map(dead).collect()
    }
}

#[test]
fn the_state_machine_does_as_the_model() {
    for seed in 0..ROUNDS {
        let outcome = std::panic::catch_unwind(|| run(seed));
        assert!(outcome.is_ok(), "seed {seed} failed, see above");
    }
}

fn run(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let start = random.u64(0..=3);
    let mut f = Fixture::starting_at(start);
    let mut model = Model(vec![State::Acked; start as usize]);
    model.0.resize(3, State::Fresh);
    let mut given: Vec<Lease> = Vec::new();
    let mut now = 1_000;

    for _ in 0..STEPS {
        now += random.i64(-3..=6);
        let sequence = seq(random.u64(0..=f.high_watermark.get()));
        match random.u32(0..12) {
            0 => {
                f.high_watermark = f.high_watermark.next();
                model.0.push(State::Fresh);
            }
            1 => {
                f.delivery.replay_after(sequence);
                model.replay_after(sequence);
            }
            2 if sequence > Sequence::ZERO => {
                f.delivery.replay_event(sequence);
                model.replay_event(sequence);
            }
            3..=5 => {
                let limit = random.usize(0..=4);
                let leases = f.fetch(limit, at(now));
                let claims: Vec<(u64, u32)> = leases
                    .iter()
                    .map(|lease| (lease.event.sequence.get(), lease.attempt))
                    .collect();
                assert_eq!(claims, model.fetch(limit, at(now)));
                for lease in leases {
                    *model.state(lease.event.sequence) = State::Leased {
                        id: lease.lease_id.clone(),
                        attempt: lease.attempt,
                        due: lease.expires_at,
                    };
                    given.push(lease);
                }
            }
            _ => {
                // Mostly one of the latest leases, now and then an old one.
                let reach = if random.u32(0..4) == 0 { 40 } else { 4 };
                let back = random.usize(0..reach);
                if let Some(lease) = given.iter().rev().nth(back) {
                    settle(&mut f, &mut model, lease, &mut random, now);
                }
            }
        }
        compare(&f, &model);
    }
}

fn settle(f: &mut Fixture, model: &mut Model, lease: &Lease, random: &mut fastrand::Rng, now: i64) {
    let is_current = model.is_current(lease);
    let attempt = lease.attempt;
    let state = model.state(lease.event.sequence);
    let (outcome, next) = match random.u32(0..5) {
        0 | 1 => (f.delivery.ack(lease), State::Acked),
        2 => {
            let reason = Reason::new("bad");
            let rejected = f.delivery.reject(lease, &reason, at(now));
            (rejected, State::Dead { attempt })
        }
        3 => {
            let duration = random.u64(1..20);
            let renewed = f.delivery.renew(lease, micros(duration), at(now));
            let due = at(now + duration.cast_signed());
            let id = lease.lease_id.clone();
            (renewed.map(drop), State::Leased { id, attempt, due })
        }
        _ => {
            let wait = random.u64(0..10);
            let delay = RetryDelay::new(std::time::Duration::from_micros(wait)).expect("allowed");
            let options = RetryOptions::new().with_delay(delay);
            let retried = f.delivery.retry(lease, &options, at(now));
            let next = match wait {
                _ if attempt >= MAX_ATTEMPTS => State::Dead { attempt },
                0 => State::Waiting {
                    attempt,
                    due: AT_ONCE,
                },
                _ => State::Waiting {
                    attempt,
                    due: at(now + wait.cast_signed()),
                },
            };
            (retried.map(drop), next)
        }
    };
    if is_current {
        assert_eq!(outcome, Ok(()));
        *state = next;
    } else {
        assert_eq!(outcome, Err(Error::StaleLease));
    }
}

fn compare(f: &Fixture, model: &Model) {
    let delivery = &f.delivery;
    assert_eq!(delivery.frontier().get(), model.frontier());
    assert_eq!(delivery.leased(), model.leased());
    let dead = delivery.dead_after(Sequence::ZERO);
    let dead: Vec<(u64, u32)> = dead.map(|(s, dead)| (s.get(), dead.attempt)).collect();
    assert_eq!(dead, model.dead());

    // Each open delivery is in exactly one index, and nothing else is in them.
    assert_eq!(
        delivery.open.len(),
        delivery.waiting.len() + delivery.ready.len()
    );
    for (sequence, open) in &delivery.open {
        assert!(*sequence <= delivery.cursor);
        let is_waiting = delivery.waiting.contains(&(open.due, *sequence));
        assert_ne!(is_waiting, delivery.ready.contains(sequence));
    }
}
