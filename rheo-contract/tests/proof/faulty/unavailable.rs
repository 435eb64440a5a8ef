//! Defects that the cases of `unavailable` are there for.

use std::time::Duration;

use rheo_core::{
    Cause, DeadLetter, DeadLetterOptions, Error, ErrorKind, Event, FetchOptions, GroupName,
    GroupOptions, Lag, Lease, LeaseDuration, ListOptions, NewEvent, Page, Query, ReadOptions,
    Replay, ResetOptions, Result, StreamInfo, StreamName, StreamOptions, Wakeup, async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real, SECRET};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        GonePingsFine: "ping does not ask the store",
        says: "ping to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-9::ping_says_that_the_store_is_gone",
            "lifecycle::ERR-7::a_closed_handle_answers_nothing_about_itself",
        ],
    },
    faulty! {
        GoneIndexesAreMade: "making indexes without a store is Ok",
        says: "ensure_indexes to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_nothing_is_made",
            "lifecycle::ERR-7::a_closed_handle_answers_nothing_about_itself",
        ],
    },
    faulty! {
        GoneMakingFails: "making a stream without a store is Failed",
        says: "to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_nothing_is_made",
            "lifecycle::ERR-7::a_closed_handle_makes_and_appends_nothing",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
    },
    faulty! {
        GoneAppendsAreAmbiguous: "an append that reached no store is Ambiguous",
        says: "to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_nothing_is_appended",
            "lifecycle::ERR-7::a_closed_handle_makes_and_appends_nothing",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
    },
    faulty! {
        GoneReadsNothing: "read without a store is an empty Ok",
        says: "read to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_nothing_is_read",
            "lifecycle::ERR-7::a_closed_handle_reads_nothing",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
    },
    faulty! {
        GoneQueriesNothing: "query without a store is an empty page",
        says: "query to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_nothing_is_read",
            "lifecycle::ERR-7::a_closed_handle_reads_nothing",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
    },
    faulty! {
        GoneHasNoLag: "lag without a store is nothing",
        says: "lag to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_nothing_is_read",
            "lifecycle::ERR-7::a_closed_handle_reads_nothing",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
    },
    faulty! {
        GoneFetchesNothing: "fetch without a store is an empty Ok",
        says: "fetch to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_nothing_is_fetched",
            "lifecycle::ERR-7::a_closed_handle_fetches_nothing",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
    },
    faulty! {
        GoneLeasesAreStale: "an ack or a renew that reached no store is StaleLease",
        says: "to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_no_lease_is_stale",
            "lifecycle::ERR-7::a_closed_handle_settles_no_batch",
            "lifecycle::ERR-7::a_closed_handle_settles_nothing",
            "unavailable::ERR-4::without_a_store_each_lease_of_a_batch_has_its_error",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
    },
    faulty! {
        GoneBatchIsOneError: "a batch of acks without a store gives one error for all",
        says: "2 results of ack_batch",
        kills: [
            "unavailable::ERR-4::without_a_store_each_lease_of_a_batch_has_its_error",
            "lifecycle::ERR-7::a_closed_handle_settles_no_batch",
        ],
    },
    faulty! {
        GoneBatchIsNothing: "a batch of renewals without a store gives no results",
        says: "2 results of renew_batch",
        kills: [
            "unavailable::ERR-4::without_a_store_each_lease_of_a_batch_has_its_error",
            "lifecycle::ERR-7::a_closed_handle_settles_no_batch",
        ],
    },
    faulty! {
        GoneReplaysFine: "replay without a store is Ok",
        says: "replay to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_no_group_goes_back",
            "lifecycle::ERR-7::a_closed_handle_goes_back_nowhere",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
    },
    faulty! {
        GoneResetsFine: "reset_group without a store is Ok",
        says: "reset_group to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_no_group_goes_back",
            "lifecycle::ERR-7::a_closed_handle_goes_back_nowhere",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
        ],
    },
    faulty! {
        GoneListsNothing: "the lists without a store are empty",
        says: "to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_nothing_is_inspected",
            "lifecycle::ERR-7::a_closed_handle_inspects_nothing",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
    },
    faulty! {
        GoneHasNoDeadLetters: "dead_letters without a store is empty",
        says: "dead_letters to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_nothing_is_inspected",
            "lifecycle::ERR-7::a_closed_handle_inspects_nothing",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
    },
    faulty! {
        GoneWaitTimesOut: "waiting without a store times out",
        says: "wait_for_work to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-4::without_a_store_nothing_is_inspected",
            "lifecycle::ERR-7::a_closed_handle_inspects_nothing",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
        ],
    },
    faulty! {
        GoneStreamIsMissing: "a store that does not answer does not have the group's stream",
        says: "fetch to give Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-6::no_store_comes_before_what_is_missing",
            "lifecycle::ERR-7::a_closed_handle_fetches_nothing",
            "unavailable::ERR-4::without_a_store_nothing_is_fetched",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
        ],
    },
    faulty! {
        EmptyBatchReturnsEarly: "an empty batch of events is Ok before the store is asked",
        says: "Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
            "log::ERR-6::an_empty_batch_to_a_missing_stream_is_an_error",
        ],
    },
    faulty! {
        FetchOfNoneReturnsEarly: "a fetch with limit 0 is Ok before the store is asked",
        says: "Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "delivery::ERR-6::a_missing_stream_is_noticed_before_its_group",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
        ],
    },
    faulty! {
        ReadOfNoneReturnsEarly: "a read with limit 0 is Ok before the store is asked",
        says: "Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
            "log::LOG-9::reading_a_missing_stream_is_an_error",
        ],
    },
    faulty! {
        ReplayOfNoneReturnsEarly: "a replay of no events is Ok before the store is asked",
        says: "Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "input::ERR-6::nothing_to_replay_excuses_no_missing_group",
            "replay::ERR-6::replay_looks_for_the_stream_before_the_group",
        ],
    },
    faulty! {
        ListOfNoneReturnsEarly: "a list with limit 0 is Ok before the store is asked",
        says: "Err(BackendUnavailable)",
        kills: [
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
            "dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream",
            "dead_letters::DLQ-5::an_after_of_a_namesake_is_cursor_not_found",
            "dead_letters::DLQ-5::an_after_that_is_no_dead_letter_is_cursor_not_found",
            "dead_letters::DLQ-5::an_after_that_is_not_dead_is_found_in_no_partition",
            "dead_letters::DLQ-5::an_after_that_was_replayed_is_cursor_not_found",
            "dead_letters::DLQ-5::an_unknown_after_is_cursor_not_found",
            "dead_letters::ERR-6::dead_letters_look_for_the_stream_before_the_group",
            "input::ERR-10::a_cursor_that_is_not_found_is_named",
            "input::ERR-6::listing_nothing_excuses_no_missing_group",
            "inspect::ERR-6::the_groups_of_a_missing_stream_are_not_an_empty_list",
        ],
    },
    faulty! {
        GoneListShowsThePassword: "the error of list_streams without a store tells how to connect",
        says: "no error to show a secret",
        kills: [
            "unavailable::ERR-11::no_error_shows_a_secret",
            "lifecycle::ERR-1::a_call_on_a_closed_handle_has_no_effect",
            "lifecycle::ERR-7::a_closed_handle_inspects_nothing",
            "unavailable::ERR-4::without_a_store_nothing_is_inspected",
            "unavailable::ERR-6::no_store_comes_before_nothing_to_do",
        ],
    },
    faulty! {
        BadInputShowsTheSettings: "the error of a read out of range shows the settings of the handle",
        says: "no error to show a secret",
        kills: [
            "unavailable::ERR-11::no_error_shows_a_secret",
            "durability::DUR-1::partitions_survive",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
            "input::ERR-8::a_read_out_of_range_is_invalid",
            "streams::STR-1::a_duplicate_does_not_change_the_partitions",
            "streams::STR-1::a_stream_has_one_partition_by_default",
            "streams::STR-1::a_stream_has_the_partitions_it_was_made_with",
            "streams::STR-1::a_stream_has_up_to_1024_partitions",
        ],
    },
];

/// What is said instead, where the store is gone.
fn if_gone<T>(result: Result<T>, instead: Result<T>) -> Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::BackendUnavailable => instead,
        result => result,
    }
}

#[derive(Default)]
struct GonePingsFine;

#[async_trait]
impl Defect for GonePingsFine {
    async fn ping(&self, _: &Real) -> Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct GoneIndexesAreMade;

#[async_trait]
impl Defect for GoneIndexesAreMade {
    async fn ensure_indexes(&self, _: &Real) -> Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct GoneMakingFails;

#[async_trait]
impl Defect for GoneMakingFails {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let failed = Error::Failed(Cause::new("connection refused"));
        if_gone(
            real.backend.create_stream(stream, options).await,
            Err(failed),
        )
    }
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let failed = Error::Failed(Cause::new("connection refused"));
        let made = real.backend.create_group(stream, group, options).await;
        if_gone(made, Err(failed))
    }
}

#[derive(Default)]
struct GoneAppendsAreAmbiguous;

#[async_trait]
impl Defect for GoneAppendsAreAmbiguous {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let unknown = Error::Ambiguous(Cause::new("connection refused"));
        if_gone(
            real.backend.append_batch(stream, events).await,
            Err(unknown),
        )
    }
}

#[derive(Default)]
struct GoneReadsNothing;

#[async_trait]
impl Defect for GoneReadsNothing {
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        if_gone(real.backend.read(stream, options).await, Ok(Vec::new()))
    }
}

#[derive(Default)]
struct GoneQueriesNothing;

#[async_trait]
impl Defect for GoneQueriesNothing {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        if_gone(real.backend.query(stream, query).await, Ok(Page::default()))
    }
}

#[derive(Default)]
struct GoneHasNoLag;

#[async_trait]
impl Defect for GoneHasNoLag {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        if_gone(real.backend.lag(stream, group).await, Ok(Lag::default()))
    }
}

#[derive(Default)]
struct GoneFetchesNothing;

#[async_trait]
impl Defect for GoneFetchesNothing {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let fetched = real.backend.fetch(stream, group, options).await;
        if_gone(fetched, Ok(Vec::new()))
    }
}

#[derive(Default)]
struct GoneLeasesAreStale;

#[async_trait]
impl Defect for GoneLeasesAreStale {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        if_gone(real.backend.ack(lease).await, Err(Error::StaleLease))
    }
    async fn renew(&self, real: &Real, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = real.backend.renew(lease, duration).await;
        if_gone(renewed, Err(Error::StaleLease))
    }
}

#[derive(Default)]
struct GoneBatchIsOneError;

#[async_trait]
impl Defect for GoneBatchIsOneError {
    async fn ack_batch(&self, real: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        if let Err(gone) = real.backend.ping().await {
            return vec![Err(gone)];
        }
        real.backend.ack_batch(leases).await
    }
}

#[derive(Default)]
struct GoneBatchIsNothing;

#[async_trait]
impl Defect for GoneBatchIsNothing {
    async fn renew_batch(
        &self,
        real: &Real,
        leases: &[Lease],
        duration: LeaseDuration,
    ) -> Vec<Result<Lease>> {
        if real.backend.ping().await.is_err() {
            return Vec::new();
        }
        real.backend.renew_batch(leases, duration).await
    }
}

#[derive(Default)]
struct GoneReplaysFine;

#[async_trait]
impl Defect for GoneReplaysFine {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        if_gone(real.backend.replay(stream, group, replay).await, Ok(()))
    }
}

#[derive(Default)]
struct GoneResetsFine;

#[async_trait]
impl Defect for GoneResetsFine {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let reset = real.backend.reset_group(stream, group, options).await;
        if_gone(reset, Ok(()))
    }
}

#[derive(Default)]
struct GoneListsNothing;

#[async_trait]
impl Defect for GoneListsNothing {
    async fn list_streams(
        &self,
        real: &Real,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        if_gone(real.backend.list_streams(options).await, Ok(Vec::new()))
    }
    async fn list_groups(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        let listed = real.backend.list_groups(stream, options).await;
        if_gone(listed, Ok(Vec::new()))
    }
}

#[derive(Default)]
struct GoneHasNoDeadLetters;

#[async_trait]
impl Defect for GoneHasNoDeadLetters {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let dead = real.backend.dead_letters(stream, group, options).await;
        if_gone(dead, Ok(Vec::new()))
    }
}

#[derive(Default)]
struct GoneWaitTimesOut;

#[async_trait]
impl Defect for GoneWaitTimesOut {
    async fn wait_for_work(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let waited = real.backend.wait_for_work(stream, group, timeout).await;
        if_gone(waited, Ok(Wakeup::TimedOut))
    }
}

#[derive(Default)]
struct GoneStreamIsMissing;

#[async_trait]
impl Defect for GoneStreamIsMissing {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let missing = Error::StreamNotFound {
            stream: stream.clone(),
        };
        let fetched = real.backend.fetch(stream, group, options).await;
        if_gone(fetched, Err(missing))
    }
}

#[derive(Default)]
struct EmptyBatchReturnsEarly;

#[async_trait]
impl Defect for EmptyBatchReturnsEarly {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
struct FetchOfNoneReturnsEarly;

#[async_trait]
impl Defect for FetchOfNoneReturnsEarly {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        if options.limit == 0 {
            return Ok(Vec::new());
        }
        real.backend.fetch(stream, group, options).await
    }
}

#[derive(Default)]
struct ReadOfNoneReturnsEarly;

#[async_trait]
impl Defect for ReadOfNoneReturnsEarly {
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        if options.limit == 0 {
            return Ok(Vec::new());
        }
        real.backend.read(stream, options).await
    }
}

#[derive(Default)]
struct ReplayOfNoneReturnsEarly;

#[async_trait]
impl Defect for ReplayOfNoneReturnsEarly {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match replay {
            Replay::Events(none) if none.is_empty() => Ok(()),
            _ => real.backend.replay(stream, group, replay).await,
        }
    }
}

#[derive(Default)]
struct ListOfNoneReturnsEarly;

#[async_trait]
impl Defect for ListOfNoneReturnsEarly {
    async fn list_groups(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        if options.limit == 0 {
            return Ok(Vec::new());
        }
        real.backend.list_groups(stream, options).await
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        if options.limit == 0 {
            return Ok(Vec::new());
        }
        real.backend.dead_letters(stream, group, options).await
    }
}

#[derive(Default)]
struct GoneListShowsThePassword;

#[async_trait]
impl Defect for GoneListShowsThePassword {
    async fn list_streams(
        &self,
        real: &Real,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        let shown = Cause::new(format!("connecting as ada with {SECRET} was refused"));
        let listed = real.backend.list_streams(options).await;
        if_gone(listed, Err(Error::BackendUnavailable(shown)))
    }
}

#[derive(Default)]
struct BadInputShowsTheSettings;

#[async_trait]
impl Defect for BadInputShowsTheSettings {
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let read = real.backend.read(stream, options).await;
        read.map_err(|error| match error {
            Error::Invalid(mut invalid) => {
                invalid.allowed =
                    format!("{} (Settings {{ password: {SECRET} }})", invalid.allowed);
                Error::Invalid(invalid)
            }
            other => other,
        })
    }
}
