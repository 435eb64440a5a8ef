//! What appending and consuming cost, beside plain inserts and a document per delivery, in one run on
//! one server.
//!
//! `RHEO_MONGO_URL` names the server; everything happens in a database of its own, which is dropped
//! at the end. Each line is the median of several repetitions, in which all contenders of a table take
//! turns; its ratio is to the table's first line. Arguments choose tables by their names.
//!
//! Variables: `RHEO_BENCH_SECONDS` for one repetition of one contender (default 1.5),
//! `RHEO_BENCH_REPETITIONS` (default 5), `RHEO_BENCH_HISTORY` for the long history (default 500,000
//! events).

mod bed;
mod measure;
mod ours;
mod raw;
mod textbook;

use bed::{Bed, PARTITIONS};
use measure::Plan;
use ours::Target;

/// Events that are there to be consumed, over all partitions.
const BACKLOG: u64 = 160_000;
const SHORT_HISTORY: u64 = 10_000;
const HISTORY: &str = "history: consume 100 after a short and a long one";

#[tokio::main]
async fn main() {
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let plan = Plan::from_env(wanted);
    let bed = Bed::new().await;
    println!("{}", bed.server().await);
    append(&plan, &bed).await;
    consume(&plan, &bed).await;
    bed.drop().await;
}

async fn append(plan: &Plan, bed: &Bed) {
    if !plan.may_want(&["append batches of"]) {
        return;
    }
    let (stream, _) = bed.stream("appended").await;
    for batch in [1, 100, 1_000] {
        for workers in [1, 4, 8] {
            let ours = |name, target| ours::append(name, &bed.backend, &stream, batch, target);
            let contenders = [
                raw::insert(bed, batch).await,
                ours("append, spread", Target::Spread),
                ours("append, one hot partition", Target::Hot),
                ours("append, by key", Target::Keyed),
            ];
            let title = format!("append batches of {batch}");
            plan.table(&title, workers, &contenders).await;
        }
    }
}

async fn consume(plan: &Plan, bed: &Bed) {
    if !plan.may_want(&["consume", "history"]) {
        return;
    }
    let partitions = u64::from(PARTITIONS);
    let short = bed.stream("short").await;
    let history = SHORT_HISTORY / partitions;
    bed.fill(&short.0, history + BACKLOG / partitions).await;
    for (limit, workers) in [(100, 1), (100, 4), (100, 8), (10, 4), (1, 4)] {
        let contenders = [
            textbook::consume(bed, u64::from(limit)).await,
            ours::consume("fetch + ack_batch", &bed.backend, &short, history, limit),
        ];
        plan.table(&format!("consume {limit}"), workers, &contenders)
            .await;
    }
    if plan.may_want(&["history"]) {
        let long = bed.stream("long").await;
        let events = plan.history / partitions;
        bed.fill(&long.0, events + BACKLOG / partitions).await;
        bed.ack(&long, plan.history).await;
        let contenders = [
            ours::consume("10,000 acked", &bed.backend, &short, history, 100),
            ours::consume("the long history acked", &bed.backend, &long, events, 100),
        ];
        plan.table(HISTORY, 4, &contenders).await;
        let contenders = [
            ours::append(
                "append 100 to a short log",
                &bed.backend,
                &short.0,
                100,
                Target::Spread,
            ),
            ours::append(
                "append 100 to a long log",
                &bed.backend,
                &long.0,
                100,
                Target::Spread,
            ),
        ];
        plan.table("history: append 100", 4, &contenders).await;
    }
}
