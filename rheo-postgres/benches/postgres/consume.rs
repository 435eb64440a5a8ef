//! Consuming: how near to a plain read, and what history, work in flight and an old snapshot cost.

use std::sync::Arc;
use std::time::Duration;

use rheo_core::{Backend, ConsumerId, FetchOptions, LeaseDuration};

use crate::bed::{Bed, PARTITIONS};
use crate::measure::Plan;
use crate::ours::{self, Ack, Target};
use crate::{pgmq, raw, textbook};

/// Events that are there to be consumed, over all partitions.
const BACKLOG: u64 = 160_000;
const SHORT_HISTORY: u64 = 10_000;
const IN_FLIGHT: u32 = 16_000;

pub(crate) async fn tables(plan: &Plan, bed: &Bed) {
    if !plan.may_want(&["consume", "history", "in flight", "snapshot"]) {
        return;
    }
    // The contenders keep it for as long as they live.
    let bed = &Arc::new(bed.again());
    let backend = bed.backend(|config| config);
    pgmq::install(bed).await;
    let short = bed.stream("short").await;
    let partitions = u64::from(PARTITIONS);
    let history = SHORT_HISTORY / partitions;
    bed.fill("short", history + BACKLOG / partitions).await;

    for (limit, workers) in [(100, 1), (100, 4), (100, 8), (1, 1), (1, 8)] {
        let consume = |name, ack| ours::consume(name, &backend, &short, history, limit, ack);
        let by = limit.cast_signed();
        let contenders = [
            raw::floor(bed, "short", by.into()).await,
            consume("fetch + ack_batch", Ack::Batch),
            consume("fetch + single acks", Ack::Single),
            textbook::consume(bed, "short", history, by.into()).await,
            pgmq::consume(bed, true, SHORT_HISTORY, BACKLOG, by).await,
            pgmq::consume(bed, false, SHORT_HISTORY, BACKLOG, by).await,
        ];
        let title = format!("consume {limit}");
        plan.table(bed, &title, workers, &contenders).await;
    }

    let title = "in flight: consume 100 with many leases open";
    if plan.wants(title) {
        let busy = bed.stream("busy").await;
        bed.fill("busy", BACKLOG / partitions).await;
        let hours = LeaseDuration::new(Duration::from_secs(36_000)).expect("allowed");
        let slow = FetchOptions::new(ConsumerId::new("slow").expect("allowed"))
            .with_lease_duration(hours)
            .with_limit(10);
        for _ in 0..IN_FLIGHT / 10 {
            let leases = backend.fetch(&busy.0, &busy.1, &slow).await;
            assert_eq!(leases.expect("fetched").len(), 10);
        }
        let open = u64::from(IN_FLIGHT) / partitions;
        let contenders = [
            ours::consume("none in flight", &backend, &short, history, 100, Ack::Batch),
            ours::consume("16,000 in flight", &backend, &busy, open, 100, Ack::Batch),
        ];
        plan.table(bed, title, 4, &contenders).await;
    }

    let title = "history: consume 100 after a short and a long one";
    if plan.wants(title) {
        let long = bed.stream("long").await;
        let events = plan.history / partitions;
        bed.fill("long", events + BACKLOG / partitions).await;
        let all =
            FetchOptions::new(ConsumerId::new("bench").expect("allowed")).with_limit(u32::MAX);
        let mut acked = 0;
        while acked < plan.history {
            let leases = backend.fetch(&long.0, &long.1, &all).await;
            let leases = leases.expect("fetched");
            acked += leases.len() as u64;
            for result in backend.ack_batch(&leases).await {
                result.expect("acked");
            }
        }
        let contenders = [
            ours::consume("10,000 acked", &backend, &short, history, 100, Ack::Batch),
            ours::consume(
                "the long history acked",
                &backend,
                &long,
                events,
                100,
                Ack::Batch,
            ),
            textbook::consume(bed, "short", history, 100).await,
            textbook::consume(bed, "long", events, 100).await,
            pgmq::consume(bed, true, SHORT_HISTORY, BACKLOG, 100).await,
            pgmq::consume(bed, true, plan.history, BACKLOG, 100).await,
        ];
        plan.table(bed, title, 4, &contenders).await;
    }

    let contenders = [
        raw::floor(bed, "short", 1).await,
        ours::consume("fetch 1 + ack", &backend, &short, history, 1, Ack::Batch),
        ours::append("append 1, spread", &backend, &short.0, 1, Target::Spread),
        textbook::consume(bed, "short", history, 1).await,
        pgmq::consume(bed, true, SHORT_HISTORY, BACKLOG, 1).await,
    ];
    let title = "snapshot: with an old transaction elsewhere in the database";
    plan.with_old_snapshot(bed, title, 4, &contenders).await;
}
