//! What errors name: whoever reads them was not there.

use rheo_core::{
    Backend, DeadLetterOptions, Error, ErrorKind, EventId, Existing, GroupOptions, Result,
    StreamName, StreamOptions,
};
use uuid::Uuid;

use super::{OF_GROUPS, OF_STREAMS};
use crate::describe::Brief;
use crate::expect::{Outcome, expect, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::operations::Target;

/// Names that do not survive a message that is split, trimmed, folded, cut or filled in.
fn names() -> [String; 4] {
    [
        "Missing: \"orders\" ".to_owned(),
        "{0} %s 'x'".to_owned(),
        "u\u{308}.B:c".to_owned(),
        "n".repeat(254) + "N",
    ]
}

/// Somebody makes the stream that the error names.
pub(super) async fn a_missing_stream_is_named_as_it_was_given(t: Fixture) -> Outcome {
    let target = Target::of(&t.group().await?).await?;
    for name in names() {
        let stream = StreamName::new(name)?;
        let missing = target.on_stream(stream.clone());
        let expected = Error::StreamNotFound { stream };
        for operations in [OF_STREAMS, OF_GROUPS] {
            missing
                .expect_each_gives(&t.backend, operations, &expected)
                .await?;
        }
    }
    Ok(())
}

/// Somebody makes the group that the error names, on the stream that it names.
pub(super) async fn a_missing_group_is_named_with_its_stream(t: Fixture) -> Outcome {
    let other = t.stream(1).await?;
    let target = Target::of(&t.group().await?).await?;
    for name in names() {
        let group = other.group(&name).await?.name;
        let missing = target.with_group(group.clone());
        let expected = Error::GroupNotFound {
            stream: target.stream.clone(),
            group,
        };
        missing
            .expect_each_gives(&t.backend, OF_GROUPS, &expected)
            .await?;
    }
    Ok(())
}

/// Demands just this error.
fn expect_exactly<T: Brief>(result: Result<T>, expected: &Error) -> Outcome {
    let error = expect_error(result, expected.kind())?;
    expect_eq("the error", &error, expected)
}

/// "Already exists" is good news when it is what one wanted to make.
pub(super) async fn a_taken_name_is_named_as_it_was_given(t: Fixture) -> Outcome {
    for name in names() {
        let stream = t.stream_named(&name, 1).await?;
        let options = StreamOptions::new();
        let again = t.backend.create_stream(&stream.name, &options);
        let exists = Error::AlreadyExists(Existing::Stream(stream.name.clone()));
        expect_exactly(again.await, &exists)?;

        for name in names() {
            let group = stream.group(&name).await?.name;
            let options = GroupOptions::new();
            let again = t.backend.create_group(&stream.name, &group, &options);
            let exists = Error::AlreadyExists(Existing::Group(group.clone()));
            expect_exactly(again.await, &exists)?;
        }
    }
    Ok(())
}

fn taken(id: EventId) -> Error {
    Error::AlreadyExists(Existing::Event(id))
}

/// The producer looks for the event that the error names.
pub(super) async fn a_taken_id_is_named(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut ids = vec![stream.append(1).await?[0].id];
    ids.extend([Uuid::nil(), Uuid::max(), Uuid::new_v4()].map(EventId::new));
    for id in &ids[1..] {
        stream.append_event(t.new_event().with_id(*id)).await?;
    }

    for id in ids {
        let again = || t.new_event().with_id(id);
        let alone = t.backend.append(&stream.name, again()).await;
        expect_exactly(alone, &taken(id))?;
        let batch = t.backend.append_batch(&stream.name, vec![again()]).await;
        expect_exactly(batch, &taken(id))?;
    }
    Ok(())
}

/// Of many events, just one has to go; of many that are taken, the error names one of them.
pub(super) async fn the_taken_id_of_a_batch_is_named(t: Fixture) -> Outcome {
    const COUNT: usize = 40;
    let stream = t.stream(1).await?;
    let there = stream.append(3).await?;
    let batch = || -> Vec<_> {
        let events = (0..COUNT).map(|_| t.new_event().with_id(t.unknown_id()));
        events.collect()
    };
    for at in [0, 1, 17, COUNT - 1] {
        let (mut with_taken, mut with_twice) = (batch(), batch());
        with_taken[at].id = Some(there[1].id);
        let result = t.backend.append_batch(&stream.name, with_taken).await;
        expect_exactly(result, &taken(there[1].id))?;

        let twice = t.unknown_id();
        with_twice[at].id = Some(twice);
        with_twice[(at + 7) % COUNT].id = Some(twice);
        let result = t.backend.append_batch(&stream.name, with_twice).await;
        expect_exactly(result, &taken(twice))?;
    }
    let mut several = batch();
    let of_taken = |error: &Error| there.iter().any(|event| *error == taken(event.id));
    for (at, event) in [5, 20, 30].into_iter().zip(&there) {
        several[at].id = Some(event.id);
    }
    let result = t.backend.append_batch(&stream.name, several).await;
    let error = expect_error(result, ErrorKind::AlreadyExists)?;
    expect(of_taken(&error), "the error to name a taken id", error)
}

/// Whoever pages on begins again, without the id that the error names.
pub(super) async fn a_cursor_that_is_not_found_is_named(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let leases = group.bring_into_every_state().await?;
    let mut cursors = vec![leases[0].event.id, leases[1].event.id, t.unknown_id()];
    cursors.extend([Uuid::nil(), Uuid::max()].map(EventId::new));

    for after in cursors {
        for limit in [0, 1, 100] {
            let options = DeadLetterOptions::new().with_after(after).with_limit(limit);
            let dead = t
                .backend
                .dead_letters(&group.stream.name, &group.name, &options);
            expect_exactly(dead.await, &Error::CursorNotFound { after })?;
        }
    }
    Ok(())
}
