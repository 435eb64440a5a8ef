//! Faults between a backend and its store: at each request of every operation something goes wrong.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rheo_core::{Backend, Error, ErrorKind, Guarantee, Operation};

use super::unavailable::{calls_for_nothing, expect_refused};
use super::wakeup::ends_the_wait;
use crate::aftermath::{Aftermath, Repeated, deliver_the_rest};
use crate::case::{Case, case};
use crate::expect::{Failure, Outcome, expect};
use crate::faults::{Fault, FaultInjector};
use crate::fixture::Fixture;
use crate::flight::{Flight, Others, Quiet};
use crate::harness::Part;
use crate::operations::Target;
use crate::recorder::Recorder;
use crate::stage::{A_MINUTE, Interrupted, Stage};

pub(crate) const CASES: &[Case] = &[
    case!(
        "ERR-1" => a_request_that_is_cut_off_has_no_half_effect,
        "an operation is several requests, and what the first of them did stays when the next one fails"
    ),
    case!(
        "ERR-1" => calls_beside_a_struck_one_are_told_what_happened,
        "calls share a connection or a request, and the failure of one is told to all of them"
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
const ENOUGH_TIME: Duration = Duration::from_secs(12);
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

/// Many calls are under way over one handle when a connection breaks: each was told the truth, and no other
/// call's.
async fn calls_beside_a_struck_one_are_told_what_happened(t: Fixture) -> Outcome {
    let (handle, injector) = t.faulty_handle().await?;
    let quiet = Quiet::of(&t).await?;
    let mut struck = Struck::default();
    for fault in [Fault::CutRequest, Fault::LoseReply] {
        for nth in 1..=times(&t, MOST_REQUESTS) {
            t.forget_history();
            revived(&handle).await?;
            let flight = Flight::of(&t, &quiet).await?;
            if !injector.arm(fault, nth).await {
                break;
            }
            t.note(format_args!(
                "many calls meet a fault at request {nth}: {fault}"
            ));
            let landed = flight.all(&handle).await;
            let has_struck = injector.has_struck();
            injector.heal().await;
            revived(&handle).await?;
            revived(&t.backend).await?;
            flight.judge(landed?, Others::MayFail).await?;
            if !has_struck {
                break;
            }
            t.tally().cut_points(1);
            struck.0 = true;
        }
    }
    struck.exercised()
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
    let victims = Victim::all(&t, Interrupted::may_come_late).await?;
    let mut struck = Struck::default();
    for nth in 1..=times(&t, MOST_FROZEN) {
        t.forget_history();
        let nths = vec![nth; victims.len()];
        let strikes = Victim::strike_all(&t, &victims, Fault::HoldRequest, &nths).await?;
        let is_over = !struck.note(&strikes);
        let arrived = t.strands(
            victims
                .iter()
                .cloned()
                .zip(strikes)
                .map(|(victim, strike)| {
                    let t = t.clone();
                    async move {
                        let Some(Strike { mut aftermath, .. }) = strike else {
                            return Ok(None);
                        };
                        victim.repeat_meanwhile(&t, &mut aftermath).await?;
                        victim.heal().await?;
                        t.note("what was held back has arrived");
                        aftermath.judge(&[&t.backend, &victim.handle]).await?;
                        Ok(Some(aftermath))
                    }
                }),
        );
        deliver_the_rest(&t, &t.backend, arrived.await?).await?;
        if is_over {
            break;
        }
    }
    struck.exercised()
}

/// A request is stuck in a switch while its client dies, the lease ends or the group is reset, and somebody
/// else takes over.
async fn a_settle_that_arrives_late_is_stale(t: Fixture) -> Outcome {
    let claims_or_settles = |which: Interrupted| which.is_settle() || which.0 == Operation::Fetch;
    let mut victims = Victim::all(&t, claims_or_settles).await?;
    let takeovers = victims.len();
    if t.capabilities().guarantees(Guarantee::Replay) {
        victims.extend(Victim::all(&t, claims_or_settles).await?);
    }
    let mut struck = Struck::default();
    for nth in 1..=times(&t, MOST_FROZEN) {
        t.forget_history();
        let nths = vec![nth; victims.len()];
        let strikes = Victim::strike_all(&t, &victims, Fault::HoldRequest, &nths).await?;
        let is_over = !struck.note(&strikes);
        t.pass(A_MINUTE).await;
        let strikes = victims.iter().cloned().zip(strikes).enumerate();
        let arrived = t.strands(strikes.map(|(number, (victim, strike))| {
            let t = t.clone();
            async move {
                let Some(Strike { mut aftermath, .. }) = strike else {
                    return Ok(None);
                };
                let resets = number >= takeovers;
                let claims = aftermath.take_over(&t.backend, "z", resets).await?;
                victim.heal().await?;
                t.note("what was held back has arrived");
                let Some(claims) = claims else {
                    return Ok(None);
                };
                aftermath.claim(&t.backend, "y").await?;
                if matches!(victim.operation.0, Operation::Renew | Operation::RenewBatch) {
                    // That it renewed what was taken over shows when that should end.
                    return Ok(Some(aftermath));
                }
                aftermath.ack(&t.backend, &claims).await?;
                aftermath.look(&t.backend).await?;
                Ok(None)
            }
        }));
        let renewed = arrived.await?;
        t.pass(A_MINUTE).await;
        let ended = t.strands(renewed.into_iter().map(|aftermath| {
            let t = t.clone();
            async move {
                let Some(mut aftermath) = aftermath else {
                    return Ok(());
                };
                aftermath.claim(&t.backend, "y").await?;
                aftermath.look(&t.backend).await
            }
        }));
        ended.await?;
        if is_over {
            break;
        }
    }
    struck.exercised()
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
    let answers = calls_for_nothing(&handle, &target, &declared).await;
    let struck = injector.has_struck();
    injector.heal().await;
    Struck(struck).exercised()?;
    for (call, answer) in answers {
        // What was sent before the break was noticed may be told as a write that may have happened.
        if !matches!(answer, Err(Error::Ambiguous(_))) {
            expect_refused(call, answer)?;
        }
    }
    revived(&handle).await?;
    revived(&t.backend).await
}

/// Nothing is closed, nothing answers: only a timeout ends it. Each handle is frozen again and again, so that
/// what a timeout costs it, a place in its pool say, adds up.
async fn a_frozen_store_ends_in_a_timeout(t: Fixture) -> Outcome {
    let victims = Victim::all(&t, |_| true).await?;
    let mut nths = vec![1; victims.len()];
    let mut struck = Struck::default();
    for _ in 0..times(&t, MOST_FROZEN) {
        t.forget_history();
        let strikes = Victim::strike_all(&t, &victims, Fault::Freeze, &nths).await?;
        let is_armed = strikes.iter().any(Option::is_some);
        struck.note(&strikes);
        for (nth, strike) in nths.iter_mut().zip(&strikes) {
            let has_struck = strike.as_ref().is_some_and(|strike| strike.struck);
            *nth = if has_struck { *nth + 1 } else { 1 };
        }
        let judged = t.strands(
            victims
                .iter()
                .cloned()
                .zip(strikes)
                .map(|(victim, strike)| {
                    let t = t.clone();
                    async move {
                        match strike {
                            Some(strike) => victim.judge(&t, strike, Fault::Freeze).await.map(drop),
                            None => Ok(()),
                        }
                    }
                }),
        );
        judged.await?;
        if !is_armed {
            break;
        }
    }
    struck.exercised()
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
    at: impl Fn(Interrupted) -> bool,
) -> Outcome {
    let operations = Interrupted::some(t, at);
    let blows = faults
        .iter()
        .flat_map(|fault| operations.iter().map(|operation| (*fault, *operation)));
    let mut lanes = Lane::deal(t, lanes, &blows.collect::<Vec<_>>()).await?;
    let few_after = t.budget().time(ENOUGH_TIME) * u32::try_from(faults.len()).unwrap_or(1);
    let (started, mut struck) = (Instant::now(), Struck::default());
    while !lanes.is_empty() {
        t.forget_history();
        let stages = Stage::make(t, lanes.len()).await?;
        let strikes = t.strands(lanes.iter().zip(stages).map(|(lane, stage)| {
            let (t, (fault, victim), nth) = (t.clone(), lane.next_blow(), lane.nth);
            async move {
                let Some(strike) = victim.strike(&t, stage, fault, nth).await? else {
                    return Ok((None, None));
                };
                let told = (strike.struck, strike.aftermath.succeeded());
                let aftermath = victim.judge(&t, strike, fault).await?;
                Ok((Some(told), Some(aftermath)))
            }
        }));
        let (told, aftermaths): (Vec<_>, Vec<_>) = strikes.await?.into_iter().unzip();
        deliver_the_rest(t, &t.backend, aftermaths).await?;
        for (lane, told) in lanes.iter_mut().zip(told) {
            let Some((has_struck, succeeded)) = told else {
                lane.end_blow();
                continue;
            };
            struck.0 |= has_struck;
            let most = match started.elapsed() > few_after {
                true => FEW_REQUESTS,
                false => times(t, MOST_REQUESTS),
            };
            lane.go_on(has_struck, succeeded, most);
        }
        lanes.retain(|lane| !lane.blows.is_empty());
    }
    struck.exercised()
}

fn times(t: &Fixture, at_default: usize) -> u32 {
    u32::try_from(t.budget().times(at_default)).unwrap_or(u32::MAX)
}

/// Whether anything was struck at all.
#[derive(Default)]
struct Struck(bool);

impl Struck {
    /// Notes operations that met a fault; tells whether one of these was struck.
    fn note(&mut self, strikes: &[Option<Strike>]) -> bool {
        let has_struck = strikes.iter().flatten().any(|strike| strike.struck);
        self.0 |= has_struck;
        has_struck
    }

    /// A fault that strikes nothing shows nothing.
    fn exercised(&self) -> Outcome {
        match self.0 {
            true => Ok(()),
            false => Err(Failure::NotExercised(Part::OpenFaulty)),
        }
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
    fn go_on(&mut self, has_struck: bool, succeeded: bool, most: u32) {
        // What it strikes now may be somebody else's: the heartbeat of a driver, say.
        self.unharmed = if succeeded { self.unharmed + 1 } else { 0 };
        self.nth += 1;
        let (fault, _) = self.blows[self.blows.len() - 1];
        // These do not strike at a request.
        let strikes_once = matches!(fault, Fault::Refuse | Fault::Slow);
        let is_over = !has_struck || strikes_once || self.unharmed == MOST_UNHARMED;
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
#[derive(Clone)]
struct Victim {
    operation: Interrupted,
    handle: Recorder,
    injector: Arc<dyn FaultInjector>,
}

/// An operation that met a fault.
struct Strike {
    aftermath: Aftermath,
    struck: bool,
}

impl Victim {
    /// One for each of these operations, each with a handle of its own.
    async fn all(t: &Fixture, which: impl Fn(Interrupted) -> bool) -> Outcome<Vec<Self>> {
        let mut victims = Vec::new();
        for operation in Interrupted::all(&t.capabilities()) {
            if which(operation) {
                let (handle, injector) = t.faulty_handle().await?;
                victims.push(Self {
                    operation,
                    handle,
                    injector,
                });
            }
        }
        Ok(victims)
    }

    /// Strikes all of them at once, each at its own request.
    async fn strike_all(
        t: &Fixture,
        victims: &[Self],
        fault: Fault,
        nths: &[u32],
    ) -> Outcome<Vec<Option<Strike>>> {
        let stages = Stage::make(t, victims.len()).await?;
        let victims = victims.iter().cloned().zip(nths.iter().copied());
        let strikes = victims.zip(stages).map(|((victim, nth), stage)| {
            let t = t.clone();
            async move { victim.strike(&t, stage, fault, nth).await }
        });
        t.strands(strikes).await
    }

    /// Calls the operation with a fault at one of its requests, and leaves that as it is; nothing where the
    /// injector has no such fault.
    async fn strike(
        &self,
        t: &Fixture,
        stage: Stage,
        fault: Fault,
        nth: u32,
    ) -> Outcome<Option<Strike>> {
        // Connections are there, so that the fault meets the operation and not the login; and what the
        // handle remembers is old by the time of the next look.
        revived(&self.handle).await?;
        if t.capabilities().guarantees(Guarantee::ContiguousFrontier) {
            let _ = self.handle.lag(&stage.stream, &stage.group).await;
        }
        if !self.injector.arm(fault, nth).await {
            return Ok(None);
        }
        let strike = self.meet(t, stage, fault, nth).await;
        if strike.is_err() {
            self.injector.heal().await;
        }
        strike.map(Some)
    }

    async fn meet(&self, t: &Fixture, stage: Stage, fault: Fault, nth: u32) -> Outcome<Strike> {
        let name = self.operation.0;
        t.note(format_args!(
            "{name} meets a fault at request {nth}: {fault}"
        ));
        let started = Instant::now();
        let results = stage.call(&self.handle, self.operation).await?;
        let took = started.elapsed();
        let struck = self.injector.has_struck();
        let timeout = TIMEOUT * self.operation.timeouts();
        expect(
            took < timeout + ROOM,
            format!("{name} to end within its timeout, {timeout:?} by default (ERR-4)"),
            format!("{took:?}"),
        )?;
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            let kind = error.kind();
            let is_told = matches!(kind, ErrorKind::BackendUnavailable | ErrorKind::Failed)
                || kind == ErrorKind::Ambiguous && self.operation.writes();
            expect(
                is_told,
                format!(
                    "Ok, Err(BackendUnavailable), Err(Failed), or for a write Err(Ambiguous), of {name} \
                     where {fault} (ERR-2, ERR-3)"
                ),
                format!("Err({kind}): {error}"),
            )?;
        }
        if struck {
            t.tally().cut_points(1);
        }
        let answers = results.iter().any(Result::is_ok);
        expect(
            fault != Fault::Refuse || !struck || !answers,
            format!("an error of {name}, since the store cannot be reached (ERR-4)"),
            "Ok",
        )?;
        let mut aftermath = Aftermath::of(stage, self.operation, &results)?;
        aftermath.arrive().await?;
        // Many connect at once where the store freezes: one that nothing struck may be too late all the same.
        let may_be_late = fault == Fault::Freeze;
        if (!struck && !may_be_late) || fault == Fault::Slow {
            expect(
                aftermath.succeeded(),
                format!("{name} to succeed, since nothing was cut"),
                "an error",
            )?;
        }
        Ok(Strike { aftermath, struck })
    }

    /// Ends the fault, and waits until the handle works again.
    async fn heal(&self) -> Outcome {
        self.injector.heal().await;
        revived(&self.handle).await
    }

    /// Ends the fault, and judges what became of the operation.
    async fn judge(&self, t: &Fixture, strike: Strike, fault: Fault) -> Outcome<Aftermath> {
        let mut aftermath = strike.aftermath;
        self.heal().await?;
        // It may have been an outage for all.
        revived(&t.backend).await?;
        let (struck, other) = (&self.handle, &t.backend);
        match fault {
            // Writes, too, work again on the same handle.
            Fault::Refuse => aftermath.judge(&[struck, other]).await?,
            _ => aftermath.judge(&[other, struck]).await?,
        }
        if self.operation.0 == Operation::WaitForWork {
            let group = t.stream(1).await?.group("billing").await?;
            let appended = async { group.stream.append(1).await.map(drop) };
            ends_the_wait(&group.via(&self.handle), appended).await?;
        }
        Ok(aftermath)
    }

    /// Repeats on another handle what may have happened, while its request is held back, and uses what that
    /// made. A store that waits for the end of what is held back is repeated on when it is healed.
    async fn repeat_meanwhile(&self, t: &Fixture, aftermath: &mut Aftermath) -> Outcome {
        if !aftermath.is_open() || !aftermath.is_repeated() {
            return Ok(());
        }
        let beside = aftermath.append_beside().await?;
        if beside == Repeated::Answered && aftermath.repeat(&t.backend).await? == Repeated::Answered
        {
            aftermath.use_what_was_made().await?;
        }
        Ok(())
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
