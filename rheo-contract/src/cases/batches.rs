//! Batches of settles: one result each, in order, and none carries another.

mod large;
mod single;

use std::time::Duration;

use rheo_core::{
    Backend, Error, ErrorKind, Gate, GroupName, Guarantee, Lease, LeaseDuration, LeaseId,
    OptionalOperation, Partition, Reason, Receipt, Result, RetryOptions, RetryOutcome, StreamName,
};

use self::large::*;
use self::single::*;
use crate::case::{Case, case};
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::recorder::Recorder;
use crate::scene::sequences_of;
use crate::step::{Step, retry_after};

pub(crate) const CASES: &[Case] = &[
    case!(
        "LSE-8" => a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others,
        "the batch is one statement or transaction that the bad lease rolls back, or only its good ones are answered"
    ),
    case!(
        "LSE-8" => each_result_is_that_of_its_lease,
        "the results come in the order of the store, or all bad leases get one error"
    ),
    case!(
        "LSE-8" => bad_leases_in_a_batch_have_no_effect,
        "the batch settles by event and looks at the lease ids only to answer"
    ),
    case!(
        "LSE-8" => of_a_lease_given_twice_the_first_settles,
        "leases are kept in a map by event, or both find the claim before either ends it"
    ),
    case!(
        "LSE-8" => a_stale_and_a_current_lease_of_one_event_stay_apart,
        "leases are kept in a map by event, and the later one replaces the earlier one"
    ),
    case!(
        "LSE-8" => a_lease_may_be_renewed_twice_in_a_batch,
        "a renewal in a batch ends the claim for the rest of the batch"
    ),
    case!(
        "LSE-8" => an_empty_batch_gives_no_results,
        "the statement for no leases at all is not valid"
    ),
    case!(
        "LSE-8" => one_batch_settles_in_several_streams_and_groups,
        "stream and group of the first lease are used for the whole batch"
    ),
    case!(
        "LSE-8" => one_batch_settles_in_several_partitions,
        "the partition of the first lease is used for the whole batch, or leases are found by sequence"
    ).needs(&[Gate::Guarantee(Guarantee::Partitions)]),
    case!(
        "LSE-8" => hundreds_of_leases_settle_in_one_batch,
        "the batch is cut at some number of leases or bound values"
    ),
    case!(
        "LSE-8" => a_batch_of_renewals_gives_the_renewed_leases_in_order,
        "the renewed leases come in the order of the store, or only the first is stored"
    ),
    case!(
        "LSE-8" => a_batch_of_retries_delays_each,
        "the delay reaches the first lease only"
    ),
    case!(
        "LSE-8" => a_batch_of_retries_gives_up_on_the_used_up_ones_alone,
        "one outcome is taken for the whole batch"
    ),
    case!(
        "LSE-8" => a_batch_of_rejects_keeps_the_reason_of_each,
        "the reason reaches the first lease only"
    ).needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "LSE-8" => expired_leases_settle_in_a_batch_as_well,
        "the batch form has its own condition, which asks for unexpired leases"
    ),
    case!(
        "LSE-8" => a_batch_moves_the_frontier_like_its_single_settles,
        "the frontier follows the first or the last ack of the batch only"
    ).needs(&[Gate::Guarantee(Guarantee::ContiguousFrontier)]),
    case!(
        "LSE-8" => hundreds_of_leases_are_renewed_in_one_batch,
        "a batch of renewals is cut at some number of leases, whatever it answers"
    ),
    case!(
        "LSE-8" => hundreds_of_leases_are_retried_in_one_batch,
        "a batch of retries is cut at some number of leases, whatever it answers"
    ),
    case!(
        "LSE-8" => hundreds_of_leases_are_over_after_one_batch,
        "a batch of acks or rejects is cut at some number of leases, whatever it answers"
    ),
    case!(
        "LSE-8" => delays_in_a_batch_end_exactly_then_however_long,
        "a batch has its own statement, which rounds or cuts the delay"
    ),
    case!(
        "LSE-8" => renewals_in_a_batch_end_exactly_then_however_long,
        "a batch has its own statement, which rounds or cuts the duration"
    ),
    case!(
        "LSE-8" => over_a_thousand_leases_settle_in_one_batch,
        "the batch is cut into pieces, of which some are left out, answered twice or in another order"
    ),
    case!(
        "LSE-8" => a_batch_of_renewals_answers_with_its_expiry,
        "the answers have the expiry from before, or the store keeps the later one"
    ),
    case!(
        "LSE-8" => a_batch_of_rejects_makes_whole_dead_letters,
        "a batch has its own statement, with one attempt and one time for all, or a trimmed reason"
    ).needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "LSE-8" => a_batch_of_last_retries_makes_whole_dead_letters,
        "a batch has its own statement, which forgets the reason, or makes one up"
    ).needs(&[Gate::Operation(OptionalOperation::DeadLetters)]),
    case!(
        "LSE-8" => a_batch_of_retries_moves_the_frontier_where_it_gives_up,
        "what a batch of retries gives up on is taken for open, or what it gives back for done"
    ).needs(&[Gate::Guarantee(Guarantee::ContiguousFrontier)]),
    case!(
        "LSE-8" => a_batch_of_retries_at_once_needs_no_clock,
        "the batch writes the time from which the events are claimable, and the clock then goes back"
    )
    .sets_the_clock(),
    case!(
        "LSE-8" => a_batch_counts_from_a_clock_that_went_back,
        "the batch counts from the latest time that was seen"
    )
    .sets_the_clock(),
];

/// The batch form of a step, with its usual arguments.
async fn batch(step: Step, backend: &Recorder, leases: &[Lease]) -> Vec<Result<()>> {
    let usual = LeaseDuration::default();
    match step {
        Step::Renew => forget(backend.renew_batch(leases, usual).await),
        Step::Ack => backend.ack_batch(leases).await,
        Step::Retry => forget(backend.retry_batch(leases, &RetryOptions::new()).await),
        Step::Reject => {
            let reason = Reason::new("no good");
            backend.reject_batch(leases, &reason).await
        }
    }
}

fn forget<T>(results: Vec<Result<T>>) -> Vec<Result<()>> {
    results.into_iter().map(|result| result.map(drop)).collect()
}

/// What matters of results: `None` for Ok, else the kind of the error.
fn kinds(results: &[Result<()>]) -> Vec<Option<ErrorKind>> {
    let kind = |result: &Result<()>| result.as_ref().err().map(Error::kind);
    results.iter().map(kind).collect()
}

const OK: Option<ErrorKind> = None;
const STALE: Option<ErrorKind> = Some(ErrorKind::StaleLease);
const MISMATCH: Option<ErrorKind> = Some(ErrorKind::ReceiptMismatch);

/// Which of the events 1 to `count` are claimable after this step with all of them.
fn claimable_after(step: Step, sequences: &[u64]) -> Vec<u64> {
    match step {
        Step::Retry => sequences.to_vec(),
        Step::Renew | Step::Ack | Step::Reject => Vec::new(),
    }
}

/// Four did their work in time; that the fifth did not is no reason to do it all again.
async fn a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others(t: Fixture) -> Outcome {
    for step in Step::ALL {
        let group = t.group_with_events(5).await?;
        let leases = group.fetch_exactly("a", 5).await?;
        t.backend.ack(&leases[2]).await?;
        let results = batch(step, &t.backend, &leases).await;

        expect_eq("the results", kinds(&results), vec![OK, OK, STALE, OK, OK])?;
        let claimable = claimable_after(step, &[1, 2, 4, 5]);
        group.expect_claimable("b", &claimable).await?;
        if step == Step::Renew {
            // They are still held, and nothing but the ack is settled.
            for lease in [&leases[0], &leases[1], &leases[3], &leases[4]] {
                t.backend.ack(lease).await?;
            }
        }
    }
    Ok(())
}

/// Good, stale, mismatched and made-up ones, in no order: each answer is where its lease was.
async fn each_result_is_that_of_its_lease(t: Fixture) -> Outcome {
    for step in Step::ALL {
        let group = t.group_with_events(6).await?;
        let leases = group.fetch_exactly("a", 6).await?;
        t.backend.ack(&leases[5]).await?;
        let mut mixed: Vec<Lease> = [4, 5, 0, 3, 1, 2, 0]
            .map(|at: usize| leases[at].clone())
            .into();
        mixed[2].receipt = Some(Receipt::new("made-up"));
        mixed[3].lease_id = LeaseId::new("made-up");
        mixed[4].group = GroupName::new("missing")?;
        mixed[5].event.stream = StreamName::new("missing")?;
        let results = batch(step, &t.backend, &mixed).await;

        let expected = vec![OK, STALE, MISMATCH, STALE, STALE, STALE, OK];
        expect_eq("the results", kinds(&results), expected)?;
    }
    Ok(())
}

/// Refused is refused: the events of bad leases are as before.
async fn bad_leases_in_a_batch_have_no_effect(t: Fixture) -> Outcome {
    for step in Step::ALL {
        let group = t.group_with_events(4).await?;
        let leases = group.fetch_exactly("a", 4).await?;
        let mut bad = leases.clone();
        bad[0].lease_id = LeaseId::generate();
        bad[2].receipt = Some(Receipt::new("made-up"));
        let results = batch(step, &t.backend, &bad).await;
        let claimable = claimable_after(step, &[2, 4]);
        group.expect_claimable("b", &claimable).await?;
        for at in [0, 2] {
            Step::Retry.on(&t.backend, &leases[at]).await?;
        }

        expect_eq(
            "the results",
            kinds(&results),
            vec![STALE, OK, MISMATCH, OK],
        )?;
        let again = group.expect_claimable("b", &[1, 3]).await?;
        let attempts: Vec<u32> = again.iter().map(|lease| lease.attempt).collect();
        expect_eq("the attempts", attempts, vec![2, 2])?;
    }
    Ok(())
}

/// A worker that collects its acks may collect one twice.
async fn of_a_lease_given_twice_the_first_settles(t: Fixture) -> Outcome {
    for step in Step::SETTLES {
        let group = t.group_with_events(2).await?;
        let leases = group.fetch_exactly("a", 2).await?;
        let twice = [0, 1, 0, 0].map(|at: usize| leases[at].clone());
        let results = batch(step, &t.backend, &twice).await;

        expect_eq("the results", kinds(&results), vec![OK, OK, STALE, STALE])?;
        let claimable = claimable_after(step, &[1, 2]);
        let again = group.expect_claimable("b", &claimable).await?;
        for lease in &again {
            expect_eq("the attempt", lease.attempt, 2)?;
        }
    }
    Ok(())
}

/// A worker that got its own event back has both leases in hand.
async fn a_stale_and_a_current_lease_of_one_event_stay_apart(t: Fixture) -> Outcome {
    for step in Step::ALL {
        for current_at in [0, 1] {
            let group = t.group_with_events(1).await?;
            let stale = group.fetch_one("a").await?;
            Step::Retry.on(&t.backend, &stale).await?;
            let current = group.fetch_one("a").await?;
            let (mut both, mut expected) = (vec![stale], vec![STALE]);
            both.insert(current_at, current.clone());
            expected.insert(current_at, OK);
            let results = batch(step, &t.backend, &both).await;

            expect_eq("the results", kinds(&results), expected)?;
            let claimable = claimable_after(step, &[1]);
            group.expect_claimable("b", &claimable).await?;
        }
    }
    Ok(())
}

/// To renew ends nothing, so the second is as good as the first.
async fn a_lease_may_be_renewed_twice_in_a_batch(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;
    let twice = [lease.clone(), lease.clone()];
    let results = batch(Step::Renew, &t.backend, &twice).await;

    expect_eq("the results", kinds(&results), vec![OK, OK])?;
    t.backend.ack(&lease).await?;
    Ok(())
}

/// A round in which nothing was done is settled too.
async fn an_empty_batch_gives_no_results(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let lease = group.fetch_one("a").await?;

    for step in Step::ALL {
        let results = batch(step, &t.backend, &[]).await;
        expect_eq("the results", kinds(&results), vec![])?;
    }
    group.expect_nothing("b").await?;
    t.backend.ack(&lease).await?;
    Ok(())
}

/// A worker that serves many groups settles for all of them at once.
async fn one_batch_settles_in_several_streams_and_groups(t: Fixture) -> Outcome {
    for step in Step::ALL {
        let (one, other) = (t.stream(1).await?, t.stream(1).await?);
        let mut groups = Vec::new();
        for stream in [&one, &other] {
            stream.append(2).await?;
            groups.push(stream.group("billing").await?);
            groups.push(stream.group("shipping").await?);
        }
        let mut leases = Vec::new();
        for group in &groups {
            leases.push(group.fetch_exactly("a", 2).await?);
        }
        t.backend.ack(&leases[3][0]).await?;
        // Round robin, so that no two neighbours belong together.
        let mixed: Vec<Lease> = (0..8).map(|at| leases[at % 4][at / 4].clone()).collect();
        let results = batch(step, &t.backend, &mixed).await;

        let expected = vec![OK, OK, OK, STALE, OK, OK, OK, OK];
        expect_eq("the results", kinds(&results), expected)?;
        for (at, group) in groups.iter().enumerate() {
            let settled: &[u64] = if at == 3 { &[2] } else { &[1, 2] };
            let claimable = claimable_after(step, settled);
            group.expect_claimable("b", &claimable).await?;
        }
    }
    Ok(())
}

/// The same sequences in all partitions.
async fn one_batch_settles_in_several_partitions(t: Fixture) -> Outcome {
    for step in Step::ALL {
        let stream = t.stream(3).await?;
        let group = stream.group("billing").await?;
        for partition in 0..3 {
            stream.append_to(Partition::new(partition), 2).await?;
        }
        let mut leases = group.fetch_exactly("a", 6).await?;
        leases.sort_by_key(|lease| (lease.event.sequence, lease.event.partition));
        t.backend.ack(&leases[1]).await?;
        let results = batch(step, &t.backend, &leases).await;

        let expected = vec![OK, STALE, OK, OK, OK, OK];
        expect_eq("the results", kinds(&results), expected)?;
        let claimable = claimable_after(step, &[1, 1, 2, 2, 2]);
        let mut again = sequences_of(&group.fetch_all("b").await?);
        again.sort_unstable();
        expect_eq("the claimable sequences", again, claimable)?;
    }
    Ok(())
}

/// A fast worker has a lot in hand; every seventh was settled before.
async fn hundreds_of_leases_settle_in_one_batch(t: Fixture) -> Outcome {
    let group = t.group_with_events(300).await?;
    let mut expected = vec![OK; 300];
    for step in [Step::Renew, Step::Retry, Step::Retry, Step::Ack] {
        let leases = group.fetch("a", 300).await?;
        let count = leases.len();
        expected.truncate(count);
        if step == Step::Renew {
            let results = batch(step, &t.backend, &leases).await;
            expect_eq("the results", kinds(&results), expected.clone())?;
            let results = batch(Step::Retry, &t.backend, &leases).await;
            expect_eq("the results", kinds(&results), expected.clone())?;
            continue;
        }
        for lease in leases.iter().step_by(7) {
            t.backend.ack(lease).await?;
        }
        let results = batch(step, &t.backend, &leases).await;

        let settled = (0..count).map(|at| if at % 7 == 0 { STALE } else { OK });
        expect_eq("the results", kinds(&results), settled.collect())?;
    }
    group.expect_nothing("b").await
}

/// A heartbeat for everything in hand, in whatever order it is held.
async fn a_batch_of_renewals_gives_the_renewed_leases_in_order(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    let leases = group.fetch_exactly_briefly("a", 4).await?;
    let shuffled = [2, 0, 3, 1].map(|at: usize| leases[at].clone());
    let hour = Duration::from_secs(3_600);
    let results = t
        .backend
        .renew_batch(&shuffled, LeaseDuration::new(hour)?)
        .await;
    let renewed = results.into_iter().collect::<Result<Vec<Lease>>>()?;
    t.let_lease_expire(&leases[3]).await;

    expect_eq("the number of results", renewed.len(), 4)?;
    for (before, after) in shuffled.iter().zip(&renewed) {
        let expected = Lease {
            expires_at: after.expires_at,
            ..before.clone()
        };
        expect_eq("the renewed lease", after, &expected)?;
    }
    group.expect_nothing("b").await?;
    group.ack(&renewed).await
}

/// The whole batch backs off.
async fn a_batch_of_retries_delays_each(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    let options = retry_after(t.brief())?;
    let results = t.backend.retry_batch(&leases, &options).await;
    let due = t.now().saturating_add(t.brief());

    let retrying = vec![Ok(RetryOutcome::Retrying); 3];
    expect_eq("the results", results, retrying)?;
    t.until_just_before(due).await;
    group.expect_nothing("b").await?;
    t.until(due).await;
    group.expect_claimable("b", &[1, 2, 3]).await?;
    Ok(())
}

/// One event is at its last attempt, its neighbours are not.
async fn a_batch_of_retries_gives_up_on_the_used_up_ones_alone(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group_of_attempts("billing", 2).await?;
    stream.append(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    Step::Retry.on(&t.backend, &leases[1]).await?;
    let second = group.fetch_one("a").await?;
    let batch = [leases[0].clone(), second, leases[2].clone()];
    let results = t.backend.retry_batch(&batch, &RetryOptions::new()).await;

    let (retrying, given_up) = (RetryOutcome::Retrying, RetryOutcome::DeadLettered);
    let expected = vec![Ok(retrying), Ok(given_up), Ok(retrying)];
    expect_eq("the results", results, expected)?;
    group.expect_claimable("b", &[1, 3]).await?;
    Ok(())
}

/// Whoever looks at the third dead letter wants to know as well.
async fn a_batch_of_rejects_keeps_the_reason_of_each(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    let reason = Reason::new("schema 7 is not known");
    let results = t.backend.reject_batch(&leases, &reason).await;

    expect_eq("the results", results, vec![Ok(()); 3])?;
    let dead = group.dead_letters().await?;
    let reasons: Vec<&Reason> = dead.iter().map(|dead| &dead.reason).collect();
    expect_eq("the reasons", reasons, vec![&reason; 3])
}

/// In a batch as alone, late is good enough as long as nobody else began.
async fn expired_leases_settle_in_a_batch_as_well(t: Fixture) -> Outcome {
    let group = t.group_with_events(8).await?;
    let leases = group.fetch_exactly_briefly("a", 8).await?;
    t.let_lease_expire(&leases[7]).await;
    for (step, pair) in Step::ALL.iter().zip(leases.chunks(2)) {
        let results = batch(*step, &t.backend, pair).await;
        expect_eq("the results", kinds(&results), vec![OK, OK])?;
    }

    group.expect_claimable("b", &[5, 6]).await?;
    Ok(())
}

/// Acks in a batch fill holes like any others.
async fn a_batch_moves_the_frontier_like_its_single_settles(t: Fixture) -> Outcome {
    let group = t.group_with_events(6).await?;
    let leases = group.fetch_exactly("a", 6).await?;
    let of = |places: [usize; 3]| places.map(|at| leases[at].clone());

    batch(Step::Ack, &t.backend, &of([4, 1, 3])).await;
    group.expect_frontier(0).await?;
    batch(Step::Reject, &t.backend, &of([5, 0, 4])).await;
    group.expect_frontier(2).await?;
    batch(Step::Ack, &t.backend, &of([0, 2, 1])).await;
    group.expect_frontier(6).await
}
