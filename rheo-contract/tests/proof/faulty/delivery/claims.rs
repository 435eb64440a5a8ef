//! Leases that are not whole.

use std::time::Duration;

use rheo_core::{
    Cause, ConsumerId, Error, FetchOptions, GroupName, JsonObject, Lease, LeaseDuration, Result,
    StreamName, Timestamp, async_trait,
};

use crate::defect::{Defect, Real};
use crate::faulty::Faulty;
use crate::tweak::{Claims, Tweak};

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        LeaseHasNoMetadata: "the event in a lease has no metadata",
        says: "the event",
        kills: [
            "delivery::DLV-8::a_lease_is_whole",
            "fidelity::LOG-5::a_renewed_and_a_redelivered_lease_hold_the_same_event",
            "fidelity::LOG-5::append_read_and_fetch_give_the_same_event",
            "fidelity::LOG-5::every_event_of_a_large_batch_is_whole",
            "fidelity::LOG-8::a_long_array_comes_back_in_order",
            "fidelity::LOG-8::any_field_name_comes_back",
            "fidelity::LOG-8::any_unicode_text_comes_back",
            "fidelity::LOG-8::control_characters_and_blanks_come_back",
            "fidelity::LOG-8::documents_that_look_like_typed_values_stay_documents",
            "fidelity::LOG-8::doubles_come_back",
            "fidelity::LOG-8::integers_of_64_bits_come_back",
            "fidelity::LOG-8::many_fields_and_long_names_come_back",
            "fidelity::LOG-8::nesting_to_64_comes_back",
            "fidelity::LOG-8::nulls_and_empty_values_stay",
            "fidelity::LOG-8::random_documents_come_back",
            "fidelity::LOG-8::text_that_looks_like_an_escape_stays",
            "fidelity::LOG-8::the_longest_document_comes_back",
            "fidelity::LOG-8::whole_doubles_and_integers_stay_what_they_are",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        ConsumerIsFolded: "consumers lose their blanks",
        says: "the consumer",
        kills: [
            "delivery::DLV-8::a_lease_is_whole",
            "streams::STR-2::consumer_names_come_back",
        ],
    },
    faulty! {
        LeasesLastWholeSeconds: "the duration of a lease is rounded up to seconds",
        says: "the duration",
        kills: ["delivery::DLV-8::a_lease_lasts_as_long_as_was_asked_for"],
    },
    faulty! {
        LeasesLastTwelveHours: "a lease lasts twelve hours at most",
        says: "the duration",
        kills: ["delivery::DLV-8::a_lease_lasts_as_long_as_was_asked_for"],
    },
    faulty! {
        LateExpiryOverflows: "a lease that would end after the highest timestamp cannot be made",
        says: "the last operation to succeed",
        kills: [
            "delivery::DLV-8::no_lease_outlasts_the_highest_timestamp",
            "leases::LSE-4::at_the_highest_timestamp_every_lease_has_ended",
            "settling::DLQ-1::no_delay_goes_beyond_the_highest_timestamp",
        ],
    },
    faulty! {
        ReclaimKeepsTheConsumer: "a reclaimed event is still its first consumer's",
        says: "the consumer",
        kills: [
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
            "leases::LSE-5::reclaiming_gives_a_new_lease_and_the_next_attempt",
        ],
    },
    faulty! {
        ClaimKeepsItsFirstTime: "leased_at stays that of the first claim",
        says: "leased_at",
        kills: [
            "delivery::DLV-8::each_claim_has_its_own_time_and_consumer",
            "leases::LSE-5::reclaiming_gives_a_new_lease_and_the_next_attempt",
        ],
    },
];

#[derive(Default)]
struct LeaseHasNoMetadata;

impl Tweak for LeaseHasNoMetadata {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        lease.event.metadata = JsonObject::default();
    }
}

#[derive(Default)]
struct ConsumerIsFolded;

impl Tweak for ConsumerIsFolded {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        let folded = ConsumerId::new(&*lease.consumer.as_str().replace(' ', ""));
        lease.consumer = folded.unwrap_or(lease.consumer.clone());
    }
}

#[derive(Default)]
struct LeasesLastWholeSeconds;

impl Tweak for LeasesLastWholeSeconds {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        let duration = options.lease_duration.as_duration();
        let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
        let whole = LeaseDuration::new(Duration::from_secs(seconds));
        options.lease_duration = whole.unwrap_or(options.lease_duration);
    }
}

#[derive(Default)]
struct LeasesLastTwelveHours;

impl Tweak for LeasesLastTwelveHours {
    fn asked(&self, _: Timestamp, options: &mut FetchOptions) {
        let most = LeaseDuration::new(Duration::from_secs(43_200));
        let most = most.unwrap_or(options.lease_duration);
        options.lease_duration = options.lease_duration.min(most);
    }
}

#[derive(Default)]
struct LateExpiryOverflows;

#[async_trait]
impl Defect for LateExpiryOverflows {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let left = Timestamp::MAX.saturating_since(real.now());
        if options.lease_duration.as_duration() > left {
            return Err(Error::Failed(Cause::new("timestamp out of range")));
        }
        real.backend.fetch(stream, group, options).await
    }
}

#[derive(Default)]
struct ReclaimKeepsTheConsumer(Claims);

impl Tweak for ReclaimKeepsTheConsumer {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        if let Some(first) = self.0.last_of(lease) {
            lease.consumer = first.consumer;
        }
        self.0.note(lease);
    }
}

#[derive(Default)]
struct ClaimKeepsItsFirstTime(Claims);

impl Tweak for ClaimKeepsItsFirstTime {
    fn claimed(&self, _: Timestamp, lease: &mut Lease) {
        if let Some(first) = self.0.last_of(lease) {
            lease.leased_at = first.leased_at;
        }
        self.0.note(lease);
    }
}
