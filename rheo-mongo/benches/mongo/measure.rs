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
    /// One round of one worker; gives how many events it was about, or nothing where none were left.
    pub(crate) step: Step,
}

pub(crate) type Step = Arc<dyn Fn(usize) -> BoxFuture<'static, Option<u64>> + Send + Sync>;

/// What one repetition gave.
#[derive(Clone, Copy)]
struct Figures {
    events_per_second: f64,
    /// There was nothing left to do before the end, so that the figure is too low.
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
            history: number("RHEO_BENCH_HISTORY", 500_000),
        }
    }

    pub(crate) fn wants(&self, table: &str) -> bool {
        let is_wanted = |wanted: &String| table.contains(wanted.as_str());
        self.wanted.is_empty() || self.wanted.iter().any(is_wanted)
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
    pub(crate) async fn table(&self, title: &str, workers: usize, contenders: &[Contender]) {
        if !self.wants(title) {
            return;
        }
        let mut figures: Vec<Vec<Figures>> = contenders.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.repetitions {
            for (contender, figures) in contenders.iter().zip(&mut figures) {
                (contender.prepare)().await;
                let duration = Duration::from_secs_f64(self.seconds);
                figures.push(run(workers, duration, &contender.step).await);
            }
        }
        let plural = if workers == 1 { "" } else { "s" };
        println!("\n{title}, {workers} worker{plural}");
        let base = median(&figures[0]);
        for (contender, figures) in contenders.iter().zip(&figures) {
            let speed = median(figures);
            let note = match figures.iter().any(|f| f.ran_dry) {
                true => ", too low: it ran dry, set RHEO_BENCH_SECONDS lower",
                false => "",
            };
            println!(
                "  {:44} {speed:>10.0} events/s {:>7.2}{note}",
                contender.name,
                speed / base
            );
        }
    }
}

async fn run(workers: usize, duration: Duration, step: &Step) -> Figures {
    let begin = Instant::now();
    let deadline = begin + duration;
    let tasks: Vec<_> = (0..workers)
        .map(|worker| {
            let step = Arc::clone(step);
            tokio::spawn(async move {
                let (mut events, mut ran_dry) = (0, false);
                while Instant::now() < deadline {
                    let step = step(worker).await;
                    ran_dry |= step.is_none();
                    events += step.unwrap_or_default();
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
    Figures {
        events_per_second: events as f64 / begin.elapsed().as_secs_f64(),
        ran_dry,
    }
}

fn median(figures: &[Figures]) -> f64 {
    let mut values: Vec<f64> = figures.iter().map(|f| f.events_per_second).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// For contenders that need nothing made ready.
pub(crate) fn nothing() -> Box<dyn Fn() -> BoxFuture<'static, ()>> {
    Box::new(|| Box::pin(async {}))
}
