//! Appending: how near to a plain INSERT, on one partition and on many, and what sending together
//! gives.

use crate::bed::Bed;
use crate::measure::Plan;
use crate::ours::{self, Target};
use crate::{pgmq, raw};

pub(crate) async fn tables(plan: &Plan, bed: &Bed) {
    if !plan.may_want(&["append batches of", "coalesce single appends"]) {
        return;
    }
    let (stream, _) = bed.stream("appended").await;
    let backend = bed.backend(|config| config);
    pgmq::install(bed).await;
    for batch in [1, 100, 1_000] {
        for workers in [1, 8] {
            let ours = |name, target| ours::append(name, &backend, &stream, batch, target);
            let contenders = [
                raw::insert(bed, batch, true).await,
                raw::insert(bed, batch, false).await,
                ours("append, spread", Target::Spread),
                ours("append, one hot partition", Target::Hot),
                ours("append, by key", Target::Keyed),
                pgmq::send(bed, batch).await,
            ];
            let title = format!("append batches of {batch}");
            plan.table(bed, &title, workers, &contenders).await;
        }
    }
    let alone = bed.backend(|config| config.with_coalescing(false).with_max_connections(64));
    let contenders = [
        ours::append("one by one", &alone, &stream, 1, Target::Hot),
        ours::append("sent together", &backend, &stream, 1, Target::Hot),
    ];
    let title = "coalesce single appends on one hot partition";
    plan.table(bed, title, 64, &contenders).await;
}
