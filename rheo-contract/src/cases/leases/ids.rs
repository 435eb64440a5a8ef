//! Lease ids are new and unguessable.

use std::collections::BTreeSet;

use rheo_core::{LeaseId, ResetOptions};

use crate::expect::{Outcome, expect, expect_eq};
use crate::fixture::Fixture;
use crate::step::Step;

const FEWEST_SECRET_CHARACTERS: usize = 8;

/// A fencing token that is used twice fences nothing.
pub(super) async fn every_claim_has_a_lease_id_of_its_own(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let groups = [
        stream.group("billing").await?,
        stream.group("shipping").await?,
    ];
    stream.append(3).await?;
    let mut leases = Vec::new();
    for group in &groups {
        leases.extend(group.fetch_exactly("a", 2).await?);
        for _ in 0..4 {
            let lease = group.fetch_one("a").await?;
            Step::Retry.on(&t.backend, &lease).await?;
            leases.push(lease);
        }
    }

    let ids: BTreeSet<&LeaseId> = leases.iter().map(|lease| &lease.lease_id).collect();
    expect_eq("the number of lease ids", ids.len(), leases.len())
}

/// A replay and a reset count attempts from 1 again; the tokens from before must not come again.
pub(super) async fn a_replayed_event_gets_a_new_lease_id(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let mut ids = BTreeSet::from([group.fetch_one("a").await?.lease_id]);
    group.replay_after(0).await?;
    ids.insert(group.fetch_one("a").await?.lease_id);
    group.reset(&ResetOptions::new()).await?;
    ids.insert(group.fetch_one("a").await?.lease_id);

    expect_eq("the number of lease ids of three claims", ids.len(), 3)
}

/// Whoever held an event once must not be able to work out what its next holder has.
pub(super) async fn a_lease_id_cannot_be_guessed_from_another(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let group = stream.group_of_attempts("billing", 100).await?;
    stream.append(1).await?;
    let mut ids: Vec<LeaseId> = Vec::new();
    for _ in 0..8 {
        let lease = group.fetch_one("a").await?;
        ids.push(lease.lease_id.clone());
        Step::Retry.on(&t.backend, &lease).await?;
    }

    for (at, one) in ids.iter().enumerate() {
        for other in &ids[at + 1..] {
            let secret = characters_apart(one.as_str(), other.as_str());
            expect(
                secret >= FEWEST_SECRET_CHARACTERS,
                format!(
                    "two claims to have lease ids that differ in at least {FEWEST_SECRET_CHARACTERS} \
                     characters between what they share at their ends"
                ),
                format!("{one} and {other}, which differ in {secret}"),
            )?;
        }
    }
    Ok(())
}

/// How many characters of the longer text are left without the common beginning and end.
fn characters_apart(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let shorter = one.len().min(other.len());
    let same = |pair: &(&char, &char)| pair.0 == pair.1;
    let head = one.iter().zip(&other).take_while(same).count();
    let backwards = one.iter().rev().zip(other.iter().rev());
    let tail = backwards.take(shorter - head).take_while(same).count();
    one.len().max(other.len()) - head - tail
}
