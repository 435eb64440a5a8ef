//! Faults between a backend and its store: at each request of every operation something goes wrong.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rheo_core::{Backend, Error, Lease, Operation};

use super::unavailable::{calls_for_nothing, expect_refused};
use crate::case::{Case, case};
use crate::expect::{Failure, Outcome, broken, expect};
use crate::faults::{Fault, FaultInjector};
use crate::fixture::Fixture;
use crate::harness::Part;
use crate::operations::Target;
use crate::recorder::Recorder;
use crate::stage::{Effect, HOURS, Interrupted, Known, Stage};

pub(crate) const CASES: &[Case] = &[
    case!(
        "ERR-1" => a_request_that_is_cut_off_has_no_half_effect,
        "an operation is several requests, and what the first of them did stays when the next one fails"
    ),
    case!(
        "ERR-2" => a_lost_reply_is_told_as_it_is,
        "a connection that broke is taken for a write that did not happen, or the write is sent again"
    ),
    case!(
        "ERR-2" => a_reply_that_breaks_off_is_no_reply,
        "a reply that was cut is taken for an error of the store, and the write for one that failed"
    ),
    case!(
        "ERR-2" => a_write_that_arrives_late_happens_once,
        "what makes a write safe to repeat is checked before it is sent, and not by the store when it arrives"
    ),
    case!(
        "LSE-2" => a_settle_that_arrives_late_is_stale,
        "whether a lease is current is checked before the settle is sent, and not by the store when it arrives"
    )
    .sets_the_clock(),
    case!(
        "ERR-3" => reads_are_never_ambiguous,
        "one table from the driver's errors to the portable ones serves reads and writes alike"
    ),
    case!(
        "ERR-5" => after_an_outage_the_same_handle_works,
        "broken connections stay in the pool, or the handle remembers that the store was away"
    ),
    case!(
        "ERR-6" => what_a_handle_remembers_is_no_answer,
        "what is known of a stream or group answers a call that has nothing to do, and the store is not asked"
    ),
    case!(
        "ERR-4" => a_frozen_store_ends_in_a_timeout,
        "the operation waits for an answer without a timeout of its own"
    ),
    case!(
        "ERR-4" => a_slow_store_is_waited_for,
        "a read takes what has arrived for all there is, or a timeout counts from the wrong moment"
    ),
];

/// The most requests of one operation at which a fault strikes.
const MOST_REQUESTS: usize = 16;
/// Where each fault costs time, so many requests of an operation are enough once that time has passed.
const FEW_REQUESTS: u32 = 3;
const ENOUGH_TIME: Duration = Duration::from_secs(20);
/// How often in a row a fault may strike and the operation succeed all the same, before it is left.
const MOST_UNHARMED: u32 = 10;
/// On how many handles at once operations are struck: few enough for each to be struck some 20 times.
const LANES: usize = 4;
/// The most requests where each costs a timeout, which all operations wait for at once.
const MOST_FROZEN: usize = 4;
/// The default operation timeout, and room for a machine that is busy.
const TIMEOUT: Duration = Duration::from_secs(5);
const ROOM: Duration = Duration::from_secs(5);

/// The network goes away before the store has heard of it.
async fn a_request_that_is_cut_off_has_no_half_effect(t: Fixture) -> Outcome {
    let faults = [Fault::CutRequest, Fault::CutWithinRequest];
    strike_with(&t, &faults, LANES, Interrupted::writes).await
}

/// The store did it, and nobody was told: the one thing that `Ambiguous` is for.
async fn a_lost_reply_is_told_as_it_is(t: Fixture) -> Outcome {
    strike_with(&t, &[Fault::LoseReply], LANES / 2, Interrupted::writes).await
}

/// Half an answer is worse than none for whoever reads it as a whole one.
async fn a_reply_that_breaks_off_is_no_reply(t: Fixture) -> Outcome {
    let faults = [Fault::CutWithinReply, Fault::CutAfterReply];
    strike_with(&t, &faults, LANES, Interrupted::writes).await
}

/// A request is stuck in a switch while its client gives up and repeats it.
async fn a_write_that_arrives_late_happens_once(t: Fixture) -> Outcome {
    for nth in 1..=times(&t, MOST_FROZEN) {
        t.forget_history();
        let victims = Victim::all(&t, Interrupted::can_be_repeated).await?;
        let held = t.strands(victims.into_iter().map(|victim| {
            let t = t.clone();
            async move {
                let Some(strike) = victim.strike(&t, Fault::HoldRequest, nth).await? else {
                    return Ok(None);
                };
                victim.expect_once(&t, &strike).await?;
                Ok(Some(strike.struck))
            }
        }));
        let held = held.await?;
        exercised(held.iter().any(Option::is_some))?;
        if !held.into_iter().flatten().any(|struck| struck) {
            break;
        }
    }
    Ok(())
}

/// A request is stuck in a switch while its client dies, the lease ends and somebody else takes over.
async fn a_settle_that_arrives_late_is_stale(t: Fixture) -> Outcome {
    for nth in 1..=times(&t, MOST_FROZEN) {
        t.forget_history();
        let victims = Victim::all(&t, Interrupted::is_settle).await?;
        let held = t.strands(victims.into_iter().map(|victim| {
            let t = t.clone();
            async move {
                let strike = victim.strike(&t, Fault::HoldRequest, nth).await?;
                Ok(strike.map(|strike| (victim, strike)))
            }
        }));
        let held = held.await?;
        exercised(held.iter().any(Option::is_some))?;
        t.pass(HOURS).await;
        let mut any_struck = false;
        for (number, held) in held.into_iter().enumerate() {
            let Some((victim, strike)) = held else {
                continue;
            };
            let arrives = async {
                let claims = strike.stage.claim_the_rest(&t.backend).await?;
                victim.injector.heal().await;
                let operation = victim.operation.0;
                t.note(format_args!("a late {operation} has arrived"));
                for claim in claims {
                    let acked = t.backend.ack(&claim).await;
                    acked.map_err(|error| not_fenced(operation, &claim, &error))?;
                }
                Ok(())
            };
            t.strand(number, arrives).await?;
            any_struck |= strike.struck;
        }
        if !any_struck {
            break;
        }
    }
    Ok(())
}

fn not_fenced(late: Operation, claim: &Lease, error: &Error) -> Failure {
    let (partition, sequence) = (claim.event.partition, claim.event.sequence);
    broken(
        format!(
            "Ok for the ack of the latest claim of {partition}/{sequence}, which a late {late} of the \
             claim before must not settle"
        ),
        format!("Err({}): {error}", error.kind()),
    )
}

/// A read can be made again, whatever became of it.
async fn reads_are_never_ambiguous(t: Fixture) -> Outcome {
    let faults = [Fault::CutRequest, Fault::LoseReply, Fault::CutWithinReply];
    strike_with(&t, &faults, LANES, |operation| !operation.writes()).await
}

/// The store is restarted while clients go on. One by one, since it may be away for all handles.
async fn after_an_outage_the_same_handle_works(t: Fixture) -> Outcome {
    strike_with(&t, &[Fault::Refuse], 1, |_| true).await
}

/// Who has seen a stream before cannot say that it is there, now that nobody answers.
async fn what_a_handle_remembers_is_no_answer(t: Fixture) -> Outcome {
    let (handle, injector) = t.faulty_handle().await?;
    let group = t.group().await?;
    let target = Target::of(&group.via(&handle)).await?;
    let declared = t.capabilities();
    calls_for_nothing(&handle, &target, &declared).await;

    if !injector.arm(Fault::Refuse, 1).await {
        return Err(Failure::NotExercised(Part::OpenFaulty));
    }
    for (call, answer) in calls_for_nothing(&handle, &target, &declared).await {
        expect_refused(call, answer)?;
    }
    injector.heal().await;
    revived(&handle).await
}

/// Nothing is closed, nothing answers: only a timeout ends it.
async fn a_frozen_store_ends_in_a_timeout(t: Fixture) -> Outcome {
    for nth in 1..=times(&t, MOST_FROZEN) {
        t.forget_history();
        let victims = Victim::all(&t, |_| true).await?;
        let struck = t.strands(victims.into_iter().map(|victim| {
            let t = t.clone();
            async move {
                let Some(strike) = victim.strike(&t, Fault::Freeze, nth).await? else {
                    return Ok(false);
                };
                victim.heal().await?;
                victim.expect_whole_or_none(&t, &strike).await?;
                Ok(true)
            }
        }));
        exercised(struck.await?.into_iter().any(|struck| struck))?;
    }
    Ok(())
}

/// A link that is merely slow loses nothing.
async fn a_slow_store_is_waited_for(t: Fixture) -> Outcome {
    strike_with(&t, &[Fault::Slow], LANES, |_| true).await
}

/// Lets each fault that the injector has strike at each request of some operations, on so many handles at
/// once, since much of it is waiting. Each handle is struck again and again, so that what a fault costs it,
/// a place in its pool say, adds up.
async fn strike_with(
    t: &Fixture,
    faults: &[Fault],
    lanes: usize,
    at: impl Fn(&Interrupted) -> bool,
) -> Outcome {
    let operations = Interrupted::some(t, at);
    let blows = faults
        .iter()
        .flat_map(|fault| operations.iter().map(|operation| (*fault, *operation)));
    let mut lanes = Lane::deal(t, lanes, &blows.collect::<Vec<_>>()).await?;
    let few_after = t.budget().time(ENOUGH_TIME) * u32::try_from(faults.len()).unwrap_or(1);
    let (started, mut tried) = (Instant::now(), false);
    while !lanes.is_empty() {
        t.forget_history();
        let struck = t.strands(lanes.iter().map(|lane| {
            let (t, (fault, victim), nth) = (t.clone(), lane.next_blow(), lane.nth);
            async move {
                let Some(strike) = victim.strike(&t, fault, nth).await? else {
                    return Ok(None);
                };
                victim.heal().await?;
                let effects = victim.expect_whole_or_none(&t, &strike).await?;
                Ok(Some((strike, effects)))
            }
        }));
        let struck = struck.await?;
        for (number, (lane, struck)) in lanes.iter_mut().zip(struck).enumerate() {
            let Some((strike, effects)) = struck else {
                lane.end_blow();
                continue;
            };
            tried = true;
            let (fault, victim) = lane.next_blow();
            let rest = strike
                .stage
                .expect_the_rest(&t.backend, victim.operation, effects);
            t.strand(number, rest).await?;
            let most = match started.elapsed() > few_after {
                true => FEW_REQUESTS,
                false => times(t, MOST_REQUESTS),
            };
            lane.go_on(fault, &strike, most);
        }
        lanes.retain(|lane| !lane.blows.is_empty());
    }
    exercised(tried)
}

fn times(t: &Fixture, at_default: usize) -> u32 {
    u32::try_from(t.budget().times(at_default)).unwrap_or(u32::MAX)
}

fn exercised(tried: bool) -> Outcome {
    if tried {
        Ok(())
    } else {
        Err(Failure::NotExercised(Part::OpenFaulty))
    }
}

/// A handle on which operations are struck one after the other.
struct Lane {
    handle: Recorder,
    injector: Arc<dyn FaultInjector>,
    /// What is to come, the next one last.
    blows: Vec<(Fault, Interrupted)>,
    /// At which request it strikes.
    nth: u32,
    /// How often in a row it struck and the operation succeeded all the same.
    unharmed: u32,
}

impl Lane {
    /// Deals out the blows.
    async fn deal(t: &Fixture, lanes: usize, blows: &[(Fault, Interrupted)]) -> Outcome<Vec<Self>> {
        let mut dealt = Vec::new();
        for first in 0..lanes.min(blows.len()) {
            let (handle, injector) = t.faulty_handle().await?;
            let mut blows: Vec<_> = blows.iter().skip(first).step_by(lanes).copied().collect();
            blows.reverse();
            dealt.push(Self {
                handle,
                injector,
                blows,
                nth: 1,
                unharmed: 0,
            });
        }
        Ok(dealt)
    }

    fn next_blow(&self) -> (Fault, Victim) {
        let (fault, operation) = self.blows[self.blows.len() - 1];
        let victim = Victim {
            operation,
            handle: self.handle.clone(),
            injector: Arc::clone(&self.injector),
        };
        (fault, victim)
    }

    /// To the next request of the operation, of which so many are struck, or to the next blow.
    fn go_on(&mut self, fault: Fault, strike: &Strike, most: u32) {
        // What it strikes now may be somebody else's: the heartbeat of a driver, say.
        self.unharmed = if strike.known == Known::Succeeded {
            self.unharmed + 1
        } else {
            0
        };
        self.nth += 1;
        // These do not strike at a request.
        let strikes_once = matches!(fault, Fault::Refuse | Fault::Slow);
        let is_over = !strike.struck || strikes_once || self.unharmed == MOST_UNHARMED;
        if is_over || self.nth > most {
            self.end_blow();
        }
    }

    fn end_blow(&mut self) {
        self.blows.pop();
        (self.nth, self.unharmed) = (1, 0);
    }
}

/// An operation, and a handle whose way to the store is struck while it is called.
struct Victim {
    operation: Interrupted,
    handle: Recorder,
    injector: Arc<dyn FaultInjector>,
}

/// What came of an operation with a fault.
struct Strike {
    stage: Stage,
    known: Known,
    struck: bool,
}

impl Victim {
    /// One for each of these operations, each with a handle of its own.
    async fn all(t: &Fixture, which: impl Fn(&Interrupted) -> bool) -> Outcome<Vec<Self>> {
        let mut victims = Vec::new();
        for operation in Interrupted::all(&t.capabilities())
            .into_iter()
            .filter(which)
        {
            let (handle, injector) = t.faulty_handle().await?;
            victims.push(Self {
                operation,
                handle,
                injector,
            });
        }
        Ok(victims)
    }

    /// Calls the operation with a fault at one of its requests, and leaves that as it is; nothing where the
    /// injector has no such fault.
    async fn strike(&self, t: &Fixture, fault: Fault, nth: u32) -> Outcome<Option<Strike>> {
        let stage = Stage::new(t).await?;
        // Connections are there, so that the fault meets the operation and not the login.
        revived(&self.handle).await?;
        if !self.injector.arm(fault, nth).await {
            return Ok(None);
        }
        let name = self.operation.0;
        t.note(format_args!(
            "{name} meets a fault at request {nth}: {fault}"
        ));
        let started = Instant::now();
        let known = stage.outcome(&self.handle, self.operation).await;
        let took = started.elapsed();
        let struck = self.injector.has_struck();
        let timeout = TIMEOUT * stage.timeouts_of(self.operation);
        expect(
            took < timeout + ROOM,
            format!("{name} to end within its timeout, {timeout:?} by default (ERR-4)"),
            format!("{took:?}"),
        )?;
        let known = known.map_err(|error| {
            broken(
                format!(
                    "Ok, Err(BackendUnavailable), Err(Failed), or for a write Err(Ambiguous), of {name} \
                     where {fault} (ERR-2, ERR-3)"
                ),
                format!("Err({}): {error}", error.kind()),
            )
        })?;
        if struck {
            t.tally().cut_points(1);
        }
        // Many connect at once where the store freezes: one that nothing struck may be too late all the same.
        let may_be_late = fault == Fault::Freeze;
        if (!struck && !may_be_late) || fault == Fault::Slow {
            let why = "since nothing was cut";
            expect(
                known == Known::Succeeded,
                format!("{name} to succeed, {why}"),
                "an error",
            )?;
        }
        Ok(Some(Strike {
            stage,
            known,
            struck,
        }))
    }

    /// Ends the fault, and waits until the handle works again.
    async fn heal(&self) -> Outcome {
        self.injector.heal().await;
        revived(&self.handle).await
    }

    /// Repeats what has no whole effect, lets the request that was held back arrive, and demands that this
    /// changes nothing more; nor may it where nothing was to happen any more, repeated or not.
    async fn expect_once(&self, t: &Fixture, strike: &Strike) -> Outcome {
        let (stage, operation) = (&strike.stage, self.operation);
        let may_come = matches!(strike.known, Known::Nothing | Known::Succeeded);
        let mut repeated = None;
        if may_come {
            let beside = [&t.backend];
            let effects = stage.expect_whole_or_none(operation, strike.known, &beside);
            repeated = Some(effects.await?);
        }
        self.heal().await?;
        t.note("what was held back has arrived");
        let Some(effects) = repeated else {
            return self.expect_whole_or_none(t, strike).await.map(drop);
        };
        for handle in [&t.backend, &self.handle] {
            stage.expect_still(handle, operation, effects).await?;
        }
        Ok(())
    }

    async fn expect_whole_or_none(
        &self,
        t: &Fixture,
        strike: &Strike,
    ) -> Outcome<&'static [Effect]> {
        let handles = [&t.backend, &self.handle];
        let stage = &strike.stage;
        stage
            .expect_whole_or_none(self.operation, strike.known, &handles)
            .await
    }
}

/// Pings until the handle answers again: its broken connections may each cost a call.
async fn revived(handle: &Recorder) -> Outcome {
    const WITHIN: Duration = Duration::from_secs(20);
    let started = Instant::now();
    let backend: &Arc<dyn Backend> = handle.unrecorded();
    while let Err(error) = backend.ping().await {
        expect(
            started.elapsed() < WITHIN,
            "the handle to work again, now that the store can be reached (ERR-5)",
            format!("Err({}): {error}", error.kind()),
        )?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
