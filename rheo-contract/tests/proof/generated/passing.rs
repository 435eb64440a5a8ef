//! Defects that show only when calls overlap, in what a fetch leaves, or takes too early.

use rheo_core::{ConsumerId, FetchOptions, Partitions, RetryDelay};

use crate::faulty::{Faulty, faulty};
use crate::generated::meddling::{OpenAppends, UnderWay, append_openly, reopen};
use crate::generated::spoils::spoils;
use crate::journal::What;
use crate::tweak::{Place, place_of};

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        FetchesGiveNothingDuringSettles: "a fetch that finds the group locked by a settle gives nothing instead of waiting",
        says: "claimable event passed, and nothing given (DLV-3)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        RestrictedFetchesPassTheLowestDuringAppends: "a fetch from one partition passes over its lowest event while something is appended",
        says: "lower event passed over (DLV-4)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingFetchesTakeFromAllPartitions: "a fetch that overlaps another one takes from partitions that were not selected too",
        says: "lease of a partition that was not selected (DLV-3)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        DelaysAreForgottenDuringFetches: "a retry that overlaps a fetch has no delay",
        says: "claim before the delay of a retry was over (DLQ-1)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
];

/// Leases that are being settled.
type Settling = UnderWay<Place>;

#[derive(Default)]
struct FetchesGiveNothingDuringSettles;

spoils! { FetchesGiveNothingDuringSettles {
    ack(self, real, lease) {
        let _settling = real.beside.of::<Settling>().begin(place_of(lease));
        real.backend.ack(lease).await
    }
    reject(self, real, lease, reason) {
        let _settling = real.beside.of::<Settling>().begin(place_of(lease));
        real.backend.reject(lease, reason).await
    }
    fetch(self, real, stream, group, options) {
        let settling = real.beside.of::<Settling>().all();
        if settling.iter().any(|(of, by, ..)| of == stream && by == group) {
            return Ok(Vec::new());
        }
        real.backend.fetch(stream, group, options).await
    }
} }

#[derive(Default)]
struct RestrictedFetchesPassTheLowestDuringAppends;

spoils! { RestrictedFetchesPassTheLowestDuringAppends {
    append_batch(self, real, stream, events) {
        append_openly(real, stream, events, 6).await
    }
    fetch(self, real, stream, group, options) {
        let is_restricted = !matches!(options.partitions, Partitions::All);
        let passes = is_restricted && real.beside.of::<OpenAppends>().is_any();
        let mut leases = real.backend.fetch(stream, group, options).await?;
        if !passes || leases.first().is_none_or(|lease| lease.attempt > 1) {
            return Ok(leases);
        }
        // It claims one more instead, and nobody has claimed the lowest.
        let one_more: FetchOptions = options.clone().with_limit(1);
        let more = real.store.fetch(stream, group, &one_more).await?;
        if !more.is_empty() {
            reopen(real, &leases.remove(0)).await?;
        }
        let noted = more.iter().cloned().map(|lease| (lease, What::Claimed));
        real.journal.note(real.handle, noted.collect());
        leases.extend(more);
        leases.sort_by_key(|lease| (lease.event.partition, lease.event.sequence));
        Ok(leases)
    }
} }

#[derive(Default)]
struct OverlappingFetchesTakeFromAllPartitions;

spoils! { OverlappingFetchesTakeFromAllPartitions {
    fetch(self, real, stream, group, options) {
        let fetching = real.beside.of::<UnderWay<ConsumerId>>();
        let overlaps = fetching.is_any();
        let _fetching = fetching.begin(options.consumer.clone());
        if overlaps {
            let all = options.clone().with_partitions(Partitions::All);
            return real.backend.fetch(stream, group, &all).await;
        }
        real.backend.fetch(stream, group, options).await
    }
} }

#[derive(Default)]
struct DelaysAreForgottenDuringFetches;

spoils! { DelaysAreForgottenDuringFetches {
    fetch(self, real, stream, group, options) {
        let _fetching = real.beside.of::<UnderWay<ConsumerId>>().begin(options.consumer.clone());
        real.backend.fetch(stream, group, options).await
    }
    retry(self, real, lease, options) {
        let mut options = options.clone();
        if real.beside.of::<UnderWay<ConsumerId>>().is_any() {
            options = options.with_delay(RetryDelay::NONE);
        }
        real.backend.retry(lease, &options).await
    }
} }
