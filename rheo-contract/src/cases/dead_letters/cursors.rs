//! Whose dead letters a page goes on from.

use rheo_core::{DeadLetterOptions, Lease, Partition};

use super::{expect_no_cursor, reject_all, sequences};
use crate::expect::{Outcome, expect_eq};
use crate::fixture::Fixture;

/// Groups of one name are on many streams; what is dead in one of them says nothing of the others.
pub(super) async fn an_after_of_a_namesake_is_cursor_not_found(t: Fixture) -> Outcome {
    let (one, two) = (t.group_with_events(3).await?, t.group_with_events(3).await?);
    let foreign = reject_all(&two).await?;
    for lease in &foreign {
        expect_no_cursor(&one, lease.event.id).await?;
    }
    let own = reject_all(&one).await?;

    for lease in &foreign {
        expect_no_cursor(&one, lease.event.id).await?;
    }
    for lease in &own {
        expect_no_cursor(&two, lease.event.id).await?;
    }
    Ok(())
}

/// A copied event keeps its id, and is at another place, or not dead, in the other stream.
pub(super) async fn an_after_is_looked_up_in_its_own_stream(t: Fixture) -> Outcome {
    let (one, two) = (t.group().await?, t.group().await?);
    let events = one.stream.append(4).await?;
    for copied in [3, 2, 1] {
        let copy = t.new_event().with_id(events[copied].id);
        two.stream.append_event(copy).await?;
    }
    reject_all(&one).await?;
    let copies = two.fetch_exactly("a", 3).await?;
    two.reject(&copies[0], "broken").await?;
    two.reject(&copies[1], "broken").await?;

    for (group, id, expected) in [
        (&one, events[1].id, vec![3, 4]),
        (&one, events[2].id, vec![4]),
        (&one, events[3].id, vec![]),
        (&two, events[3].id, vec![2]),
        (&two, events[2].id, vec![]),
    ] {
        let options = DeadLetterOptions::new().with_after(id);
        let seen = sequences(&group.dead_letters_with(&options).await?);
        expect_eq("the sequences above `after`", seen, expected)?;
    }
    expect_no_cursor(&two, events[1].id).await?;
    expect_no_cursor(&two, events[0].id).await
}

/// The dead lie before it, behind it and in the other partitions.
pub(super) async fn an_after_that_is_not_dead_is_found_in_no_partition(t: Fixture) -> Outcome {
    let group = t.stream(3).await?.group("billing").await?;
    for partition in (0..3).map(Partition::new) {
        group.stream.append_to(partition, 4).await?;
    }
    let leases = group.fetch_exactly("a", 12).await?;
    let (dead, acked): (Vec<Lease>, Vec<Lease>) = leases
        .into_iter()
        .partition(|lease| lease.event.sequence.get() % 2 == 0);
    group.ack(&acked).await?;
    for lease in &dead {
        group.reject(lease, "broken").await?;
    }

    for lease in &acked {
        expect_no_cursor(&group, lease.event.id).await?;
    }
    Ok(())
}
