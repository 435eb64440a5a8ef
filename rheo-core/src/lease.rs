//! Leases: the claim of one event by one consumer for some time, and how it is fetched and settled.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{ConsumerId, Event, GroupName, LeaseDuration, Partitions, RetryDelay, Timestamp};

/// The fencing token of a claim: new for every claim and unguessable (LSE-1). Opaque.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseId(Arc<str>);

impl LeaseId {
    /// A backend's own token; it must be unguessable (LSE-1).
    pub fn new(token: impl AsRef<str>) -> Self {
        Self(token.as_ref().into())
    }

    /// A token of 122 random bits from the operating system.
    pub fn generate() -> Self {
        let mut buffer = Uuid::encode_buffer();
        Self((&*Uuid::new_v4().simple().encode_lower(&mut buffer)).into())
    }

    /// The token.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A backend's own handle of a delivery, e.g. a native stream's entry id. Opaque; compared for
/// equality (LSE-3).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Receipt(Arc<str>);

impl Receipt {
    /// A backend's own text.
    pub fn new(receipt: impl AsRef<str>) -> Self {
        Self(receipt.as_ref().into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// One event, claimed for one consumer of a group until `expires_at` (DLV-8).
///
/// It can be serialized and settled elsewhere. Settling compares `lease_id` and `receipt` with the
/// current claim of (group, stream, partition, sequence).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// The whole event.
    pub event: Event,
    /// The group it was claimed for.
    pub group: GroupName,
    /// The consumer it was claimed by.
    pub consumer: ConsumerId,
    /// The fencing token.
    pub lease_id: LeaseId,
    /// The backend's handle of the delivery, if it has one; else `None`, in every lease.
    ///
    /// A backend without such handles still compares: a lease that comes back with `Some` of anything has
    /// another receipt than the claim, which is `ReceiptMismatch` while its lease id is current, and
    /// `StaleLease` else (LSE-3). It need store nothing for that.
    pub receipt: Option<Receipt>,
    /// 1 for the first claim of the event by the group, one more at each further claim (LSE-5).
    pub attempt: u32,
    /// When it was claimed.
    pub leased_at: Timestamp,
    /// From then on it may be reclaimed (LSE-4).
    pub expires_at: Timestamp,
}

/// What `fetch` shall claim.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchOptions {
    /// Who claims.
    pub consumer: ConsumerId,
    /// How many leases at most; default 1, 0 gives none (DLV-3).
    pub limit: u32,
    /// How long the leases last; default 30 s (DLV-8).
    pub lease_duration: LeaseDuration,
    /// From which partitions; default all.
    pub partitions: Partitions,
}

impl FetchOptions {
    /// One lease of 30 s from any partition.
    pub fn new(consumer: ConsumerId) -> Self {
        Self {
            consumer,
            limit: 1,
            lease_duration: LeaseDuration::default(),
            partitions: Partitions::All,
        }
    }

    /// At most `limit` leases.
    #[must_use]
    pub fn with_limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Leases of that duration.
    #[must_use]
    pub fn with_lease_duration(mut self, duration: LeaseDuration) -> Self {
        self.lease_duration = duration;
        self
    }

    /// Just from these partitions.
    #[must_use]
    pub fn with_partitions(mut self, partitions: impl Into<Partitions>) -> Self {
        self.partitions = partitions.into();
        self
    }
}

/// How `retry` gives an event back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RetryOptions {
    /// How long the event waits until it is claimable; default not at all (DLQ-1).
    pub delay: RetryDelay,
    /// Why; kept if this retry dead-letters the event (DLQ-2), default
    /// [`Reason::max_attempts`].
    pub reason: Option<Reason>,
}

impl RetryOptions {
    /// Claimable at once, no reason given.
    pub fn new() -> Self {
        Self::default()
    }

    /// Claimable after `delay`.
    #[must_use]
    pub fn with_delay(mut self, delay: RetryDelay) -> Self {
        self.delay = delay;
        self
    }

    /// With a reason.
    #[must_use]
    pub fn with_reason(mut self, reason: Reason) -> Self {
        self.reason = Some(reason);
        self
    }
}

/// What `retry` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryOutcome {
    /// The event is claimable again, at once or after the delay.
    Retrying,
    /// The attempts were used up: the event is a dead letter now (DLQ-2).
    DeadLettered,
}

/// Why an event was given up on: a text of at most 1 KiB without U+0000 (DLQ-5).
///
/// A bad reason must not keep an event from being settled, so building one never fails: it is cut
/// at a character boundary and U+0000 becomes U+FFFD.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Reason(Arc<str>);

impl Reason {
    /// The longest reason, in bytes.
    pub const MAX_LEN: usize = 1_024;

    /// Takes any text.
    pub fn new(text: impl AsRef<str>) -> Self {
        let mut text = text.as_ref().replace('\0', "\u{fffd}");
        text.truncate(text.floor_char_boundary(Self::MAX_LEN));
        Self(text.into())
    }

    /// The reason of a dead letter whose retry gave none (DLQ-2).
    pub fn max_attempts() -> Self {
        Self::new("retried at the last attempt")
    }

    /// The reason of a dead letter whose last lease expired (DLQ-3).
    pub fn lease_expired() -> Self {
        Self::new("lease expired at the last attempt")
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(String::deserialize(deserializer)?))
    }
}

/// A delivery that a group gave up on (DLQ-5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The event, which is still in the log.
    pub event: Event,
    /// The group that gave up on it.
    pub group: GroupName,
    /// At which attempt.
    pub attempt: u32,
    /// Why.
    pub reason: Reason,
    /// When.
    pub dead_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_between_characters() {
        let reason = Reason::new("ü".repeat(600));
        assert_eq!(reason.as_str(), "ü".repeat(512));
        let reason = Reason::new(format!("x{}", "ü".repeat(600)));
        assert_eq!(reason.as_str().len(), 1_023);
        assert_eq!(Reason::new("x".repeat(1_024)).as_str().len(), 1_024);
    }

    #[test]
    fn nul_is_replaced_before_the_cut() {
        assert_eq!(Reason::new("a\0b").as_str(), "a\u{fffd}b");
        assert!(Reason::new("\0".repeat(1_024)).as_str().len() <= Reason::MAX_LEN);
    }

    #[test]
    fn lease_ids_are_new_every_time() {
        assert_ne!(LeaseId::generate(), LeaseId::generate());
    }
}
