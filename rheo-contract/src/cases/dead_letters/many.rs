//! More dead letters than fit any page.

use rheo_core::Partition;
use serde_json::json;

use super::expect_pages;
use crate::expect::Outcome;
use crate::fixture::{Fixture, new_event};
use crate::scene::Stream;
use crate::step::Step;

/// Limits above what is the default, and above what some store gives in a page of its own.
const LIMITS: [u32; 4] = [130, 500, 1_001, 1_203];

/// Rejects so many events of each partition; demands all of them in pages of every limit.
async fn expect_all_dead(stream: &Stream, counts: &[u64]) -> Outcome {
    let mut expected: Vec<(u32, u64)> = Vec::new();
    for (partition, count) in (0..).zip(counts) {
        expected.extend((1..=*count).map(|sequence| (partition, sequence)));
    }
    let event = |(partition, _): &(u32, u64)| {
        new_event("order.placed", json!({})).with_partition(Partition::new(*partition))
    };
    stream
        .append_all(expected.iter().map(event).collect())
        .await?;
    let group = stream.group("billing").await?;
    let leases = group.fetch_exactly("a", expected.len()).await?;
    for rejected in Step::Reject.on_all(&stream.backend, &leases).await {
        rejected?;
    }

    for limit in LIMITS {
        let mut pages: Vec<&[(u32, u64)]> = expected.chunks(limit as usize).collect();
        pages.push(&[]);
        expect_pages(&group, limit, &pages).await?;
    }
    Ok(())
}

/// After a bad day there are more than anybody thought of.
pub(super) async fn more_than_a_thousand_dead_letters_join_up(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;

    expect_all_dead(&stream, &[1_203]).await
}

/// A page ends where its limit is, not where a partition is.
pub(super) async fn more_than_a_thousand_dead_letters_join_up_across_partitions(
    t: Fixture,
) -> Outcome {
    let stream = t.stream(4).await?;

    expect_all_dead(&stream, &[152, 1_010, 0, 41]).await
}
