//! Running contenders in turns, and printing medians and ratios.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use crate::bed::Bed;

/// How long and how often.
pub(crate) struct Plan {
    wanted: Vec<String>,
    pub(crate) seconds: f64,
    repetitions: usize,
    pub(crate) history: u64,
    pub(crate) snapshot: f64,
}

/// Something that is measured.
pub(crate) struct Contender {
    pub(crate) name: String,
    /// Makes ready for one repetition; not measured.
    pub(crate) prepare: Box<dyn Fn() -> BoxFuture<'static, ()>>,
    /// One round of one worker; gives how many events it was about.
    pub(crate) step: Step,
}

pub(crate) type Step = Arc<dyn Fn(usize) -> BoxFuture<'static, u64> + Send + Sync>;

/// What one repetition gave.
#[derive(Clone, Copy)]
struct Figures {
    events_per_second: f64,
    wal_per_event: f64,
    /// There was nothing left to do before the end, so that the figures are too low.
    ran_dry: bool,
}

impl Plan {
    pub(crate) fn from_env(wanted: Vec<String>) -> Self {
        fn number<T: std::str::FromStr>(name: &str, default: T) -> T {
            let given = std::env::var(name).ok();
            given.map_or(default, |text| {
                text.parse()
                    .unwrap_or_else(|_| panic!("{name} is {text}, allowed is a number"))
            })
        }
        Self {
            wanted,
            seconds: number("RHEO_BENCH_SECONDS", 1.5),
            repetitions: number("RHEO_BENCH_REPETITIONS", 5),
            history: number("RHEO_BENCH_HISTORY", 1_000_000),
            snapshot: number("RHEO_BENCH_SNAPSHOT", 40.0),
        }
    }

    pub(crate) fn wants(&self, table: &str) -> bool {
        self.wanted.is_empty()
            || self
                .wanted
                .iter()
                .any(|wanted| table.contains(wanted.as_str()))
    }

    /// Whether a table whose name begins like one of these may be wanted.
    pub(crate) fn may_want(&self, names: &[&str]) -> bool {
        let may = |wanted: &String| {
            let is_part = |name: &&str| name.contains(wanted.as_str()) || wanted.contains(name);
            names.iter().any(is_part)
        };
        self.wanted.is_empty() || self.wanted.iter().any(may)
    }

    /// Measures contenders in turns with that many workers each, and prints a table.
    pub(crate) async fn table(
        &self,
        bed: &Bed,
        title: &str,
        workers: usize,
        contenders: &[Contender],
    ) {
        if !self.wants(title) {
            return;
        }
        let mut figures: Vec<Vec<Figures>> = contenders.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.repetitions {
            for (contender, figures) in contenders.iter().zip(&mut figures) {
                (contender.prepare)().await;
                let duration = Duration::from_secs_f64(self.seconds);
                figures.push(run(bed, workers, duration, &contender.step).await);
            }
        }
        println!(
            "\n{title}, {workers} worker{}",
            if workers == 1 { "" } else { "s" }
        );
        let base = median(figures[0].iter().map(|f| f.events_per_second));
        for (contender, figures) in contenders.iter().zip(&figures) {
            let speed = median(figures.iter().map(|f| f.events_per_second));
            let wal = median(figures.iter().map(|f| f.wal_per_event));
            let note = match figures.iter().any(|f| f.ran_dry) {
                true => ", too low: it ran dry, set RHEO_BENCH_SECONDS lower",
                false => "",
            };
            println!(
                "  {:44} {speed:>10.0} events/s {:>6.2} {wal:>7.0} WAL bytes/event{note}",
                contender.name,
                speed / base
            );
        }
    }

    /// Measures each contender for a while, then with a transaction open elsewhere in the database,
    /// near the end of its time; prints what is left of the speed.
    pub(crate) async fn with_old_snapshot(
        &self,
        bed: &Bed,
        title: &str,
        workers: usize,
        contenders: &[Contender],
    ) {
        if !self.wants(title) {
            return;
        }
        let tenth = Duration::from_secs_f64(self.snapshot / 10.0);
        println!("\n{title}, {workers} workers, open for {} s", self.snapshot);
        for contender in contenders {
            (contender.prepare)().await;
            let before = run(bed, workers, tenth, &contender.step).await;
            let mut idle = bed.connection().await;
            let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class";
            let begun = sqlx::raw_sql(begin).execute(&mut idle).await;
            begun.expect("begun");
            run(bed, workers, tenth * 9, &contender.step).await;
            let end = run(bed, workers, tenth, &contender.step).await;
            drop(idle);
            println!(
                "  {:44} {:>10.0} events/s, then {:>10.0}: {:.2}",
                contender.name,
                before.events_per_second,
                end.events_per_second,
                end.events_per_second / before.events_per_second
            );
        }
    }
}

async fn run(bed: &Bed, workers: usize, duration: Duration, step: &Step) -> Figures {
    let mut watching = bed.connection().await;
    let mut wal = async || -> i64 {
        sqlx::query_scalar("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
            .fetch_one(&mut watching)
            .await
            .expect("told")
    };
    let wal_before = wal().await;
    let begin = Instant::now();
    let deadline = begin + duration;
    let tasks: Vec<_> = (0..workers)
        .map(|worker| {
            let step = Arc::clone(step);
            tokio::spawn(async move {
                let (mut events, mut ran_dry) = (0, false);
                while Instant::now() < deadline {
                    let step = step(worker).await;
                    ran_dry |= step == 0;
                    events += step;
                }
                (events, ran_dry)
            })
        })
        .collect();
    let (mut events, mut ran_dry) = (0, false);
    for task in tasks {
        let (its, dry) = task.await.expect("ran to its end");
        events += its;
        ran_dry |= dry;
    }
    let elapsed = begin.elapsed();
    let events = events as f64;
    Figures {
        events_per_second: events / elapsed.as_secs_f64(),
        wal_per_event: (wal().await - wal_before) as f64 / events.max(1.0),
        ran_dry,
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// For contenders that need nothing made ready.
pub(crate) fn nothing() -> Box<dyn Fn() -> BoxFuture<'static, ()>> {
    Box::new(|| Box::pin(async {}))
}
