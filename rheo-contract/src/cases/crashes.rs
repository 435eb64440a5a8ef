//! Processes that are killed with SIGKILL while they work, and processes that compete.

use std::collections::{BTreeMap, BTreeSet};

use rheo_core::{Backend, ConsumerId, Event, EventId, Gate, Guarantee, Lease, Sequence};

use crate::case::{Case, case};
use crate::expect::{Outcome, broken, expect, expect_eq};
use crate::fixture::Fixture;
use crate::recorder::Recorder;
use crate::scene::{Group, P0, places_of, sequences};
use crate::worker::{Order, Task, Told, Worker};

const DISTRIBUTED: Gate = Gate::Guarantee(Guarantee::Distributed);

pub(crate) const CASES: &[Case] = &[
    case!(
        "DUR-1" => what_a_killed_process_confirmed_is_there,
        "something is confirmed before it is written, or is written in steps that a crash parts"
    ),
    case!(
        "DLV-6" => what_killed_processes_leave_is_delivered_in_the_end,
        "what was claimed counts as delivered before it is settled, or a claim is written in steps that a crash parts"
    )
    .needs(&[DISTRIBUTED])
    .sets_the_clock(),
    case!(
        "DST-2" => a_killed_consumer_holds_its_events_no_longer_than_its_lease,
        "claims are kept in the process, or tied to a connection instead of a time"
    )
    .needs(&[DISTRIBUTED]),
    case!(
        "DST-1" => processes_that_compete_share_the_events,
        "claims are decided by something that two processes do not share"
    ),
    case!(
        "DUR-1" => what_was_confirmed_survives_a_restart_of_the_store,
        "the store confirms before it has written, or the backend does not ask it to"
    )
    .alone(),
];

impl Fixture {
    fn order(&self, group: &Group, consumer: &str, task: Task) -> Outcome<Order> {
        Ok(Order {
            namespace: self.namespace().clone(),
            stream: group.stream.name.clone(),
            group: group.name.clone(),
            consumer: ConsumerId::new(consumer)?,
            now: self.sets_the_clock().then(|| self.now()),
            task,
        })
    }
}

/// Power fails, the kernel kills, a deployment is impatient.
async fn what_a_killed_process_confirmed_is_there(t: Fixture) -> Outcome {
    let mut backend = t.backend.clone();
    let group = t.group().await?;
    let mut done = BTreeSet::new();
    for _ in 0..t.budget().times(4) {
        // A store may be open in one process only.
        backend.close().await?;
        let order = t.order(&group, "killed", Task::Everything)?;
        let mut worker = Worker::start(&order)?;
        let mut told = Vec::new();
        for _ in 0..5 + t.random(60) {
            told.push(worker.told().await?);
        }
        told.extend(worker.kill().await?);
        t.tally().kills(1);
        t.note(format_args!(
            "a worker was killed after {} results",
            told.len()
        ));

        backend = t.opened_again().await?;
        let group = group.via(&backend);
        expect_confirmed(&t, &group, &told, &mut done).await?;
    }
    Ok(())
}

/// What was told is there; what was not may be there or not, but nothing is lost in between: whatever is
/// not `done` by then is delivered.
async fn expect_confirmed(
    t: &Fixture,
    group: &Group,
    told: &[Told],
    done: &mut BTreeSet<Sequence>,
) -> Outcome {
    let log = group.stream.read(P0).await?;
    let all: Vec<u64> = (1..=log.len() as u64).collect();
    expect_eq("the sequences", sequences(&log), all)?;
    let ids: BTreeMap<EventId, &Event> = log.iter().map(|event| (event.id, event)).collect();
    let mut leased: Vec<&Lease> = Vec::new();
    let mut acked = BTreeSet::new();
    for told in told {
        match told {
            Told::Appended(event) => {
                let found = ids.get(&event.id).copied();
                expect_eq("the event that was appended", found, Some(event))?;
            }
            Told::Leased(leases) => leased.extend(leases),
            Told::Acked(lease) => {
                acked.insert(lease.event.sequence);
            }
            Told::Failed(_) | Told::Finished => {}
        }
    }
    let untold = last_to_be_acked(told);
    leased.retain(|lease| {
        let sequence = lease.event.sequence;
        !acked.contains(&sequence) && untold != Some(sequence)
    });
    // Its leases are still fenced, by their ids and until their end.
    if let Some(lease) = leased.first() {
        group.expect_current(lease).await?;
    }
    let held: BTreeSet<_> = leased.iter().map(|lease| lease.event.sequence).collect();
    for lease in group.fetch_all("next").await? {
        let sequence = lease.event.sequence;
        expect(
            !acked.contains(&sequence) && !held.contains(&sequence) && untold != Some(sequence),
            "no event that is acked, or that a lease holds which has not ended",
            format!("sequence {sequence}"),
        )?;
        group.ack(&[lease]).await?;
        done.insert(sequence);
    }
    done.extend(acked.iter().copied().chain(untold));
    if t.sets_the_clock() {
        t.pass(std::time::Duration::from_secs(3_600)).await;
        let rest = group.fetch_all("last").await?;
        let places: BTreeSet<_> = rest.iter().map(|lease| lease.event.sequence).collect();
        expect(
            places.is_superset(&held) && places.is_disjoint(&acked),
            format!("{held:?} once their leases ended, and nothing that is acked"),
            format!("{places:?}"),
        )?;
        group.ack(&rest).await?;
        done.extend(places);
        let sequences = log.iter().map(|event| event.sequence);
        let nobody_got: Vec<_> = sequences.filter(|at| !done.contains(at)).collect();
        expect_eq("the sequences that nobody got", nobody_got, Vec::new())?;
    }
    Ok(())
}

/// The last ack of a worker may have been written and not told.
fn last_to_be_acked(told: &[Told]) -> Option<Sequence> {
    told.iter().rev().find_map(|told| match told {
        Told::Leased(leases) => Some(leases.first()?.event.sequence),
        _ => None,
    })
}

/// Machines go down all the time: whatever they had begun, somebody gets it in the end.
async fn what_killed_processes_leave_is_delivered_in_the_end(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let (mut appended, mut acked, mut untold) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for _ in 0..t.budget().times(2) {
        let mut workers = Vec::new();
        for consumer in ["a", "b"] {
            let order = t.order(&group, consumer, Task::EverythingBeside)?;
            workers.push(Worker::start(&order)?);
        }
        for mut worker in workers {
            let mut told = Vec::new();
            for _ in 0..5 + t.random(40) {
                told.push(worker.told().await?);
            }
            told.extend(worker.kill().await?);
            t.tally().kills(1);
            t.note(format_args!(
                "a worker was killed after {} results",
                told.len()
            ));
            untold.extend(last_to_be_acked(&told));
            for told in told {
                match told {
                    Told::Appended(event) => appended.push(event),
                    Told::Acked(lease) => _ = acked.insert(lease.event.sequence),
                    Told::Leased(_) | Told::Failed(_) | Told::Finished => {}
                }
            }
        }
    }

    // All leases end.
    t.pass(std::time::Duration::from_secs(3_600)).await;
    let mut delivered = BTreeSet::new();
    loop {
        let leases = group.fetch_all("last").await?;
        if leases.is_empty() {
            break;
        }
        delivered.extend(leases.iter().map(|lease| lease.event.sequence));
        group.ack(&leases).await?;
    }
    let log = group.stream.read(P0).await?;
    let there: BTreeSet<EventId> = log.iter().map(|event| event.id).collect();
    let lost = appended.iter().filter(|event| !there.contains(&event.id));
    expect_eq(
        "the events that were appended and are gone",
        lost.count(),
        0,
    )?;
    let again: Vec<_> = delivered.intersection(&acked).collect();
    expect(
        again.is_empty(),
        "nothing that is acked to be delivered",
        format!("{again:?}"),
    )?;
    let nobody_got: Vec<Sequence> = log
        .iter()
        .map(|event| event.sequence)
        .filter(|at| !acked.contains(at) && !untold.contains(at) && !delivered.contains(at))
        .collect();
    expect_eq("the sequences that nobody got", nobody_got, Vec::new())
}

/// The consumer is gone for good, and nobody tells the store.
async fn a_killed_consumer_holds_its_events_no_longer_than_its_lease(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let order = t.order(&group, "killed", Task::Hold(3))?;
    let mut worker = Worker::start(&order)?;
    let leases = match worker.told().await? {
        Told::Leased(leases) => leases,
        told => return Err(broken("a worker to fetch", format!("{told:?}"))),
    };
    worker.kill().await?;
    t.tally().kills(1);

    let held = places_of(&leases);
    expect(!held.is_empty(), "at least one lease", "none")?;
    let free = group.fetch_all("b").await?;
    let free = places_of(&free);
    let both: Vec<_> = free.iter().filter(|place| held.contains(place)).collect();
    expect(
        both.is_empty(),
        "nothing of what the leases hold",
        format!("{both:?}"),
    )?;
    if t.sets_the_clock() {
        t.until(leases[0].expires_at).await;
        let again = group.fetch_all("c").await?;
        let again: Vec<_> = again
            .iter()
            .filter(|l| held.contains(&places_of(&[(*l).clone()])[0]))
            .collect();
        expect_eq(
            "what comes back when the leases end",
            again.len(),
            held.len(),
        )?;
        for lease in &again {
            expect_eq("its attempt", lease.attempt, 2)?;
        }
        group.expect_stale(&leases[0]).await?;
    }
    Ok(())
}

/// Two machines work on one queue.
async fn processes_that_compete_share_the_events(t: Fixture) -> Outcome {
    const EVENTS: usize = 60;
    let group = t.group_with_events(EVENTS).await?;
    let mut workers = Vec::new();
    for consumer in ["a", "b"] {
        workers.push(Worker::start(&t.order(&group, consumer, Task::Drain)?)?);
    }
    let mut acked = Vec::new();
    for mut worker in workers {
        loop {
            match worker.told().await? {
                Told::Acked(lease) => acked.push(lease.event.sequence.get()),
                Told::Finished => break,
                _ => {}
            }
        }
    }
    t.tally().interleaved_operations(acked.len() as u64);

    acked.sort_unstable();
    let all: Vec<u64> = (1..=EVENTS as u64).collect();
    expect_eq("the events acked, each by one process", acked, all)?;
    group.expect_nothing("c").await
}

/// The machine of the store goes down and comes back: while nobody works, then while somebody does.
async fn what_was_confirmed_survives_a_restart_of_the_store(t: Fixture) -> Outcome {
    let busy = t.group().await?;
    let group = t.group_with_events(4).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    group.ack(&leases[..1]).await?;
    group.retry_in_an_hour(&leases[1]).await?;
    t.restart_store().await?;
    t.tally().kills(1);

    let backend: Recorder = t.opened_again().await?;
    let group = group.via(&backend);
    expect_eq(
        "the sequences",
        sequences(&group.stream.read(P0).await?),
        vec![1, 2, 3, 4],
    )?;
    group.expect_current(&leases[2]).await?;
    group.expect_stale(&leases[0]).await?;
    group.expect_claimable("b", &[4]).await?;

    let mut backend = backend;
    let mut done = BTreeSet::new();
    for _ in 0..t.budget().times(2) {
        backend.close().await?;
        let mut worker = Worker::start(&t.order(&busy, "cut off", Task::Everything)?)?;
        let mut told = Vec::new();
        for _ in 0..5 + t.random(60) {
            told.push(worker.told().await?);
        }
        t.restart_store().await?;
        told.extend(worker.kill_cut_off().await?);
        t.tally().kills(1);
        t.note(format_args!("a worker was told {} results", told.len()));

        backend = t.opened_again().await?;
        expect_confirmed(&t, &busy.via(&backend), &told, &mut done).await?;
    }
    Ok(())
}
