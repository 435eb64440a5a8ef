//! Appends with one id that race.

use rheo_core::{Backend, ErrorKind, Partition};

use crate::expect::{Outcome, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::scene::{Stream, at_once};

const WRITERS: usize = 8;

/// A producer repeats what got no answer, while the first try is still under way.
pub(super) async fn of_concurrent_appends_with_one_id_one_wins(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;

    expect_one_winner(&stream, 1).await
}

/// An id is unique in the stream, not in a partition.
pub(super) async fn of_concurrent_appends_of_one_id_to_many_partitions_one_wins(
    t: Fixture,
) -> Outcome {
    let stream = t.stream(8).await?;

    expect_one_winner(&stream, 8).await
}

async fn expect_one_winner(stream: &Stream, partitions: u32) -> Outcome {
    let t = &stream.t;
    for round in 1..=4 {
        let id = t.unknown_id();
        let appended = at_once(WRITERS, |number| {
            let partition = u32::try_from(number).unwrap_or_default() % partitions;
            let event = t.new_event().with_id(id);
            let event = event.with_partition(Partition::new(partition));
            let stream = stream.clone();
            async move { stream.backend.append(&stream.name, event).await }
        });
        let mut winners = Vec::new();
        for result in appended.await? {
            match result {
                Ok(event) => winners.push(event),
                lost => drop(expect_error(lost, ErrorKind::AlreadyExists)?),
            }
        }

        expect_eq("the number of appends that won", winners.len(), 1)?;
        let mut log = Vec::new();
        for partition in (0..partitions).map(Partition::new) {
            log.extend(stream.read(partition).await?);
        }
        expect_eq("the number of events in the log", log.len(), round)?;
        log.retain(|event| event.id == id);
        expect_eq("the events of that id", log, winners)?;
    }
    Ok(())
}
