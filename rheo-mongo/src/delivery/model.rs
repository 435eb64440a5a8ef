//! Random steps against a model that is plain instead of fast: it remembers every event.
//!
//! Beside it, facts are written to documents by several at once, some of them long after the state has
//! gone on: what a reader then sees must be what the model has.

use std::collections::BTreeMap;

use super::tests::{Fixture, Got, attempts, micros, seq};
use super::*;

const ROUNDS: u64 = 1_000;
const STEPS: usize = 150;

#[derive(Debug, Clone, PartialEq)]
enum State {
    Fresh,
    Leased { id: LeaseId, attempt: u32, due: i64 },
    Waiting { attempt: u32, due: i64 },
    Acked,
    Dead { attempt: u32 },
}

/// The state of sequence n at index n - 1.
struct Model(Vec<State>);

impl Model {
    fn state(&mut self, sequence: u64) -> &mut State {
        &mut self.0[usize::try_from(sequence).expect("small") - 1]
    }

    /// The sequence and attempt of each claim; buries what is found used up on the way.
    fn fetch(&mut self, limit: usize, now: i64) -> Vec<(u64, u32)> {
        let mut claims = Vec::new();
        for (sequence, state) in (1..).zip(&mut self.0) {
            if claims.len() == limit {
                break;
            }
            match *state {
                State::Leased { attempt, due, .. } if due <= now && attempt >= attempts().get() => {
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

    fn frontier(&self) -> u64 {
        let is_done = |state: &&State| matches!(state, State::Acked | State::Dead { .. });
        self.0.iter().take_while(is_done).count() as u64
    }

    fn leased(&self) -> u64 {
        let is_leased = |state: &&State| matches!(state, State::Leased { .. });
        self.0.iter().filter(is_leased).count() as u64
    }

    fn dead(&self) -> Vec<(u64, u32)> {
        let dead = |(sequence, state): (u64, &State)| match state {
            State::Dead { attempt } => Some((sequence, *attempt)),
            _ => None,
        };
        (1..).zip(&self.0).filter_map(dead).collect()
    }
}

/// The dead letters as they are in the store: since when, and the attempt of one that is dead.
#[derive(Default)]
struct Documents(BTreeMap<u64, (i64, Option<u32>)>);

impl Documents {
    /// As the statements of the module `dead` do.
    fn write(&mut self, fact: &Fact) {
        let (sequence, since, attempt, is_upsert) = match fact {
            Fact::Dead {
                sequence,
                since,
                dead,
            } => (sequence, since, Some(dead.attempt), true),
            Fact::Gone {
                sequence,
                since,
                is_contested,
            } => (sequence, since, None, *is_contested),
            Fact::GoneAbove { sequence, since } => {
                for (of, document) in &mut self.0 {
                    if *of > sequence.get() && document.0 < *since {
                        *document = (*since, None);
                    }
                }
                return;
            }
        };
        match self.0.get_mut(&sequence.get()) {
            Some(document) if document.0 < *since => *document = (*since, attempt),
            Some(_) => {}
            None if is_upsert => _ = self.0.insert(sequence.get(), (*since, attempt)),
            None => {}
        }
    }

    /// What a reader sees with the facts of the state laid over them.
    fn seen(&self, state: &Delivery) -> Vec<(u64, u32)> {
        let written = self.0.iter().filter_map(|(sequence, (since, attempt))| {
            let is_dead = !state.ends(seq(*sequence), *since);
            attempt
                .filter(|_| is_dead)
                .map(|attempt| (*sequence, attempt))
        });
        let mut seen: BTreeMap<u64, u32> = written.collect();
        for fact in &state.facts {
            if let Fact::Dead { sequence, dead, .. } = fact {
                seen.insert(sequence.get(), dead.attempt);
            }
        }
        seen.into_iter().collect()
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
    let mut model = Model(vec![State::Acked; usize::try_from(start).expect("small")]);
    model.0.resize(3, State::Fresh);
    let mut given: Vec<Got> = Vec::new();
    let mut documents = Documents::default();
    // Facts that somebody read and has not written yet.
    let mut asleep: Vec<Fact> = Vec::new();
    let mut now = 1_000;

    for _ in 0..STEPS {
        now += random.i64(-3..=6);
        let sequence = random.u64(0..=f.high_watermark.get());
        match random.u32(0..15) {
            0 => {
                f.high_watermark = f.high_watermark.next();
                model.0.push(State::Fresh);
            }
            1 => {
                f.replay_after(sequence);
                for state in model
                    .0
                    .iter_mut()
                    .skip(usize::try_from(sequence).expect("small"))
                {
                    *state = State::Fresh;
                }
            }
            2 if sequence > 0 => {
                f.replay_event(sequence);
                if *model.state(sequence) != State::Fresh {
                    *model.state(sequence) = State::Waiting {
                        attempt: 0,
                        due: i64::MIN,
                    };
                }
            }
            3 => asleep.extend(f.state.facts.iter().cloned()),
            4 => {
                // Somebody writes all facts down, and the next state goes without them.
                random.shuffle(&mut f.state.facts);
                f.state.facts.iter().for_each(|fact| documents.write(fact));
                f.state.facts.clear();
            }
            5 => {
                random.shuffle(&mut asleep);
                let awake = asleep.split_off(asleep.len() / 2);
                awake.iter().for_each(|fact| documents.write(fact));
            }
            6..=8 => {
                let limit = random.usize(0..=4);
                let got = f.fetch(limit, now);
                let claims: Vec<_> = got.iter().map(|got| (got.sequence, got.attempt)).collect();
                assert_eq!(claims, model.fetch(limit, now));
                for got in got {
                    *model.state(got.sequence) = State::Leased {
                        id: got.given.lease_id.clone(),
                        attempt: got.attempt,
                        due: now + 10,
                    };
                    given.push(got);
                }
            }
            _ => {
                // Mostly one of the latest leases, now and then an old one.
                let reach = if random.u32(0..4) == 0 { 40 } else { 4 };
                let back = random.usize(0..reach);
                if let Some(got) = given.iter().rev().nth(back) {
                    settle(&mut f, &mut model, got, &mut random, now);
                }
            }
        }
        assert_eq!(f.state.frontier().get(), model.frontier());
        assert_eq!(f.state.leased(), model.leased());
        assert_eq!(documents.seen(&f.state), model.dead());
        check_order(&f.state);
    }
}

/// No sequence is in two claims, and none is above the cursor.
fn check_order(state: &Delivery) {
    let mut all: Vec<_> = state.claims.iter().flat_map(|c| c.open.iter()).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    assert!(all.last().is_none_or(|last| *last <= state.cursor));
    assert!(state.claims.iter().all(|claim| !claim.open.is_empty()));
}

fn settle(f: &mut Fixture, model: &mut Model, got: &Got, random: &mut fastrand::Rng, now: i64) {
    let attempt = got.attempt;
    let state = model.state(got.sequence);
    let is_current = matches!(state, State::Leased { id, .. } if *id == got.given.lease_id);
    let (what, next) = match random.u32(0..5) {
        0 | 1 => (Settle::Ack, State::Acked),
        2 => (Settle::Reject(Reason::new("bad")), State::Dead { attempt }),
        3 => {
            let duration = random.u64(1..20);
            let due = now + duration.cast_signed();
            let id = got.given.lease_id.clone();
            let renewed = State::Leased { id, attempt, due };
            (Settle::Renew(micros(duration)), renewed)
        }
        _ => {
            let wait = random.u64(0..10);
            let delay = RetryDelay::new(std::time::Duration::from_micros(wait)).expect("allowed");
            let next = match wait {
                _ if attempt >= attempts().get() => State::Dead { attempt },
                0 => State::Waiting {
                    attempt,
                    due: i64::MIN,
                },
                _ => State::Waiting {
                    attempt,
                    due: now + wait.cast_signed(),
                },
            };
            (Settle::Retry(RetryOptions::new().with_delay(delay)), next)
        }
    };
    let before = f.state.clone();
    match f.settle(got, &what, now) {
        Ok(_) => {
            assert!(is_current);
            *state = next;
        }
        Err(error) => {
            assert!(!is_current);
            assert_eq!(error, Error::StaleLease);
            assert!(!f.state.differs_from(&before));
        }
    }
}
