//! Calls at once that ask for different things: each is answered for itself, whatever is under way.

mod looks;
mod settles;
mod writes;

use std::pin::Pin;
use std::sync::Arc;

use rheo_core::{
    Backend, ConsumerId, DeadLetter, Event, FetchOptions, Gate, Guarantee, Lease, LeaseDuration,
    Partition,
};
use tokio::sync::Barrier;

use crate::expect::Outcome;
use crate::fixture::Fixture;
use crate::recorder::Recorder;
use crate::scene::{Group, P0, Stream};

/// How many rounds there are of each kind.
const ROUNDS: usize = 5;
/// How many calls a round has at most.
const MOST: usize = 16;
/// What the groups have rejected before a round, each for reasons of its own.
const REJECTED: usize = 2;
/// How long the leases of a round last: longer than anything in it.
const DAY: u64 = 24 * 3_600;

/// A call, and what it demands of its answer.
type Ask = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A call as one of many.
fn ask(call: impl Future<Output = Outcome> + Send + 'static) -> Ask {
    Box::pin(call)
}

/// Requests that are put together, or answered from one that is under way, must differ in nothing.
pub(super) async fn calls_at_once_are_answered_each_for_itself(t: Fixture) -> Outcome {
    let mut handles = vec![t.backend.clone()];
    if Gate::Guarantee(Guarantee::Distributed).is_declared(&t.capabilities()) {
        handles.push(t.second_handle().await?);
    }
    for round in 0..t.budget().times(ROUNDS) {
        let handles = &handles[..1 + round % handles.len()];
        Scene::new(&t, handles).await?.look().await?;
        Scene::new(&t, handles).await?.wait().await?;
        Scene::new(&t, handles).await?.claim().await?;
        Scene::new(&t, handles).await?.settle().await?;
        Scene::new(&t, handles).await?.append().await?;
        Scene::new(&t, handles).await?.make_groups().await?;
    }
    Ok(())
}

/// Two streams with two groups each, no two of which are alike.
struct Scene {
    t: Fixture,
    handles: Vec<Recorder>,
    partitions: u32,
    /// The logs of the streams, by partition.
    logs: Vec<(Stream, Vec<Vec<Event>>)>,
    groups: Vec<Progress>,
}

/// What a group has done: acked the first events of partition 0, and rejected the next two.
#[derive(Clone)]
struct Progress {
    group: Group,
    /// The place of its stream.
    stream: usize,
    acked: Vec<Lease>,
    dead: Vec<DeadLetter>,
}

impl Progress {
    /// How many events of partition 0 it is done with.
    fn done(&self) -> usize {
        self.acked.len() + REJECTED
    }
}

impl Scene {
    async fn new(t: &Fixture, handles: &[Recorder]) -> Outcome<Self> {
        t.forget_history();
        let partitions = Gate::Guarantee(Guarantee::Partitions);
        let partitions = if partitions.is_declared(&t.capabilities()) {
            2
        } else {
            1
        };
        let mut scene = Self {
            t: t.clone(),
            handles: handles.to_vec(),
            partitions,
            logs: Vec::new(),
            groups: Vec::new(),
        };
        for at in 0..2 {
            let stream = t.stream(partitions).await?;
            let mut log = vec![stream.append_to(P0, 8 + at).await?];
            for partition in (1..partitions).map(Partition::new) {
                log.push(stream.append_to(partition, 4 + at).await?);
            }
            for name in ["billing", "mail"] {
                let group = stream.group(name).await?;
                scene.advance(group, at).await?;
            }
            scene.logs.push((stream, log));
        }
        Ok(scene)
    }

    /// Acks one event more than the group before, and rejects two.
    async fn advance(&mut self, group: Group, stream: usize) -> Outcome {
        let acks = self.groups.len() + 1;
        let options = FetchOptions::new(ConsumerId::new("a")?).with_partitions(P0);
        let mut acked = group.gather_exactly(options, acks + REJECTED).await?;
        let rejected = acked.split_off(acks);
        group.ack(&acked).await?;
        let mut dead = Vec::new();
        for (at, lease) in rejected.into_iter().enumerate() {
            let reason = format!("no good for {} of {stream}: {at}", group.name);
            group.reject(&lease, &reason).await?;
            dead.push(DeadLetter {
                event: lease.event,
                group: lease.group,
                attempt: lease.attempt,
                reason: rheo_core::Reason::new(reason),
                dead_at: self.t.now(),
            });
        }
        self.groups.push(Progress {
            group,
            stream,
            acked,
            dead,
        });
        Ok(())
    }

    /// One of the handles, by turns.
    fn handle(&self, number: usize) -> Recorder {
        self.handles[number % self.handles.len()].clone()
    }

    /// Leases of everything that is left of a group, in one partition, that outlast the round.
    async fn claim_all(&self, group: &Group, partition: Partition) -> Outcome<Vec<Lease>> {
        let options = FetchOptions::new(ConsumerId::new("a")?)
            .with_partitions(partition)
            .with_lease_duration(days(300)?);
        group.gather(options, usize::from(u8::MAX)).await
    }

    /// Makes calls that begin at the same moment, or some of them where there are many; demands of each
    /// answer what it demands itself.
    async fn at_once(&self, mut asks: Vec<Ask>) -> Outcome {
        while asks.len() > MOST {
            let at = self.t.random(asks.len() as u64);
            drop(asks.remove(usize::try_from(at).unwrap_or(0)));
        }
        self.all_at_once(asks).await
    }

    /// The same, with all of them.
    async fn all_at_once(&self, asks: Vec<Ask>) -> Outcome {
        let count = asks.len();
        self.t.note(format_args!(
            "{count} calls at once, of which one that failed is shown"
        ));
        let line = Arc::new(Barrier::new(count));
        let strands = asks.into_iter().map(|ask| {
            let line = Arc::clone(&line);
            async move {
                line.wait().await;
                ask.await
            }
        });
        self.t.strands(strands.collect::<Vec<_>>()).await?;
        self.t.tally().interleaved_operations(count as u64);
        Ok(())
    }
}

fn days(number: u64) -> Outcome<LeaseDuration> {
    let duration = std::time::Duration::from_secs(number * DAY);
    Ok(LeaseDuration::new(duration)?)
}

/// A handle's capability to do something.
fn offers(backend: &Recorder, gate: Gate) -> bool {
    gate.is_declared(&backend.capabilities())
}
