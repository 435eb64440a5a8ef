//! Ops inspect: listing streams and groups, describing a group.

mod counts;

use rheo_core::{
    Backend, ErrorKind, Gate, GroupInfo, GroupName, Guarantee, Lease, ListOptions, MaxAttempts,
    OptionalOperation, PartitionCount, ResetOptions, StreamInfo, StreamName,
};

use self::counts::*;
use crate::case::{Case, case};
use crate::expect::{Outcome, expect, expect_empty, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::scene::{Group, P0, P1, Stream};

const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);
const REPLAY: Gate = Gate::Guarantee(Guarantee::Replay);
const LIST_GROUPS: Gate = Gate::Operation(OptionalOperation::ListGroups);
const GROUP_INFO: Gate = Gate::Operation(OptionalOperation::GroupInfo);

pub(crate) const CASES: &[Case] = &[
    case!(
        "OPS-1" => streams_are_listed_by_the_bytes_of_their_names,
        "names are ordered by a locale, by UTF-16 units, without case, or by creation"
    ),
    case!(
        "OPS-1" => streams_are_listed_with_their_number_of_partitions,
        "the number of partitions is the one of those that hold events"
    )
    .needs(&[PARTITIONS]),
    case!(
        "OPS-1" => streams_are_listed_above_after,
        "the bound is inclusive, or is looked up and must exist"
    ),
    case!(
        "OPS-1" => a_limit_bounds_a_page_of_streams,
        "a limit of 0 is taken for none, or a large one overflows"
    ),
    case!(
        "OPS-1" => a_stream_is_listed_once_whatever_is_in_it,
        "streams are joined with their partitions or groups, or only those with events are listed"
    ),
    case!(
        "OPS-1" => more_than_a_hundred_streams_are_listed,
        "a page is cut at a number of the backend's own, or the name it goes on from is cut"
    ),
    case!(
        "OPS-2" => groups_are_listed_by_the_bytes_of_their_names,
        "names are ordered by a locale, by UTF-16 units, without case, or by creation"
    ),
    case!(
        "OPS-2" => groups_are_listed_above_after,
        "the bound is inclusive, or is looked up and must exist"
    ),
    case!(
        "OPS-2" => a_limit_bounds_a_page_of_groups,
        "a limit of 0 is taken for none, or a large one overflows"
    ),
    case!(
        "OPS-2" => more_than_a_hundred_groups_are_listed,
        "a page is cut at a number of the backend's own, or the name it goes on from is cut"
    ),
    case!(
        "OPS-2" => the_groups_of_other_streams_are_not_listed,
        "the stream is compared as a pattern or a prefix, or without case"
    ),
    case!(
        "ERR-6" => the_groups_of_a_missing_stream_are_not_an_empty_list,
        "no rows are taken for no groups"
    )
    .needs(&[LIST_GROUPS]),
    case!(
        "OPS-3" => group_info_gives_names_and_max_attempts,
        "the default is given, or the number is kept in a type that is too small"
    ),
    case!(
        "OPS-3" => group_info_counts_current_leases,
        "claims are counted that were settled, or deliveries that wait for a retry"
    ),
    case!(
        "OPS-3" => group_info_counts_expired_leases_that_nobody_reclaimed,
        "leases are counted by the time at which they expire"
    ),
    case!(
        "OPS-3" => group_info_counts_dead_letters,
        "only rejected events are counted, or those of all groups"
    ),
    case!(
        "OPS-3" => group_info_counts_over_all_partitions,
        "the numbers are those of one partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "OPS-3" => group_info_counts_over_twelve_partitions,
        "partitions are counted to nine, or those of a page"
    )
    .needs(&[PARTITIONS]),
    case!(
        "OPS-3" => group_info_counts_nothing_of_other_groups,
        "leases or dead letters are counted by stream, without the group, or by group, without the stream"
    ),
    case!(
        "OPS-3" => group_info_counts_nothing_after_a_reset,
        "the numbers are counters of their own that only settling keeps"
    )
    .needs(&[REPLAY]),
    case!(
        "OPS-3" => group_info_counts_any_number_of_leases_and_dead_letters,
        "leases or dead letters are counted by reading a page of them"
    ),
    case!(
        "OPS-3" => group_info_counts_a_lease_at_any_attempt,
        "a lease is counted at its first claim only, or once for each claim or renewal"
    ),
    case!(
        "OPS-3" => group_info_counts_what_a_replay_left,
        "a replay in part, or of chosen events, drops all counts or none"
    )
    .needs(&[REPLAY]),
    case!(
        "OPS-3" => group_info_counts_chosen_events_below_the_start,
        "leases and dead letters are counted above the group's start only"
    )
    .needs(&[REPLAY]),
    case!(
        "OPS-3" => group_info_gives_max_attempts_after_going_back,
        "a replay or reset writes the group anew, with the default options"
    )
    .needs(&[REPLAY]),
    case!(
        "OPS-3" => group_info_gives_the_progress_that_lag_gives,
        "the progress is computed twice, in two ways"
    )
    .needs(&[FRONTIER]),
    case!(
        "OPS-3" => without_an_exact_frontier_group_info_gives_no_progress,
        "a guess is given where the backend has nothing exact"
    )
    .lacks(FRONTIER),
    case!(
        "OPS-3" => group_info_changes_nothing,
        "leases are swept before they are counted"
    ),
    case!(
        "ERR-6" => group_info_looks_for_the_stream_before_the_group,
        "no row is taken for a group without deliveries"
    )
    .needs(&[GROUP_INFO]),
];

/// Names from hell, in the order of their bytes.
const NAMES: &[&str] = &[
    " ",
    "$where",
    "%",
    "'; DROP TABLE streams; --",
    "10",
    "9",
    "A",
    "B",
    "_",
    "a",
    "a b",
    "a%",
    "a.b",
    "a:b",
    "ab",
    "b",
    "system.a",
    "u\u{308}",
    "z",
    "é",
    "ü",
    "\u{ff5e}",
    "🦀",
];

/// [`NAMES`] in an order that has nothing to do with that of their bytes.
fn shuffled(t: &Fixture) -> Vec<&'static str> {
    let mut left = NAMES.to_vec();
    let mut names = Vec::new();
    while !left.is_empty() {
        let at = t.random(left.len() as u64);
        names.push(left.swap_remove(usize::try_from(at).unwrap_or(0)));
    }
    names
}

async fn streams(t: &Fixture, options: &ListOptions<StreamName>) -> Outcome<Vec<String>> {
    let listed = t.backend.list_streams(options).await?;
    Ok(listed.iter().map(|info| info.stream.to_string()).collect())
}

async fn groups(stream: &Stream, options: &ListOptions<GroupName>) -> Outcome<Vec<String>> {
    let listed = stream.backend.list_groups(&stream.name, options).await?;
    Ok(listed.iter().map(ToString::to_string).collect())
}

async fn info(group: &Group) -> Outcome<GroupInfo> {
    Ok(group
        .backend
        .group_info(&group.stream.name, &group.name)
        .await?)
}

/// Demands these numbers of leases and of dead letters.
async fn expect_counts(group: &Group, leased: u64, dead_letters: u64) -> Outcome {
    let info = info(group).await?;
    expect_eq(
        "the number of leases and of dead letters",
        (info.leased, info.dead_letters),
        (leased, dead_letters),
    )
}

/// One order everywhere, so that paging by name works on every backend.
async fn streams_are_listed_by_the_bytes_of_their_names(t: Fixture) -> Outcome {
    for name in shuffled(&t) {
        t.stream_named(name, 1).await?;
    }

    let seen = streams(&t, &ListOptions::new()).await?;

    expect_eq(
        "the streams",
        seen,
        NAMES.iter().map(ToString::to_string).collect(),
    )
}

/// Whether there are events in them or not.
async fn streams_are_listed_with_their_number_of_partitions(t: Fixture) -> Outcome {
    let mut expected = Vec::new();
    for (name, partitions) in [("a", 3), ("b", 1), ("c", 12), ("d", 1_024)] {
        let stream = t.stream_named(name, partitions).await?;
        stream.append(1).await?;
        expected.push(StreamInfo {
            stream: stream.name,
            partition_count: PartitionCount::new(partitions)?,
        });
    }

    let seen = t.backend.list_streams(&ListOptions::new()).await?;

    expect_eq("the streams", seen, expected)
}

/// Bounds between, at, before and behind the names a, c and e, with what is above them.
const BOUNDS: &[(&str, &[&str])] = &[
    ("a", &["c", "e"]),
    ("b", &["c", "e"]),
    ("c", &["e"]),
    ("c ", &["e"]),
    ("e", &[]),
    ("f", &[]),
    ("A", &["a", "c", "e"]),
];

/// The last name of a page may be gone, or never have been, when the next one is asked for.
async fn streams_are_listed_above_after(t: Fixture) -> Outcome {
    for name in ["e", "a", "c"] {
        t.stream_named(name, 1).await?;
    }

    for (after, expected) in BOUNDS {
        let options = ListOptions::new().with_after(StreamName::new(after)?);
        let seen = streams(&t, &options).await?;
        expect_eq(
            &format!("the streams above {after:?}"),
            seen,
            owned(expected),
        )?;
    }
    Ok(())
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Limits with what they leave of the names a, b and c.
const LIMITS: &[(u32, &[&str])] = &[
    (0, &[]),
    (1, &["a"]),
    (2, &["a", "b"]),
    (3, &["a", "b", "c"]),
    (u32::MAX, &["a", "b", "c"]),
];

/// From none to all, on an empty store too.
async fn a_limit_bounds_a_page_of_streams(t: Fixture) -> Outcome {
    expect_empty("stream", &streams(&t, &ListOptions::new()).await?)?;
    for name in ["b", "a", "c"] {
        t.stream_named(name, 1).await?;
    }

    for (limit, expected) in LIMITS {
        let seen = streams(&t, &ListOptions::new().with_limit(*limit)).await?;
        expect_eq(&format!("a page of {limit} streams"), seen, owned(expected))?;
    }
    Ok(())
}

/// Neither groups nor events make a stream appear twice, and none is needed for it to appear.
async fn a_stream_is_listed_once_whatever_is_in_it(t: Fixture) -> Outcome {
    t.stream_named("bare", 1).await?;
    let full = t.stream_named("full", 1).await?;
    for name in ["audit", "billing"] {
        full.group(name).await?.append_and_fetch_one("a").await?;
    }

    let seen = streams(&t, &ListOptions::new()).await?;

    expect_eq("the streams", seen, owned(&["bare", "full"]))
}

/// 120 names of 255 bytes that differ in their last three.
fn long_names() -> Vec<String> {
    (100..220)
        .map(|number| format!("{}{number}", "n".repeat(252)))
        .collect()
}

/// A list that ends at the hundredth looks whole.
async fn more_than_a_hundred_streams_are_listed(t: Fixture) -> Outcome {
    let names = long_names();
    for name in names.iter().rev() {
        t.stream_named(name, 1).await?;
    }

    let all = ListOptions::new().with_limit(1_000);
    expect_eq("the streams", streams(&t, &all).await?, names.clone())?;
    let by_default = streams(&t, &ListOptions::new()).await?;
    expect_eq("the streams by default", by_default, names[..100].to_vec())?;
    for from in [0, 49, 99, 118, 119] {
        let after = StreamName::new(&names[from])?;
        let seen = streams(&t, &all.clone().with_after(after)).await?;
        expect_eq("the streams above one", seen, names[from + 1..].to_vec())?;
    }
    Ok(())
}

/// As for streams.
async fn more_than_a_hundred_groups_are_listed(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let names = long_names();
    for name in names.iter().rev() {
        stream.group(name).await?;
    }

    let all = ListOptions::new().with_limit(1_000);
    expect_eq("the groups", groups(&stream, &all).await?, names.clone())?;
    let by_default = groups(&stream, &ListOptions::new()).await?;
    expect_eq("the groups by default", by_default, names[..100].to_vec())?;
    for from in [0, 49, 99, 118, 119] {
        let after = GroupName::new(&names[from])?;
        let seen = groups(&stream, &all.clone().with_after(after)).await?;
        expect_eq("the groups above one", seen, names[from + 1..].to_vec())?;
    }
    Ok(())
}

/// As for streams.
async fn groups_are_listed_by_the_bytes_of_their_names(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for name in shuffled(&t) {
        stream.group(name).await?;
    }

    let seen = groups(&stream, &ListOptions::new()).await?;

    expect_eq("the groups", seen, owned(NAMES))
}

/// As for streams.
async fn groups_are_listed_above_after(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for name in ["e", "a", "c"] {
        stream.group(name).await?;
    }

    for (after, expected) in BOUNDS {
        let options = ListOptions::new().with_after(GroupName::new(after)?);
        let seen = groups(&stream, &options).await?;
        expect_eq(
            &format!("the groups above {after:?}"),
            seen,
            owned(expected),
        )?;
    }
    Ok(())
}

/// From none to all, on a stream without groups too.
async fn a_limit_bounds_a_page_of_groups(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    expect_empty("group", &groups(&stream, &ListOptions::new()).await?)?;
    for name in ["b", "a", "c"] {
        stream.group(name).await?;
    }

    for (limit, expected) in LIMITS {
        let seen = groups(&stream, &ListOptions::new().with_limit(*limit)).await?;
        expect_eq(&format!("a page of {limit} groups"), seen, owned(expected))?;
    }
    Ok(())
}

/// However alike the streams' names are.
async fn the_groups_of_other_streams_are_not_listed(t: Fixture) -> Outcome {
    let names = ["a", "A", "a%", "a_", "ab", "a:b", "%"];
    for name in names {
        let stream = t.stream_named(name, 1).await?;
        stream.group(&format!("of {name}")).await?;
    }

    for name in names {
        let stream = t.existing_stream(StreamName::new(name)?);
        let seen = groups(&stream, &ListOptions::new()).await?;
        expect_eq(
            &format!("the groups of {name:?}"),
            seen,
            vec![format!("of {name}")],
        )?;
    }
    Ok(())
}

/// Whoever mistypes a stream's name should not conclude that nobody reads it.
async fn the_groups_of_a_missing_stream_are_not_an_empty_list(t: Fixture) -> Outcome {
    let missing = StreamName::new("missing")?;

    for limit in [100, 0] {
        let options = ListOptions::new().with_limit(limit);
        let result = t.backend.list_groups(&missing, &options).await;
        expect_error(result, ErrorKind::StreamNotFound)?;
    }
    Ok(())
}

/// The default and both ends of what is allowed.
async fn group_info_gives_names_and_max_attempts(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let default = (stream.group("default").await?, 5);
    let once = (stream.group_of_attempts("once", 1).await?, 1);
    let most = (
        stream.group_of_attempts("most", MaxAttempts::MAX).await?,
        MaxAttempts::MAX,
    );

    for (group, attempts) in [default, once, most] {
        let info = info(&group).await?;
        expect_eq("the stream", &info.stream, &stream.name)?;
        expect_eq("the group", &info.group, &group.name)?;
        expect_eq("max_attempts", info.max_attempts.get(), attempts)?;
    }
    Ok(())
}

/// What is being worked on now, in this group.
async fn group_info_counts_current_leases(t: Fixture) -> Outcome {
    let group = t.group_with_events(6).await?;
    let other = group.stream.group("audit").await?;
    expect_counts(&group, 0, 0).await?;

    let leases = group.fetch_exactly("a", 5).await?;
    expect_counts(&group, 5, 0).await?;
    group.ack(&leases[..1]).await?;
    expect_counts(&group, 4, 0).await?;
    group.retry_in_an_hour(&leases[1]).await?;
    expect_counts(&group, 3, 0).await?;
    group.reject(&leases[2], "broken").await?;
    expect_counts(&group, 2, 1).await?;
    expect_counts(&other, 0, 0).await
}

/// Such a lease is the sign of a consumer that died: it is what one looks for.
async fn group_info_counts_expired_leases_that_nobody_reclaimed(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = group.fetch_briefly("a", 2).await?;
    for lease in &leases {
        t.let_lease_expire(lease).await;
    }
    expect_counts(&group, 2, 0).await?;

    let reclaimed = group.fetch_one("b").await?;
    expect_counts(&group, 2, 0).await?;

    group.ack(&[reclaimed]).await?;
    expect_counts(&group, 1, 0).await
}

/// However they died, and only this group's.
async fn group_info_counts_dead_letters(t: Fixture) -> Outcome {
    let group = t.stream(1).await?.group_of_attempts("billing", 1).await?;
    let other = group.stream.group("audit").await?;
    group.stream.append(4).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.reject(&leases[0], "broken").await?;
    group.retry_in_an_hour(&leases[1]).await?;
    expect_counts(&group, 0, 2).await?;

    for lease in group.fetch_briefly("a", 2).await? {
        t.let_lease_expire(&lease).await;
    }
    group.expect_nothing("a").await?;

    expect_counts(&group, 0, 4).await?;
    expect_counts(&other, 0, 0).await
}

/// The group is one, however its stream is divided.
async fn group_info_counts_over_all_partitions(t: Fixture) -> Outcome {
    let group = t.stream(2).await?.group("billing").await?;
    group.stream.append_to(P0, 2).await?;
    group.stream.append_to(P1, 3).await?;
    let leases = group.fetch_exactly("a", 5).await?;
    let second = |lease: &&Lease| lease.event.sequence.get() == 2;

    for lease in leases.iter().filter(second) {
        group.reject(lease, "broken").await?;
    }

    expect_counts(&group, 3, 2).await
}

/// After a reset nothing is leased, nothing is dead.
async fn group_info_counts_nothing_after_a_reset(t: Fixture) -> Outcome {
    let group = t.group().await?;
    group.bring_into_every_state().await?;
    expect_counts(&group, 1, 1).await?;

    group.reset(&ResetOptions::new()).await?;

    expect_counts(&group, 0, 0).await?;
    group.fetch_exactly("b", 2).await?;
    expect_counts(&group, 2, 0).await
}

/// Two answers to one question would be one too many.
async fn group_info_gives_the_progress_that_lag_gives(t: Fixture) -> Outcome {
    let group = t.group().await?;
    expect_eq("the progress", info(&group).await?.lag, group.lag().await?)?;

    let leases = group.bring_into_every_state().await?;
    expect_eq("the progress", info(&group).await?.lag, group.lag().await?)?;

    group.ack(&leases[1..2]).await?;
    expect_eq("the progress", info(&group).await?.lag, group.lag().await?)
}

/// What is not promised is not given either.
async fn without_an_exact_frontier_group_info_gives_no_progress(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;

    expect_empty("partition", &info(&group).await?.lag.partitions)
}

/// Looking at a group on fire must not feed the fire: an expired lease is still its holder's.
async fn group_info_changes_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;

    let first = info(&group).await?;
    let second = info(&group).await?;

    expect(
        first == second,
        format!("the same again: {first:?}"),
        format!("{second:?}"),
    )?;
    group.expect_current(&lease).await?;
    group.expect_claimable("b", &[2]).await?;
    let log = group.stream.read(P0).await?;
    expect_eq("the number of events", log.len(), 2)
}

/// Zeros would say that all is well with a group that does not exist.
async fn group_info_looks_for_the_stream_before_the_group(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?.name;
    let missing = StreamName::new("missing")?;
    let group = GroupName::new("missing")?;

    let result = t.backend.group_info(&missing, &group).await;
    expect_error(result, ErrorKind::StreamNotFound)?;
    let result = t.backend.group_info(&stream, &group).await;
    expect_error(result, ErrorKind::GroupNotFound)?;
    Ok(())
}

/// Groups beside it and namesakes on other streams have their own leases and dead letters.
async fn group_info_counts_nothing_of_other_groups(t: Fixture) -> Outcome {
    let billing = t.group().await?;
    let audit = billing.stream.group("audit").await?;
    let namesake = t.group().await?;
    audit.bring_into_every_state().await?;
    namesake.bring_into_every_state().await?;
    namesake.fetch_one("b").await?;
    expect_counts(&billing, 0, 0).await?;
    expect_counts(&audit, 1, 1).await?;
    expect_counts(&namesake, 2, 1).await?;

    let leases = billing.fetch_exactly("c", 4).await?;
    billing.reject(&leases[0], "broken").await?;

    expect_counts(&billing, 3, 1).await?;
    expect_counts(&audit, 1, 1).await?;
    expect_counts(&namesake, 2, 1).await
}
