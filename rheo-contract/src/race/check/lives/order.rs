//! The search for an order of what was done to one event that explains every answer.

use std::collections::HashSet;

use rheo_core::Timestamp;

use super::state::{Act, State};
use crate::race::Done;

/// How many points of a search are looked at before it is given up.
const MOST: usize = 200_000;

/// Something that was done to an event, or seen of it.
pub(super) struct Step<'a> {
    pub(super) act: Act<'a>,
    /// It took effect after this tick.
    pub(super) started: u64,
    /// And before this one.
    pub(super) ended: u64,
    /// The time then, where it is known.
    pub(super) now: Option<Timestamp>,
    /// Whether it surely happened.
    pub(super) is_sure: bool,
    /// What was done; nothing where it was seen in the end.
    pub(super) done: Option<&'a Done>,
}

/// A fetch, which may give up on an event instead of giving it (DLQ-3).
pub(super) struct Reaper {
    pub(super) started: u64,
    pub(super) ended: u64,
    pub(super) now: Option<Timestamp>,
}

/// Everything in the life of one event for a group.
pub(super) struct Life<'a> {
    /// In order of their start.
    steps: Vec<Step<'a>>,
    /// The steps that have to be before others: the claim of a lease before what comes of the lease.
    needs: Vec<Option<usize>>,
    reapers: Vec<Reaper>,
    /// How often the group hands an event out.
    most: u32,
}

/// What the search comes to.
pub(super) enum Verdict<'a> {
    /// There is such an order.
    Explained,
    /// No order explains this step, however those before it are ordered: the event may have been in these
    /// states alone.
    Unexplained(usize, Vec<State<'a>>),
    /// There were too many orders to look at them all.
    Unknown,
}

/// Where a search is: what has been put in order so far, and what that comes to.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Point<'a> {
    /// A bit for each step that is in order, or cannot come any more.
    past: Vec<u64>,
    /// The latest start of those in order: what had ended before it cannot follow.
    latest: u64,
    state: State<'a>,
}

impl Point<'_> {
    fn has(&self, step: usize) -> bool {
        self.past[step / 64] & 1 << (step % 64) != 0
    }

    fn add(&mut self, step: usize) {
        self.past[step / 64] |= 1 << (step % 64);
    }
}

impl<'a> Life<'a> {
    pub(super) fn new(mut steps: Vec<Step<'a>>, reapers: Vec<Reaper>, most: u32) -> Self {
        steps.sort_by_key(|step| step.started);
        let claim_of = |step: &Step<'a>| match step.act {
            Act::Settle(of, _) | Act::Refuse(of) => steps
                .iter()
                .position(|other| matches!(other.act, Act::Claim { lease, .. } if lease == of)),
            _ => None,
        };
        let needs = steps.iter().map(claim_of).collect();
        Self {
            steps,
            needs,
            reapers,
            most,
        }
    }

    pub(super) fn steps(&self) -> &[Step<'a>] {
        &self.steps
    }

    /// Searches an order for all steps, and where there is none the first step that makes it so.
    pub(super) fn explain(&self) -> Verdict<'a> {
        let mut refusals = match self.search(self.steps.len()) {
            Verdict::Unexplained(_, refusals) => refusals,
            other => return other,
        };
        // With so many of the first steps for sure there is an order, and with so many there is none.
        let (mut some, mut none) = (0, self.steps.len());
        while some + 1 < none {
            let middle = usize::midpoint(some, none);
            match self.search(middle) {
                Verdict::Explained => some = middle,
                Verdict::Unexplained(_, of_middle) => (none, refusals) = (middle, of_middle),
                Verdict::Unknown => return Verdict::Unknown,
            }
        }
        Verdict::Unexplained(none - 1, refusals)
    }

    /// Searches an order in which so many of the first steps are, and of the others any.
    fn search(&self, sure: usize) -> Verdict<'a> {
        let start = Point {
            past: vec![0; self.steps.len().div_ceil(64)],
            latest: 0,
            state: State::Missing,
        };
        let (mut seen, mut refusals) = (HashSet::new(), Vec::new());
        let mut stack = vec![start.clone()];
        seen.insert(start);
        while let Some(point) = stack.pop() {
            if (0..sure).all(|step| point.has(step) || !self.steps[step].is_sure) {
                return Verdict::Explained;
            }
            if seen.len() > MOST {
                return Verdict::Unknown;
            }
            for next in self.next(&point, sure, &mut refusals) {
                if seen.insert(next.clone()) {
                    stack.push(next);
                }
            }
        }
        Verdict::Unexplained(sure - 1, refusals)
    }

    /// Where a point leads to by one step more; notes the states in which the last of the sure steps
    /// cannot be. The most promising comes last.
    fn next(
        &self,
        point: &Point<'a>,
        sure: usize,
        refusals: &mut Vec<State<'a>>,
    ) -> Vec<Point<'a>> {
        let mut open = Vec::new();
        // What starts after this follows what has to come yet.
        let mut until = u64::MAX;
        for (at, step) in self.steps.iter().enumerate() {
            if step.started > until {
                break;
            }
            if !point.has(at) {
                open.push(at);
                if at < sure && step.is_sure {
                    until = until.min(step.ended);
                }
            }
        }
        let mut next = self.reaped(point, until, sure);
        let mut has_unseen = false;
        let (mut maybe, mut surely) = (Vec::new(), Vec::new());
        for at in open {
            let step = &self.steps[at];
            let is_free = step.started <= until && step.ended > point.latest;
            let is_after = self.needs[at].is_none_or(|claim| point.has(claim));
            // Fetches without an answer are all alike: it is enough to look at the first.
            let is_like_another = step.act == Act::ClaimUnseen && has_unseen;
            if !is_free || !is_after || is_like_another {
                continue;
            }
            has_unseen |= step.act == Act::ClaimUnseen;
            let states = point.state.after(&step.act, step.now, self.most);
            if states.is_empty() && at + 1 == sure && !refusals.contains(&point.state) {
                refusals.push(point.state);
            }
            let is_sure = at < sure && step.is_sure;
            for state in states {
                let into = if is_sure { &mut surely } else { &mut maybe };
                into.push(self.moved(point, at, state, sure));
            }
        }
        next.extend(maybe.into_iter().rev());
        next.extend(surely.into_iter().rev());
        next
    }

    fn moved(&self, point: &Point<'a>, at: usize, state: State<'a>, sure: usize) -> Point<'a> {
        let mut next = point.clone();
        next.add(at);
        next.state = state;
        self.pass(&mut next, self.steps[at].started, sure);
        next
    }

    /// Puts the latest start to at least that; what may have happened before it and did not, cannot any more.
    fn pass(&self, point: &mut Point<'a>, started: u64, sure: usize) {
        point.latest = point.latest.max(started);
        for (at, step) in self.steps.iter().enumerate() {
            if step.started > point.latest {
                break;
            }
            if step.ended < point.latest && !(at < sure && step.is_sure) {
                point.add(at);
            }
        }
    }

    /// Where it leads to that some fetch gives up on the event: the one that leaves most freedom.
    fn reaped(&self, point: &Point<'a>, until: u64, sure: usize) -> Vec<Point<'a>> {
        let reaped = |reaper: &Reaper| {
            let is_free = reaper.started <= until && reaper.ended > point.latest;
            let state = point.state.reaped(reaper.now, self.most)?;
            is_free.then_some((reaper.started, state))
        };
        let first = self.reapers.iter().filter_map(reaped).min_by_key(|it| it.0);
        let moved = first.map(|(started, state)| {
            let mut next = Point {
                state,
                ..point.clone()
            };
            self.pass(&mut next, started, sure);
            next
        });
        moved.into_iter().collect()
    }
}
