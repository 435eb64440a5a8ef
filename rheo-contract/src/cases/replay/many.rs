//! Replay of many events at once.

use rheo_core::{EventId, Start};
use serde_json::json;

use super::replay_events;
use crate::expect::Outcome;
use crate::fixture::{Fixture, new_event};
use crate::scene::expect_first_attempts;
use crate::states::{all_settled_somehow, expect_none_dead};
use crate::step::Step;

/// More ids than some page, list or statement holds.
const COUNTS: [usize; 3] = [11, 101, 1_001];

/// A search gives what it gives, and all of it is delivered again: what was acked, and what is from before
/// the group was begun.
pub(super) async fn any_number_of_chosen_events_is_reopened(t: Fixture) -> Outcome {
    for count in COUNTS {
        let stream = t.stream(1).await?;
        let total = count + count / 10;
        let batch = vec![new_event("order.placed", json!({})); total];
        let events = stream.append_all(batch).await?;
        let billing = stream.group("billing").await?;
        let leases = billing.fetch_exactly("a", total).await?;
        for acked in Step::Ack.on_all(&t.backend, &leases).await {
            acked?;
        }
        let late = stream.group_from("late", Start::End).await?;
        // Every eleventh is left out, and the last come first.
        let chosen = || events.iter().filter(|event| event.sequence.get() % 11 != 0);
        let ids: Vec<EventId> = chosen().rev().map(|event| event.id).collect();
        let expected: Vec<u64> = chosen().map(|event| event.sequence.get()).collect();

        for group in [billing, late] {
            replay_events(&group, ids.iter().copied()).await?;

            let leases = group.expect_claimable("b", &expected).await?;
            expect_first_attempts(&leases)?;
        }
    }
    Ok(())
}

/// A whole day again, in whatever state its events are.
pub(super) async fn any_number_of_events_is_reopened_after_a_sequence(t: Fixture) -> Outcome {
    for count in COUNTS {
        let (group, held) = all_settled_somehow(&t, count + 1).await?;
        group.replay_after(1).await?;

        let expected: Vec<u64> = (2..=count as u64 + 1).collect();
        expect_none_dead(&group).await?;
        let leases = group.expect_claimable("b", &expected).await?;
        expect_first_attempts(&leases)?;
        for lease in [&held[1], &held[held.len() - 1]] {
            group.expect_stale(lease).await?;
        }
    }
    Ok(())
}
