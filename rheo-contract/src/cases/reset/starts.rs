//! Where a reset starts again.

use std::collections::BTreeMap;
use std::time::Duration;

use rheo_core::{Event, Partition, Partitions, ResetOptions, Sequence, Start, Timestamp};

use super::from;
use crate::durations::MICROSECOND;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::{Group, P0, P1, sequences};
use crate::states::{every_state, expect_again, expect_untouched, twelve_done};

const P2: Partition = Partition::new(2);

/// The sequence just before the lowest event of that time or a later one, by looking at each.
fn before(time: Timestamp, events: &[Event]) -> u64 {
    let first = events.iter().find(|event| event.timestamp >= time);
    match first {
        Some(event) => event.sequence.get() - 1,
        None => events.len() as u64,
    }
}

/// Demands that resets to the time of each event, and just behind, start where they should in every
/// partition.
async fn expect_starts_by_time(group: &Group, partitions: u32) -> Outcome {
    let mut logs = Vec::new();
    for partition in (0..partitions).map(Partition::new) {
        logs.push((partition, group.stream.read(partition).await?));
    }
    let mut times = Vec::new();
    for event in logs.iter().flat_map(|(_, log)| log) {
        times.extend([event.timestamp, event.timestamp.saturating_add(MICROSECOND)]);
    }
    for time in times {
        group.reset(&from(Start::AtTime(time))).await?;

        let mut expected = Vec::new();
        for (partition, log) in &logs {
            let above = log
                .iter()
                .filter(|event| event.sequence.get() > before(time, log));
            expected.extend(above.map(|event| (partition.number(), event.sequence.get())));
        }
        group.expect_claimable_at("a", &expected).await?;
    }
    Ok(())
}

/// Clocks of producers differ, and the times in a log go up and down.
pub(super) async fn reset_to_a_time_goes_by_the_lowest_sequence(t: Fixture) -> Outcome {
    let group = t.group().await?;
    for (forward, back) in [(0, 0), (40, 0), (0, 60), (20, 0), (0, 10), (80, 0), (0, 30)] {
        t.pass(Duration::from_millis(forward)).await;
        t.turn_back(Duration::from_millis(back));
        group.stream.append(1).await?;
    }

    expect_starts_by_time(&group, 1).await
}

/// The events of a time are in other places in every partition.
pub(super) async fn reset_to_a_time_is_found_per_partition(t: Fixture) -> Outcome {
    let group = t.stream(3).await?.group("billing").await?;
    for (partition, count) in [(P0, 1), (P2, 2), (P0, 2), (P1, 1), (P2, 1), (P0, 1)] {
        group.stream.append_to(partition, count).await?;
        t.pass(Duration::from_millis(2)).await;
    }

    expect_starts_by_time(&group, 3).await
}

/// The partitions are not of one length, and each ends where it ends.
pub(super) async fn reset_to_the_end_is_each_partitions_own(t: Fixture) -> Outcome {
    for selected in [
        Partitions::All,
        Partitions::only([P0, P1]),
        Partitions::from(P1),
    ] {
        let group = t.stream(4).await?.group("billing").await?;
        for (partition, count) in [(P0, 3), (P1, 1), (P2, 2)] {
            group.stream.append_to(partition, count).await?;
        }
        group.ack(&group.fetch_exactly("a", 6).await?).await?;
        let options = from(Start::End).with_partitions(selected);
        group.reset(&options).await?;

        group.expect_nothing("a").await?;
        for partition in (0..4).map(Partition::new) {
            group.stream.append_to(partition, 1).await?;
        }
        let expected = [(0, 4), (1, 2), (2, 3), (3, 1)];
        group.expect_claimable_at("a", &expected).await?;
    }
    Ok(())
}

/// Each partition has its own number, also where some are not selected.
pub(super) async fn each_partition_is_reset_after_its_own_sequence(t: Fixture) -> Outcome {
    let group = t.stream(4).await?.group("billing").await?;
    for partition in (0..4).map(Partition::new) {
        group.stream.append_to(partition, 4).await?;
    }
    group.ack(&group.fetch_exactly("a", 16).await?).await?;
    let named = [(P0, 3), (P1, 0), (P2, 2)];
    let mut sequences = BTreeMap::new();
    for (partition, after) in named {
        sequences.insert(partition, Sequence::new(after)?);
    }
    let options = from(Start::AfterSequences(sequences.clone()));
    let options = options.with_partitions(Partitions::only([P0, P1, P2]));
    group.reset(&options).await?;

    let expected = [(0, 4), (1, 1), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4)];
    let leases = group.expect_claimable_at("b", &expected).await?;
    group.ack(&leases).await?;
    group.reset(&from(Start::AfterSequences(sequences))).await?;
    let mut expected = expected.to_vec();
    expected.extend([(3, 1), (3, 2), (3, 3), (3, 4)]);
    group.expect_claimable_at("b", &expected).await?;
    Ok(())
}

/// A start that names no partition leaves each at its beginning; it is a reset of all that are selected.
pub(super) async fn reset_to_no_sequences_starts_at_the_beginning(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let leases = group.bring_into_every_state().await?;
    let nowhere = Start::AfterSequences(BTreeMap::new());
    group.reset(&from(nowhere)).await?;

    group.expect_stale(&leases[1]).await?;
    group.expect_claimable("b", &[1, 2, 3, 4, 5]).await?;
    Ok(())
}

/// Every state that an event can be in, in the partitions and groups that were not meant.
pub(super) async fn reset_of_one_partition_touches_no_state_elsewhere(t: Fixture) -> Outcome {
    for start in [Start::Beginning, Start::End] {
        let stream = t.stream(3).await?;
        let (billing, audit) = (stream.group("billing").await?, stream.group("audit").await?);
        let states = every_state(&[&billing, &audit], 3).await?;
        let options = ResetOptions::new().with_start(start).with_partitions(P1);
        billing.reset(&options).await?;

        expect_untouched(&states, Some(P1)).await?;
    }
    Ok(())
}

/// One starts again; the group beside it and its namesake on another stream are where they were.
pub(super) async fn reset_touches_no_state_of_other_groups(t: Fixture) -> Outcome {
    let billing = t.group().await?;
    let audit = billing.stream.group("audit").await?;
    let namesake = t.group().await?;
    let states = every_state(&[&billing, &audit, &namesake], 1).await?;
    billing.reset(&ResetOptions::new()).await?;
    let log = billing.stream.read(P0).await?;

    expect_eq("the log", sequences(&log), (1..=6).collect())?;
    billing.expect_claimable("c", &[1, 2, 3, 4, 5, 6]).await?;
    expect_untouched(&states[1..], None).await
}

/// A group is one, over however many partitions; and one of many may be reset to anywhere.
pub(super) async fn reset_reaches_each_of_twelve_partitions(t: Fixture) -> Outcome {
    let (group, events) = twelve_done(&t).await?;
    let selected = [0, 1, 4, 8, 11];
    let some = Partitions::only(selected.map(Partition::new));
    group
        .reset(&ResetOptions::new().with_partitions(some))
        .await?;
    expect_again(&group, &events, |partition, _| {
        selected.contains(&partition)
    })
    .await?;
    group.reset(&ResetOptions::new()).await?;
    expect_again(&group, &events, |_, _| true).await?;
    group
        .reset(&from(Start::AfterSequence(Sequence::new(1)?)))
        .await?;
    expect_again(&group, &events, |_, sequence| sequence > 1).await?;

    for number in [2, 11] {
        let partition = Partition::new(number);
        let log = group.stream.read(partition).await?;
        let behind = log[2].timestamp.saturating_add(MICROSECOND);
        for (start, after) in [
            (Start::AtTime(log[0].timestamp), 0),
            (Start::AfterSequence(Sequence::new(2)?), 2),
            (Start::AtTime(behind), 3),
            (Start::End, 3),
        ] {
            group.reset(&from(start).with_partitions(partition)).await?;
            let is_above = |of, sequence| of == number && sequence > after;
            expect_again(&group, &events, is_above).await?;
        }
    }
    Ok(())
}
