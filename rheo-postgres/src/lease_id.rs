//! What a lease id holds: where its delivery state is, and the token that nobody can guess.

use std::fmt::Write;

use rheo_core::{Lease, LeaseId};
use uuid::Uuid;

/// The parts of a lease id, beside partition and sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Claimed {
    /// The first sequence of the claim that the event is in; 0 for one with a row of its own.
    pub(crate) first: i64,
    /// 122 random bits, new for every fetch.
    pub(crate) token: Uuid,
}

impl Claimed {
    /// The lease id of one event: token, first, partition and sequence.
    pub(crate) fn lease_id(self, partition: u32, sequence: i64) -> LeaseId {
        let mut text = String::with_capacity(64);
        let mut buffer = Uuid::encode_buffer();
        text.push_str(self.token.simple().encode_lower(&mut buffer));
        match write!(text, "-{}-{partition}-{sequence}", self.first) {
            Ok(()) => LeaseId::new(text),
            Err(_) => unreachable!("writing to a string cannot fail"),
        }
    }

    /// What a lease's id says, if it is one of ours and of that event.
    pub(crate) fn of(lease: &Lease) -> Option<Self> {
        let id = lease.lease_id.as_str();
        let mut parts = id.split('-');
        let token = Uuid::try_parse(parts.next()?).ok()?;
        let first = parts.next()?.parse().ok()?;
        let claimed = Self { first, token };
        // Written again it must be the same text: leading zeros or a sign make another id.
        let event = &lease.event;
        let same = claimed.lease_id(event.partition.number(), event.sequence.as_i64());
        (same == lease.lease_id).then_some(claimed)
    }
}
