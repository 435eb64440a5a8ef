//! What a lease id holds: where its delivery state is, and the token that nobody can guess.

use std::fmt::Write;

use rheo_core::{Lease, LeaseId};
use twox_hash::XxHash64;
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
    /// The lease id of one event: the token masked by what follows it, first, partition and sequence.
    ///
    /// The leases of a fetch share its token, and must differ in more than a number at the end (LSE-1).
    /// And an id with another "first" must not settle (LSE-2): masked, it is one of another token. Who
    /// has one lease of a fetch could find the others, which were given to the same consumer.
    pub(crate) fn lease_id(self, partition: u32, sequence: i64) -> LeaseId {
        let mut text = String::with_capacity(64);
        let mut buffer = Uuid::encode_buffer();
        let masked = masked(self.token, self.first, partition, sequence);
        text.push_str(masked.simple().encode_lower(&mut buffer));
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
        let event = &lease.event;
        let (partition, sequence) = (event.partition.number(), event.sequence.as_i64());
        let token = masked(token, first, partition, sequence);
        let claimed = Self { first, token };
        // Written again it must be the same text: leading zeros or a sign make another id.
        let same = claimed.lease_id(partition, sequence);
        (same == lease.lease_id).then_some(claimed)
    }
}

/// Masks a token, or takes the mask off again.
fn masked(token: Uuid, first: i64, partition: u32, sequence: i64) -> Uuid {
    let mut place = [0; 20];
    place[..8].copy_from_slice(&first.to_le_bytes());
    place[8..12].copy_from_slice(&partition.to_le_bytes());
    place[12..].copy_from_slice(&sequence.to_le_bytes());
    let [high, low] = [0, 1].map(|seed| XxHash64::oneshot(seed, &place));
    Uuid::from_u128(token.as_u128() ^ Uuid::from_u64_pair(high, low).as_u128())
}

#[cfg(test)]
pub(crate) mod tests {
    use rheo_core::{
        ConsumerId, Event, EventId, EventType, GroupName, JsonObject, Partition, Sequence,
        StreamName, Timestamp,
    };

    use super::*;

    /// Of event 8 in partition 3.
    pub(crate) fn lease(claimed: Claimed) -> Lease {
        with_id(claimed.lease_id(3, 8))
    }

    fn with_id(id: LeaseId) -> Lease {
        Lease {
            event: Event {
                id: EventId::new(Uuid::nil()),
                stream: StreamName::new("s").expect("allowed"),
                partition: Partition::new(3),
                sequence: Sequence::new(8).expect("allowed"),
                event_type: EventType::new("t").expect("allowed"),
                key: None,
                payload: JsonObject::default(),
                metadata: JsonObject::default(),
                timestamp: Timestamp::MIN,
            },
            group: GroupName::new("g").expect("allowed"),
            consumer: ConsumerId::new("c").expect("allowed"),
            lease_id: id,
            receipt: None,
            attempt: 1,
            leased_at: Timestamp::MIN,
            expires_at: Timestamp::MIN,
        }
    }

    #[test]
    fn what_was_written_is_read() {
        for first in [0, 7, i64::MAX] {
            let token = Uuid::new_v4();
            let claimed = Claimed { first, token };
            assert_eq!(Claimed::of(&lease(claimed)), Some(claimed));
            assert_eq!(Claimed::of(&with_id(claimed.lease_id(2, 8))), None);
            assert_eq!(Claimed::of(&with_id(claimed.lease_id(3, 9))), None);
        }
    }

    #[test]
    fn leases_of_one_fetch_have_ids_far_apart() {
        let token = Uuid::new_v4();
        let [one, other] = [8, 9].map(|sequence| Claimed { first: 7, token }.lease_id(3, sequence));
        let differ = one.as_str().bytes().zip(other.as_str().bytes());
        assert!(differ.filter(|(a, b)| a != b).count() >= 8);
    }

    #[test]
    fn an_id_with_another_first_has_another_token() {
        let token = Uuid::new_v4();
        let id = Claimed { first: 7, token }.lease_id(3, 8);
        let forged = LeaseId::new(id.as_str().replace("-7-3-8", "-0-3-8"));
        let read = Claimed::of(&with_id(forged)).expect("it has the form of an id");
        assert_ne!(read.token, token);
    }
}
