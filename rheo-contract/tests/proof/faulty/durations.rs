//! Defects in durations: rounded, cut, or kept in a number that is too small.

use std::time::Duration;

use rheo_core::{
    Cause, Error, FetchOptions, GroupName, Lease, LeaseDuration, Result, RetryDelay, RetryOptions,
    RetryOutcome, StreamName, Timestamp, async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        LeaseIsStoredInMilliseconds: "leases are stored with whole milliseconds and answered with microseconds",
        says: "nothing to be claimable before",
        kills: [
            "leases::LSE-4::a_lease_ends_exactly_then_however_long_it_lasts",
        ],
    },
    faulty! {
        LeaseIsStoredForTwelveHours: "a lease is stored for twelve hours at most, whatever it says",
        says: "nothing to be claimable before",
        kills: [
            "leases::LSE-4::a_lease_ends_exactly_then_however_long_it_lasts",
        ],
    },
    faulty! {
        LeaseIsStoredIn31Bits: "a lease is stored for as many milliseconds as 31 bits hold",
        says: "nothing to be claimable before",
        kills: [
            "leases::LSE-4::a_lease_ends_exactly_then_however_long_it_lasts",
        ],
    },
    faulty! {
        NothingExpiresAtTheEndOfTime: "at the highest timestamp no lease has ended",
        says: "claimable at 9999",
        kills: [
            "leases::LSE-4::at_the_highest_timestamp_every_lease_has_ended",
            "settling::DLQ-1::no_delay_goes_beyond_the_highest_timestamp",
        ],
    },
    faulty! {
        RenewalIsStoredInMilliseconds: "renewals are stored with whole milliseconds and answered with microseconds",
        says: "nothing to be claimable before",
        kills: [
            "leases::LSE-6::a_renewed_lease_ends_exactly_then_however_long_it_lasts",
        ],
    },
    faulty! {
        RenewalIsStoredIn31Bits: "a renewal is stored for as many milliseconds as 31 bits hold",
        says: "nothing to be claimable before",
        kills: [
            "leases::LSE-6::a_renewed_lease_ends_exactly_then_however_long_it_lasts",
        ],
    },
    faulty! {
        BatchOfRenewalsIsStoredInMilliseconds: "a batch of renewals is stored with whole milliseconds",
        says: "nothing to be claimable before",
        kills: [
            "batches::LSE-8::renewals_in_a_batch_end_exactly_then_however_long",
        ],
    },
    faulty! {
        BatchOfRenewalsLastsADay: "a batch of renewals lasts a day at most, whatever it answers",
        says: "nothing to be claimable before",
        kills: [
            "batches::LSE-8::renewals_in_a_batch_end_exactly_then_however_long",
        ],
    },
    faulty! {
        DelayIsAQuarterOfAnHour: "a delay lasts 15 minutes at most",
        says: "nothing to be claimable before",
        kills: [
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
        ],
    },
    faulty! {
        DelayIsIn31Bits: "a delay lasts as many milliseconds as 31 bits hold",
        says: "nothing to be claimable before",
        kills: [
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
        ],
    },
    faulty! {
        DelayIsInMilliseconds: "delays have whole milliseconds",
        says: "nothing to be claimable before",
        kills: [
            "settling::DLQ-1::a_delay_ends_exactly_then_however_long_it_is",
        ],
    },
    faulty! {
        DelayBeyondTheEndFails: "a delay whose end is above the highest timestamp is refused",
        says: "the last operation to succeed",
        kills: [
            "settling::DLQ-1::no_delay_goes_beyond_the_highest_timestamp",
        ],
    },
    faulty! {
        DelayBeyondTheEndIsNone: "a delay whose end is above the highest timestamp wraps, and is none",
        says: "nothing to be claimable before",
        kills: [
            "settling::DLQ-1::no_delay_goes_beyond_the_highest_timestamp",
        ],
    },
    faulty! {
        BatchOfRetriesWaitsAQuarterOfAnHour: "the delay of a batch lasts 15 minutes at most",
        says: "nothing to be claimable before",
        kills: [
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
        ],
    },
    faulty! {
        BatchOfRetriesIsInMilliseconds: "the delay of a batch has whole milliseconds",
        says: "nothing to be claimable before",
        kills: [
            "batches::LSE-8::delays_in_a_batch_end_exactly_then_however_long",
        ],
    },
];

/// What some store makes of a duration.
type Change = fn(Duration) -> Duration;

const HOUR: Duration = Duration::from_secs(3_600);

fn in_milliseconds(duration: Duration) -> Duration {
    let whole = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(whole)
}

fn in_31_bits(duration: Duration) -> Duration {
    duration.min(Duration::from_millis(i32::MAX as u64))
}

fn lasting(duration: LeaseDuration, change: Change) -> LeaseDuration {
    let changed = change(duration.as_duration()).max(Duration::from_micros(1));
    LeaseDuration::new(changed).unwrap_or(duration)
}

fn waiting(options: &RetryOptions, change: Change) -> RetryOptions {
    let mut options = options.clone();
    let changed = RetryDelay::new(change(options.delay.as_duration()));
    options.delay = changed.unwrap_or(options.delay);
    options
}

/// `stored_lease!(Type, change)`: a lease of another duration than it says.
macro_rules! stored_lease {
    ($type:ident, $change:expr) => {
        #[derive(Default)]
        struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn fetch(
                &self,
                real: &Real,
                stream: &StreamName,
                group: &GroupName,
                options: &FetchOptions,
            ) -> Result<Vec<Lease>> {
                let asked = options.lease_duration;
                let options = options.clone();
                let options = options.with_lease_duration(lasting(asked, $change));
                let mut leases = real.backend.fetch(stream, group, &options).await?;
                for lease in &mut leases {
                    lease.expires_at = lease.leased_at.saturating_add(asked.as_duration());
                }
                Ok(leases)
            }
        }
    };
}

stored_lease!(LeaseIsStoredInMilliseconds, in_milliseconds);
stored_lease!(LeaseIsStoredForTwelveHours, |d| d.min(12 * HOUR));
stored_lease!(LeaseIsStoredIn31Bits, in_31_bits);

#[derive(Default)]
struct NothingExpiresAtTheEndOfTime;

#[async_trait]
impl Defect for NothingExpiresAtTheEndOfTime {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut options = options.clone();
        if real.now() == Timestamp::MAX {
            options.limit = 0;
        }
        real.backend.fetch(stream, group, &options).await
    }
}

/// A renewal of another duration than the answer says.
async fn renew_for(
    real: &Real,
    lease: &Lease,
    asked: LeaseDuration,
    change: Change,
) -> Result<Lease> {
    let now = real.now();
    let renewed = real.backend.renew(lease, lasting(asked, change)).await?;
    Ok(Lease {
        expires_at: now.saturating_add(asked.as_duration()),
        ..renewed
    })
}

async fn renew_all_for(
    real: &Real,
    leases: &[Lease],
    asked: LeaseDuration,
    change: Change,
) -> Vec<Result<Lease>> {
    let mut results = Vec::with_capacity(leases.len());
    for lease in leases {
        results.push(renew_for(real, lease, asked, change).await);
    }
    results
}

/// `stored_renewal!(Type, single, batch)`: renewals of another duration than they say.
macro_rules! stored_renewal {
    ($type:ident, $single:expr, $batch:expr) => {
        #[derive(Default)]
        struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn renew(
                &self,
                real: &Real,
                lease: &Lease,
                duration: LeaseDuration,
            ) -> Result<Lease> {
                renew_for(real, lease, duration, $single).await
            }
            async fn renew_batch(
                &self,
                real: &Real,
                leases: &[Lease],
                duration: LeaseDuration,
            ) -> Vec<Result<Lease>> {
                renew_all_for(real, leases, duration, $batch).await
            }
        }
    };
}

fn as_it_is(duration: Duration) -> Duration {
    duration
}

stored_renewal!(RenewalIsStoredInMilliseconds, in_milliseconds, as_it_is);
stored_renewal!(RenewalIsStoredIn31Bits, in_31_bits, as_it_is);
stored_renewal!(
    BatchOfRenewalsIsStoredInMilliseconds,
    as_it_is,
    in_milliseconds
);
stored_renewal!(BatchOfRenewalsLastsADay, as_it_is, |d| d.min(24 * HOUR));

async fn retry_all_after(
    real: &Real,
    leases: &[Lease],
    options: &RetryOptions,
    change: Change,
) -> Vec<Result<RetryOutcome>> {
    real.backend
        .retry_batch(leases, &waiting(options, change))
        .await
}

/// `other_delay!(Type, single, batch)`: other delays than were asked for.
macro_rules! other_delay {
    ($type:ident, $single:expr, $batch:expr) => {
        #[derive(Default)]
        struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn retry(
                &self,
                real: &Real,
                lease: &Lease,
                options: &RetryOptions,
            ) -> Result<RetryOutcome> {
                real.backend.retry(lease, &waiting(options, $single)).await
            }
            async fn retry_batch(
                &self,
                real: &Real,
                leases: &[Lease],
                options: &RetryOptions,
            ) -> Vec<Result<RetryOutcome>> {
                retry_all_after(real, leases, options, $batch).await
            }
        }
    };
}

other_delay!(DelayIsAQuarterOfAnHour, |d| d.min(HOUR / 4), as_it_is);
other_delay!(DelayIsIn31Bits, in_31_bits, as_it_is);
other_delay!(DelayIsInMilliseconds, in_milliseconds, as_it_is);
other_delay!(BatchOfRetriesWaitsAQuarterOfAnHour, as_it_is, |d| d
    .min(HOUR / 4));
other_delay!(BatchOfRetriesIsInMilliseconds, as_it_is, in_milliseconds);

fn is_beyond_the_end(real: &Real, options: &RetryOptions) -> bool {
    Timestamp::MAX.saturating_since(real.now()) < options.delay.as_duration()
}

#[derive(Default)]
struct DelayBeyondTheEndFails;

#[async_trait]
impl Defect for DelayBeyondTheEndFails {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        if is_beyond_the_end(real, options) {
            return Err(Error::Failed(Cause::new("timestamp out of range")));
        }
        real.backend.retry(lease, options).await
    }
}

#[derive(Default)]
struct DelayBeyondTheEndIsNone;

#[async_trait]
impl Defect for DelayBeyondTheEndIsNone {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let mut options = options.clone();
        if is_beyond_the_end(real, &options) {
            options.delay = RetryDelay::NONE;
        }
        real.backend.retry(lease, &options).await
    }
}
