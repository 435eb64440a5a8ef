//! Running contenders in turns, and printing medians and ratios.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

/// How long and how often.
pub(crate) struct Plan {
    wanted: Vec<String>,
    seconds: f64,
    repetitions: usize,
    pub(crate) history: u64,
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
            history: number("RHEO_BENCH_HISTORY", 500_000),
        }
    }

    pub(crate) fn wants(&self, table: &str) -> bool {
        let is_wanted = |wanted: &String| table.contains(wanted.as_str());
        self.wanted.is_empty() || self.wanted.iter().any(is_wanted)
    }

    /// Measures contenders in turns with that many workers each, and prints a table.
    pub(crate) async fn table(&self, title: &str, workers: usize, contenders: &[Contender]) {
        if !self.wants(title) {
            return;
        }
        let mut figures: Vec<Vec<f64>> = contenders.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.repetitions {
            for (contender, figures) in contenders.iter().zip(&mut figures) {
                (contender.prepare)().await;
                let duration = Duration::from_secs_f64(self.seconds);
                figures.push(run(workers, duration, &contender.step).await);
            }
        }
        let plural = if workers == 1 { "" } else { "s" };
        println!("\n{title}, {workers} worker{plural}");
        let medians: Vec<f64> = figures.into_iter().map(median).collect();
        for (contender, speed) in contenders.iter().zip(&medians) {
            let ratio = speed / medians[0];
            println!(
                "  {:44} {speed:>10.0} events/s {ratio:>7.2}",
                contender.name
            );
        }
    }
}

/// Events per second.
async fn run(workers: usize, duration: Duration, step: &Step) -> f64 {
    let begin = Instant::now();
    let deadline = begin + duration;
    let tasks: Vec<_> = (0..workers)
        .map(|worker| {
            let step = Arc::clone(step);
            tokio::spawn(async move {
                let mut events = 0;
                while Instant::now() < deadline {
                    events += step(worker).await;
                }
                events
            })
        })
        .collect();
    let mut events = 0;
    for task in tasks {
        events += task.await.expect("ran to its end");
    }
    events as f64 / begin.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// For contenders that need nothing made ready.
pub(crate) fn nothing() -> Box<dyn Fn() -> BoxFuture<'static, ()>> {
    Box::new(|| Box::pin(async {}))
}
