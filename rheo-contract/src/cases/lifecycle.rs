//! Lifecycle: opening, making indexes, closing.

use rheo_core::{Backend, ErrorKind, Gate, Guarantee, Operation};
use tokio::task::JoinSet;

use crate::case::{Case, case};
use crate::expect::{Outcome, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::operations::Target;
use crate::scene::P0;
use crate::states::{every_state, expect_untouched};

const DISTRIBUTED: &[Gate] = &[Gate::Guarantee(Guarantee::Distributed)];

pub(crate) const CASES: &[Case] = &[
    case!(
        "STR-5" => indexes_may_be_made_again_and_again,
        "ensure_indexes creates without `if not exists` and fails on what is there"
    ),
    case!(
        "STR-5" => making_indexes_again_keeps_the_log,
        "ensure_indexes drops tables and makes them anew, or fails on those that are there"
    ),
    case!(
        "STR-5" => making_indexes_again_keeps_deliveries,
        "ensure_indexes makes tables anew, so that groups, claims and acks are lost, or fails on those that are there"
    ),
    case!(
        "STR-5" => making_indexes_again_touches_no_state,
        "ensure_indexes makes tables anew, or cleans up: it ends delays, takes leases back or drops dead letters"
    ),
    case!(
        "STR-5" => indexes_may_be_made_by_several_at_once,
        "two processes that start at once both find a table missing: the second one fails, or makes it anew"
    ),
    case!(
        "ERR-9" => ping_answers_while_the_store_is_there,
        "ping asks for something that is only there once a stream was made"
    ),
    case!(
        "ERR-7" => closing_again_is_fine,
        "close gives the connection back and does not look whether it has one"
    ),
    case!(
        "ERR-7" => a_closed_handle_answers_nothing_about_itself,
        "ping or ensure_indexes open a new connection and do not look whether the handle is closed"
    ),
    case!(
        "ERR-7" => a_closed_handle_makes_and_appends_nothing,
        "the check for a closed handle is missing where streams, groups and events are written"
    ),
    case!(
        "ERR-7" => a_closed_handle_reads_nothing,
        "reads go on from a cache, or give an empty Ok, which looks like an empty stream"
    ),
    case!(
        "ERR-7" => a_closed_handle_fetches_nothing,
        "fetch gives an empty Ok, so that a consumer waits for ever on a closed handle"
    ),
    case!(
        "ERR-7" => a_closed_handle_settles_nothing,
        "a settle on a closed handle finds no row and says that the lease is stale"
    ),
    case!(
        "ERR-7" => a_closed_handle_settles_no_batch,
        "a batch form gives one error, or none, in place of one for each lease"
    ),
    case!(
        "ERR-7" => a_closed_handle_goes_back_nowhere,
        "the check for a closed handle is missing where a group goes back"
    ),
    case!(
        "ERR-7" => a_closed_handle_inspects_nothing,
        "the optional operations do not look whether the handle is closed"
    ),
    case!(
        "ERR-7" => closing_one_handle_leaves_the_others,
        "close shuts down a pool or a client that all handles share"
    )
    .needs(DISTRIBUTED),
    case!(
        "ERR-1" => a_call_on_a_closed_handle_has_no_effect,
        "the call is sent to the store before the handle is found closed"
    )
    .needs(DISTRIBUTED),
];

/// Every process of a service does so when it starts.
async fn indexes_may_be_made_again_and_again(t: Fixture) -> Outcome {
    for _ in 0..3 {
        t.backend.ensure_indexes().await?;
    }
    t.group_with_events(1).await?;
    t.backend.ensure_indexes().await?;
    Ok(())
}

/// A deployment must not cost the log.
async fn making_indexes_again_keeps_the_log(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut appended = stream.append(3).await?;
    t.backend.ensure_indexes().await?;
    appended.extend(stream.append(1).await?);

    expect_eq("the log", stream.read(P0).await?, appended)
}

/// A deployment must neither give events twice nor take leases away.
async fn making_indexes_again_keeps_deliveries(t: Fixture) -> Outcome {
    let group = t.group_with_events(4).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    t.backend.ack(&leases[0]).await?;
    group.reject(&leases[1], "bad").await?;
    t.backend.ensure_indexes().await?;

    group.expect_claimable("b", &[4]).await?;
    t.backend.ack(&leases[2]).await?;
    let settled = t.backend.ack(&leases[0]).await;
    expect_error(settled, ErrorKind::StaleLease)?;
    Ok(())
}

/// A service that scales out starts many processes at the same moment.
async fn indexes_may_be_made_by_several_at_once(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut making = JoinSet::new();
    for _ in 0..8 {
        let backend = t.backend.clone();
        making.spawn(async move { backend.ensure_indexes().await });
    }
    let appended = stream.append(5).await?;
    while let Some(made) = making.join_next().await {
        made??;
    }

    expect_eq("the log", stream.read(P0).await?, appended)
}

/// A load balancer asks an instance that has not seen any stream yet, too.
async fn ping_answers_while_the_store_is_there(t: Fixture) -> Outcome {
    t.backend.ping().await?;
    let group = t.group_with_events(1).await?;
    t.backend.ping().await?;
    let lease = group.fetch_one("a").await?;
    t.backend.ping().await?;

    t.backend.ack(&lease).await?;
    Ok(())
}

/// Two owners of a handle both clean up.
async fn closing_again_is_fine(t: Fixture) -> Outcome {
    t.backend.close().await?;

    t.backend.close().await?;
    t.backend.close().await?;
    Ok(())
}

/// A handle that says it is well takes work that it cannot do.
async fn a_closed_handle_answers_nothing_about_itself(t: Fixture) -> Outcome {
    refuses_when_closed(&t, &[Operation::Ping, Operation::EnsureIndexes]).await
}

/// A service that shuts down must not go on writing.
async fn a_closed_handle_makes_and_appends_nothing(t: Fixture) -> Outcome {
    let writes = [
        Operation::CreateStream,
        Operation::CreateGroup,
        Operation::Append,
        Operation::AppendBatch,
    ];
    refuses_when_closed(&t, &writes).await
}

/// An empty Ok would be a lie about the log.
async fn a_closed_handle_reads_nothing(t: Fixture) -> Outcome {
    refuses_when_closed(&t, &[Operation::Read, Operation::Query, Operation::Lag]).await
}

/// A consumer must learn that its handle is gone, or it waits for ever.
async fn a_closed_handle_fetches_nothing(t: Fixture) -> Outcome {
    refuses_when_closed(&t, &[Operation::Fetch]).await
}

/// `StaleLease` would tell the holder that somebody else has the event, and nobody has.
async fn a_closed_handle_settles_nothing(t: Fixture) -> Outcome {
    let settles = [
        Operation::Renew,
        Operation::Ack,
        Operation::Retry,
        Operation::Reject,
    ];
    refuses_when_closed(&t, &settles).await
}

/// Results are matched with leases by their place, so there must be one for each.
async fn a_closed_handle_settles_no_batch(t: Fixture) -> Outcome {
    let batches = [
        Operation::RenewBatch,
        Operation::AckBatch,
        Operation::RetryBatch,
        Operation::RejectBatch,
    ];
    refuses_when_closed(&t, &batches).await
}

/// A tool that went wrong must not reset a group after it gave up.
async fn a_closed_handle_goes_back_nowhere(t: Fixture) -> Outcome {
    refuses_when_closed(&t, &[Operation::Replay, Operation::ResetGroup]).await
}

/// A dashboard must not show old numbers as new ones.
async fn a_closed_handle_inspects_nothing(t: Fixture) -> Outcome {
    let inspects = [
        Operation::ListStreams,
        Operation::ListGroups,
        Operation::DeadLetters,
        Operation::GroupInfo,
        Operation::WaitForWork,
    ];
    refuses_when_closed(&t, &inspects).await
}

async fn refuses_when_closed(t: &Fixture, operations: &[Operation]) -> Outcome {
    let group = t.group().await?;
    let target = Target::of(&group).await?;
    t.backend.close().await?;

    target
        .expect_each_refused(&t.backend, operations, ErrorKind::BackendUnavailable)
        .await
}

/// A handle per worker is a common design; one that ends must not end the service.
async fn closing_one_handle_leaves_the_others(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let first = group.fetch_one("a").await?;
    let other = t.second_handle().await?;
    t.backend.close().await?;

    let group = group.via(&other);
    other.ping().await?;
    other.ack(&first).await?;
    group.stream.append(1).await?;
    group.expect_claimable("b", &[2, 3]).await?;
    Ok(())
}

/// What the caller was told did not happen must not have happened.
async fn a_call_on_a_closed_handle_has_no_effect(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let target = Target::of(&group).await?;
    let log = group.stream.read(P0).await?;
    let other = t.second_handle().await?;
    t.backend.close().await?;
    for operation in Operation::ALL {
        target.call(&t.backend, *operation).await;
    }

    let group = group.via(&other);
    expect_eq("the log", group.stream.read(P0).await?, log)?;
    group.expect_nothing("b").await?;
    group.ack(&target.leases).await
}

/// Acked, leased, expired, waiting, dead or new: a deployment in the middle of work changes none.
async fn making_indexes_again_touches_no_state(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let states = every_state(&[&group], 1).await?;
    t.backend.ensure_indexes().await?;
    t.backend.ensure_indexes().await?;

    expect_untouched(&states, None).await
}
