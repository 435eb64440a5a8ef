//! Which partition an event goes to.

use rheo_core::{Backend, EventKey, NewEvent, PARTITION_TEST_VECTORS, Partition, PartitionCount};

use crate::expect::{Outcome, expect_empty, expect_eq, expect_invalid};
use crate::fixture::Fixture;
use crate::scene::{P0, P1, Stream};

async fn partition_of(stream: &Stream, event: NewEvent) -> Outcome<u32> {
    Ok(stream.append_event(event).await?.partition.number())
}

/// Two programs, in two languages, on two stores must agree on where the events of a key are.
pub(super) async fn keys_go_where_the_published_vectors_say(t: Fixture) -> Outcome {
    for partitions in [3, 16, 1_024] {
        let stream = t.stream(partitions).await?;
        for (key, of_3, of_16, of_1024) in PARTITION_TEST_VECTORS {
            let event = t.new_event().with_key(EventKey::new(key)?);

            let expected = match partitions {
                3 => *of_3,
                16 => *of_16,
                _ => *of_1024,
            };
            expect_eq(
                &format!("the partition of {key:?}, of {partitions},"),
                partition_of(&stream, event).await?,
                expected,
            )?;
        }
    }
    Ok(())
}

/// As the vectors, with keys that nobody chose.
pub(super) async fn any_key_goes_where_its_hash_says(t: Fixture) -> Outcome {
    let count = PartitionCount::new(7)?;
    let stream = t.stream(count.get()).await?;
    for _ in 0..20 {
        let length = 1 + t.random(40);
        let text: String = (0..length)
            .filter_map(|_| char::from_u32(u32::try_from(1 + t.random(0x2_ffff)).ok()?))
            .chain(['k'])
            .collect();
        let key = EventKey::new(text)?;
        let expected = count.partition_of(&key).number();
        for _ in 0..2 {
            let event = t.new_event().with_key(key.clone());
            expect_eq(
                &format!("the partition of {key:?}, of 7,"),
                partition_of(&stream, event).await?,
                expected,
            )?;
        }
    }
    Ok(())
}

/// Who gives a partition means it, e.g. to repeat a batch partition by partition.
pub(super) async fn a_given_partition_goes_before_the_key(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    for number in 0..3 {
        let event = t.new_event().with_key(EventKey::new("order-1")?);
        let event = event.with_partition(Partition::new(number));

        expect_eq("the partition", partition_of(&stream, event).await?, number)?;
    }
    Ok(())
}

/// Without a key, order is all over the stream: it must not depend on chance.
pub(super) async fn an_event_without_key_goes_to_partition_0(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    for _ in 0..4 {
        let event = t.new_event();
        expect_eq("the partition", partition_of(&stream, event).await?, 0)?;
    }
    Ok(())
}

/// Keys are of use without partitions too: for queries.
pub(super) async fn a_single_partition_takes_every_key(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for (key, ..) in PARTITION_TEST_VECTORS {
        let event = t.new_event().with_key(EventKey::new(key)?);
        expect_eq("the partition", partition_of(&stream, event).await?, 0)?;
    }
    Ok(())
}

/// Where an event goes must not depend on its neighbours.
pub(super) async fn a_batch_is_routed_as_single_events_are(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    let batch = vec![
        t.new_event(),
        t.new_event().with_key(EventKey::new("a")?),
        t.new_event().with_key(EventKey::new("order-1")?),
        t.new_event()
            .with_key(EventKey::new("a")?)
            .with_partition(P1),
        t.new_event(),
    ];
    let appended = t.backend.append_batch(&stream.name, batch).await?;

    let partitions: Vec<u32> = appended
        .iter()
        .map(|event| event.partition.number())
        .collect();
    expect_eq("the partitions", partitions, vec![0, 2, 1, 1, 0])
}

/// Partition 10 is neither partition 1 nor partition 0.
pub(super) async fn a_batch_finds_partitions_above_9(t: Fixture) -> Outcome {
    let count = PartitionCount::new(13)?;
    let stream = t.stream(count.get()).await?;
    let mut batch = Vec::new();
    for number in 0..26 {
        let key = EventKey::new(format!("customer:{number}"))?;
        batch.push(t.new_event().with_key(key));
        batch.push(t.new_event().with_partition(Partition::new(number % 13)));
    }
    let expected: Vec<Partition> = batch
        .iter()
        .map(|event| {
            let by_key = event.key.as_ref().map(|key| count.partition_of(key));
            event.partition.or(by_key).unwrap_or(P0)
        })
        .collect();
    let appended = stream.append_all(batch).await?;

    let seen = appended.iter().map(|event| event.partition).collect();
    expect_eq("the partitions", seen, expected)?;
    for partition in count.partitions() {
        let mut written = appended.clone();
        written.retain(|event| event.partition == partition);
        let what = format!("the log of partition {partition}");
        expect_eq(&what, stream.read(partition).await?, written)?;
    }
    Ok(())
}

/// Keys that begin alike are made to be spread by their end.
pub(super) async fn a_long_key_is_hashed_to_its_end(t: Fixture) -> Outcome {
    let count = PartitionCount::new(1_024)?;
    let stream = t.stream(count.get()).await?;
    for length in [32, 64, 128, 255, 256, 512, 1_023] {
        for last in ["1", "2"] {
            let key = EventKey::new("k".repeat(length) + last)?;
            let expected = count.partition_of(&key).number();
            let event = t.new_event().with_key(key);
            expect_eq(
                &format!("the partition of a key of {} bytes", length + 1),
                partition_of(&stream, event).await?,
                expected,
            )?;
        }
    }
    Ok(())
}

/// An event in a partition that does not exist would never be delivered.
pub(super) async fn a_partition_out_of_range_is_refused(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for number in [1, 1_024, u32::MAX] {
        let event = t.new_event().with_key(EventKey::new("order-1")?);
        let event = event.with_partition(Partition::new(number));

        let result = t.backend.append(&stream.name, event).await;
        expect_invalid(result, "partition")?;
    }
    expect_empty("event in the log", &stream.read(P0).await?)
}
