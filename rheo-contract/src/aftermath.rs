//! What a store may hold after an operation whose outcome is not quite known: every state that is
//! possible, and less of them with all that is seen.

use std::time::{Duration, Instant};

use rheo_core::{
    Backend, ConsumerId, Error, ErrorKind, FetchOptions, Lease, Partitions, ReadOptions,
    ResetOptions, Start, Timestamp,
};

use crate::expect::{Failure, Outcome, broken, expect};
use crate::fixture::Fixture;
use crate::model::{Model, Settle, Settled};
use crate::observed::Observed;
use crate::possible::{State, reachable};
use crate::recorder::Recorder;
use crate::stage::{A_MINUTE, Answer, HOURS, Interrupted, Parts, Stage, agreed, settled_as};

/// How long what was interrupted may still be on its way through the store, in real time: the
/// default operation timeout (ERR-4). A right state is seen at once; only a wrong one waits so long.
const ON_ITS_WAY: Duration = Duration::from_secs(5);

/// An operation on a stage, and what may have come of it.
pub(crate) struct Aftermath {
    stage: Stage,
    which: Interrupted,
    /// Whether something of it may happen that nobody is told of.
    is_open: bool,
    /// When it may happen: a call counts from when it was made or from when it arrives.
    moments: Vec<Timestamp>,
    /// Each of them is possible.
    states: Vec<State>,
    succeeded: bool,
}

/// What became of a call that repeats the operation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Repeated {
    /// It was answered.
    Answered,
    /// It failed, or may have.
    Blocked(Error),
}

impl Aftermath {
    /// Of an operation that was dropped, whose outcome nobody knows.
    pub(crate) fn of_dropped(stage: Stage, which: Interrupted) -> Self {
        let mut this = Self::before(stage, which);
        if which.writes() {
            this.may_happen(this.stage.whole(which));
        }
        this
    }

    /// Before anything has happened.
    fn before(stage: Stage, which: Interrupted) -> Self {
        let states = vec![State {
            done: 0,
            on_its_way: Vec::new(),
            model: stage.model.clone(),
        }];
        Self {
            is_open: false,
            moments: vec![stage.t.now()],
            stage,
            which,
            states,
            succeeded: false,
        }
    }

    /// A call was made that may have done these parts, or may do them later.
    fn may_happen(&mut self, parts: Parts) {
        self.is_open |= parts != 0;
        self.states
            .iter_mut()
            .for_each(|state| state.expects(parts));
    }

    /// Of one that gave these results.
    pub(crate) fn of(
        stage: Stage,
        which: Interrupted,
        results: &[Result<Answer, Error>],
    ) -> Outcome<Self> {
        let mut this = Self::before(stage, which);
        let answered = this.take(results)?;
        this.succeeded = answered == Repeated::Answered;
        if this.succeeded {
            let mut states = std::mem::take(&mut this.states);
            this.bury(&mut states);
            this.states = states;
        }
        Ok(this)
    }

    /// Whether it was told that all of it happened.
    pub(crate) fn succeeded(&self) -> bool {
        self.succeeded
    }

    /// Whether it is not known what happened.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether time makes a difference to what may still happen.
    fn may_change(&self) -> bool {
        self.is_open && !(self.is_whole() && self.which.is_done_once())
    }

    fn name(&self) -> impl std::fmt::Display + use<> {
        self.which.0
    }

    /// Whether all of it has happened.
    fn is_whole(&self) -> bool {
        let whole = self.stage.whole(self.which);
        self.states.iter().all(|state| state.done == whole)
    }

    /// Takes over the results of a call: one for each lease of a batch, else one.
    fn take(&mut self, results: &[Result<Answer, Error>]) -> Outcome<Repeated> {
        let (name, whole) = (self.name(), self.stage.whole(self.which));
        let is_batch = self.which.timeouts() > 1;
        let count = if is_batch {
            whole.count_ones() as usize
        } else {
            1
        };
        expect(
            results.len() == count,
            format!("{count} results of {name} (LSE-8)"),
            results.len(),
        )?;
        let (mut answered, mut open) = (Repeated::Answered, 0);
        for (nth, result) in results.iter().enumerate() {
            let parts = if is_batch { 1 << nth } else { whole };
            match result {
                Err(error) if is_in_the_way(error) => {
                    if error.kind() == ErrorKind::Ambiguous {
                        open |= parts;
                    }
                    answered = Repeated::Blocked(error.clone());
                }
                _ => {
                    let (stage, which) = (&self.stage, self.which);
                    let taken = |model: &mut Model| stage.take(model, which, nth, result);
                    retain(&mut self.states, taken)?;
                    if result.is_ok() {
                        self.states.iter_mut().for_each(|state| state.done |= parts);
                    }
                }
            }
        }
        self.may_happen(open);
        Ok(answered)
    }

    /// Every state that is possible now: what is on its way may have arrived by now.
    async fn reachable(&mut self) -> Outcome<Vec<State>> {
        let now = self.stage.t.now();
        if !self.stage.t.sets_the_clock() {
            self.moments.clear();
        }
        if self.moments.last() != Some(&now) {
            self.moments.push(now);
        }
        let (stage, moments) = (&self.stage, &self.moments);
        let mut reachable = reachable(&self.states, stage, self.which, moments).await?;
        if self.is_open() {
            self.bury(&mut reachable);
        }
        Ok(reachable)
    }

    /// Adds what the states are when a fetch has found the claims that are used up, as it may.
    fn bury(&self, states: &mut Vec<State>) {
        for state in states.clone() {
            for moment in &self.moments {
                let mut state = state.clone();
                let buries = self.stage.buries(&mut state.model, self.which, *moment);
                if buries && !states.contains(&state) {
                    states.push(state);
                }
            }
        }
    }

    /// Lets what is on its way arrive, or not. To be called before time passes.
    pub(crate) async fn arrive(&mut self) -> Outcome {
        self.states = self.reachable().await?;
        Ok(())
    }

    /// Demands that handles show a state that is possible; then repeats what has no whole effect, as a
    /// client would, and looks again.
    pub(crate) async fn judge(&mut self, handles: &[&Recorder]) -> Outcome {
        for handle in handles {
            self.look(handle).await?;
        }
        if self.is_whole() || !self.is_repeated() {
            return Ok(());
        }
        // Connections that are still broken may each cost a call.
        const CALLS: usize = 10;
        for call in 1.. {
            match self.repeat(handles[0]).await? {
                Repeated::Answered => break,
                Repeated::Blocked(error) => {
                    let name = self.name();
                    expect(
                        call < CALLS,
                        format!("{name} to be answered when it is repeated (ERR-5)"),
                        format!("Err({}) {CALLS} times: {error}", error.kind()),
                    )?;
                }
            }
        }
        for handle in handles {
            self.look(handle).await?;
        }
        Ok(())
    }

    /// Whether it can be repeated, whatever became of it; where not, what is left tells enough.
    pub(crate) fn is_repeated(&self) -> bool {
        self.stage.is_safe_to_repeat(self.which)
    }

    /// Calls the operation once more.
    pub(crate) async fn repeat(&mut self, handle: &Recorder) -> Outcome<Repeated> {
        let results = self.stage.call(handle, self.which).await?;
        // What is on its way may have arrived before.
        self.arrive().await?;
        self.take(&results)
    }

    /// Appends other events to the partitions to which the operation appends, if it can be done now.
    pub(crate) async fn append_beside(&mut self) -> Outcome<Repeated> {
        let stream = self.stage.stream.clone();
        for event in self.stage.beside(self.which) {
            let given = [event.clone()];
            let appended = self.stage.t.backend.append(&stream, event).await;
            self.arrive().await?;
            match appended {
                Ok(appended) => retain(&mut self.states, |model| {
                    model.appended(&stream, &given, std::slice::from_ref(&appended))
                })?,
                Err(error) if is_in_the_way(&error) => {
                    if error.kind() == ErrorKind::Ambiguous {
                        let now = self.stage.t.now();
                        for mut state in self.states.clone() {
                            if self.stage.append_to(&mut state.model, &given, now).await {
                                self.states.push(state);
                            }
                        }
                    }
                    return Ok(Repeated::Blocked(error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Repeated::Answered)
    }

    /// Looks until a handle shows a state that is possible, and keeps what is possible then.
    pub(crate) async fn look(&mut self, handle: &Recorder) -> Outcome {
        let started = Instant::now();
        loop {
            let reachable = self.reachable().await?;
            let mut effects: Vec<_> = reachable.iter().map(|state| self.effect(state)).collect();
            let (states, differences) = self.compared(handle, reachable).await?;
            if !states.is_empty() {
                self.states = states;
                return Ok(());
            }
            if started.elapsed() > ON_ITS_WAY {
                let name = self.name();
                effects.sort_unstable();
                effects.dedup();
                return Err(broken(
                    format!("an effect of the interrupted {name}, of {effects:?}"),
                    format!("another state{differences}"),
                ));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Those of the states that a handle shows, and how it differs from each if from all.
    async fn compared(
        &self,
        handle: &Recorder,
        mut states: Vec<State>,
    ) -> Outcome<(Vec<State>, String)> {
        let backend = &**handle.unrecorded();
        let mut differences = String::new();
        if let Some((stream, group)) = self.stage.makes(self.which) {
            let (made, missing) = match &group {
                None => {
                    let read = backend.read(&stream, &ReadOptions::new()).await;
                    (read.map(drop), ErrorKind::StreamNotFound)
                }
                Some(group) => {
                    let options = FetchOptions::new(ConsumerId::new("a")?).with_limit(0);
                    let fetched = backend.fetch(&stream, group, &options).await;
                    (fetched.map(drop), ErrorKind::GroupNotFound)
                }
            };
            let is_there = match made.map_err(|error| error.kind()) {
                Ok(()) => true,
                Err(kind) if kind == missing => false,
                Err(kind) => return Ok((Vec::new(), format!(": Err({kind})"))),
            };
            states.retain(|state| (state.done != 0) == is_there);
            let is_or_not = if is_there { "" } else { "not " };
            differences = format!(", in which what it makes is {is_or_not}there");
        }
        let Some(first) = states.first() else {
            return Ok((states, differences));
        };
        let declared = backend.capabilities();
        let looked = match self.is_open() {
            true => Observed::of_a_moment(backend, &first.model).await,
            false => Observed::of(backend, &first.model).await,
        };
        let seen = match looked {
            Ok(seen) => seen,
            Err(failure) => return Ok((Vec::new(), format!(": {failure}"))),
        };
        let mut same = Vec::new();
        for state in states {
            match seen.expect(&state.model, &declared) {
                Ok(()) => same.push(state),
                Err(difference) => {
                    let effect = self.effect(&state);
                    differences.push_str(&format!("\nnot {effect:?}: {difference}"));
                }
            }
        }
        Ok((same, differences))
    }

    fn effect(&self, state: &State) -> Effect {
        match state.done {
            0 => Effect::None,
            done if done == self.stage.whole(self.which) => Effect::Whole,
            _ => Effect::Part,
        }
    }

    /// Appends to a stream that the operation made, or claims and acks an event for a group that it made.
    pub(crate) async fn use_what_was_made(&mut self) -> Outcome {
        let Some((stream, group)) = self.stage.makes(self.which) else {
            return Ok(());
        };
        let t = self.stage.t.clone();
        let Some(group) = group else {
            let given = t.new_event();
            let appended = t.backend.append(&stream, given.clone()).await?;
            return retain(&mut self.states, |model| {
                model.appended(
                    &stream,
                    std::slice::from_ref(&given),
                    std::slice::from_ref(&appended),
                )
            });
        };
        let options = FetchOptions::new(ConsumerId::new("z")?).with_limit(1);
        let now = t.now();
        let leases = t.backend.fetch(&stream, &group, &options).await?;
        retain(&mut self.states, |model| {
            model.fetched(&stream, &group, &options, now, &leases)
        })?;
        self.ack(&t.backend, &leases).await
    }

    /// Claims all that can be claimed now, for a consumer.
    pub(crate) async fn claim(&mut self, handle: &Recorder, consumer: &str) -> Outcome<Vec<Lease>> {
        const AT_ONCE: u32 = 100;
        let group = self.stage.group_via(handle);
        let options = FetchOptions::new(ConsumerId::new(consumer)?).with_limit(AT_ONCE);
        let mut claims = Vec::new();
        loop {
            let now = self.stage.t.now();
            let leases = group.fetch_with(&options).await?;
            self.arrive().await?;
            let (stream, name) = (&self.stage.stream, &self.stage.group);
            let claimed = retain(&mut self.states, |model| {
                model.fetched(stream, name, &options, now, &leases)
            });
            claimed.map_err(|failure| match failure {
                Failure::Broken { expected, seen } => {
                    let operation = self.which.0;
                    broken(
                        format!("what the {operation} left to deliver: {expected}"),
                        seen,
                    )
                }
                other => other,
            })?;
            if leases.is_empty() {
                return Ok(claims);
            }
            claims.extend(leases);
        }
    }

    /// Acks leases, each of which must be current unless the operation may have made it stale.
    pub(crate) async fn ack(&mut self, handle: &Recorder, leases: &[Lease]) -> Outcome {
        for lease in leases {
            let acked = handle.ack(lease).await;
            self.arrive().await?;
            let (partition, sequence) = (lease.event.partition, lease.event.sequence);
            let (name, now) = (self.name(), self.stage.t.now());
            retain(&mut self.states, |model| match &acked {
                Ok(()) => settled_as(model, lease, &Settle::Ack, &Settled::Acked, now),
                Err(error) if model.settle(lease, &Settle::Ack, now) == Err(error.kind()) => Ok(()),
                Err(error) => Err(broken(
                    format!(
                        "Ok for the ack of the latest claim of {partition}/{sequence}, which the {name} \
                         before does not settle"
                    ),
                    format!("Err({}): {error}", error.kind()),
                )),
            })?;
        }
        Ok(())
    }

    /// Takes over for a consumer what the operation is about, which is held back; before that the group may
    /// start again, so that attempts do, too. Nothing where a store has that locked meanwhile.
    pub(crate) async fn take_over(
        &mut self,
        handle: &Recorder,
        consumer: &str,
        resets: bool,
    ) -> Outcome<Option<Vec<Lease>>> {
        let is_open = self.is_open();
        if resets {
            self.arrive().await?;
            let (stream, group) = (&self.stage.stream, &self.stage.group);
            match handle
                .reset_group(stream, group, &ResetOptions::new())
                .await
            {
                Ok(()) => retain(&mut self.states, |model| {
                    agreed(model.reset(stream, group, &Start::Beginning, &Partitions::All))
                })?,
                Err(error) if is_open && is_in_the_way(&error) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        match self.claim(handle, consumer).await {
            Ok(claims) => Ok(Some(claims)),
            // It has no answer, or passes over what is locked.
            Err(_) if is_open => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn deliver(&mut self, handle: &Recorder) -> Outcome {
        let claims = self.claim(handle, "z").await?;
        self.ack(handle, &claims).await?;
        self.arrive().await
    }
}

/// Where the clock can be set, gives everything that is left to one consumer of each group: what can be
/// claimed at once, what can when the usual leases have ended, and what can when all have, twice, since a
/// claim may have come late. All at once, since the clock moves for all.
pub(crate) async fn deliver_the_rest(
    t: &Fixture,
    handle: &Recorder,
    mut aftermaths: Vec<Option<Aftermath>>,
) -> Outcome {
    if !t.sets_the_clock() {
        return Ok(());
    }
    for (nth, wait) in [Duration::ZERO, A_MINUTE, HOURS, HOURS]
        .into_iter()
        .enumerate()
    {
        let is_needed = |a: &Aftermath| nth < 3 || a.may_change();
        if !aftermaths.iter().flatten().any(is_needed) {
            break;
        }
        if !wait.is_zero() {
            t.pass(wait).await;
        }
        let strands = aftermaths.into_iter().map(|aftermath| {
            let handle = handle.clone();
            async move {
                let Some(mut aftermath) = aftermath else {
                    return Ok(None);
                };
                if nth == 0 && aftermath.is_whole() {
                    aftermath.use_what_was_made().await?;
                }
                aftermath.deliver(&handle).await?;
                if nth == 2 {
                    aftermath.look(&handle).await?;
                }
                Ok(Some(aftermath))
            }
        });
        aftermaths = t.strands(strands).await?;
    }
    Ok(())
}

/// How much of an operation's effect is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    None,
    /// In some partitions, or for some leases of a batch, and not in others.
    Part,
    Whole,
}

/// What keeps a store from an answer while something is on its way to it.
fn is_in_the_way(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BackendUnavailable | ErrorKind::Failed | ErrorKind::Ambiguous
    )
}

/// Keeps the states for which something that was seen could be; the failure of the last one if there is
/// none.
fn retain(states: &mut Vec<State>, mut seen: impl FnMut(&mut Model) -> Outcome) -> Outcome {
    let mut failure = None;
    states.retain_mut(|state| match seen(&mut state.model) {
        Ok(()) => true,
        Err(other) => {
            failure = Some(other);
            false
        }
    });
    match failure {
        Some(failure) if states.is_empty() => Err(failure),
        _ => Ok(()),
    }
}
