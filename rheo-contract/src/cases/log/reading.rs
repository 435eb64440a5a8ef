//! Reading a partition.

use rheo_core::{Backend, ErrorKind, ReadOptions, Sequence, StreamName};
use serde_json::json;

use crate::bulk::long_event;
use crate::expect::{Outcome, expect_eq, expect_error};
use crate::fixture::{Fixture, new_event};
use crate::scene::{FAR, P0, P1, Stream, sequences};

async fn read(stream: &Stream, options: &ReadOptions) -> Outcome<Vec<u64>> {
    Ok(sequences(
        &stream.backend.read(&stream.name, options).await?,
    ))
}

/// Who reads on gives the last sequence it has, and wants neither a gap nor a repeat.
pub(super) async fn a_read_gives_what_is_above_after(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let of_nothing = read(&stream, &ReadOptions::new()).await?;
    expect_eq("what an empty partition holds", of_nothing, vec![])?;
    stream.append(4).await?;

    for (after, expected) in [
        (0, vec![1, 2, 3, 4]),
        (1, vec![2, 3, 4]),
        (3, vec![4]),
        (4, vec![]),
        (5, vec![]),
        (1 << 40, vec![]),
        (Sequence::MAX.get(), vec![]),
    ] {
        let options = ReadOptions::new().with_after(Sequence::new(after)?);
        expect_eq(
            &format!("the sequences above {after}"),
            read(&stream, &options).await?,
            expected,
        )?;
    }
    for far in FAR {
        let options = ReadOptions::new().with_after(Sequence::new(far)?);
        let what = format!("the sequences above {far}");
        expect_eq(&what, read(&stream, &options).await?, vec![])?;
    }
    Ok(())
}

/// A page that is short, though more is there, looks like the end of the log.
pub(super) async fn a_read_gives_up_to_limit(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(4).await?;
    let after = ReadOptions::new().with_after(Sequence::new(1)?);

    for (limit, expected) in [
        (0, vec![]),
        (1, vec![2]),
        (2, vec![2, 3]),
        (3, vec![2, 3, 4]),
        (4, vec![2, 3, 4]),
        (u32::MAX, vec![2, 3, 4]),
    ] {
        expect_eq(
            &format!("the first {limit} sequences above 1"),
            read(&stream, &after.clone().with_limit(limit)).await?,
            expected,
        )?;
    }
    Ok(())
}

/// The default is the same on every backend.
pub(super) async fn a_read_gives_100_unless_told(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(102).await?;

    let by_default = read(&stream, &ReadOptions::new()).await?;
    expect_eq("the sequences", by_default, (1..=100).collect())?;
    let all = read(&stream, &ReadOptions::new().with_limit(101)).await?;
    expect_eq("the sequences", all, (1..=101).collect())
}

/// Who rebuilds a state reads in large steps; a short one looks like the end.
pub(super) async fn a_read_gives_1500_events(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let batch = vec![new_event("order.placed", json!({})); 1_500];
    stream.append_all(batch).await?;

    let all = ReadOptions::new().with_limit(1_500);
    let seen = read(&stream, &all).await?;
    expect_eq("the sequences", seen, (1..=1_500).collect())?;
    let rest = all.with_after(Sequence::new(300)?);
    let seen = read(&stream, &rest).await?;
    expect_eq("the sequences above 300", seen, (301..=1_500).collect())?;
    let some = ReadOptions::new().with_after(Sequence::new(1_401)?);
    let seen = read(&stream, &some.with_limit(5)).await?;
    expect_eq("five sequences above 1401", seen, (1_402..=1_406).collect())
}

/// The limit counts events, whatever they weigh.
pub(super) async fn a_read_gives_3_megabytes(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let event = long_event(&t)?;
    stream.append_all(vec![event; 6]).await?;

    let seen = read(&stream, &ReadOptions::new()).await?;
    expect_eq("the sequences of long events", seen, (1..=6).collect())
}

/// Sequences are the same in every partition; the events are not.
pub(super) async fn a_read_is_of_one_partition(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;
    let zero = stream.append_to(P0, 2).await?;
    let one = stream.append_to(P1, 3).await?;

    let by_default = t.backend.read(&stream.name, &ReadOptions::new()).await?;
    expect_eq("partition 0, the default", by_default, zero)?;
    let options = ReadOptions::new().with_partition(P1);
    let of_one = t.backend.read(&stream.name, &options).await?;
    expect_eq("partition 1", of_one, one)?;
    let options = ReadOptions::new().with_partition(rheo_core::Partition::new(2));
    expect_eq("partition 2", read(&stream, &options).await?, vec![])
}

/// A wrong name must not look like a stream without news.
pub(super) async fn reading_a_missing_stream_is_an_error(t: Fixture) -> Outcome {
    let missing = StreamName::new("missing")?;

    for limit in [100, 0] {
        let options = ReadOptions::new().with_limit(limit);
        let result = t.backend.read(&missing, &options).await;
        expect_error(result, ErrorKind::StreamNotFound)?;
    }
    Ok(())
}
