//! No partition starves.

use std::collections::BTreeSet;

use rheo_core::{Lease, Partition, Partitions};

use super::{filled, options};
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;
use crate::step::Step;

/// The partitions that fetches served, and whether they are all.
#[derive(Default)]
struct Served(BTreeSet<u32>);

impl Served {
    fn note(&mut self, leases: &[Lease]) {
        let partitions = leases.iter().map(|lease| lease.event.partition.number());
        self.0.extend(partitions);
    }

    fn expect(self, partitions: &[u32]) -> Outcome {
        let fetches = 2 * partitions.len();
        let what = format!("the partitions served by {fetches} fetches");
        expect_eq(&what, self.0, partitions.iter().copied().collect())
    }
}

/// Many events everywhere; one at a time, and several.
pub(super) async fn every_partition_is_served(t: Fixture) -> Outcome {
    let stream = filled(&t, 3, 25).await?;
    for limit in [1, 4] {
        let group = stream.group(&format!("of-{limit}")).await?;
        let mut served = Served::default();
        for _ in 0..6 {
            let leases = group.fetch_with(&options("a")?.with_limit(limit)).await?;
            served.note(&leases);
        }

        served.expect(&[0, 1, 2])?;
    }
    Ok(())
}

/// One customer's partition never runs dry, and the others still get their turn.
pub(super) async fn a_busy_partition_starves_no_other(t: Fixture) -> Outcome {
    for busy in (0..3).map(Partition::new) {
        let stream = filled(&t, 3, 8).await?;
        stream.append_to(busy, 20).await?;
        let group = stream.group("billing").await?;
        let mut served = Served::default();
        for _ in 0..6 {
            let leases = group.fetch_with(&options("a")?).await?;
            served.note(&leases);
            group.ack(&leases).await?;
            stream.append_to(busy, 2).await?;
        }

        served.expect(&[0, 1, 2])?;
    }
    Ok(())
}

/// An event that fails at once, each time, is claimable all the time.
pub(super) async fn a_retried_event_starves_no_other_partition(t: Fixture) -> Outcome {
    let stream = filled(&t, 3, 8).await?;
    let group = stream.group_of_attempts("billing", 100).await?;
    let mut served = Served::default();
    for _ in 0..6 {
        let leases = group.fetch_with(&options("a")?).await?;
        served.note(&leases);
        for lease in &leases {
            Step::Retry.on(&t.backend, lease).await?;
        }
    }

    served.expect(&[0, 1, 2])
}

/// A worker that serves two of four partitions.
pub(super) async fn every_selected_partition_is_served(t: Fixture) -> Outcome {
    let stream = filled(&t, 4, 20).await?;
    for selected in [[0, 1], [1, 3], [2, 3]] {
        let group = stream.group(&format!("of-{selected:?}")).await?;
        let selection = Partitions::only(selected.map(Partition::new));
        let fetch = options("a")?.with_partitions(selection);
        let mut served = Served::default();
        for _ in 0..4 {
            served.note(&group.fetch_with(&fetch).await?);
        }

        served.expect(&selected)?;
    }
    Ok(())
}
