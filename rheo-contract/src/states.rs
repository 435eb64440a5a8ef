//! Groups with events in every state, and what shows that nothing has touched them.

use std::time::Duration;

use rheo_core::{
    Backend, ConsumerId, DeadLetter, FetchOptions, Guarantee, Lag, Lease, OptionalOperation,
    Partition, Timestamp,
};

use crate::expect::{Outcome, expect_eq};
use crate::scene::{Group, places_of};
use crate::step::Step;

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
