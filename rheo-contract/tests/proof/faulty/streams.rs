//! Defects that the cases of `streams` are there for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rheo_core::{
    Cause, ConsumerId, DeadLetter, DeadLetterOptions, Error, Event, EventId, EventKey, EventType,
    Existing, FetchOptions, GroupName, GroupOptions, JsonObject, Lease, NewEvent, Page,
    PartitionCount, Query, ReadOptions, Replay, ResetOptions, Result, StreamName, StreamOptions,
    async_trait, json_equal,
};
use serde_json::Value;

use super::Faulty;
use crate::defect::{Defect, Real};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        OnePartitionMore: "a stream gets one partition more than was asked for",
        says: "Err(Invalid)",
        kills: [
            "streams::STR-1::a_stream_has_the_partitions_it_was_made_with",
            "delivery::DLV-2::a_start_after_a_sequence_is_exclusive",
            "delivery::DLV-2::a_start_after_a_sequence_is_for_every_partition",
            "durability::DUR-1::a_reset_survives",
            "durability::DUR-1::events_survive",
            "durability::DUR-1::partitions_survive",
            "fidelity::STR-2::any_event_type_and_key_come_back",
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
            "input::ERR-6::querying_nothing_excuses_no_bad_input",
            "input::ERR-8::a_batch_with_one_out_of_range_is_invalid",
            "input::ERR-8::a_fetch_out_of_range_is_invalid",
            "input::ERR-8::a_group_start_out_of_range_is_invalid",
            "input::ERR-8::a_query_out_of_range_is_invalid",
            "input::ERR-8::a_read_out_of_range_is_invalid",
            "input::ERR-8::a_replay_out_of_range_is_invalid",
            "input::ERR-8::a_reset_out_of_range_is_invalid",
            "input::ERR-8::an_append_out_of_range_is_invalid",
            "inspect::OPS-1::streams_are_listed_with_their_number_of_partitions",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "log::LOG-1::a_partition_out_of_range_uses_up_no_sequence",
            "log::LOG-3::a_batch_with_a_partition_out_of_range_writes_nothing",
            "log::LOG-6::a_batch_is_routed_as_single_events_are",
            "log::LOG-6::a_partition_out_of_range_is_refused",
            "log::LOG-6::a_single_partition_takes_every_key",
            "log::LOG-6::any_key_goes_where_its_hash_says",
            "log::LOG-6::keys_go_where_the_published_vectors_say",
            "log::LOG-7::a_refused_id_stays_free",
            "partitions::FRN-1::each_partition_has_its_own_frontier",
            "partitions::FRN-1::frontiers_of_several_partitions_follow_random_work",
            "partitions::FRN-4::lag_gives_every_partition_in_ascending_order",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-2::from_its_start_the_frontier_moves_on",
            "progress::FRN-2::the_frontier_begins_at_the_start",
            "progress::FRN-4::lag_grows_with_appends_and_shrinks_with_acks",
            "progress::FRN-4::the_lag_of_an_empty_stream_is_nothing",
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
            "queries::QRY-1::all_filters_must_match",
            "replay::ERR-8::replay_of_a_partition_out_of_range_reopens_nothing",
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-4::a_chosen_event_below_the_start_is_delivered",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "reset::ERR-8::reset_of_a_partition_out_of_range_drops_nothing",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-5::reset_may_go_forward",
            "reset::RPL-5::reset_takes_the_dead_letters_away",
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "reset::RPL-5::the_frontier_is_the_new_start",
            "reset::RPL-6::reset_leaves_the_log_alone",
            "streams::STR-1::a_duplicate_does_not_change_the_partitions",
            "streams::STR-1::a_stream_has_one_partition_by_default",
            "streams::STR-2::types_and_keys_are_told_apart",
            "streams::STR-2::types_and_keys_come_back",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        DefaultIsFourPartitions: "a stream of one partition gets four",
        says: "Err(Invalid)",
        kills: [
            "streams::STR-1::a_stream_has_one_partition_by_default",
            "delivery::DLV-2::a_start_after_a_sequence_is_exclusive",
            "durability::DUR-1::a_reset_survives",
            "durability::DUR-1::events_survive",
            "fidelity::STR-2::any_event_type_and_key_come_back",
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
            "input::ERR-6::querying_nothing_excuses_no_bad_input",
            "input::ERR-8::a_batch_with_one_out_of_range_is_invalid",
            "input::ERR-8::a_fetch_out_of_range_is_invalid",
            "input::ERR-8::a_group_start_out_of_range_is_invalid",
            "input::ERR-8::a_query_out_of_range_is_invalid",
            "input::ERR-8::a_read_out_of_range_is_invalid",
            "input::ERR-8::a_replay_out_of_range_is_invalid",
            "input::ERR-8::a_reset_out_of_range_is_invalid",
            "input::ERR-8::an_append_out_of_range_is_invalid",
            "inspect::OPS-1::streams_are_listed_with_their_number_of_partitions",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "log::LOG-1::a_partition_out_of_range_uses_up_no_sequence",
            "log::LOG-3::a_batch_with_a_partition_out_of_range_writes_nothing",
            "log::LOG-6::a_partition_out_of_range_is_refused",
            "log::LOG-6::a_single_partition_takes_every_key",
            "log::LOG-7::a_refused_id_stays_free",
            "progress::FRN-1::the_frontier_follows_random_work",
            "progress::FRN-2::from_its_start_the_frontier_moves_on",
            "progress::FRN-2::the_frontier_begins_at_the_start",
            "progress::FRN-4::lag_grows_with_appends_and_shrinks_with_acks",
            "progress::FRN-4::the_lag_of_an_empty_stream_is_nothing",
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
            "queries::QRY-1::all_filters_must_match",
            "replay::ERR-8::replay_of_a_partition_out_of_range_reopens_nothing",
            "replay::RPL-1::replay_below_the_start_moves_the_start_back",
            "replay::RPL-3::replay_ahead_of_the_start_skips_nothing",
            "replay::RPL-4::a_chosen_event_below_the_start_is_delivered",
            "replay::RPL-4::below_the_start_the_frontier_falls_to_below_the_chosen_event",
            "reset::ERR-8::reset_of_a_partition_out_of_range_drops_nothing",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
            "reset::RPL-5::reset_may_go_forward",
            "reset::RPL-5::reset_takes_the_dead_letters_away",
            "reset::RPL-5::reset_to_a_sequence_drops_what_is_below_too",
            "reset::RPL-5::the_frontier_is_the_new_start",
            "reset::RPL-6::reset_leaves_the_log_alone",
            "streams::STR-2::types_and_keys_are_told_apart",
            "streams::STR-2::types_and_keys_come_back",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        PartitionsFitAByte: "a stream has at most 256 partitions, whatever was asked for",
        says: "the last operation to succeed",
        kills: [
            "streams::STR-1::a_stream_has_up_to_1024_partitions",
            "log::LOG-6::keys_go_where_the_published_vectors_say",
            "partitions::STR-1::a_stream_of_1_024_partitions_works",
        ],
    },
    faulty! {
        StreamsAreUpserted: "making a stream that is there is Ok",
        says: "Err(AlreadyExists)",
        kills: [
            "streams::STR-1::a_stream_is_not_made_twice",
            "distribution::DST-1::a_name_taken_elsewhere_is_taken",
            "distribution::DST-1::of_creators_on_two_handles_one_wins",
            "durability::DUR-1::names_stay_taken",
            "streams::STR-1::a_duplicate_does_not_change_the_partitions",
            "streams::STR-1::of_concurrent_creators_one_wins",
        ],
    },
    faulty! {
        DuplicateStreamEmptiesTheLog: "making a stream that is there is refused, and empties its log",
        says: "the log",
        kills: [
            "streams::STR-1::a_stream_is_not_made_twice",
            "streams::STR-1::of_concurrent_creators_one_wins",
        ],
    },
    faulty! {
        DuplicateStreamChangesPartitions: "making a stream that is there is refused, and changes its partitions",
        says: "Err(Invalid)",
        kills: ["streams::STR-1::a_duplicate_does_not_change_the_partitions"],
    },
    faulty! {
        StreamNamesFoldCase: "names of streams are compared in lower case",
        says: "the last operation to succeed",
        kills: [
            "streams::STR-2::stream_names_never_collide",
            "inspect::OPS-1::streams_are_listed_by_the_bytes_of_their_names",
            "inspect::OPS-2::the_groups_of_other_streams_are_not_listed",
        ],
    },
    faulty! {
        StreamNamesAreTrimmed: "blanks at the end of a stream's name do not count",
        says: "the last operation to succeed",
        kills: [
            "streams::STR-2::stream_names_never_collide",
            "streams::STR-2::stream_and_group_are_not_run_together",
        ],
    },
    faulty! {
        GroupNamesFoldCase: "names of groups are compared in lower case",
        says: "the last operation to succeed",
        kills: [
            "streams::STR-2::group_names_never_collide",
            "inspect::OPS-2::groups_are_listed_by_the_bytes_of_their_names",
        ],
    },
    faulty! {
        GroupsAreNamedInLowerCase: "leases name their group in lower case",
        says: "the group",
        kills: [
            "streams::STR-2::group_names_never_collide",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
        ],
    },
    faulty! {
        StreamAndGroupAreJoined: "a group is found by stream, colon and group in one text",
        says: "the last operation to succeed",
        kills: ["streams::STR-2::stream_and_group_are_not_run_together"],
    },
    faulty! {
        ConsumersAreTrimmed: "blanks around a consumer's name are cut off",
        says: "the consumer",
        kills: ["streams::STR-2::consumer_names_come_back"],
    },
    faulty! {
        ConsumersAreQuoted: "quotes in a consumer's name come back doubled",
        says: "the consumer",
        kills: ["streams::STR-2::consumer_names_come_back"],
    },
    faulty! {
        KeysAreTrimmed: "blanks and line ends around a key are cut off",
        says: "the key",
        kills: [
            "streams::STR-2::types_and_keys_come_back",
            "fidelity::STR-2::any_event_type_and_key_come_back",
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
            "streams::STR-2::types_and_keys_are_told_apart",
        ],
    },
    faulty! {
        KeysAreCut: "keys are cut at 255 bytes",
        says: "the key",
        kills: [
            "streams::STR-2::types_and_keys_come_back",
            "fidelity::STR-2::any_event_type_and_key_come_back",
        ],
    },
    faulty! {
        TypesLoseTheirBlanks: "blanks around a type are cut off",
        says: "the type",
        kills: [
            "streams::STR-2::types_and_keys_come_back",
            "fidelity::STR-2::any_event_type_and_key_come_back",
            "queries::QRY-1::a_query_by_type_gives_that_type_alone",
            "streams::STR-2::types_and_keys_are_told_apart",
        ],
    },
    faulty! {
        TypeFilterFoldsCase: "a filter by type ignores case",
        says: "the events of type",
        kills: [
            "streams::STR-2::types_and_keys_are_told_apart",
            "queries::QRY-1::a_query_by_type_gives_that_type_alone",
        ],
    },
    faulty! {
        KeyFilterIgnoresBlanks: "a filter by key ignores blanks at the end",
        says: "the events with key",
        kills: [
            "streams::STR-2::types_and_keys_are_told_apart",
            "queries::QRY-1::a_query_by_key_gives_that_key_alone",
        ],
    },
    faulty! {
        NamesAreCutAt63Bytes: "of a stream's name just the first 63 bytes count",
        says: "the last operation to succeed",
        kills: ["streams::STR-2::the_longest_names_work"],
    },
    faulty! {
        CommandsAreRefused: "names that look like a statement are refused",
        says: "the last operation to succeed",
        kills: [
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
            "inspect::OPS-1::streams_are_listed_by_the_bytes_of_their_names",
        ],
    },
    faulty! {
        DollarFieldsComeBackEscaped: "a `${` at the start of a field name comes back as other characters",
        says: "the payload",
        kills: [
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
            "fidelity::LOG-8::text_that_looks_like_an_escape_stays",
        ],
    },
    faulty! {
        FilterRunsOperators: "a filter for {\"$ne\": x} gives all whose field differs from x",
        says: "the events whose field",
        kills: [
            "streams::STR-3::a_filter_is_a_value_and_no_operator",
            "queries::STR-3::values_are_not_operators",
        ],
    },
    faulty! {
        FilterIsLike: "a filter for `%` gives every event",
        says: "the events whose field",
        kills: [
            "streams::STR-3::a_filter_is_no_pattern",
            "queries::STR-3::values_are_not_operators",
        ],
    },
    faulty! {
        FieldIsAPath: "a filter on the field `a.b` looks into `a`",
        says: "the events whose field",
        kills: [
            "streams::STR-3::a_field_name_is_no_path",
            "queries::STR-3::field_names_are_not_paths",
        ],
    },
    faulty! {
        ReadsGiveTheFirstStreamToo: "read leaves the stream out of its condition",
        says: "the log",
        kills: [
            "streams::STR-4::logs_are_isolated",
            "log::LOG-7::one_id_may_be_in_two_streams",
            "streams::STR-2::stream_names_never_collide",
            "streams::STR-3::text_that_looks_like_a_command_is_kept",
            "streams::STR-4::one_event_id_may_be_in_two_streams",
        ],
    },
    faulty! {
        QueriesGiveTheFirstStreamToo: "query leaves the stream out of its condition",
        says: "the events",
        kills: [
            "streams::STR-4::queries_are_isolated",
            "queries::QRY-3::a_cursor_survives_serialization",
            "queries::QRY-3::events_appended_meanwhile_disturb_no_page",
            "queries::QRY-3::timestamps_that_go_back_disturb_no_page",
        ],
    },
    faulty! {
        DeliveriesByGroupAndSequence: "what a group of that name claimed on another stream is not given",
        says: "the claimable sequences",
        kills: [
            "streams::STR-4::groups_of_one_name_are_two",
            "batches::LSE-8::a_bad_lease_in_a_batch_neither_blocks_nor_carries_the_others",
            "batches::LSE-8::a_stale_and_a_current_lease_of_one_event_stay_apart",
            "batches::LSE-8::bad_leases_in_a_batch_have_no_effect",
            "batches::LSE-8::each_result_is_that_of_its_lease",
            "batches::LSE-8::hundreds_of_leases_are_over_after_one_batch",
            "batches::LSE-8::of_a_lease_given_twice_the_first_settles",
            "batches::LSE-8::one_batch_settles_in_several_partitions",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "delivery::DLV-5::a_busy_partition_starves_no_other",
            "inspect::OPS-3::group_info_counts_nothing_of_other_groups",
            "leases::LSE-2::a_lease_from_before_a_reset_is_stale",
            "leases::LSE-2::a_lease_is_of_its_stream_alone",
            "leases::LSE-7::a_lease_is_settled_once",
            "replay::RPL-4::an_id_from_another_stream_is_unknown",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-5::reset_takes_the_dead_letters_away",
            "reset::RPL-5::reset_to_the_end_is_each_partitions_own",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-2::no_number_of_attempts_is_too_large",
            "streams::STR-2::stream_and_group_are_not_run_together",
            "streams::STR-4::going_back_on_one_stream_leaves_the_other",
            "streams::STR-4::settling_on_one_stream_leaves_the_other",
        ],
    },
    faulty! {
        AckByGroupAndSequence: "an ack also acks the same sequence of the same group on other streams",
        says: "the last operation to succeed",
        kills: [
            "streams::STR-4::settling_on_one_stream_leaves_the_other",
            "batches::LSE-8::one_batch_settles_in_several_streams_and_groups",
            "leases::LSE-2::a_lease_is_of_its_stream_alone",
            "replay::RPL-6::replay_leaves_other_groups_alone",
        ],
    },
    faulty! {
        GoesBackByGroupName: "replay and reset go back in all groups of that name",
        says: "no claimable event",
        kills: [
            "streams::STR-4::going_back_on_one_stream_leaves_the_other",
            "replay::RPL-6::replay_leaves_other_groups_alone",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_leaves_other_groups_alone",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
        ],
    },
    faulty! {
        DeadLettersByGroupName: "dead letters are those of all groups of that name",
        says: "dead letters",
        kills: [
            "streams::STR-4::dead_letters_are_isolated",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
        ],
    },
    faulty! {
        IdsAreUniqueEverywhere: "an event id that is in one stream is refused in another",
        says: "the last operation to succeed",
        kills: [
            "streams::STR-4::one_event_id_may_be_in_two_streams",
            "log::LOG-7::one_id_may_be_in_two_streams",
        ],
    },
];

fn of(count: u32) -> StreamOptions {
    let count = count.min(PartitionCount::MAX);
    StreamOptions::new().with_partition_count(PartitionCount::new(count).expect("allowed"))
}

#[derive(Default)]
struct OnePartitionMore;

#[async_trait]
impl Defect for OnePartitionMore {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let options = of(options.partition_count.get() + 1);
        real.backend.create_stream(stream, &options).await
    }
}

#[derive(Default)]
struct DefaultIsFourPartitions;

#[async_trait]
impl Defect for DefaultIsFourPartitions {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let count = options.partition_count.get();
        let options = of(if count == 1 { 4 } else { count });
        real.backend.create_stream(stream, &options).await
    }
}

#[derive(Default)]
struct PartitionsFitAByte;

#[async_trait]
impl Defect for PartitionsFitAByte {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let options = of(options.partition_count.get().min(256));
        real.backend.create_stream(stream, &options).await
    }
}

#[derive(Default)]
struct StreamsAreUpserted;

#[async_trait]
impl Defect for StreamsAreUpserted {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        match real.backend.create_stream(stream, options).await {
            Err(Error::AlreadyExists(_)) => Ok(()),
            created => created,
        }
    }
}

#[derive(Default)]
struct DuplicateStreamEmptiesTheLog(AtomicBool);

#[async_trait]
impl Defect for DuplicateStreamEmptiesTheLog {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let created = real.backend.create_stream(stream, options).await;
        if let Err(Error::AlreadyExists(_)) = created {
            self.0.store(true, Ordering::SeqCst);
        }
        created
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        if self.0.load(Ordering::SeqCst) {
            events.clear();
        }
        Ok(events)
    }
}

#[derive(Default)]
struct DuplicateStreamChangesPartitions(Mutex<HashMap<StreamName, u32>>);

#[async_trait]
impl Defect for DuplicateStreamChangesPartitions {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        let created = real.backend.create_stream(stream, options).await;
        if let Err(Error::AlreadyExists(_)) = created {
            let mut counts = self.0.lock().expect("not poisoned");
            counts.insert(stream.clone(), options.partition_count.get());
        }
        created
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let count = self.0.lock().expect("not poisoned").get(stream).copied();
        match real.backend.read(stream, options).await {
            Err(Error::Invalid(_)) if count > Some(options.partition.number()) => Ok(Vec::new()),
            read => read,
        }
    }
}

/// Names that were taken, as a store knows them that does not keep them as they are.
#[derive(Default)]
struct Taken(Mutex<HashSet<String>>);

impl Taken {
    fn take(&self, name: impl Into<String>) -> bool {
        self.0.lock().expect("not poisoned").insert(name.into())
    }
}

fn taken_stream(stream: &StreamName) -> Error {
    Error::AlreadyExists(Existing::Stream(stream.clone()))
}

#[derive(Default)]
struct StreamNamesFoldCase(Taken);

#[async_trait]
impl Defect for StreamNamesFoldCase {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        real.backend.create_stream(stream, options).await?;
        if self.0.take(stream.as_str().to_lowercase()) {
            return Ok(());
        }
        Err(taken_stream(stream))
    }
}

#[derive(Default)]
struct StreamNamesAreTrimmed(Taken);

#[async_trait]
impl Defect for StreamNamesAreTrimmed {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        real.backend.create_stream(stream, options).await?;
        if self.0.take(stream.as_str().trim_end()) {
            return Ok(());
        }
        Err(taken_stream(stream))
    }
}

#[derive(Default)]
struct NamesAreCutAt63Bytes(Taken);

#[async_trait]
impl Defect for NamesAreCutAt63Bytes {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        real.backend.create_stream(stream, options).await?;
        let name = stream.as_str();
        if self.0.take(&name[..name.floor_char_boundary(63)]) {
            return Ok(());
        }
        Err(taken_stream(stream))
    }
}

#[derive(Default)]
struct GroupNamesFoldCase(Taken);

#[async_trait]
impl Defect for GroupNamesFoldCase {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        if self
            .0
            .take(format!("{stream:?}{}", group.as_str().to_lowercase()))
        {
            return Ok(());
        }
        Err(Error::AlreadyExists(Existing::Group(group.clone())))
    }
}

#[derive(Default)]
struct GroupsAreNamedInLowerCase;

#[async_trait]
impl Defect for GroupsAreNamedInLowerCase {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for lease in &mut leases {
            lease.group = GroupName::new(group.as_str().to_lowercase())?;
        }
        Ok(leases)
    }
}

#[derive(Default)]
struct StreamAndGroupAreJoined(Taken);

#[async_trait]
impl Defect for StreamAndGroupAreJoined {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        if self.0.take(format!("{stream}:{group}")) {
            return Ok(());
        }
        Err(Error::AlreadyExists(Existing::Group(group.clone())))
    }
}

fn with_consumers(leases: Vec<Lease>, change: impl Fn(&str) -> String) -> Vec<Lease> {
    let changed = |lease: Lease| {
        let consumer = ConsumerId::new(change(lease.consumer.as_str()));
        Lease {
            consumer: consumer.unwrap_or(lease.consumer),
            ..lease
        }
    };
    leases.into_iter().map(changed).collect()
}

#[derive(Default)]
struct ConsumersAreTrimmed;

#[async_trait]
impl Defect for ConsumersAreTrimmed {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        Ok(with_consumers(leases, |name| name.trim().to_owned()))
    }
}

#[derive(Default)]
struct ConsumersAreQuoted;

#[async_trait]
impl Defect for ConsumersAreQuoted {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        Ok(with_consumers(leases, |name| name.replace('\'', "''")))
    }
}

#[derive(Default)]
struct KeysAreTrimmed;

#[async_trait]
impl Defect for KeysAreTrimmed {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        for event in &mut events {
            let trimmed = event
                .key
                .as_ref()
                .map(|key| EventKey::new(key.as_str().trim()));
            event.key = trimmed.and_then(Result::ok).or(event.key.take());
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
struct KeysAreCut;

#[async_trait]
impl Defect for KeysAreCut {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        for event in &mut events {
            if let Some(key) = &event.key {
                let key = key.as_str();
                event.key = Some(EventKey::new(&key[..key.floor_char_boundary(255)])?);
            }
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
struct TypesLoseTheirBlanks;

#[async_trait]
impl Defect for TypesLoseTheirBlanks {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        for event in &mut events {
            if let Ok(trimmed) = EventType::new(event.event_type.as_str().trim()) {
                event.event_type = trimmed;
            }
        }
        real.backend.append_batch(stream, events).await
    }
}

/// All events that pass the rest of the query, filtered another way.
async fn filtered(
    real: &Real,
    stream: &StreamName,
    query: Query,
    keep: impl Fn(&Event) -> bool,
) -> Result<Page> {
    let mut page = real
        .backend
        .query(stream, &query.with_limit(u32::MAX))
        .await?;
    page.events.retain(keep);
    page.next = None;
    Ok(page)
}

#[derive(Default)]
struct TypeFilterFoldsCase;

#[async_trait]
impl Defect for TypeFilterFoldsCase {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut rest = query.clone();
        let Some(wanted) = rest.event_type.take() else {
            return real.backend.query(stream, query).await;
        };
        let wanted = wanted.as_str().to_lowercase();
        let keep = |event: &Event| event.event_type.as_str().to_lowercase() == wanted;
        filtered(real, stream, rest, keep).await
    }
}

#[derive(Default)]
struct KeyFilterIgnoresBlanks;

#[async_trait]
impl Defect for KeyFilterIgnoresBlanks {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut rest = query.clone();
        let Some(wanted) = rest.key.take() else {
            return real.backend.query(stream, query).await;
        };
        let wanted = wanted.as_str().trim_end();
        let is_it = |key: &EventKey| key.as_str().trim_end() == wanted;
        filtered(real, stream, rest, |event| {
            event.key.as_ref().is_some_and(is_it)
        })
        .await
    }
}

#[derive(Default)]
struct CommandsAreRefused;

#[async_trait]
impl Defect for CommandsAreRefused {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        real.backend.ping().await?;
        if stream.as_str().contains("DROP TABLE") {
            return Err(Error::Failed(Cause::new("refused by the firewall")));
        }
        real.backend.create_stream(stream, options).await
    }
}

#[derive(Default)]
struct DollarFieldsComeBackEscaped;

#[async_trait]
impl Defect for DollarFieldsComeBackEscaped {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        for event in &mut events {
            let Ok(Value::Object(fields)) = serde_json::to_value(&event.payload) else {
                continue;
            };
            let fields = fields.into_iter().map(|(name, value)| {
                let name = match name.strip_prefix("${") {
                    Some(rest) => format!("\u{ff04}{{{rest}"),
                    None => name,
                };
                (name, value)
            });
            event.payload = JsonObject::payload(Value::Object(fields.collect()))?;
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
struct FilterRunsOperators;

#[async_trait]
impl Defect for FilterRunsOperators {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let operator = query.payload.iter().find_map(|(field, value)| {
            let operand = value.as_object()?.get("$ne")?;
            Some((field.clone(), operand.clone()))
        });
        let Some((field, operand)) = operator else {
            return real.backend.query(stream, query).await;
        };
        let mut rest = query.clone();
        rest.payload = BTreeMap::new();
        filtered(real, stream, rest, |event| {
            event.payload.get(&field) != Some(&operand)
        })
        .await
    }
}

#[derive(Default)]
struct FilterIsLike;

#[async_trait]
impl Defect for FilterIsLike {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut query = query.clone();
        query.payload.retain(|_, value| value.as_str() != Some("%"));
        real.backend.query(stream, &query).await
    }
}

#[derive(Default)]
struct FieldIsAPath;

#[async_trait]
impl Defect for FieldIsAPath {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let path = query.payload.iter().find_map(|(field, value)| {
            let (outer, inner) = field.split_once('.')?;
            Some((outer.to_owned(), inner.to_owned(), value.clone()))
        });
        let Some((outer, inner, wanted)) = path else {
            return real.backend.query(stream, query).await;
        };
        let mut rest = query.clone();
        rest.payload = BTreeMap::new();
        let keep = |event: &Event| {
            let found = event
                .payload
                .get(&outer)
                .and_then(|outer| outer.get(&inner));
            found.is_some_and(|found| json_equal(found, &wanted))
        };
        filtered(real, stream, rest, keep).await
    }
}

/// The first stream that the handle made.
#[derive(Default)]
struct First(Mutex<Option<StreamName>>);

impl First {
    fn see(&self, stream: &StreamName) {
        let mut first = self.0.lock().expect("not poisoned");
        first.get_or_insert_with(|| stream.clone());
    }
    fn other_than(&self, stream: &StreamName) -> Option<StreamName> {
        let first = self.0.lock().expect("not poisoned").clone();
        first.filter(|first| first != stream)
    }
}

#[derive(Default)]
struct ReadsGiveTheFirstStreamToo(First);

#[async_trait]
impl Defect for ReadsGiveTheFirstStreamToo {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        self.0.see(stream);
        real.backend.create_stream(stream, options).await
    }
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let mut events = real.backend.read(stream, options).await?;
        if let Some(first) = self.0.other_than(stream) {
            events.extend(real.backend.read(&first, options).await.unwrap_or_default());
            events.sort_by_key(|event| event.sequence);
        }
        Ok(events)
    }
}

#[derive(Default)]
struct QueriesGiveTheFirstStreamToo(First);

#[async_trait]
impl Defect for QueriesGiveTheFirstStreamToo {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        self.0.see(stream);
        real.backend.create_stream(stream, options).await
    }
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let mut page = real.backend.query(stream, query).await?;
        if let Some(first) = self.0.other_than(stream) {
            let other = real.backend.query(&first, query).await.unwrap_or_default();
            page.events.extend(other.events);
        }
        Ok(page)
    }
}

#[derive(Default)]
struct DeliveriesByGroupAndSequence(Mutex<HashMap<(GroupName, u32, u64), StreamName>>);

#[async_trait]
impl Defect for DeliveriesByGroupAndSequence {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let mut leases = real.backend.fetch(stream, group, options).await?;
        let mut claimed = self.0.lock().expect("not poisoned");
        leases.retain(|Lease { event, .. }| {
            let place = (
                group.clone(),
                event.partition.number(),
                event.sequence.get(),
            );
            claimed.entry(place).or_insert_with(|| stream.clone()) == stream
        });
        Ok(leases)
    }
}

#[derive(Default)]
struct AckByGroupAndSequence(Mutex<Vec<Lease>>);

#[async_trait]
impl Defect for AckByGroupAndSequence {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        self.0
            .lock()
            .expect("not poisoned")
            .extend(leases.iter().cloned());
        Ok(leases)
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        real.backend.ack(lease).await?;
        let mut given = self.0.lock().expect("not poisoned").clone();
        given.retain(|other| {
            other.group == lease.group
                && other.event.stream != lease.event.stream
                && other.event.sequence == lease.event.sequence
        });
        for other in given {
            let _ = real.backend.ack(&other).await;
        }
        Ok(())
    }
}

/// The groups that the handle made.
#[derive(Default)]
struct Groups(Mutex<Vec<(StreamName, GroupName)>>);

impl Groups {
    fn see(&self, stream: &StreamName, group: &GroupName) {
        let mut groups = self.0.lock().expect("not poisoned");
        groups.push((stream.clone(), group.clone()));
    }
    /// The streams with a group of that name.
    fn streams(&self, group: &GroupName) -> Vec<StreamName> {
        let groups = self.0.lock().expect("not poisoned");
        let named = groups.iter().filter(|(_, name)| name == group);
        named.map(|(stream, _)| stream.clone()).collect()
    }
}

#[derive(Default)]
struct GoesBackByGroupName(Groups);

#[async_trait]
impl Defect for GoesBackByGroupName {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.0.see(stream, group);
        real.backend.create_group(stream, group, options).await
    }
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        for other in self.0.streams(group) {
            let _ = real.backend.replay(&other, group, replay).await;
        }
        Ok(())
    }
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.reset_group(stream, group, options).await?;
        for other in self.0.streams(group) {
            let _ = real.backend.reset_group(&other, group, options).await;
        }
        Ok(())
    }
}

#[derive(Default)]
struct DeadLettersByGroupName(Groups);

#[async_trait]
impl Defect for DeadLettersByGroupName {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.0.see(stream, group);
        real.backend.create_group(stream, group, options).await
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        for other in self.0.streams(group) {
            if other != *stream && options.after.is_none() {
                let others = real.backend.dead_letters(&other, group, options).await;
                dead.extend(others.unwrap_or_default());
            }
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct IdsAreUniqueEverywhere(Mutex<HashSet<EventId>>);

#[async_trait]
impl Defect for IdsAreUniqueEverywhere {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let taken = {
            let known = self.0.lock().expect("not poisoned");
            let mut ids = events.iter().filter_map(|event| event.id);
            ids.find(|id| known.contains(id))
        };
        if let Some(id) = taken
            && real.backend.ping().await.is_ok()
        {
            return Err(Error::AlreadyExists(Existing::Event(id)));
        }
        let appended = real.backend.append_batch(stream, events).await?;
        let mut known = self.0.lock().expect("not poisoned");
        known.extend(appended.iter().map(|event| event.id));
        Ok(appended)
    }
}
