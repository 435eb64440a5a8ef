//! Random histories: what no politely written case thinks of.

use rheo_core::{Gate, Guarantee};

use crate::case::{Case, case};
use crate::expect::Outcome;
use crate::fixture::Fixture;
use crate::random::{Mix, play};

const DISTRIBUTED: Gate = Gate::Guarantee(Guarantee::Distributed);

pub(crate) const CASES: &[Case] = &[
    case!(
        "LOG-5" => random_appends_and_queries_agree_with_the_model,
        "an interplay of appends and queries that the plain cases do not have; read the history"
    ),
    case!(
        "DLV-6" => random_deliveries_agree_with_the_model,
        "an interplay of fetches, settles and time that the plain cases do not have; read the history"
    ),
    case!(
        "DLQ-3" => random_expiries_agree_with_the_model,
        "an interplay of leases that end, delays and used-up attempts; read the history"
    ),
    case!(
        "RPL-1" => random_replays_and_resets_agree_with_the_model,
        "an interplay of replay or reset with leases, delays and dead letters; read the history"
    ),
    case!(
        "DST-1" => random_histories_of_two_handles_agree_with_the_model,
        "a handle keeps something in memory that another one changes; read the history"
    )
    .needs(&[DISTRIBUTED]),
    case!(
        "DUR-1" => random_histories_with_reopened_stores_agree_with_the_model,
        "a handle keeps something in memory that matters later; read the history"
    ),
];

const QUIET: Mix = Mix {
    append: 5,
    groups: 1,
    fetch: 8,
    settle: 10,
    replay: 0,
    reset: 0,
    time: 2,
    query: 0,
    read: 0,
    dead_letters: 1,
    handles: 0,
    reopen: 0,
};

/// Sequences, routing, ids, and what queries find of it.
async fn random_appends_and_queries_agree_with_the_model(t: Fixture) -> Outcome {
    const MIX: Mix = Mix {
        append: 10,
        fetch: 2,
        settle: 2,
        query: 12,
        read: 4,
        ..QUIET
    };
    play(&t, &MIX).await
}

/// What consumers do all day.
async fn random_deliveries_agree_with_the_model(t: Fixture) -> Outcome {
    play(&t, &QUIET).await
}

/// Consumers that die, and events that kill them.
async fn random_expiries_agree_with_the_model(t: Fixture) -> Outcome {
    const MIX: Mix = Mix {
        append: 3,
        fetch: 8,
        settle: 6,
        time: 6,
        ..QUIET
    };
    play(&t, &MIX).await
}

/// Operators who go back while consumers are at work.
async fn random_replays_and_resets_agree_with_the_model(t: Fixture) -> Outcome {
    const MIX: Mix = Mix {
        replay: 3,
        reset: 3,
        time: 3,
        ..QUIET
    };
    play(&t, &MIX).await
}

/// Consumers and operators at two handles that take turns.
async fn random_histories_of_two_handles_agree_with_the_model(t: Fixture) -> Outcome {
    const MIX: Mix = Mix {
        replay: 1,
        reset: 1,
        handles: 8,
        reopen: 1,
        ..QUIET
    };
    play(&t, &MIX).await
}

/// Consumers and operators, with deployments in between.
async fn random_histories_with_reopened_stores_agree_with_the_model(t: Fixture) -> Outcome {
    const MIX: Mix = Mix {
        replay: 1,
        reset: 3,
        reopen: 4,
        ..QUIET
    };
    play(&t, &MIX).await
}
