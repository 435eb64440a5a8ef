//! Faults between a backend and its store: at each request of every operation something goes wrong.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rheo_core::Backend;
use tokio::task::JoinSet;

use super::unavailable::{calls_for_nothing, expect_refused};
use crate::case::{Case, case};
use crate::expect::{Failure, Outcome, broken, expect};
use crate::faults::{Fault, FaultInjector};
use crate::fixture::Fixture;
use crate::harness::Part;
use crate::operations::Target;
use crate::recorder::Recorder;
use crate::scene::{finished, places_of};
use crate::stage::{HOURS, Interrupted, Known, Stage};

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
/// The most requests where each costs a timeout, which all operations wait for at once.
const MOST_FROZEN: usize = 4;
/// The default operation timeout, and room for a machine that is busy.
const TIMEOUT: Duration = Duration::from_secs(5 + 5);

/// The network goes away before the store has heard of it.
async fn a_request_that_is_cut_off_has_no_half_effect(t: Fixture) -> Outcome {
    strike_with(&t, &[Fault::CutRequest, Fault::CutWithinRequest]).await
}

/// The store did it, and nobody was told: the one thing that `Ambiguous` is for.
async fn a_lost_reply_is_told_as_it_is(t: Fixture) -> Outcome {
    strike_with(&t, &[Fault::LoseReply]).await
}

/// Half an answer is worse than none for whoever reads it as a whole one.
async fn a_reply_that_breaks_off_is_no_reply(t: Fixture) -> Outcome {
    strike_with(&t, &[Fault::CutWithinReply, Fault::CutAfterReply]).await
}

/// A request is stuck in a switch while its client gives up and repeats it. All operations that may be
/// repeated wait for their timeout at once.
async fn a_write_that_arrives_late_happens_once(t: Fixture) -> Outcome {
    for nth in 1..=times(&t, MOST_FROZEN) {
        t.forget_history();
        let repeatable = |operation: &Interrupted| operation.can_be_repeated();
        let operations = Interrupted::all(&t.capabilities());
        let mut tasks = JoinSet::new();
        for operation in operations.into_iter().filter(repeatable) {
            let t = t.clone();
            tasks.spawn(async move { arrives_late(&t, operation, nth).await });
        }
        let struck = finished(tasks).await?;
        if struck.iter().all(Option::is_none) {
            return Err(Failure::NotExercised(Part::OpenFaulty));
        }
        if !struck.into_iter().flatten().any(|struck| struck) {
            break;
        }
    }
    Ok(())
}

/// An operation whose nth request arrives when it was repeated; whether there was one, or nothing where
/// the injector has no such fault.
async fn arrives_late(t: &Fixture, operation: Interrupted, nth: u32) -> Outcome<Option<bool>> {
    let (handle, injector) = t.faulty_handle().await?;
    let stage = Stage::new(t).await?;
    let fault = Fault::HoldRequest;
    let Some((known, struck)) = meet(t, &stage, &handle, &injector, operation, fault, nth).await?
    else {
        return Ok(None);
    };
    let handles = [&t.backend];
    let effects = stage
        .expect_whole_or_none(operation, known, &handles)
        .await?;
    injector.heal().await;
    revived(&handle).await?;
    t.note(format_args!("what was held back has arrived"));
    for handle in [&t.backend, &handle] {
        stage.expect_still(handle, operation, effects).await?;
    }
    Ok(Some(struck))
}

/// A request is stuck in a switch while its client dies, the lease ends and somebody else takes over.
async fn a_settle_that_arrives_late_is_stale(t: Fixture) -> Outcome {
    for nth in 1..=times(&t, MOST_FROZEN) {
        t.forget_history();
        let operations = Interrupted::all(&t.capabilities());
        let mut tasks = JoinSet::new();
        for operation in operations.into_iter().filter(Interrupted::is_settle) {
            let t = t.clone();
            tasks.spawn(async move {
                let (handle, injector) = t.faulty_handle().await?;
                let stage = Stage::new(&t).await?;
                let fault = Fault::HoldRequest;
                let met = meet(&t, &stage, &handle, &injector, operation, fault, nth).await?;
                Ok(met.map(|(_, struck)| (stage, operation, injector, struck)))
            });
        }
        let held: Vec<_> = finished(tasks).await?.into_iter().flatten().collect();
        if held.is_empty() {
            return Err(Failure::NotExercised(Part::OpenFaulty));
        }
        t.pass(HOURS).await;
        let mut struck_any = false;
        for (stage, operation, injector, struck) in held {
            let claims = stage.claim_the_rest(&t.backend).await?;
            injector.heal().await;
            let operation = operation.0;
            t.note(format_args!("a late {operation} has arrived"));
            for claim in claims {
                t.backend.ack(&claim).await.map_err(|error| {
                    broken(
                        format!(
                            "Ok for the ack of the latest claim of {:?}, which a late {operation} of \
                             the one before must not settle",
                            places_of(std::slice::from_ref(&claim))
                        ),
                        format!("Err({}): {error}", error.kind()),
                    )
                })?;
            }
            struck_any |= struck;
        }
        if !struck_any {
            break;
        }
    }
    Ok(())
}

/// A read can be made again, whatever became of it.
async fn reads_are_never_ambiguous(t: Fixture) -> Outcome {
    let mut tried = false;
    for fault in [Fault::CutRequest, Fault::LoseReply, Fault::CutWithinReply] {
        let reads = |operation: &Interrupted| !operation.0.writes();
        tried |= strike_at(&t, fault, reads).await?;
    }
    exercised(tried)
}

/// The store is restarted while clients go on.
async fn after_an_outage_the_same_handle_works(t: Fixture) -> Outcome {
    exercised(strike_at(&t, Fault::Refuse, |_| true).await?)
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

/// Nothing is closed, nothing answers: only a timeout ends it. All operations wait for theirs at once.
async fn a_frozen_store_ends_in_a_timeout(t: Fixture) -> Outcome {
    for nth in 1..=times(&t, MOST_FROZEN) {
        t.forget_history();
        let mut tasks = JoinSet::new();
        for operation in Interrupted::all(&t.capabilities()) {
            let t = t.clone();
            tasks.spawn(async move {
                let (handle, injector) = t.faulty_handle().await?;
                strike(&t, &handle, &injector, operation, Fault::Freeze, nth).await
            });
        }
        let struck = finished(tasks).await?;
        for strike in struck.iter().flatten() {
            strike.expect_whole_or_none(&t).await?;
        }
        if struck.iter().all(Option::is_none) {
            return Err(Failure::NotExercised(Part::OpenFaulty));
        }
    }
    Ok(())
}

/// A link that is merely slow loses nothing.
async fn a_slow_store_is_waited_for(t: Fixture) -> Outcome {
    exercised(strike_at(&t, Fault::Slow, |_| true).await?)
}

/// Lets each fault that the injector has strike at each request of every operation that writes.
async fn strike_with(t: &Fixture, faults: &[Fault]) -> Outcome {
    let mut tried = false;
    for fault in faults {
        let writes = |operation: &Interrupted| operation.0.writes();
        tried |= strike_at(t, *fault, writes).await?;
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

/// Lets a fault strike at each request of some operations; false where the injector has no such fault.
async fn strike_at(t: &Fixture, fault: Fault, at: impl Fn(&Interrupted) -> bool) -> Outcome<bool> {
    let (handle, injector) = t.faulty_handle().await?;
    let operations = Interrupted::all(&t.capabilities());
    let (started, enough) = (Instant::now(), ENOUGH_TIME * t.budget().patience());
    for operation in operations.into_iter().filter(at) {
        let mut unharmed = 0;
        for nth in 1..=times(t, MOST_REQUESTS) {
            if nth > FEW_REQUESTS && started.elapsed() > enough {
                break;
            }
            t.forget_history();
            let Some(strike) = strike(t, &handle, &injector, operation, fault, nth).await? else {
                return Ok(false);
            };
            strike.expect_whole_or_none_and_the_rest(t).await?;
            // These do not strike at a request.
            if !strike.struck || matches!(fault, Fault::Refuse | Fault::Slow) {
                break;
            }
            // What it strikes now may be somebody else's: the heartbeat of a driver, say.
            unharmed = if strike.known == Known::Succeeded {
                unharmed + 1
            } else {
                0
            };
            if unharmed == MOST_UNHARMED {
                break;
            }
        }
    }
    Ok(true)
}

/// What came of an operation with a fault.
struct Strike {
    stage: Stage,
    handle: Recorder,
    /// Held, since its end ends the way to the store.
    _injector: Arc<dyn FaultInjector>,
    operation: Interrupted,
    known: Known,
    struck: bool,
}

impl Strike {
    async fn expect_whole_or_none(&self, t: &Fixture) -> Outcome {
        revived(&self.handle).await?;
        let handles = [&t.backend, &self.handle];
        let stage = &self.stage;
        stage
            .expect_whole_or_none(self.operation, self.known, &handles)
            .await
            .map(drop)
    }

    async fn expect_whole_or_none_and_the_rest(&self, t: &Fixture) -> Outcome {
        revived(&self.handle).await?;
        let handles = [&t.backend, &self.handle];
        let stage = &self.stage;
        stage
            .expect_whole_or_none_and_the_rest(self.operation, self.known, &handles)
            .await
    }
}

/// One operation with one fault at one request; nothing where the injector has no such fault.
async fn strike(
    t: &Fixture,
    handle: &Recorder,
    injector: &Arc<dyn FaultInjector>,
    operation: Interrupted,
    fault: Fault,
    nth: u32,
) -> Outcome<Option<Strike>> {
    let stage = Stage::new(t).await?;
    let met = meet(t, &stage, handle, injector, operation, fault, nth).await?;
    injector.heal().await;
    Ok(met.map(|(known, struck)| Strike {
        stage,
        handle: handle.clone(),
        _injector: Arc::clone(injector),
        operation,
        known,
        struck,
    }))
}

/// Calls an operation that meets a fault; what is known of its effect, and whether the fault has struck.
/// Nothing where the injector has no such fault.
async fn meet(
    t: &Fixture,
    stage: &Stage,
    handle: &Recorder,
    injector: &Arc<dyn FaultInjector>,
    operation: Interrupted,
    fault: Fault,
    nth: u32,
) -> Outcome<Option<(Known, bool)>> {
    // Connections are there, so that the fault meets the operation and not the login.
    revived(handle).await?;
    if !injector.arm(fault, nth).await {
        return Ok(None);
    }
    let name = operation.0;
    t.note(format_args!(
        "{name} meets a fault at request {nth}: {fault}"
    ));
    let started = Instant::now();
    let known = stage.outcome(handle, operation).await;
    let took = started.elapsed();
    let struck = injector.has_struck();
    expect(
        took < TIMEOUT,
        format!("{name} to end within its timeout, 5 s by default (ERR-4)"),
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
    Ok(Some((known, struck)))
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
