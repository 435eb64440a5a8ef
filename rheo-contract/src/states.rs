//! Groups with events in every state, many of them, or with deadlines, and what shows what became of them.

use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, DeadLetter, Event, FetchOptions, Guarantee, Lag, Lease, OptionalOperation,
    Partition, Timestamp,
};
use serde_json::json;

use crate::expect::{Outcome, expect_empty, expect_eq};
use crate::fixture::{Fixture, new_event};
use crate::scene::{Group, expect_first_attempts, places_of};
use crate::step::{Step, retry_after};

/// What a group had when its events were brought into every state.
pub(crate) struct States {
    group: Group,
    partitions: Vec<Lasting>,
    /// In order, where the group lists them.
    dead: Option<Vec<DeadLetter>>,
    /// Where it is exact.
    lag: Option<Lag>,
    /// When the delays have ended.
    due: Timestamp,
}

/// What lasts in one partition: 1 is acked, 2 leased, 3 waits for an hour, 4 is dead, the lease of 5 has
/// expired, 6 was never claimed.
struct Lasting {
    partition: Partition,
    leased: Lease,
    expired: Lease,
}

/// An hour.
const DELAY: Duration = Duration::from_secs(3_600);

/// Brings six events in each of so many partitions into every state, in each of the groups.
///
/// The streams of the groups must be empty; groups of one stream must come one after the other.
pub(crate) async fn every_state(groups: &[&Group], partitions: u32) -> Outcome<Vec<States>> {
    let mut all: Vec<States> = Vec::new();
    for group in groups {
        let is_filled = all
            .last()
            .is_some_and(|states| states.group.stream.name == group.stream.name);
        let mut states = States {
            group: (*group).clone(),
            partitions: Vec::new(),
            dead: None,
            lag: None,
            due: group.stream.t.now(),
        };
        for partition in (0..partitions).map(Partition::new) {
            if !is_filled {
                group.stream.append_to(partition, 6).await?;
            }
            let fetch = FetchOptions::new(ConsumerId::new("a")?).with_partitions(partition);
            let leases = group.gather_exactly(fetch.clone(), 4).await?;
            group.ack(&leases[..1]).await?;
            group.retry_in_an_hour(&leases[2]).await?;
            group.reject(&leases[3], "broken").await?;
            let brief = fetch.with_lease_duration(group.stream.t.brief_lease());
            states.partitions.push(Lasting {
                partition,
                leased: leases[1].clone(),
                expired: group.gather_exactly(brief, 1).await?.remove(0),
            });
        }
        states.due = group.stream.t.now().saturating_add(DELAY);
        all.push(states);
    }
    for states in &mut all {
        let group = &states.group;
        for lasting in &states.partitions {
            group.stream.t.let_lease_expire(&lasting.expired).await;
        }
        let declared = group.backend.capabilities();
        if declared.offers(OptionalOperation::DeadLetters) {
            states.dead = Some(group.dead_letters().await?);
        }
        if declared.guarantees(Guarantee::ContiguousFrontier) {
            states.lag = Some(group.lag().await?);
        }
    }
    Ok(all)
}

/// Demands that nothing has touched these groups, but for a partition of the first of them.
pub(crate) async fn expect_untouched(all: &[States], but: Option<Partition>) -> Outcome {
    let touched = |index: usize| but.filter(|_| index == 0);
    for (index, states) in all.iter().enumerate() {
        states.expect_the_same(touched(index)).await?;
    }
    // Last, since time passes for all of them.
    for (index, states) in all.iter().enumerate() {
        states.expect_due(touched(index)).await?;
    }
    Ok(())
}

impl States {
    async fn expect_the_same(&self, touched: Option<Partition>) -> Outcome {
        let group = &self.group;
        let stays = |partition: Partition| Some(partition) != touched;
        if let Some(dead) = &self.dead {
            let of_others = |letters: Vec<DeadLetter>| -> Vec<DeadLetter> {
                let letters = letters.into_iter();
                letters.filter(|dead| stays(dead.event.partition)).collect()
            };
            let seen = of_others(group.dead_letters().await?);
            expect_eq("the dead letters elsewhere", seen, of_others(dead.clone()))?;
        }
        if let Some(lag) = &self.lag {
            let of_others = |mut lag: Lag| {
                lag.partitions.retain(|progress| stays(progress.partition));
                lag
            };
            let seen = of_others(group.lag().await?);
            expect_eq("the progress elsewhere", seen, of_others(lag.clone()))?;
        }
        let lasting = || self.partitions.iter().filter(|at| stays(at.partition));
        for at in lasting() {
            group.expect_current(&at.leased).await?;
            group.expect_current(&at.expired).await?;
        }
        for at in lasting() {
            let fetched = group.gather(fetch_from(at.partition)?, 6).await?;
            let number = at.partition.number();
            expect_eq("what is claimable", places_of(&fetched), vec![(number, 6)])?;
            expect_eq("its attempt", fetched[0].attempt, 1)?;
            group.ack(&fetched).await?;
            Step::Ack.on(&group.backend, &at.leased).await?;
            Step::Ack.on(&group.backend, &at.expired).await?;
        }
        Ok(())
    }

    async fn expect_due(&self, touched: Option<Partition>) -> Outcome {
        if !self.group.stream.t.jump_to(self.due) {
            return Ok(());
        }
        for at in &self.partitions {
            if Some(at.partition) != touched {
                let fetched = self.group.gather(fetch_from(at.partition)?, 6).await?;
                let number = at.partition.number();
                expect_eq("what is due", places_of(&fetched), vec![(number, 3)])?;
                expect_eq("its attempt", fetched[0].attempt, 2)?;
            }
        }
        Ok(())
    }
}

fn fetch_from(partition: Partition) -> Outcome<FetchOptions> {
    Ok(FetchOptions::new(ConsumerId::new("b")?).with_partitions(partition))
}

/// A group with so many events, all delivered: of each three the first is acked, the second a dead letter,
/// the third leased. Gives the leases of the last kind.
pub(crate) async fn all_settled_somehow(t: &Fixture, count: usize) -> Outcome<(Group, Vec<Lease>)> {
    let group = t.group().await?;
    let batch = vec![new_event("order.placed", json!({})); count];
    group.stream.append_all(batch).await?;
    let leases = group.fetch_exactly("a", count).await?;
    let of_kind = |kind| leases.iter().skip(kind).step_by(3).cloned().collect();
    for (kind, step) in [(0, Step::Ack), (1, Step::Reject)] {
        let settled: Vec<Lease> = of_kind(kind);
        for result in step.on_all(&t.backend, &settled).await {
            result?;
        }
    }
    Ok((group, of_kind(2)))
}

/// Demands that nothing is dead, where the group lists it.
pub(crate) async fn expect_none_dead(group: &Group) -> Outcome {
    let declared = group.backend.capabilities();
    if !declared.offers(OptionalOperation::DeadLetters) {
        return Ok(());
    }
    expect_empty("dead letter", &group.first_dead_letters().await?)
}

/// A group on twelve partitions, the first with one event, the next with two, then three, and again; all of
/// them are acked. Gives the events.
pub(crate) async fn twelve_done(t: &Fixture) -> Outcome<(Group, Vec<Event>)> {
    let group = t.stream(12).await?.group("billing").await?;
    let mut events = Vec::new();
    for number in 0..12 {
        let partition = Partition::new(number);
        events.extend(
            group
                .stream
                .append_to(partition, 1 + number as usize % 3)
                .await?,
        );
    }
    group
        .ack(&group.fetch_exactly("a", events.len()).await?)
        .await?;
    Ok((group, events))
}

/// Demands that just those of the events are claimable at their first attempt for which that holds, by
/// partition and sequence; acks them.
pub(crate) async fn expect_again(
    group: &Group,
    events: &[Event],
    holds: impl Fn(u32, u64) -> bool,
) -> Outcome {
    let place = |event: &Event| (event.partition.number(), event.sequence.get());
    let mut expected: Vec<(u32, u64)> = events.iter().map(place).collect();
    expected.retain(|(partition, sequence)| holds(*partition, *sequence));
    let leases = group.expect_claimable_at("b", &expected).await?;
    expect_first_attempts(&leases)?;
    group.ack(&leases).await
}

/// A group that went back while leases and delays were running out: nothing may come of them.
pub(crate) struct OldDeadlines {
    group: Group,
    /// Of the claims since, those that are not acked.
    held: Vec<Lease>,
    /// Claimed since, with a lease that ends as the old ones do.
    brief: Lease,
}

impl OldDeadlines {
    /// Four events of a new group: 1 and 3 are leased, 2 waits, all for as long as a brief lease; 4 was
    /// never claimed. Then it goes back as it is told to, and all are claimed again, 1 and 2 acked.
    pub(crate) async fn of(
        t: &Fixture,
        back: impl AsyncFnOnce(&Group) -> Outcome,
    ) -> Outcome<Self> {
        let group = t.group_with_events(4).await?;
        let old = group.fetch_briefly("a", 3).await?;
        t.backend.retry(&old[1], &retry_after(t.brief())?).await?;
        back(&group).await?;
        let mut held = group.expect_claimable("b", &[1, 2, 3, 4]).await?;
        let acked: Vec<Lease> = held.drain(..2).collect();
        group.ack(&acked).await?;
        group.stream.append(1).await?;
        let brief = group.fetch_one_briefly("b").await?;
        Ok(Self { group, held, brief })
    }

    /// Lets all of them run out; demands that just the new one that did so is claimable.
    pub(crate) async fn expect_nothing_of_them(&self) -> Outcome {
        let group = &self.group;
        group.stream.t.let_lease_expire(&self.brief).await;
        let again = group.expect_claimable("c", &[5]).await?;
        expect_eq("its attempt", again[0].attempt, 2)?;
        for lease in &self.held {
            group.expect_current(lease).await?;
        }
        group.expect_nothing("c").await
    }
}
