//! The lives of events in a group that goes back: for each event some order of all that was done to it,
//! in which nothing comes before what had ended when it started, must explain every answer.

mod order;
mod state;

use std::collections::BTreeSet;
use std::time::Duration;

use rheo_core::{
    Error, ErrorKind, Event, Lease, LeaseId, Partition, Replay, ResetOptions, RetryDelay, Sequence,
    Start, Timestamp,
};

use self::order::{Life, Reaper, Step, Verdict};
use self::state::{Act, Death, Moment, State, Then};
use super::{About, Anomaly, History, Place, may_fail, place_of};
use crate::race::{Clocks, Done, How, Settled, What};

/// How much later than a lease says it was claimed the store's time may have been.
const MARGIN: Duration = Duration::from_secs(1);

impl History {
    /// DLV-6, DLV-7, LSE-2, LSE-4, LSE-5, DLQ-2 to DLQ-6, RPL-1 to RPL-7, FRN-4: finds what no order
    /// explains; tells what could not be decided.
    pub(super) fn check_lives(&self, found: &mut Vec<Anomaly>) -> Option<String> {
        self.check_going_back(found);
        self.check_errors(found);
        let mut undecided = None;
        for place in self.places() {
            let life = self.life(place);
            match life.explain() {
                Verdict::Explained => {}
                Verdict::Unexplained(step, states) => {
                    found.push(unexplained(place, life.steps(), step, &states));
                }
                Verdict::Unknown => {
                    let (partition, sequence) = place;
                    undecided = Some(format!(
                        "what was done to p{partition}#{sequence} at the same time has more orders \
                         than can be searched"
                    ));
                }
            }
        }
        undecided
    }

    /// RPL-1, RPL-5: whoever else is at work, a group goes back.
    fn check_going_back(&self, found: &mut Vec<Anomaly>) {
        for done in &self.done {
            let (What::Replay(_, Err(error)) | What::Reset(_, Err(error))) = &done.what else {
                continue;
            };
            if !may_fail(error.kind()) {
                found.push(Anomaly::new(
                    "replay or reset refused (RPL-7)",
                    About::default().by(done),
                    "it to succeed, whoever else is at work",
                    format!("Err({}): {error}", error.kind()),
                ));
            }
        }
    }

    /// LSE-2: a lease is refused for being stale, and for nothing else.
    fn check_errors(&self, found: &mut Vec<Anomaly>) {
        for done in &self.done {
            let What::Settle(lease, _, Err(error)) = &done.what else {
                continue;
            };
            if error.kind() != ErrorKind::StaleLease && !may_fail(error.kind()) {
                found.push(Anomaly::new(
                    "lease refused for another reason (LSE-2)",
                    About::event(&lease.event).by(done),
                    "Ok or Err(StaleLease)",
                    format!("Err({}): {error}", error.kind()),
                ));
            }
        }
    }

    /// Every event of which anything is known.
    fn places(&self) -> BTreeSet<Place> {
        let fetched = self.done.iter().filter_map(|done| match &done.what {
            What::Fetch(_, Ok(leases)) => Some(leases),
            _ => None,
        });
        let leases = fetched.chain(&self.end.rest).flatten();
        let events = leases.map(|lease| &lease.event);
        let events = events.chain(self.log.iter().flatten());
        events.map(place_of).collect()
    }

    fn life(&self, place: Place) -> Life<'_> {
        let (partition, sequence) = place;
        let event = Sequence::new(sequence).ok();
        let event = event.and_then(|sequence| self.event(Partition::new(partition), sequence));
        let mut steps = Vec::new();
        if event.is_none() {
            // An append without an answer that arrived when the log had been read.
            steps.push(Step {
                act: Act::Append,
                started: 0,
                ended: u64::MAX,
                now: None,
                is_sure: false,
                done: None,
            });
        }
        for done in &self.done {
            self.steps_of(done, place, event, &mut steps);
        }
        let mut reapers: Vec<Reaper> = self
            .done
            .iter()
            .filter_map(|d| self.reaper(d, place))
            .collect();
        self.last_steps(place, &mut steps, &mut reapers);
        Life::new(steps, reapers, self.attempts)
    }

    /// What something was to an event.
    fn steps_of<'a>(
        &'a self,
        done: &'a Done,
        place: Place,
        event: Option<&Event>,
        steps: &mut Vec<Step<'a>>,
    ) {
        let is_at = |event: &Event| place_of(event) == place;
        let (partition, sequence) = place;
        match &done.what {
            What::Append(asked, result) => {
                if event.is_some_and(|event| Some(event.id) == asked.id) {
                    let sure = Step {
                        is_sure: true,
                        ..self.step(done, result.as_ref().err(), Act::Append)
                    };
                    steps.push(sure);
                }
            }
            What::Fetch(_, Ok(leases)) => {
                for lease in leases.iter().filter(|lease| is_at(&lease.event)) {
                    steps.push(Step {
                        now: self.time_of(done, lease),
                        ..self.step(done, None, self.claim(lease))
                    });
                }
            }
            What::Fetch(options, Err(error)) => {
                let selects = |event: &Event| options.partitions.contains(event.partition);
                if may_have_happened(error) && event.is_none_or(selects) && options.limit > 0 {
                    steps.push(self.step(done, Some(error), Act::ClaimUnseen));
                }
            }
            What::Settle(lease, how, result) if is_at(&lease.event) => {
                steps.extend(self.settle(done, &lease.lease_id, *how, result));
            }
            What::Lag(lag) => {
                let mut here = lag.partitions.iter();
                let here = here.find(|progress| progress.partition.number() == partition);
                if here.is_some_and(|progress| progress.frontier.get() >= sequence) {
                    steps.push(self.step(done, None, Act::Pass));
                }
            }
            What::Replay(replay, result) => {
                let error = result.as_ref().err();
                if error.is_none_or(may_have_happened)
                    && let Some(act) = replayed(replay, place, event)
                {
                    steps.push(self.step(done, error, act));
                }
            }
            What::Reset(options, result) => {
                let error = result.as_ref().err();
                if error.is_none_or(may_have_happened)
                    && let Some(act) = reset(options, place)
                {
                    steps.push(self.step(done, error, act));
                }
            }
            What::Settle(..) | What::Read(..) | What::Query(..) => {}
        }
    }

    /// Something that happened between its ticks, or may happen at any time from its start on.
    fn step<'a>(&self, done: &'a Done, error: Option<&Error>, act: Act<'a>) -> Step<'a> {
        let is_answered = error.is_none_or(|error| error.kind() == ErrorKind::StaleLease);
        Step {
            act,
            started: done.started,
            ended: if is_answered { done.ended } else { u64::MAX },
            now: Some(done.now).filter(|_| is_answered && self.clocks == Clocks::Agree),
            is_sure: is_answered,
            done: Some(done),
        }
    }

    fn claim<'a>(&self, lease: &'a Lease) -> Act<'a> {
        Act::Claim {
            lease: &lease.lease_id,
            attempt: lease.attempt,
            end: self.moment(lease.expires_at),
        }
    }

    /// The latest time at which a lease may have been claimed, where it is known.
    fn time_of(&self, done: &Done, lease: &Lease) -> Option<Timestamp> {
        match self.clocks {
            Clocks::Agree => Some(done.now),
            Clocks::Stores => Some(lease.leased_at.saturating_add(MARGIN)),
            Clocks::Differ => None,
        }
    }

    /// A time that the backend gave, which says something only where all go by the same.
    fn moment(&self, moment: Timestamp) -> Moment {
        match self.clocks {
            Clocks::Agree | Clocks::Stores => Moment::At(moment),
            Clocks::Differ => Moment::Unknown,
        }
    }

    fn settle<'a>(
        &self,
        done: &'a Done,
        lease: &'a LeaseId,
        how: How,
        result: &Result<Settled, Error>,
    ) -> Option<Step<'a>> {
        let error = result.as_ref().err();
        if error.is_some_and(|error| error.kind() == ErrorKind::StaleLease) {
            return Some(self.step(done, error, Act::Refuse(lease)));
        }
        if !error.is_none_or(may_have_happened) {
            return None;
        }
        let then = match (how, result) {
            (How::Ack, _) => Then::Acked,
            (How::Reject, _) => Then::Rejected,
            (How::Retry(RetryDelay::NONE), _) => Then::Retried(Moment::Past),
            (How::Retry(delay), Ok(_)) if self.clocks == Clocks::Agree => {
                let due = done.now.saturating_add(delay.as_duration());
                Then::Retried(Moment::At(due))
            }
            (How::Retry(_), _) => Then::Retried(Moment::Unknown),
            (How::Renew(_), Ok(Settled::Renewed(renewed))) => {
                Then::Renewed(self.moment(renewed.expires_at))
            }
            (How::Renew(_), _) => Then::Renewed(Moment::Unknown),
        };
        Some(self.step(done, error, Act::Settle(lease, then)))
    }

    fn reaper(&self, done: &Done, (partition, _): Place) -> Option<Reaper> {
        let What::Fetch(options, result) = &done.what else {
            return None;
        };
        let selects = options.partitions.contains(Partition::new(partition));
        let error = result.as_ref().err();
        if !selects || options.limit == 0 || !error.is_none_or(may_have_happened) {
            return None;
        }
        let Step {
            started,
            ended,
            now,
            ..
        } = self.step(done, error, Act::Leave);
        Some(Reaper {
            started,
            ended,
            now,
        })
    }

    /// What was seen of an event when all was over.
    fn last_steps<'a>(
        &'a self,
        place: Place,
        steps: &mut Vec<Step<'a>>,
        reapers: &mut Vec<Reaper>,
    ) {
        let over = self.done.iter().map(|done| done.ended).max().unwrap_or(0) + 1;
        let now = Some(self.end.at).filter(|_| self.clocks == Clocks::Agree);
        let seen = |act, started| Step {
            act,
            started,
            ended: started + 1,
            now,
            is_sure: true,
            done: None,
        };
        if let Some(rest) = &self.end.rest {
            let here = rest.iter().filter(|lease| place_of(&lease.event) == place);
            let claims: Vec<_> = here.map(|lease| seen(self.claim(lease), over)).collect();
            if claims.is_empty() {
                steps.push(seen(Act::Leave, over));
            }
            steps.extend(claims);
            reapers.push(Reaper {
                started: over,
                ended: over + 1,
                now,
            });
        }
        let (partition, sequence) = place;
        let mut lags = self.end.lag.iter().flat_map(|lag| &lag.partitions);
        if let Some(progress) = lags.find(|lag| lag.partition.number() == partition) {
            let frontier = progress.frontier.get();
            if frontier >= sequence {
                steps.push(seen(Act::Pass, over + 2));
            } else if frontier + 1 == sequence && !self.may_go_on() {
                steps.push(seen(Act::Stop, over + 2));
            }
        }
        if let Some(dead) = &self.end.dead {
            let letter = dead.iter().find(|letter| place_of(&letter.event) == place);
            let letter = letter.map(|letter| (letter.attempt, Death::of(&letter.reason)));
            steps.push(seen(Act::Letter(letter), over + 4));
        }
    }

    /// Whether something had no answer, and may happen while the end is looked at.
    fn may_go_on(&self) -> bool {
        self.done.iter().any(|done| match &done.what {
            What::Append(_, Err(error))
            | What::Fetch(_, Err(error))
            | What::Settle(_, _, Err(error))
            | What::Replay(_, Err(error))
            | What::Reset(_, Err(error)) => may_have_happened(error),
            _ => false,
        })
    }
}

fn may_have_happened(error: &Error) -> bool {
    error.kind() == ErrorKind::Ambiguous
}

/// What a replay is to an event, if it is anything.
fn replayed<'a>(
    replay: &Replay,
    (partition, sequence): Place,
    event: Option<&Event>,
) -> Option<Act<'a>> {
    let partition = Partition::new(partition);
    let (reopens, is_chosen) = match replay {
        Replay::After {
            sequence: after,
            partitions,
        } => (
            partitions.contains(partition) && sequence > after.get(),
            false,
        ),
        Replay::AfterEach(each) => {
            let after = each.get(&partition);
            (after.is_some_and(|after| sequence > after.get()), false)
        }
        Replay::Events(ids) => (event.is_some_and(|event| ids.contains(&event.id)), true),
    };
    reopens.then_some(Act::Replay { is_chosen })
}

/// What a reset is to an event, if it is anything.
fn reset<'a>(options: &ResetOptions, (partition, sequence): Place) -> Option<Act<'a>> {
    let partition = Partition::new(partition);
    if !options.partitions.contains(partition) {
        return None;
    }
    let start = match &options.start {
        Start::Beginning => 0,
        Start::AfterSequence(after) => after.get(),
        Start::AfterSequences(each) => each.get(&partition).map_or(0, |after| after.get()),
        // No history starts again at a time.
        Start::AtTime(_) | Start::End => return Some(Act::StartAtTheEnd),
    };
    Some(if sequence > start {
        Act::StartBefore
    } else {
        Act::StartAfter
    })
}

/// A step that no order explains, with what was done to the event.
fn unexplained(place: Place, steps: &[Step<'_>], at: usize, states: &[State<'_>]) -> Anomaly {
    let step = &steps[at];
    let mut about = About::place(place);
    let is_lag = step.act == Act::Pass;
    for other in steps.iter().filter(|other| other.started <= step.ended) {
        let is_told = match other.act {
            Act::Pass => is_lag,
            Act::ClaimUnseen => false,
            _ => true,
        };
        if let Some(done) = other.done.filter(|_| is_told) {
            about = about.and(done);
        }
    }
    let what = match step.done {
        Some(done) => about.told(done),
        None => seen_in_the_end(&step.act),
    };
    if let Some(done) = step.done {
        about = about.by(done);
    }
    let (partition, sequence) = place;
    let states: Vec<String> = states.iter().map(State::to_string).collect();
    let states = match &states[..] {
        [] => "nothing of the kind".to_owned(),
        states => states.join(", or "),
    };
    Anomaly::new(
        name_of(&step.act),
        about,
        format!(
            "p{partition}#{sequence} {} when it was so, in some order of what overlaps",
            step.act
        ),
        format!("{what}, while it can only have been {states}"),
    )
}

fn name_of(act: &Act<'_>) -> &'static str {
    match act {
        Act::Append => "append that no order explains (LOG-7)",
        Act::Claim { .. } | Act::ClaimUnseen => {
            "claim that no order explains (DLV-7, LSE-4, LSE-5, RPL-7)"
        }
        Act::Settle(..) => "settle that no order explains (LSE-2, LSE-7, RPL-7)",
        Act::Refuse(_) => "refusal that no order explains (LSE-2)",
        Act::Replay { .. } | Act::StartBefore | Act::StartAfter | Act::StartAtTheEnd => {
            "replay or reset that no order explains (RPL-4, RPL-5)"
        }
        Act::Pass => "frontier ahead that no order explains (FRN-4)",
        Act::Stop => "frontier behind that no order explains (FRN-1)",
        Act::Leave => "missing event that no order explains (DLV-6)",
        Act::Letter(None) => "missing dead letter that no order explains (DLQ-3, DLQ-4)",
        Act::Letter(Some(_)) => "dead letter that no order explains (DLQ-5, RPL-1)",
    }
}

fn seen_in_the_end(act: &Act<'_>) -> String {
    match act {
        Act::Claim { attempt, .. } => format!("the last fetch gives it at attempt {attempt}"),
        Act::Pass => "the last lag has a frontier at it or above it".to_owned(),
        Act::Stop => "the last lag has a frontier just before it".to_owned(),
        Act::Leave => "the last fetch does not give it".to_owned(),
        Act::Letter(None) => "no dead letter in the end".to_owned(),
        Act::Letter(Some((attempt, _))) => {
            format!("in the end a dead letter of attempt {attempt}")
        }
        other => format!("{other:?}"),
    }
}
