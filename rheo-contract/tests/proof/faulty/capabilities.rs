//! Defects that the cases of `capabilities` are there for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rheo_core::{
    Capabilities, Cause, DeadLetter, DeadLetterOptions, Error, Event, Gate, GroupInfo, GroupName,
    GroupOptions, Guarantee, Lag, ListOptions, MaxAttempts, NewEvent, Operation, OptionalOperation,
    Page, Query, Replay, ResetOptions, Result, StreamInfo, StreamName, StreamOptions, Wakeup,
    async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real, of_a_server};
use crate::modest::{lacking, unsupported};

const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);
const REPLAY: Gate = Gate::Guarantee(Guarantee::Replay);
const RANGE_SCAN: Gate = Gate::Guarantee(Guarantee::OrderedRangeScan);
const INDEXES: Gate = Gate::Guarantee(Guarantee::SecondaryIndexes);
const BATCHES: Gate = Gate::Guarantee(Guarantee::BatchWrites);
const LIST_STREAMS: Gate = Gate::Operation(OptionalOperation::ListStreams);
const LIST_GROUPS: Gate = Gate::Operation(OptionalOperation::ListGroups);
const DEAD_LETTERS: Gate = Gate::Operation(OptionalOperation::DeadLetters);
const GROUP_INFO: Gate = Gate::Operation(OptionalOperation::GroupInfo);
const WAIT_FOR_WORK: Gate = Gate::Operation(OptionalOperation::WaitForWork);

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        DeclaresMoreOnceThereAreGroups: "dead_letters is declared as soon as a group was made",
        says: "the declaration",
        kills: [
            "capabilities::CAP-2::the_declaration_stays_whatever_is_done",
            "input::ERR-10::a_missing_group_is_named_with_its_stream",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::a_missing_group_is_named",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "replay::RPL-1::any_number_of_events_is_reopened_after_a_sequence",
            "replay::RPL-4::chosen_events_at_any_attempt_are_reopened",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_can_be_chosen_again",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-5::reset_drops_any_number_of_deliveries",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
        ],
    },
    faulty! {
        DeclaresNothingOnceClosed: "after close the declaration is empty",
        says: "the declaration",
        kills: ["capabilities::CAP-2::the_declaration_stays_after_close"],
    },
    faulty! {
        LaterHandlesDeclareLess: "a handle that finds the tables there declares no wait_for_work",
        says: "declaration",
        kills: [
            "capabilities::CAP-2::every_handle_declares_the_same",
            "capabilities::CAP-2::a_reopened_handle_declares_the_same",
        ],
    },
    faulty! {
        MorePartitionsBecomeOne: "without partitions, a stream of several silently gets one",
        says: "Err(Unsupported)",
        kills: ["capabilities::CAP-6::more_partitions_are_refused"],
    },
    faulty! {
        RefusedStreamIsMade: "without partitions, a stream of several is refused and made",
        says: "Err(StreamNotFound)",
        kills: ["capabilities::CAP-6::more_partitions_are_refused"],
    },
    faulty! {
        BatchAnyway: "without batch_writes, batches are written one by one",
        says: "Err(Unsupported)",
        kills: ["capabilities::CAP-6::a_batch_is_refused"],
    },
    faulty! {
        RefusedBatchWritesItsFirst: "without batch_writes, the first event is written, then comes the refusal",
        says: "no event",
        kills: ["capabilities::CAP-6::a_batch_is_refused"],
    },
    faulty! {
        RefusesBatchesOfOne: "without batch_writes, every batch is refused",
        says: "the last operation to succeed",
        kills: [
            "capabilities::CAP-6::a_batch_is_refused",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-10::a_taken_id_is_named",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
            "input::ERR-8::an_append_out_of_range_is_invalid",
            "log::ERR-6::an_empty_batch_to_a_missing_stream_is_an_error",
            "log::LOG-3::a_batch_of_one_is_an_append",
            "log::LOG-3::an_empty_batch_writes_nothing",
            "wakeup::OPS-4::any_kind_of_append_ends_the_wait",
        ],
    },
    faulty! {
        LagAnyway: "without contiguous_frontier, lag gives what it has",
        says: "Err(Unsupported)",
        kills: [
            "capabilities::CAP-6::lag_is_refused",
            "inspect::OPS-3::without_an_exact_frontier_group_info_gives_no_progress",
        ],
    },
    faulty! {
        LagFails: "without contiguous_frontier, lag fails instead of being refused",
        says: "Err(Failed)",
        kills: [
            "capabilities::CAP-6::lag_is_refused",
            "inspect::OPS-3::without_an_exact_frontier_group_info_gives_no_progress",
        ],
    },
    faulty! {
        LagNamesSomethingElse: "the refusal of lag names a guarantee that does not exist",
        says: "the error to name lag and contiguous_frontier",
        kills: [
            "capabilities::CAP-6::lag_is_refused",
            "inspect::OPS-3::without_an_exact_frontier_group_info_gives_no_progress",
        ],
    },
    faulty! {
        LagLooksTheGroupUpFirst: "lag without contiguous_frontier is refused after the stream was looked up",
        says: "Err(StreamNotFound)",
        kills: [
            "capabilities::CAP-6::lag_is_refused",
            "inspect::OPS-3::without_an_exact_frontier_group_info_gives_no_progress",
        ],
    },
    faulty! {
        ReplayDoesNothing: "without replay, replay and reset_group are Ok and do nothing",
        says: "Err(Unsupported)",
        kills: ["capabilities::CAP-6::replay_is_refused"],
    },
    faulty! {
        RefusedResetResets: "without replay, reset_group is refused and has reset the group",
        says: "claimable",
        kills: ["capabilities::CAP-6::replay_is_refused"],
    },
    faulty! {
        QueryFindsNothing: "without ordered_range_scan, a query gives an empty page",
        says: "Err(Unsupported)",
        kills: ["capabilities::CAP-6::a_query_is_refused"],
    },
    faulty! {
        FiltersAreLeftOut: "without secondary_indexes, filters are left out",
        says: "Err(Unsupported)",
        kills: ["capabilities::CAP-6::a_filtered_query_is_refused"],
    },
    faulty! {
        MetadataFilterIsForgotten: "without secondary_indexes, a filter on metadata is not refused",
        says: "Err(Unsupported)",
        kills: ["capabilities::CAP-6::a_filtered_query_is_refused"],
    },
    faulty! {
        RefusesEveryQuery: "without secondary_indexes, queries without filters are refused too",
        says: "the last operation to succeed",
        kills: [
            "capabilities::CAP-6::a_filtered_query_is_refused",
            "distribution::DST-1::a_cursor_goes_on_elsewhere",
            "durability::DUR-1::a_cursor_survives",
            "fidelity::LOG-5::a_query_gives_the_same_event",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::querying_nothing_excuses_no_bad_input",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
            "input::ERR-8::a_query_out_of_range_is_invalid",
            "log::LOG-10::an_appended_event_is_found_by_a_query_at_once",
            "queries::ERR-6::a_limit_of_0_excuses_no_damaged_cursor",
            "queries::ERR-6::querying_a_missing_stream_is_an_error",
            "queries::QRY-1::a_query_by_partition_gives_that_partition_alone",
            "queries::QRY-1::a_query_gives_100_unless_told",
            "queries::QRY-1::a_query_gives_up_to_limit",
            "queries::QRY-1::a_sequence_range_is_exclusive_below_and_inclusive_above",
            "queries::QRY-1::a_time_range_includes_both_ends",
            "queries::QRY-1::a_time_range_may_be_anywhere",
            "queries::QRY-1::bounds_that_leave_nothing_give_an_empty_page",
            "queries::QRY-1::ranges_hold_on_every_page_in_every_order",
            "queries::QRY-2::order_by_sequence_is_then_by_partition",
            "queries::QRY-2::order_by_timestamp_is_then_by_sequence_and_partition",
            "queries::QRY-2::partitions_above_9_are_ordered_by_number",
            "queries::QRY-2::timestamps_that_go_back_are_ordered_too",
            "queries::QRY-3::a_cursor_goes_on_under_other_filters",
            "queries::QRY-3::a_cursor_is_valid_on_every_handle",
            "queries::QRY-3::a_cursor_may_be_used_again",
            "queries::QRY-3::a_cursor_of_another_order_is_invalid",
            "queries::QRY-3::a_cursor_survives_serialization",
            "queries::QRY-3::a_damaged_cursor_is_invalid",
            "queries::QRY-3::a_page_holds_1500_events",
            "queries::QRY-3::a_page_holds_3_megabytes",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::pages_are_full",
            "queries::QRY-3::pages_join_up_beyond_a_thousand_events",
            "queries::QRY-3::paging_by_sequence_gives_every_event_once",
            "queries::QRY-3::paging_by_timestamp_gives_every_event_once",
            "queries::QRY-3::paging_one_partition_gives_every_event_once",
            "queries::QRY-3::timestamps_that_go_back_disturb_no_page",
            "queries::QRY-4::queries_change_nothing_for_groups",
            "streams::STR-4::queries_are_isolated",
        ],
    },
    faulty! {
        UndeclaredStreamsAreNone: "list_streams is not declared and gives an empty list",
        says: "Err(Unsupported)",
        kills: ["capabilities::CAP-6::list_streams_is_refused"],
    },
    faulty! {
        UndeclaredGroupsAreNone: "list_groups is not declared and gives an empty list",
        says: "Err(Unsupported)",
        kills: ["capabilities::CAP-6::list_groups_is_refused"],
    },
    faulty! {
        UndeclaredDeadLettersAreNone: "dead_letters is not declared and gives an empty list",
        says: "Err(Unsupported)",
        kills: ["capabilities::CAP-6::dead_letters_is_refused"],
    },
    faulty! {
        UndeclaredInfoIsZero: "group_info is not declared and gives zeros",
        says: "Err(Unsupported)",
        kills: ["capabilities::CAP-6::group_info_is_refused"],
    },
    faulty! {
        UndeclaredWaitReturns: "wait_for_work is not declared and returns at once",
        says: "Err(Unsupported)",
        kills: ["capabilities::CAP-6::wait_for_work_is_refused"],
    },
];

#[derive(Default)]
struct DeclaresMoreOnceThereAreGroups(AtomicBool);

#[async_trait]
impl Defect for DeclaresMoreOnceThereAreGroups {
    fn capabilities(&self, real: &Real) -> Capabilities {
        if self.0.load(Ordering::SeqCst) {
            of_a_server(&real.backend.capabilities())
        } else {
            lacking(real, &[DEAD_LETTERS])
        }
    }
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.0.store(true, Ordering::SeqCst);
        real.backend.create_group(stream, group, options).await
    }
    async fn dead_letters(
        &self,
        real: &Real,
        _: &StreamName,
        _: &GroupName,
        _: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        real.backend.ping().await?;
        Err(unsupported(Operation::DeadLetters, DEAD_LETTERS))
    }
}

#[derive(Default)]
struct DeclaresNothingOnceClosed(AtomicBool);

#[async_trait]
impl Defect for DeclaresNothingOnceClosed {
    fn capabilities(&self, real: &Real) -> Capabilities {
        if self.0.load(Ordering::SeqCst) {
            Capabilities::builder().build().expect("valid")
        } else {
            of_a_server(&real.backend.capabilities())
        }
    }
    async fn close(&self, real: &Real) -> Result<()> {
        self.0.store(true, Ordering::SeqCst);
        real.backend.close().await
    }
}

#[derive(Default)]
struct LaterHandlesDeclareLess;

impl Defect for LaterHandlesDeclareLess {
    fn capabilities(&self, real: &Real) -> Capabilities {
        let missing: &[Gate] = if real.handle > 0 {
            &[WAIT_FOR_WORK]
        } else {
            &[]
        };
        lacking(real, missing)
    }
}

#[derive(Default)]
struct MorePartitionsBecomeOne;

#[async_trait]
impl Defect for MorePartitionsBecomeOne {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[PARTITIONS])
    }
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        _: &StreamOptions,
    ) -> Result<()> {
        let one = StreamOptions::new();
        real.backend.create_stream(stream, &one).await
    }
}

#[derive(Default)]
struct RefusedStreamIsMade;

#[async_trait]
impl Defect for RefusedStreamIsMade {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[PARTITIONS])
    }
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        real.backend.create_stream(stream, options).await?;
        if options.partition_count.get() > 1 {
            return Err(unsupported(Operation::CreateStream, PARTITIONS));
        }
        Ok(())
    }
}

#[derive(Default)]
struct BatchAnyway;

impl Defect for BatchAnyway {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[BATCHES])
    }
}

#[derive(Default)]
struct RefusedBatchWritesItsFirst;

#[async_trait]
impl Defect for RefusedBatchWritesItsFirst {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[BATCHES])
    }
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let is_batch = events.len() > 1;
        events.truncate(1);
        let appended = real.backend.append_batch(stream, events).await;
        if is_batch {
            return Err(unsupported(Operation::AppendBatch, BATCHES));
        }
        appended
    }
}

#[derive(Default)]
struct RefusesBatchesOfOne;

#[async_trait]
impl Defect for RefusesBatchesOfOne {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[BATCHES])
    }
    async fn append(&self, real: &Real, stream: &StreamName, event: NewEvent) -> Result<Event> {
        real.backend.append(stream, event).await
    }
    async fn append_batch(
        &self,
        real: &Real,
        _: &StreamName,
        _: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        real.backend.ping().await?;
        Err(unsupported(Operation::AppendBatch, BATCHES))
    }
}

#[derive(Default)]
struct LagAnyway;

impl Defect for LagAnyway {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[FRONTIER])
    }
}

#[derive(Default)]
struct LagFails;

#[async_trait]
impl Defect for LagFails {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[FRONTIER])
    }
    async fn lag(&self, real: &Real, _: &StreamName, _: &GroupName) -> Result<Lag> {
        real.backend.ping().await?;
        Err(Error::Failed(Cause::new("not implemented")))
    }
}

#[derive(Default)]
struct LagNamesSomethingElse;

#[async_trait]
impl Defect for LagNamesSomethingElse {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[FRONTIER])
    }
    async fn lag(&self, real: &Real, _: &StreamName, _: &GroupName) -> Result<Lag> {
        real.backend.ping().await?;
        Err(Error::Unsupported {
            operation: Operation::Lag,
            missing: "exact_lag".into(),
        })
    }
}

#[derive(Default)]
struct LagLooksTheGroupUpFirst;

#[async_trait]
impl Defect for LagLooksTheGroupUpFirst {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[FRONTIER])
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        real.backend.lag(stream, group).await?;
        Err(unsupported(Operation::Lag, FRONTIER))
    }
}

#[derive(Default)]
struct ReplayDoesNothing;

#[async_trait]
impl Defect for ReplayDoesNothing {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[REPLAY])
    }
    async fn replay(&self, real: &Real, _: &StreamName, _: &GroupName, _: &Replay) -> Result<()> {
        real.backend.ping().await
    }
    async fn reset_group(
        &self,
        real: &Real,
        _: &StreamName,
        _: &GroupName,
        _: &ResetOptions,
    ) -> Result<()> {
        real.backend.ping().await
    }
}

#[derive(Default)]
struct RefusedResetResets;

#[async_trait]
impl Defect for RefusedResetResets {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[REPLAY])
    }
    async fn replay(&self, real: &Real, _: &StreamName, _: &GroupName, _: &Replay) -> Result<()> {
        real.backend.ping().await?;
        Err(unsupported(Operation::Replay, REPLAY))
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let _ = real.backend.reset_group(stream, group, options).await;
        Err(unsupported(Operation::ResetGroup, REPLAY))
    }
}

#[derive(Default)]
struct QueryFindsNothing;

#[async_trait]
impl Defect for QueryFindsNothing {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[RANGE_SCAN, INDEXES])
    }
    async fn query(&self, real: &Real, _: &StreamName, _: &Query) -> Result<Page> {
        real.backend.ping().await?;
        Ok(Page::default())
    }
}

#[derive(Default)]
struct FiltersAreLeftOut;

#[async_trait]
impl Defect for FiltersAreLeftOut {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[INDEXES])
    }
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut query = query.clone();
        (query.event_type, query.key) = (None, None);
        query.payload.clear();
        query.metadata.clear();
        real.backend.query(stream, &query).await
    }
}

#[derive(Default)]
struct MetadataFilterIsForgotten;

#[async_trait]
impl Defect for MetadataFilterIsForgotten {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[INDEXES])
    }
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        real.backend.ping().await?;
        if query.event_type.is_some() || query.key.is_some() || !query.payload.is_empty() {
            return Err(unsupported(Operation::Query, INDEXES));
        }
        real.backend.query(stream, query).await
    }
}

#[derive(Default)]
struct RefusesEveryQuery;

#[async_trait]
impl Defect for RefusesEveryQuery {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[INDEXES])
    }
    async fn query(&self, real: &Real, _: &StreamName, _: &Query) -> Result<Page> {
        real.backend.ping().await?;
        Err(unsupported(Operation::Query, INDEXES))
    }
}

#[derive(Default)]
struct UndeclaredStreamsAreNone;

#[async_trait]
impl Defect for UndeclaredStreamsAreNone {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[LIST_STREAMS])
    }
    async fn list_streams(&self, _: &Real, _: &ListOptions<StreamName>) -> Result<Vec<StreamInfo>> {
        Ok(Vec::new())
    }
}

#[derive(Default)]
struct UndeclaredGroupsAreNone;

#[async_trait]
impl Defect for UndeclaredGroupsAreNone {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[LIST_GROUPS])
    }
    async fn list_groups(
        &self,
        _: &Real,
        _: &StreamName,
        _: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        Ok(Vec::new())
    }
}

#[derive(Default)]
struct UndeclaredDeadLettersAreNone;

#[async_trait]
impl Defect for UndeclaredDeadLettersAreNone {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[DEAD_LETTERS])
    }
    async fn dead_letters(
        &self,
        _: &Real,
        _: &StreamName,
        _: &GroupName,
        _: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        Ok(Vec::new())
    }
}

#[derive(Default)]
struct UndeclaredInfoIsZero;

#[async_trait]
impl Defect for UndeclaredInfoIsZero {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[GROUP_INFO])
    }
    async fn group_info(
        &self,
        _: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        Ok(GroupInfo {
            stream: stream.clone(),
            group: group.clone(),
            max_attempts: MaxAttempts::default(),
            leased: 0,
            dead_letters: 0,
            lag: Lag::default(),
        })
    }
}

#[derive(Default)]
struct UndeclaredWaitReturns;

#[async_trait]
impl Defect for UndeclaredWaitReturns {
    fn capabilities(&self, real: &Real) -> Capabilities {
        lacking(real, &[WAIT_FOR_WORK])
    }
    async fn wait_for_work(
        &self,
        _: &Real,
        _: &StreamName,
        _: &GroupName,
        _: Duration,
    ) -> Result<Wakeup> {
        Ok(Wakeup::TimedOut)
    }
}
