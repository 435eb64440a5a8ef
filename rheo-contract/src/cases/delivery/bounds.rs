//! How much a group may have open.

use rheo_core::{Backend, Guarantee, Lease, NewEvent};

use super::options;
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::scene::{Stream, sequences_of};

/// What every backend takes, in one partition.
const OPEN: usize = 10_000;

/// Workers in great numbers, or one that collects: what is handed out is bounded by what is there.
pub(super) async fn ten_thousand_events_may_be_open(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    append_many(&stream, OPEN + 1).await?;
    let group = stream.group("billing").await?;
    let fetch = options("a")?;
    let mut leases: Vec<Lease> = Vec::with_capacity(OPEN);
    while leases.len() < OPEN {
        let missing = u32::try_from((OPEN - leases.len()).min(2_000)).unwrap_or(u32::MAX);
        let fetched = group.fetch_with(&fetch.clone().with_limit(missing)).await?;
        if fetched.is_empty() {
            break;
        }
        leases.extend(fetched);
    }

    expect_eq("the number of open leases", leases.len(), OPEN)?;
    let in_order = (1..).zip(sequences_of(&leases));
    let is_in_order = in_order
        .into_iter()
        .all(|(expected, seen)| expected == seen);
    expect_eq("whether they are in order", is_in_order, true)?;
    for lease in [&leases[0], &leases[OPEN / 2], &leases[OPEN - 1]] {
        t.backend.ack(lease).await?;
    }
    group.expect_claimable("b", &[OPEN as u64 + 1]).await?;
    Ok(())
}

/// Appends small events, in batches where the backend has them.
async fn append_many(stream: &Stream, count: usize) -> Outcome {
    let declared = stream.backend.capabilities();
    let most = match declared.guarantees(Guarantee::BatchWrites) {
        true => declared
            .limits()
            .batch_events
            .map_or(1_000, |most| most.min(1_000)),
        false => 1,
    };
    let mut left = count;
    while left > 0 {
        let size = left.min(most);
        let mut batch: Vec<NewEvent> = (0..size).map(|_| stream.t.new_event()).collect();
        match batch.len() {
            1 => drop(stream.append_event(batch.remove(0)).await?),
            _ => drop(stream.backend.append_batch(&stream.name, batch).await?),
        }
        left -= size;
    }
    Ok(())
}
