//! Partitions: each on its own, all of them together.

use std::collections::BTreeMap;

use rheo_core::{
    Backend, ConsumerId, ErrorKind, FetchOptions, Gate, Guarantee, Lease, Partition, Partitions,
    RetryOptions, Sequence, Start,
};

use crate::case::{Case, case};
use crate::expect::{Outcome, expect_empty, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::scene::{Group, P0, P1, places_of, sequences, sequences_of};

const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);

pub(crate) const CASES: &[Case] = &[
    case!(
        "LOG-1" => each_partition_counts_from_1,
        "one counter serves all partitions of a stream"
    )
    .needs(&[PARTITIONS]),
    case!(
        "STR-1" => a_stream_of_1_024_partitions_works,
        "the number of a partition is kept in a byte, or partitions are made one by one and time out"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DLV-1" => a_group_gets_the_events_of_all_partitions,
        "the consumer is bound to the partition that it found work in first"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DLV-4" => each_partition_is_delivered_in_its_own_order,
        "the order of claiming is by time over all partitions, or is not kept in the answer"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DLV-3" => a_fetch_is_restricted_to_the_selected_partitions,
        "only the first selected partition is looked at, or the selection is ignored"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DLV-3" => a_blocked_partition_holds_no_other,
        "a partition with a backlog is chosen first, and then has nothing claimable"
    )
    .needs(&[PARTITIONS]),
    case!(
        "LSE-2" => one_sequence_in_two_partitions_is_two_deliveries,
        "deliveries are found by group and sequence, without the partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "LSE-5" => attempts_are_counted_in_each_partition,
        "attempts are kept by group and sequence, without the partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DLV-2" => each_partition_has_its_own_start,
        "one start is used for all partitions"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DLV-2" => the_end_is_each_partitions_own,
        "the end of the longest partition is taken for all"
    )
    .needs(&[PARTITIONS]),
    case!(
        "FRN-1" => each_partition_has_its_own_frontier,
        "the frontier of a group is the lowest of its partitions, or one for all"
    )
    .needs(&[PARTITIONS]),
    case!(
        "FRN-4" => lag_gives_every_partition_in_ascending_order,
        "partitions without deliveries have no row, or their numbers are ordered as text"
    )
    .needs(&[PARTITIONS]),
    case!(
        "FRN-1" => frontiers_of_several_partitions_follow_random_work,
        "partitions are mixed up somewhere on the way from claim to frontier"
    )
    .needs(&[PARTITIONS]),
];

/// A group on a stream with so many events in each partition.
async fn group_with(t: &Fixture, counts: &[usize]) -> Outcome<Group> {
    let partitions = u32::try_from(counts.len()).unwrap_or(u32::MAX);
    let group = t.stream(partitions).await?.group("billing").await?;
    for (partition, count) in (0..).map(Partition::new).zip(counts) {
        group.stream.append_to(partition, *count).await?;
    }
    Ok(group)
}

/// Sequences are what consumers remember, per partition, without a gap.
async fn each_partition_counts_from_1(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    let mut given = BTreeMap::<Partition, Vec<u64>>::new();
    for number in [2, 0, 2, 2, 0, 2] {
        let partition = Partition::new(number);
        let events = stream.append_to(partition, 1).await?;
        given
            .entry(partition)
            .or_default()
            .extend(sequences(&events));
    }

    for (number, count) in [(0, 2), (1, 0), (2, 4)] {
        let partition = Partition::new(number);
        let expected: Vec<u64> = (1..=count).collect();
        let given = given.remove(&partition).unwrap_or_default();
        expect_eq("the sequences that append gave", given, expected.clone())?;
        let read = stream.read(partition).await?;
        expect_eq("the sequences that read gives", sequences(&read), expected)?;
    }
    Ok(())
}

/// The most there may be; the numbers around a byte's end and at the very end are there.
async fn a_stream_of_1_024_partitions_works(t: Fixture) -> Outcome {
    let group = t.stream(1_024).await?.group("billing").await?;
    let numbers = [0, 1, 127, 128, 255, 256, 1_023];
    for number in numbers {
        group.stream.append_to(Partition::new(number), 1).await?;
    }

    for number in numbers {
        let read = group.stream.read(Partition::new(number)).await?;
        expect_eq("the number of events in a partition", read.len(), 1)?;
    }
    let places: Vec<(u32, u64)> = numbers.iter().map(|number| (*number, 1)).collect();
    let leases = group.expect_claimable_at("a", &places).await?;
    group.ack(&leases).await
}

/// One consumer alone has all partitions to itself.
async fn a_group_gets_the_events_of_all_partitions(t: Fixture) -> Outcome {
    let group = group_with(&t, &[2, 0, 3, 1]).await?;

    let places = [(0, 1), (0, 2), (2, 1), (2, 2), (2, 3), (3, 1)];
    group
        .ack(&group.expect_claimable_at("a", &places).await?)
        .await?;

    group.stream.append_to(P1, 1).await?;
    group.expect_claimable_at("a", &[(1, 1)]).await?;
    Ok(())
}

/// Between partitions the order is free; within one it is not.
async fn each_partition_is_delivered_in_its_own_order(t: Fixture) -> Outcome {
    let group = t.stream(3).await?.group("billing").await?;
    for number in [2, 1, 0, 1, 2, 0, 0, 2, 1] {
        group.stream.append_to(Partition::new(number), 1).await?;
    }

    let leases = group.fetch_exactly("a", 9).await?;

    for number in 0..3 {
        let of_it = |lease: &&Lease| lease.event.partition.number() == number;
        let own: Vec<Lease> = leases.iter().filter(of_it).cloned().collect();
        expect_eq(
            "a partition's order of delivery",
            sequences_of(&own),
            vec![1, 2, 3],
        )?;
    }
    Ok(())
}

/// Consumers that divide the partitions among themselves get theirs and no others.
async fn a_fetch_is_restricted_to_the_selected_partitions(t: Fixture) -> Outcome {
    let group = group_with(&t, &[2, 2, 2, 2]).await?;
    let from = |numbers: &[u32]| -> Outcome<FetchOptions> {
        let selected = Partitions::only(numbers.iter().copied().map(Partition::new));
        Ok(FetchOptions::new(ConsumerId::new("a")?).with_partitions(selected))
    };

    expect_empty("lease", &group.gather(from(&[])?, 8).await?)?;
    let some = group.gather(from(&[1, 3])?, 8).await?;
    let places = vec![(1, 1), (1, 2), (3, 1), (3, 2)];
    expect_eq("what partitions 1 and 3 give", places_of(&some), places)?;
    let one = group.gather(from(&[2, 3])?, 8).await?;
    expect_eq(
        "what is left in 2 and 3",
        places_of(&one),
        vec![(2, 1), (2, 2)],
    )
}

/// Everything in one partition is leased or waits; the others go on, one event at a time.
async fn a_blocked_partition_holds_no_other(t: Fixture) -> Outcome {
    let group = group_with(&t, &[3, 0]).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    group.retry_in_an_hour(&leases[1]).await?;

    for sequence in 1..=3 {
        group.stream.append_to(P1, 1).await?;
        let lease = group.fetch_one("b").await?;
        expect_eq(
            "what is claimable",
            places_of(&[lease]),
            vec![(1, sequence)],
        )?;
    }
    group.expect_nothing("b").await
}

/// Partition 0 number 1 and partition 1 number 1 have nothing to do with each other.
async fn one_sequence_in_two_partitions_is_two_deliveries(t: Fixture) -> Outcome {
    let group = group_with(&t, &[1, 1]).await?;
    let mut leases = group.fetch_exactly("a", 2).await?;
    leases.sort_by_key(|lease| lease.event.partition);
    let mut mixed_up = leases[0].clone();
    mixed_up.event = leases[1].event.clone();

    expect_error(t.backend.ack(&mixed_up).await, ErrorKind::StaleLease)?;
    group.ack(&leases[..1]).await?;
    group.expect_current(&leases[1]).await?;
    group.ack(&leases[1..]).await
}

/// An event that fails again and again must not use up the attempts of its namesake.
async fn attempts_are_counted_in_each_partition(t: Fixture) -> Outcome {
    let group = group_with(&t, &[1, 1]).await?;
    let from = |partition: Partition| -> Outcome<FetchOptions> {
        Ok(FetchOptions::new(ConsumerId::new("a")?).with_partitions(partition))
    };
    for attempt in 1..=3 {
        let leases = group.gather(from(P0)?, 1).await?;
        let seen: Vec<u32> = leases.iter().map(|lease| lease.attempt).collect();
        expect_eq("the attempt in partition 0", seen, vec![attempt])?;
        t.backend.retry(&leases[0], &RetryOptions::new()).await?;
    }

    let leases = group.gather(from(P1)?, 1).await?;
    let seen: Vec<u32> = leases.iter().map(|lease| lease.attempt).collect();
    expect_eq("the attempt in partition 1", seen, vec![1])
}

/// Positions of a snapshot: one per partition; what is not named starts at its beginning.
async fn each_partition_has_its_own_start(t: Fixture) -> Outcome {
    let stream = group_with(&t, &[3, 2, 1]).await?.stream;
    let sequences = [(P0, Sequence::new(2)?), (P1, Sequence::new(1)?)];
    let start = Start::AfterSequences(BTreeMap::from(sequences));

    let group = stream.group_from("audit", start).await?;

    group
        .expect_claimable_at("a", &[(0, 3), (1, 2), (2, 1)])
        .await?;
    Ok(())
}

/// A short partition's next event is as new as a long one's.
async fn the_end_is_each_partitions_own(t: Fixture) -> Outcome {
    let stream = group_with(&t, &[3, 1, 0]).await?.stream;
    let group = stream.group_from("audit", Start::End).await?;
    group.expect_nothing("a").await?;

    for number in 0..3 {
        stream.append_to(Partition::new(number), 1).await?;
    }

    group
        .expect_claimable_at("a", &[(0, 4), (1, 2), (2, 1)])
        .await?;
    Ok(())
}

/// A hole in one partition says nothing about the others.
async fn each_partition_has_its_own_frontier(t: Fixture) -> Outcome {
    let group = group_with(&t, &[3, 2, 1]).await?;
    let leases = group.fetch_exactly("a", 6).await?;
    let hole = |lease: &Lease| places_of(std::slice::from_ref(lease)) == [(0, 2)];
    for lease in leases.iter().filter(|lease| !hole(lease)) {
        t.backend.ack(lease).await?;
    }

    let lag = group.lag().await?;
    let frontiers: Vec<u64> = lag.partitions.iter().map(|p| p.frontier.get()).collect();
    expect_eq("the frontiers", frontiers, vec![1, 2, 1])?;
    expect_eq("the lag of all partitions", lag.total(), 2)
}

/// Twelve partitions, most of them empty or untouched.
async fn lag_gives_every_partition_in_ascending_order(t: Fixture) -> Outcome {
    let mut counts = [0; 12];
    (counts[2], counts[10], counts[11]) = (2, 1, 3);
    let group = group_with(&t, &counts).await?;
    let options = FetchOptions::new(ConsumerId::new("a")?).with_partitions(Partition::new(11));
    group.ack(&group.gather(options, 2).await?).await?;

    let lag = group.lag().await?;

    let rows: Vec<(u32, u64, u64)> = lag
        .partitions
        .iter()
        .map(|p| {
            (
                p.partition.number(),
                p.frontier.get(),
                p.high_watermark.get(),
            )
        })
        .collect();
    let expected: Vec<(u32, u64, u64)> = (0..)
        .zip(counts)
        .map(|(number, count)| (number, if number == 11 { 2 } else { 0 }, count as u64))
        .collect();
    expect_eq("partition, frontier and high watermark", rows, expected)?;
    expect_eq("the lag of all partitions", lag.total(), 4)
}

/// Random work on three partitions, compared with plain sets of what is done.
async fn frontiers_of_several_partitions_follow_random_work(t: Fixture) -> Outcome {
    super::progress::random_work(&t, 3).await
}
