//! How much a fetch gives, and of which partitions.

use std::time::Duration;

use rheo_core::{Backend, ErrorKind, GroupName, Lease, Partition, Partitions, StreamName};

use super::{claimable, filled, options};
use crate::expect::{Outcome, expect, expect_empty, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::scene::{P0, P1, places_of, sequences_of};
use crate::step::{Step, retry_after};

/// A worker has room for so many, whatever the number of partitions.
pub(super) async fn a_fetch_gives_no_more_than_its_limit(t: Fixture) -> Outcome {
    let stream = filled(&t, 3, 4).await?;
    let group = stream.group("billing").await?;
    let mut seen = 0;
    for limit in [1, 2, 3, 5] {
        let leases = group.fetch_with(&options("a")?.with_limit(limit)).await?;
        seen += leases.len();
        expect(
            (1..=limit as usize).contains(&leases.len()),
            format!("1 to {limit} leases"),
            format!("{} leases", leases.len()),
        )?;
    }

    let rest = group.fetch_all("a").await?;
    expect_eq("the number of all leases", seen + rest.len(), 12)
}

/// A worker without room that asks all the same is given nothing, and takes nothing.
pub(super) async fn a_limit_of_0_gives_and_claims_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let none = options("a")?.with_limit(0);
    expect_empty("lease", &group.fetch_with(&none).await?)?;
    let leases = group.expect_claimable("b", &[1, 2, 3]).await?;

    let attempts: Vec<u32> = leases.iter().map(|lease| lease.attempt).collect();
    expect_eq("the attempts", attempts, vec![1; 3])
}

/// As many as there are.
pub(super) async fn the_largest_limit_is_a_limit_too(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let all = options("a")?.with_limit(u32::MAX);
    let mut fetched = Vec::new();
    for _ in 0..3 {
        fetched.extend(group.fetch_with(&all).await?);
    }

    expect_eq("the sequences", sequences_of(&fetched), vec![1, 2, 3])
}

/// Who says nothing gets one event at a time.
pub(super) async fn one_lease_is_the_default(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;

    let leases = group.fetch_with(&options("a")?).await?;
    expect_eq("the sequences", sequences_of(&leases), vec![1])
}

/// Empty, all leased, all waiting, all done: four kinds of nothing.
pub(super) async fn nothing_claimable_gives_nothing(t: Fixture) -> Outcome {
    let group = t.group().await?;
    group.expect_nothing("a").await?;
    group.stream.append(4).await?;
    let leases = group.fetch_exactly("a", 4).await?;
    group.expect_nothing("b").await?;
    let hour = Duration::from_secs(3_600);
    t.backend.retry(&leases[0], &retry_after(hour)?).await?;
    group.expect_nothing("b").await?;
    t.backend.ack(&leases[1]).await?;
    group.reject(&leases[2], "no good").await?;
    t.backend.ack(&leases[3]).await?;

    group.expect_nothing("a").await?;
    group.expect_nothing("b").await
}

/// A hundred in progress, one free: one fetch finds it.
pub(super) async fn a_fetch_finds_the_only_claimable_event(t: Fixture) -> Outcome {
    let group = t.group_with_events(120).await?;
    let leases = group.fetch_exactly("a", 120).await?;
    group.ack(&leases[..30]).await?;
    let one = options("b")?.with_limit(1);
    for at in [119, 70, 30] {
        Step::Retry.on(&t.backend, &leases[at]).await?;
        let fetched = group.fetch_with(&one).await?;

        let expected = vec![leases[at].event.sequence.get()];
        expect_eq(
            "the sequences of a single fetch",
            sequences_of(&fetched),
            expected,
        )?;
    }
    group.stream.append(1).await?;
    let fetched = group.fetch_with(&one).await?;
    expect_eq(
        "the sequences of a single fetch",
        sequences_of(&fetched),
        vec![121],
    )
}

/// Workers that share the partitions among themselves rely on it.
pub(super) async fn a_fetch_stays_in_its_partitions(t: Fixture) -> Outcome {
    let stream = filled(&t, 3, 2).await?;
    let group = stream.group("billing").await?;
    let selection = Partitions::only([P0, Partition::new(2)]);
    let selected = options("a")?.with_partitions(selection);
    let leases = group.gather(selected.clone(), 100).await?;
    expect_empty("lease", &group.fetch_with(&selected).await?)?;

    let place = |lease: &Lease| (lease.event.partition.number(), lease.event.sequence.get());
    let mut places: Vec<_> = leases.iter().map(place).collect();
    places.sort_unstable();
    let expected = vec![(0, 1), (0, 2), (2, 1), (2, 2)];
    expect_eq("the leased events", places, expected)?;
    let rest = claimable(&group, "b").await?;
    expect_eq("the claimable events", rest, vec![(1, 1), (1, 2)])
}

/// However much there is elsewhere, and however little here.
pub(super) async fn a_selection_is_looked_through_and_no_other(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    stream.append_to(P0, 50).await?;
    stream.append_to(Partition::new(2), 50).await?;
    stream.append_to(P1, 1).await?;
    let group = stream.group("billing").await?;
    let one = options("a")?.with_limit(1).with_partitions(P1);

    let leases = group.fetch_with(&one).await?;
    expect_eq(
        "the sequences of a single fetch",
        sequences_of(&leases),
        vec![1],
    )?;
    expect_eq("the partition", leases[0].event.partition, P1)?;
    expect_empty("lease", &group.fetch_with(&one).await?)
}

/// A worker whose partitions all went to others.
pub(super) async fn no_partitions_give_and_claim_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let nowhere = options("a")?
        .with_limit(10)
        .with_partitions(Partitions::only([]));
    expect_empty("lease", &group.fetch_with(&nowhere).await?)?;
    let leases = group.expect_claimable("a", &[1, 2]).await?;

    expect_eq("the attempt", leases[0].attempt, 1)
}

/// What is missing decides what an operator does about it.
pub(super) async fn a_missing_stream_is_noticed_before_its_group(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let missing = (StreamName::new("missing")?, GroupName::new("missing")?);
    let fetch = options("a")?;

    let no_stream = t.backend.fetch(&missing.0, &missing.1, &fetch).await;
    expect_error(no_stream, ErrorKind::StreamNotFound)?;
    let no_stream = t.backend.fetch(&missing.0, &group.name, &fetch).await;
    expect_error(no_stream, ErrorKind::StreamNotFound)?;
    let no_group = t
        .backend
        .fetch(&group.stream.name, &missing.1, &fetch)
        .await;
    expect_error(no_group, ErrorKind::GroupNotFound)?;
    let none = fetch.with_limit(0).with_partitions(Partitions::only([]));
    let no_group = t.backend.fetch(&group.stream.name, &missing.1, &none).await;
    expect_error(no_group, ErrorKind::GroupNotFound)?;
    Ok(())
}

/// Why there is nothing claimable in a partition that has events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Acked,
    Dead,
    Waiting,
    UsedUp,
}

/// Two of three partitions have events that are done, given up on or waiting; the third has work, and one
/// fetch finds it, whichever it is.
pub(super) async fn a_partition_without_work_holds_no_other(t: Fixture) -> Outcome {
    let mut groups = Vec::new();
    let mut last = t.now();
    for without in [
        Without::Acked,
        Without::Dead,
        Without::Waiting,
        Without::UsedUp,
    ] {
        for with_work in (0..3).map(Partition::new) {
            let stream = t.stream(3).await?;
            let attempts = if without == Without::UsedUp { 1 } else { 2 };
            let group = stream.group_of_attempts("billing", attempts).await?;
            for partition in (0..3).map(Partition::new).filter(|p| *p != with_work) {
                stream.append_to(partition, 2).await?;
            }
            let leases = group.fetch_briefly("a", 4).await?;
            expect_eq("the number of leases", leases.len(), 4)?;
            for lease in &leases {
                match without {
                    Without::Acked => t.backend.ack(lease).await?,
                    Without::Dead => group.reject(lease, "no good").await?,
                    Without::Waiting => drop(group.retry_in_an_hour(lease).await?),
                    Without::UsedUp => last = lease.expires_at,
                }
            }
            stream.append_to(with_work, 1).await?;
            groups.push((without, with_work, group));
        }
    }
    t.until(last).await;

    for (without, with_work, group) in groups {
        let one = options("b")?.with_limit(1);
        let fetched = group.fetch_with(&one).await?;
        let what = format!("what a single fetch gives beside partitions that are {without:?}");
        let places = vec![(with_work.number(), 1)];
        expect_eq(&what, places_of(&fetched), places)?;
        expect_empty("claimable event", &group.fetch_with(&one).await?)?;
    }
    Ok(())
}
