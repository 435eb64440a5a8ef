//! Leases and fencing: only the current claim settles.

use rheo_core::{Backend, ErrorKind};

use crate::case::{Case, case};
use crate::expect::{Outcome, expect_error};
use crate::fixture::Fixture;

pub(crate) const CASES: &[Case] = &[case!(
    "LSE-2" => a_replaced_lease_settles_nothing,
    "the settle finds the delivery by event and group, and does not compare the lease id"
)];

/// The classic pause: `a` sleeps past its lease, `b` takes over, `a` wakes up.
async fn a_replaced_lease_settles_nothing(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    let stale = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&stale).await;
    let current = group.fetch_one("b").await?;

    expect_error(t.backend.ack(&stale).await, ErrorKind::StaleLease)?;
    t.backend.ack(&current).await?;
    Ok(())
}
