//! Replays that are refused.

use std::collections::BTreeMap;

use rheo_core::{Backend, ErrorKind, GroupName, Partitions, Replay, Sequence, StreamName};

use super::all_acked;
use crate::expect::{Outcome, expect_empty, expect_error, expect_invalid};
use crate::fixture::Fixture;
use crate::scene::{P0, P1};

/// A replay of what does not exist is a mistake that must not look like success.
pub(super) async fn replay_looks_for_the_stream_before_the_group(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?.name;
    let missing = StreamName::new("missing")?;
    let group = GroupName::new("missing")?;

    for replay in [Replay::after(Sequence::ZERO), Replay::Events(vec![])] {
        let result = t.backend.replay(&missing, &group, &replay).await;
        expect_error(result, ErrorKind::StreamNotFound)?;
        let result = t.backend.replay(&stream, &group, &replay).await;
        expect_error(result, ErrorKind::GroupNotFound)?;
    }
    Ok(())
}

/// A mistake in one partition's number must not replay the others half way.
pub(super) async fn replay_of_a_partition_out_of_range_reopens_nothing(t: Fixture) -> Outcome {
    let group = all_acked(&t, 2).await?;
    let after = Replay::After {
        sequence: Sequence::ZERO,
        partitions: Partitions::only([P0, P1]),
    };
    let each = BTreeMap::from([(P0, Sequence::ZERO), (P1, Sequence::ZERO)]);

    for replay in [after, Replay::AfterEach(each)] {
        let result = t.backend.replay(&group.stream.name, &group.name, &replay);
        expect_invalid(result.await, "partitions")?;
    }

    expect_empty("reopened event", &group.fetch_all("a").await?)
}
