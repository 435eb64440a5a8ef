//! Appends that end a wait which has begun.

use rheo_core::{Backend, EventKey, Guarantee, Partition};

use super::ends_the_wait;
use crate::expect::Outcome;
use crate::fixture::Fixture;

/// Alone or in a batch, by its key or to any partition: an event is work.
pub(super) async fn any_kind_of_append_ends_the_wait(t: Fixture) -> Outcome {
    let declared = t.capabilities();
    let partitions = match declared.guarantees(Guarantee::Partitions) {
        true => 3,
        false => 1,
    };
    let group = t.stream(partitions).await?.group("billing").await?;
    let stream = &group.stream;
    let in_batch = match declared.guarantees(Guarantee::BatchWrites) {
        true => 2,
        false => 1,
    };
    let last = || t.new_event().with_partition(Partition::new(partitions - 1));
    // A batch to one partition; a key that is in neither the first nor the last of three.
    let batch = (0..in_batch).map(|_| last()).collect();
    let keyed = t.new_event().with_key(EventKey::new("order-1")?);

    let batched = async {
        let appended = t.backend.append_batch(&stream.name, batch).await;
        Ok(appended.map(drop)?)
    };
    ends_the_wait(&group, batched).await?;
    group.ack(&group.fetch_all("a").await?).await?;
    for event in [keyed, last()] {
        ends_the_wait(&group, async { stream.append_event(event).await.map(drop) }).await?;
        group.ack(&group.fetch_all("a").await?).await?;
    }
    Ok(())
}

/// A consumer waits, works and waits again, all day.
pub(super) async fn every_append_ends_the_wait_that_follows_the_last(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    group.ack(&[group.fetch_one("a").await?]).await?;
    for _ in 0..3 {
        let appended = async { group.stream.append(1).await.map(drop) };
        ends_the_wait(&group, appended).await?;
        group.ack(&[group.fetch_one("a").await?]).await?;
    }
    Ok(())
}
