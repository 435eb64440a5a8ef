//! What appending and consuming cost, beside raw SQL, the textbook design and pgmq, in one run on one
//! server.
//!
//! `RHEO_POSTGRES_URL` names the server; everything happens in a database of its own, which is dropped
//! at the end. Each line is the median of several repetitions, in which all contenders of a table take
//! turns; its ratio is to the table's first line. Arguments choose tables by their names.
//!
//! Variables: `RHEO_BENCH_SECONDS` for one repetition of one contender (default 1.5),
//! `RHEO_BENCH_REPETITIONS` (default 5), `RHEO_BENCH_HISTORY` for the long history (default 1,000,000
//! events), `RHEO_BENCH_SNAPSHOT` for how many seconds a transaction stays open (default 40).

mod append;
mod bed;
mod consume;
mod measure;
mod ours;
mod pgmq;
mod raw;
mod textbook;

use bed::Bed;
use measure::Plan;

#[tokio::main]
async fn main() {
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let plan = Plan::from_env(wanted);
    let bed = Bed::new().await;
    println!("PostgreSQL {}", bed.server_version().await);
    append::tables(&plan, &bed).await;
    consume::tables(&plan, &bed).await;
    bed.drop().await;
}
