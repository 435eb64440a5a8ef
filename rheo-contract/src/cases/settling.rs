//! Retry and reject: giving an event back, giving up on it.

mod counting;
mod delays;
mod lost;

use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, FetchOptions, Gate, Guarantee, LeaseDuration, MaxAttempts,
    OptionalOperation, Reason, RetryOptions, RetryOutcome,
};

use self::counting::*;
use self::delays::*;
use self::lost::*;
use crate::case::{Case, case};
use crate::expect::{Outcome, expect_empty, expect_eq};
use crate::fixture::Fixture;
use crate::scene::{Group, P0, P1};
use crate::step::{Step, expect_stale, retry_after};

pub(crate) const CASES: &[Case] = &[
    case!(
        "DLQ-1" => a_retried_event_is_claimable_at_once,
        "the retried event stays leased until its lease would have expired"
    ),
    case!(
        "DLQ-1" => a_retry_at_once_needs_no_clock,
        "the retry writes the time from which the event is claimable, and the clock then goes back"
    )
    .sets_the_clock(),
    case!(
        "DLQ-1" => no_retry_at_once_needs_a_clock,
        "the time is left out for the first retry alone, or for a lease that has not expired"
    )
    .sets_the_clock(),
    case!(
        "DLQ-1" => the_attempt_goes_up_at_the_next_claim,
        "the retry raises the attempt, and the claim raises it again"
    ),
    case!(
        "DLQ-1" => a_delay_ends_exactly_then,
        "the delay is ignored, is rounded to seconds, counts from the claim, or is off by one"
    ),
    case!(
        "DLQ-1" => a_delay_outlasts_the_lease,
        "a retried event is claimable when its old lease expires, although its delay goes on"
    ),
    case!(
        "DLQ-1" => a_delay_holds_back_nothing_else,
        "fetching stops at the first event that is not claimable"
    ),
    case!(
        "DLQ-1" => an_expired_lease_may_be_retried_with_a_delay,
        "what expired is claimable whatever the retry says"
    ),
    case!(
        "DLQ-1" => each_delay_is_its_own,
        "one delay serves the whole group, or the first one is kept"
    ),
    case!(
        "DLQ-1" => a_clock_that_goes_back_ends_no_delay,
        "the delay is compared as a difference that underflows when the clock goes back"
    )
    .sets_the_clock(),
    case!(
        "DLQ-1" => what_was_found_due_waits_when_the_clock_goes_back,
        "what a fetch found due and did not hand out is claimable from then on, whatever the time"
    )
    .sets_the_clock(),
    case!(
        "DLQ-1" => a_delay_counts_from_a_clock_that_went_back,
        "the delay counts from the latest time that was seen, or from the claim"
    )
    .sets_the_clock(),
    case!(
        "DLQ-1" => the_delay_of_the_last_retry_counts,
        "the first delay of an event is kept, or the longest"
    ),
    case!(
        "DLQ-1" => a_retried_event_is_no_dead_letter,
        "each failure is noted among the dead letters"
    )
    .needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "DLQ-1" => a_delay_ends_exactly_then_however_long_it_is,
        "the delay is rounded, cut, or kept in a number of milliseconds that is too small"
    ),
    case!(
        "DLQ-1" => no_delay_goes_beyond_the_highest_timestamp,
        "the sum of now and the delay overflows, or does not fit the column"
    )
    .sets_the_clock(),
    case!(
        "DLQ-2" => at_the_last_attempt_a_retry_gives_up,
        "the attempts are compared with > where it has to be >=, or never"
    ),
    case!(
        "DLQ-2" => at_the_last_attempt_a_delayed_retry_gives_up_too,
        "the delay is looked at before the attempts"
    ),
    case!(
        "DLQ-2" => five_attempts_are_the_default,
        "the default is the backend's own"
    ),
    case!(
        "DLQ-2" => one_attempt_means_no_second_chance,
        "an event is retried at least once, whatever max_attempts says"
    ),
    case!(
        "DLQ-2" => very_many_attempts_are_allowed,
        "max_attempts does not fit the column, or is capped"
    ),
    case!(
        "DLQ-2" => hundreds_of_attempts_are_counted,
        "the attempts are kept in a byte, and begin again after 255"
    ),
    case!(
        "DLQ-2" => no_number_of_attempts_is_too_large,
        "max_attempts is kept in an integer that is too small, or capped"
    ),
    case!(
        "DLQ-2" => lost_leases_count_towards_the_last_attempt,
        "the retries are counted and compared with max_attempts, not the claims"
    ),
    case!(
        "DLQ-2" => max_attempts_is_each_groups_own,
        "max_attempts is kept with the stream, or the default is used for all"
    ),
    case!(
        "DLQ-2" => a_given_up_event_is_settled,
        "the dead letter is written and the claim left as it is"
    ),
    case!(
        "DLQ-2" => the_reason_of_the_last_retry_is_kept,
        "the reason is dropped, or one of an earlier retry is kept"
    )
    .needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "DLQ-2" => a_last_retry_without_a_reason_says_so_itself,
        "an earlier reason, an empty one or a text of its own stands in"
    )
    .needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "DLQ-2" => a_bad_reason_keeps_nothing_from_being_settled,
        "a long reason or one with U+0000 in it makes the statement fail"
    )
    .needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "DLQ-2" => a_given_up_event_lets_the_frontier_pass,
        "only acks move the frontier"
    )
    .needs(&[Gate::Guarantee(Guarantee::ContiguousFrontier)]),
    case!(
        "DLQ-3" => an_event_that_kills_its_consumers_is_not_handed_out_for_ever,
        "the attempts are looked at in a retry alone, and expired leases are reclaimed for ever"
    ),
    case!(
        "DLQ-3" => a_lease_lost_at_the_last_attempt_becomes_a_dead_letter,
        "the event is skipped for ever, or acked, instead of being dead-lettered with its reason"
    )
    .needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "DLQ-3" => until_it_is_reclaimed_the_last_lease_settles,
        "the lease of the last attempt is void when it expires"
    ),
    case!(
        "DLQ-3" => a_last_lease_that_was_acked_late_is_no_dead_letter,
        "what expired at its last attempt is listed as dead before anybody reclaims it"
    )
    .needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "DLQ-3" => a_renewed_last_lease_is_not_given_up_on,
        "the reclaim of used-up events goes by the first expiry"
    ),
    case!(
        "DLQ-3" => a_clock_that_goes_back_keeps_the_last_lease,
        "what a fetch found used up is given up on later, although the lease has not expired now"
    )
    .needs(&[Gate::Operation(OptionalOperation::DeadLetters)])
    .sets_the_clock(),
    case!(
        "DLQ-3" => once_it_is_given_up_on_the_last_lease_is_stale,
        "the dead letter is written and the claim left as it is"
    ),
    case!(
        "DLQ-3" => used_up_events_do_not_fill_a_fetch,
        "used-up events are taken out after the limit was applied, so that a fetch comes back empty"
    ),
    case!(
        "DLQ-3" => an_empty_fetch_leaves_nothing_used_up,
        "only as many used-up events are given up on in a fetch as its limit allows"
    )
    .needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "DLQ-3" => an_empty_fetch_leaves_nothing_used_up_in_any_partition,
        "used-up events are given up on in the first partition that is looked at, or that has some"
    )
    .needs(&[
        Gate::Guarantee(Guarantee::Partitions),
        Gate::Operation(OptionalOperation::DeadLetters),
    ]),
    case!(
        "DLQ-3" => used_up_events_are_never_handed_out_whatever_the_limit,
        "only as many used-up events are taken out as the fetch has room for, and the others are handed out"
    ),
    case!(
        "DLQ-3" => all_used_up_events_become_dead_letters_whatever_the_limit,
        "a fetch skips more used-up events than its limit, or drops them"
    )
    .needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "DLQ-3" => a_fetch_from_elsewhere_gives_up_on_nothing,
        "used-up events are taken out of all partitions, whichever were selected"
    )
    .needs(&[Gate::Guarantee(Guarantee::Partitions)]),
    case!(
        "DLQ-3" => a_lease_lost_at_the_last_attempt_lets_the_frontier_pass,
        "the frontier is moved where something is settled, and not in a fetch"
    )
    .needs(&[Gate::Guarantee(Guarantee::ContiguousFrontier)]),
    case!(
        "DLQ-4" => a_rejected_event_is_over_for_its_group_alone,
        "the event itself is marked as dead"
    ),
];

/// A group on a stream of its own, with events, that hands out each that often.
async fn group_of_attempts(t: &Fixture, attempts: u32, events: usize) -> Outcome<Group> {
    let stream = t.stream(1).await?;
    let group = stream.group_of_attempts("billing", attempts).await?;
    stream.append(events).await?;
    Ok(group)
}

/// Retries the only claimable event and gives what came of it.
async fn fetch_and_retry(group: &Group) -> Outcome<RetryOutcome> {
    let lease = group.fetch_one("a").await?;
    Ok(group.backend.retry(&lease, &RetryOptions::new()).await?)
}

/// Whoever cannot do it now gives it to whoever can.
async fn a_retried_event_is_claimable_at_once(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    let outcome = t.backend.retry(&lease, &RetryOptions::new()).await?;

    expect_eq("the outcome", outcome, RetryOutcome::Retrying)?;
    let again = group.fetch_one("b").await?;
    expect_eq("the event", again.event, lease.event)?;
    group.expect_nothing("c").await
}

/// Without a delay the event waits for nothing, and so for no point in time.
async fn a_retry_at_once_needs_no_clock(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    fetch_and_retry(&group).await?;
    t.turn_back(Duration::from_secs(3_600));

    expect_eq("the attempt", group.fetch_one("a").await?.attempt, 2)
}

/// An attempt is a claim; a retry by itself is none.
async fn the_attempt_goes_up_at_the_next_claim(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let mut attempts = Vec::new();
    for _ in 0..4 {
        let lease = group.fetch_one("a").await?;
        attempts.push(lease.attempt);
        t.backend.retry(&lease, &RetryOptions::new()).await?;
    }

    expect_eq("the attempts", attempts, vec![1, 2, 3, 4])
}

/// A backoff that ends early hammers whatever is down; one that ends late makes a queue.
async fn a_delay_ends_exactly_then(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
    let lease = group.fetch_one_for("a", hour).await?;
    t.pass(Duration::from_millis(20)).await;
    let before = t.now();
    t.backend.retry(&lease, &retry_after(t.brief())?).await?;
    let due = before.saturating_add(t.brief());
    t.until_just_before(due).await;

    group.expect_nothing("a").await?;
    group.expect_nothing("b").await?;
    t.until(due).await;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 2)
}

/// The lease is over with its retry, and its expiry means nothing any more.
async fn a_delay_outlasts_the_lease(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    let delay = t.brief() * 2;
    t.backend.retry(&lease, &retry_after(delay)?).await?;
    let due = t.now().saturating_add(delay);
    t.until(lease.expires_at).await;

    group.expect_nothing("b").await?;
    t.until(due).await;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 2)
}

/// One event that waits must not make the others wait.
async fn a_delay_holds_back_nothing_else(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let lease = group.fetch_one("a").await?;
    let hour = Duration::from_secs(3_600);
    t.backend.retry(&lease, &retry_after(hour)?).await?;

    group.expect_claimable("a", &[2, 3]).await?;
    group.stream.append(1).await?;
    group.expect_claimable("a", &[4]).await?;
    Ok(())
}

/// A holder that comes late still decides when the event is tried again.
async fn an_expired_lease_may_be_retried_with_a_delay(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;
    t.pass(Duration::from_millis(20)).await;
    let due = t.now().saturating_add(t.brief());
    t.backend.retry(&lease, &retry_after(t.brief())?).await?;
    t.until_just_before(due).await;

    group.expect_nothing("b").await?;
    t.until(due).await;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 2)
}

/// Three events, three backoffs: a short one, a long one, none.
async fn each_delay_is_its_own(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    let hour = Duration::from_secs(3_600);
    t.backend.retry(&leases[0], &retry_after(hour)?).await?;
    t.backend
        .retry(&leases[1], &retry_after(t.brief())?)
        .await?;
    let due = t.now().saturating_add(t.brief());
    t.backend.retry(&leases[2], &RetryOptions::new()).await?;

    let at_once = group.expect_claimable("b", &[3]).await?;
    group.ack(&at_once).await?;
    t.until(due).await;
    group.expect_claimable("b", &[2]).await?;
    Ok(())
}

/// The wait is until a point in time; it comes, however often the clock is set.
async fn a_clock_that_goes_back_ends_no_delay(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    t.backend.retry(&lease, &retry_after(t.brief())?).await?;
    let due = t.now().saturating_add(t.brief());
    t.turn_back(Duration::from_secs(3_600));

    group.expect_nothing("b").await?;
    t.until(due).await;
    expect_eq("the attempt", group.fetch_one("b").await?.attempt, 2)
}

/// Whoever looks after dead letters sees what was given up on, not what is being tried.
async fn a_retried_event_is_no_dead_letter(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    let reason = RetryOptions::new().with_reason(Reason::new("try again"));
    t.backend.retry(&leases[0], &reason).await?;
    let hour = Duration::from_secs(3_600);
    t.backend.retry(&leases[1], &retry_after(hour)?).await?;

    expect_empty("dead letters", &group.dead_letters().await?)
}

/// The caller is told that there will be no further attempt, and there is none.
async fn at_the_last_attempt_a_retry_gives_up(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 3, 1).await?;
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        outcomes.push(fetch_and_retry(&group).await?);
    }

    let (retrying, given_up) = (RetryOutcome::Retrying, RetryOutcome::DeadLettered);
    expect_eq("the outcomes", outcomes, vec![retrying, retrying, given_up])?;
    group.expect_nothing("a").await
}

/// There is nothing to wait for, and nothing comes when the wait would be over.
async fn at_the_last_attempt_a_delayed_retry_gives_up_too(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    let outcome = t.backend.retry(&lease, &retry_after(t.brief())?).await?;
    let due = t.now().saturating_add(t.brief());
    t.until(due).await;

    expect_eq("the outcome", outcome, RetryOutcome::DeadLettered)?;
    group.expect_nothing("a").await
}

/// What applies when nobody said anything is the same on every backend.
async fn five_attempts_are_the_default(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    for attempt in 1..=5 {
        let lease = group.fetch_one("a").await?;
        expect_eq("the attempt", lease.attempt, attempt)?;
        let outcome = t.backend.retry(&lease, &RetryOptions::new()).await?;
        let expected = match attempt {
            5 => RetryOutcome::DeadLettered,
            _ => RetryOutcome::Retrying,
        };
        expect_eq("the outcome", outcome, expected)?;
    }

    group.expect_nothing("a").await
}

/// At most once, for what must not be done twice.
async fn one_attempt_means_no_second_chance(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 1).await?;

    let outcome = fetch_and_retry(&group).await?;
    expect_eq("the outcome", outcome, RetryOutcome::DeadLettered)?;
    group.expect_nothing("a").await
}

/// Try for ever is a policy too.
async fn very_many_attempts_are_allowed(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, MaxAttempts::MAX, 1).await?;
    for _ in 0..12 {
        let outcome = fetch_and_retry(&group).await?;
        expect_eq("the outcome", outcome, RetryOutcome::Retrying)?;
    }

    expect_eq("the attempt", group.fetch_one("a").await?.attempt, 13)
}

/// A consumer that died with the event has tried it as well.
async fn lost_leases_count_towards_the_last_attempt(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 2, 1).await?;
    let lost = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lost).await;

    let outcome = fetch_and_retry(&group).await?;
    expect_eq("the outcome", outcome, RetryOutcome::DeadLettered)?;
    group.expect_nothing("a").await
}

/// One group is patient, the other is not; they read the same events.
async fn max_attempts_is_each_groups_own(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let hasty = stream.group_of_attempts("hasty", 1).await?;
    let patient = stream.group_of_attempts("patient", 3).await?;
    stream.append(1).await?;

    let outcome = fetch_and_retry(&hasty).await?;
    expect_eq(
        "the hasty group's outcome",
        outcome,
        RetryOutcome::DeadLettered,
    )?;
    for _ in 0..2 {
        let outcome = fetch_and_retry(&patient).await?;
        expect_eq(
            "the patient group's outcome",
            outcome,
            RetryOutcome::Retrying,
        )?;
    }
    expect_eq("the attempt", patient.fetch_one("a").await?.attempt, 3)
}

/// Giving up settles the lease like any other settle, and costs the next event nothing.
async fn a_given_up_event_is_settled(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 2).await?;
    let lease = group.fetch_one("a").await?;
    t.backend.retry(&lease, &RetryOptions::new()).await?;

    expect_stale(&t.backend, &lease).await?;
    let next = group.expect_claimable("a", &[2]).await?;
    expect_eq("the attempt", next[0].attempt, 1)
}

/// Why it failed the last time is what somebody wants to know who looks into it.
async fn the_reason_of_the_last_retry_is_kept(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 2, 1).await?;
    for reason in ["timeout", "declined: \"O'Brien\" \u{1F980}"] {
        let lease = group.fetch_one("a").await?;
        let options = RetryOptions::new().with_reason(Reason::new(reason));
        t.backend.retry(&lease, &options).await?;
    }

    let dead = group.dead_letters().await?;
    let seen: Vec<_> = dead
        .iter()
        .map(|dead| (dead.attempt, &dead.reason))
        .collect();
    let last = Reason::new("declined: \"O'Brien\" \u{1F980}");
    expect_eq("attempts and reasons", seen, vec![(2, &last)])
}

/// No reason given is no reason for another one.
async fn a_last_retry_without_a_reason_says_so_itself(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 2, 1).await?;
    let lease = group.fetch_one("a").await?;
    let options = RetryOptions::new().with_reason(Reason::new("timeout"));
    t.backend.retry(&lease, &options).await?;
    fetch_and_retry(&group).await?;

    let dead = group.dead_letters().await?;
    let reasons: Vec<_> = dead.iter().map(|dead| &dead.reason).collect();
    expect_eq("the reasons", reasons, vec![&Reason::max_attempts()])
}

/// A stack trace as a reason is cut and kept, and the event is over.
async fn a_bad_reason_keeps_nothing_from_being_settled(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 10).await?;
    let reasons = [
        Reason::new(""),
        Reason::new("\0"),
        Reason::new("at main\0 line 1\n\tat start\r\n"),
        Reason::new("ü".repeat(2_000)),
        Reason::new("\u{1F980}".repeat(300)),
    ];
    let leases = group.fetch_exactly("a", 10).await?;
    for (reason, pair) in reasons.iter().zip(leases.chunks(2)) {
        let options = RetryOptions::new().with_reason(reason.clone());
        let outcome = t.backend.retry(&pair[0], &options).await?;
        expect_eq("the outcome", outcome, RetryOutcome::DeadLettered)?;
        t.backend.reject(&pair[1], reason).await?;
    }

    let dead = group.dead_letters().await?;
    let seen: Vec<_> = dead.iter().map(|dead| &dead.reason).collect();
    let twice: Vec<_> = reasons.iter().flat_map(|reason| [reason, reason]).collect();
    expect_eq("the reasons", seen, twice)
}

/// What is given up on holds up nothing.
async fn a_given_up_event_lets_the_frontier_pass(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 2).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    t.backend.ack(&leases[1]).await?;
    group.expect_frontier(0).await?;
    t.backend.retry(&leases[0], &RetryOptions::new()).await?;

    group.expect_frontier(2).await
}

/// The poison event: each consumer that gets it dies before it can say so.
async fn an_event_that_kills_its_consumers_is_not_handed_out_for_ever(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 2, 1).await?;
    for attempt in 1..=2 {
        let lease = group.fetch_one_briefly("a").await?;
        expect_eq("the attempt", lease.attempt, attempt)?;
        t.let_lease_expire(&lease).await;
    }

    group.expect_nothing("a").await?;
    group.expect_nothing("b").await
}

/// And it is to be found where everything is that was given up on.
async fn a_lease_lost_at_the_last_attempt_becomes_a_dead_letter(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;
    group.expect_nothing("b").await?;

    let dead = group.dead_letters().await?;
    expect_eq("the number of dead letters", dead.len(), 1)?;
    expect_eq("the event", &dead[0].event, &lease.event)?;
    expect_eq("the attempt", dead[0].attempt, 1)?;
    expect_eq("the reason", &dead[0].reason, &Reason::lease_expired())?;
    t.expect_now("dead_at", dead[0].dead_at)
}

/// Slow is not dead: as long as nobody took the event, its holder may finish.
async fn until_it_is_reclaimed_the_last_lease_settles(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 4).await?;
    let leases = group.fetch_exactly_briefly("a", 4).await?;
    t.let_lease_expire(&leases[3]).await;

    for (step, lease) in Step::ALL.iter().zip(&leases) {
        step.on(&t.backend, lease).await?;
    }
    group.expect_nothing("b").await?;
    t.backend.ack(&leases[0]).await?;
    Ok(())
}

/// Done late is done.
async fn a_last_lease_that_was_acked_late_is_no_dead_letter(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;
    expect_empty("dead letters", &group.dead_letters().await?)?;
    t.backend.ack(&lease).await?;
    group.expect_nothing("b").await?;

    expect_empty("dead letters", &group.dead_letters().await?)
}

/// Long work at the last attempt is kept alive by its heartbeat.
async fn a_renewed_last_lease_is_not_given_up_on(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    let hour = LeaseDuration::new(Duration::from_secs(3_600))?;
    t.backend.renew(&lease, hour).await?;
    t.let_lease_expire(&lease).await;

    group.expect_nothing("b").await?;
    t.backend.ack(&lease).await?;
    Ok(())
}

/// From then on its holder is as late as any other.
async fn once_it_is_given_up_on_the_last_lease_is_stale(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;
    group.expect_nothing("b").await?;

    expect_stale(&t.backend, &lease).await?;
    group.expect_nothing("b").await
}

/// A heap of poison in front must not keep a worker from the event behind it.
async fn used_up_events_do_not_fill_a_fetch(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 20).await?;
    let lost = group.fetch_briefly("a", 20).await?;
    expect_eq("the number of leases", lost.len(), 20)?;
    t.let_lease_expire(&lost[19]).await;
    group.stream.append(1).await?;
    let one = FetchOptions::new(ConsumerId::new("b")?).with_limit(1);
    let leases = group.fetch_with(&one).await?;

    let sequences: Vec<u64> = leases.iter().map(|l| l.event.sequence.get()).collect();
    expect_eq("the sequences of a single fetch", sequences, vec![21])
}

/// When a worker is told that there is nothing, nothing is left behind half given up on.
async fn an_empty_fetch_leaves_nothing_used_up(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 20).await?;
    let lost = group.fetch_briefly("a", 20).await?;
    expect_eq("the number of leases", lost.len(), 20)?;
    t.let_lease_expire(&lost[19]).await;
    let one = FetchOptions::new(ConsumerId::new("b")?).with_limit(1);
    expect_empty("claimable event", &group.fetch_with(&one).await?)?;

    let dead = group.dead_letters().await?;
    expect_eq("the number of dead letters", dead.len(), 20)
}

/// A worker that serves other partitions decides nothing here.
async fn a_fetch_from_elsewhere_gives_up_on_nothing(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    let group = stream.group_of_attempts("billing", 1).await?;
    stream.append_to(P0, 1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;
    let from_p1 = FetchOptions::new(ConsumerId::new("b")?).with_partitions(P1);
    expect_empty("claimable event", &group.fetch_with(&from_p1).await?)?;

    t.backend.ack(&lease).await?;
    expect_eq("the partition", lease.event.partition, P0)
}

/// A poison event is over, and the lag says so.
async fn a_lease_lost_at_the_last_attempt_lets_the_frontier_pass(t: Fixture) -> Outcome {
    let group = group_of_attempts(&t, 1, 2).await?;
    let leases = group.fetch_exactly_briefly("a", 2).await?;
    expect_eq("the number of leases", leases.len(), 2)?;
    t.backend.ack(&leases[1]).await?;
    t.let_lease_expire(&leases[0]).await;
    group.expect_frontier(0).await?;
    group.expect_nothing("b").await?;

    group.expect_frontier(2).await
}

/// What one group cannot digest, another may.
async fn a_rejected_event_is_over_for_its_group_alone(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group("billing").await?;
    let other = stream.group("shipping").await?;
    let events = stream.append(2).await?;
    let lease = group.fetch_one("a").await?;
    group.reject(&lease, "no good").await?;

    group.expect_claimable("a", &[2]).await?;
    let there = other.expect_claimable("a", &[1, 2]).await?;
    expect_eq("the event", &there[0].event, &events[0])?;
    expect_eq("the log", stream.read(P0).await?, events)
}
