//! The very next call after one that was dropped.

use rheo_core::{ErrorKind, Operation, StreamName};

use crate::expect::{Failure, Outcome, broken, expect_error};
use crate::fixture::Fixture;
use crate::flight::Quiet;
use crate::operations::Target;
use crate::recorder::Recorder;
use crate::stage::Interrupted;

/// Calls whose answers are not those of any call that is dropped, and that change nothing.
pub(super) struct Next {
    quiet: Quiet,
    /// What is there already.
    there: Target,
    /// A stream that is not there, and leases that are stale.
    missing: Target,
}

impl Next {
    pub(super) async fn of(t: &Fixture) -> Outcome<Self> {
        let group = t.group().await?;
        let there = Target::of(&group).await?;
        group.ack(&there.leases).await?;
        Ok(Self {
            quiet: Quiet::of(t).await?,
            missing: there.on_stream(StreamName::new(format!("missing-{}", t.number()))?),
            there,
        })
    }

    /// Makes the same kind of call on the handle on which one was dropped, and others, and demands of each its
    /// own answer.
    pub(super) async fn is_answered(&self, handle: &Recorder, dropped: Interrupted) -> Outcome {
        let name = dropped.0;
        let answered = self.is_answered_for_itself(handle, dropped).await;
        answered.map_err(|failure| match failure {
            Failure::Broken { expected, seen } => broken(
                format!("the next call after a dropped {name} to have its own answer: {expected}"),
                seen,
            ),
            other => other,
        })
    }

    async fn is_answered_for_itself(&self, handle: &Recorder, dropped: Interrupted) -> Outcome {
        let (target, kind) = match dropped.0 {
            Operation::CreateStream => (&self.there, ErrorKind::AlreadyExists),
            _ if dropped.is_settle() => (&self.missing, ErrorKind::StaleLease),
            _ => (&self.missing, ErrorKind::StreamNotFound),
        };
        // These are about no stream.
        let is_about_all = matches!(
            dropped.0,
            Operation::Ping | Operation::EnsureIndexes | Operation::ListStreams
        );
        if !is_about_all {
            for result in target.call(handle, dropped.0).await {
                expect_error(result, kind)?;
            }
        }
        self.quiet.is_seen(handle).await
    }
}
