//! Defects that the cases of `input` are there for.

use std::collections::BTreeMap;

use rheo_core::{
    Capabilities, Error, ErrorKind, Event, FetchOptions, GroupInfo, GroupName, GroupOptions,
    Guarantee, Lag, Lease, Limits, MAX_JSON_BYTES, MaxAttempts, Mechanism, NewEvent,
    OptionalOperation, Page, Partition, Partitions, Query, ReadOptions, Replay, ResetOptions,
    Result, Sequence, Start, StreamName, async_trait,
};

use super::Faulty;
use crate::defect::{Defect, Real, of_a_server};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        PartitionModuloCount: "an explicit partition that is out of range goes to partition 0",
        says: "Err(Invalid)",
        kills: [
            "input::ERR-8::an_append_out_of_range_is_invalid",
            "input::ERR-8::a_batch_with_one_out_of_range_is_invalid",
            "log::LOG-1::a_partition_out_of_range_uses_up_no_sequence",
            "log::LOG-3::a_batch_with_a_partition_out_of_range_writes_nothing",
            "log::LOG-6::a_partition_out_of_range_is_refused",
            "log::LOG-7::a_refused_id_stays_free",
        ],
    },
    faulty! {
        BatchIsWrittenUntilTheBadOne: "a batch is written event by event until one is refused",
        says: "no event",
        kills: [
            "input::ERR-8::a_batch_with_one_out_of_range_is_invalid",
            "log::LOG-3::a_batch_with_a_partition_out_of_range_writes_nothing",
        ],
    },
    faulty! {
        ReadOutOfRangeIsEmpty: "a partition that is not there reads as an empty one",
        says: "Err(Invalid)",
        kills: [
            "input::ERR-8::a_read_out_of_range_is_invalid",
            "durability::DUR-1::partitions_survive",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
            "streams::STR-1::a_duplicate_does_not_change_the_partitions",
            "streams::STR-1::a_stream_has_one_partition_by_default",
            "streams::STR-1::a_stream_has_the_partitions_it_was_made_with",
            "streams::STR-1::a_stream_has_up_to_1024_partitions",
        ],
    },
    faulty! {
        QueryOutOfRangeIsEmpty: "a query of a partition that is not there is empty",
        says: "Err(Invalid)",
        kills: [
            "input::ERR-8::a_query_out_of_range_is_invalid",
            "input::ERR-6::querying_nothing_excuses_no_bad_input",
        ],
    },
    faulty! {
        FetchLeavesUnknownPartitionsOut: "fetch leaves partitions out that are not there",
        says: "Err(Invalid)",
        kills: [
            "input::ERR-8::a_fetch_out_of_range_is_invalid",
            "input::ERR-6::nothing_to_do_excuses_no_bad_input",
        ],
    },
    faulty! {
        FetchClaimsBeforeItChecks: "fetch claims from the first partitions and then finds a bad one",
        says: "one lease",
        kills: ["input::ERR-8::a_fetch_out_of_range_is_invalid"],
    },
    faulty! {
        GroupStartLeavesUnknownPartitionsOut: "a start leaves partitions out that are not there",
        says: "Err(Invalid)",
        kills: [
            "input::ERR-8::a_group_start_out_of_range_is_invalid",
        ],
    },
    faulty! {
        InvalidNamesAnotherArgument: "a bad start of a group is said to be a bad partition",
        says: "for the argument `start`",
        kills: [
            "input::ERR-8::a_group_start_out_of_range_is_invalid",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
        ],
    },
    faulty! {
        ReplaysUntilTheBadPartition: "replay goes from partition to partition until one is refused",
        says: "no claimable event",
        kills: [
            "input::ERR-8::a_replay_out_of_range_is_invalid",
            "replay::ERR-8::replay_of_a_partition_out_of_range_reopens_nothing",
        ],
    },
    faulty! {
        ResetsUntilTheBadPartition: "reset goes from partition to partition until one is refused",
        says: "no claimable event",
        kills: [
            "input::ERR-8::a_reset_out_of_range_is_invalid",
            "reset::ERR-8::reset_of_a_partition_out_of_range_drops_nothing",
            "reset::RPL-5::a_start_for_a_partition_that_is_not_selected_is_invalid",
        ],
    },
    faulty! {
        StartBeyondIsTheEnd: "a start beyond the high watermark is the end",
        says: "Err(Invalid)",
        kills: [
            "input::DLV-2::a_start_beyond_the_end_is_invalid",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
        ],
    },
    faulty! {
        StartIsComparedWithPartitionZero: "a start is compared with the high watermark of partition 0",
        says: "Err(Invalid)",
        kills: [
            "input::DLV-2::a_start_beyond_the_end_of_one_partition_is_invalid",
            "delivery::DLV-2::a_start_beyond_one_partitions_high_watermark_is_invalid",
        ],
    },
    faulty! {
        ResetDropsBeforeItLooksAtTheStart: "reset drops the state before it finds the start beyond the end",
        says: "no claimable event",
        kills: [
            "input::RPL-5::a_reset_beyond_the_end_is_invalid",
            "reset::RPL-5::a_start_beyond_one_partition_drops_nothing_in_any",
            "reset::RPL-5::reset_beyond_the_high_watermark_drops_nothing",
        ],
    },
    faulty! {
        MissingStreamIsMissingGroup: "without the stream, fetch says that the group is missing",
        says: "fetch to give Err(StreamNotFound)",
        kills: [
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
            "delivery::ERR-6::a_missing_stream_is_noticed_before_its_group",
            "input::ERR-6::a_missing_stream_comes_before_bad_input",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
        ],
    },
    faulty! {
        MissingGroupIsMade: "fetch makes a group that is not there",
        says: "fetch to give Err(GroupNotFound)",
        kills: [
            "input::ERR-6::a_missing_group_is_named",
            "delivery::DLV-2::a_start_beyond_the_high_watermark_is_invalid",
            "delivery::ERR-6::a_missing_stream_is_noticed_before_its_group",
            "distribution::DST-1::a_group_made_elsewhere_is_there",
            "input::ERR-6::a_missing_group_comes_before_bad_input",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
        ],
    },
    faulty! {
        MissingStreamHasOnePartition: "partitions of a stream that is not there are checked all the same",
        says: "Err(StreamNotFound)",
        kills: ["input::ERR-6::a_missing_stream_comes_before_bad_input"],
    },
    faulty! {
        PartitionsBeforeTheGroup: "fetch checks the partitions before it looks the group up",
        says: "Err(GroupNotFound)",
        kills: ["input::ERR-6::a_missing_group_comes_before_bad_input"],
    },
    faulty! {
        NoPartitionsReturnEarly: "a fetch from no partitions is Ok before the group is looked up",
        says: "Err(StreamNotFound)",
        kills: [
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
            "delivery::ERR-6::a_missing_stream_is_noticed_before_its_group",
        ],
    },
    faulty! {
        DeadLettersOfNoneCheckNoCursor: "dead_letters with limit 0 looks no cursor up",
        says: "Err(CursorNotFound)",
        kills: [
            "input::ERR-6::listing_nothing_excuses_no_missing_group",
            "dead_letters::DLQ-5::an_after_that_is_no_dead_letter_is_cursor_not_found",
            "dead_letters::DLQ-5::an_after_that_was_replayed_is_cursor_not_found",
            "dead_letters::DLQ-5::an_unknown_after_is_cursor_not_found",
        ],
    },
    faulty! {
        ResetOfNoneReturnsEarly: "a reset of no partitions is Ok before the group is looked up",
        says: "Err(GroupNotFound)",
        kills: [
            "input::ERR-6::nothing_to_replay_excuses_no_missing_group",
            "reset::ERR-6::reset_looks_for_the_stream_before_the_group",
        ],
    },
    faulty! {
        ReadOfNoneChecksNoPartition: "a read with limit 0 checks no partition",
        says: "Err(Invalid)",
        kills: ["input::ERR-6::nothing_to_do_excuses_no_bad_input"],
    },
    faulty! {
        QueryOfNoneChecksNothing: "a query with limit 0 checks neither partition nor cursor",
        says: "Err(Invalid)",
        kills: [
            "input::ERR-6::querying_nothing_excuses_no_bad_input",
            "queries::ERR-6::a_limit_of_0_excuses_no_damaged_cursor",
        ],
    },
    faulty! {
        DeclaredJsonLimitIsUnchecked: "a limit of 200 bytes is declared and checked by nobody",
        says: "Err(Invalid)",
        kills: [
            "input::LOG-8::the_longest_payload_is_taken_and_no_longer_one",
            "input::LOG-8::a_batch_with_one_payload_too_long_is_refused_whole",
        ],
    },
    faulty! {
        JsonLimitIsOneLess: "a payload of just the longest length is refused",
        says: "the last operation to succeed",
        kills: [
            "input::LOG-8::the_longest_payload_is_taken_and_no_longer_one",
            "fidelity::LOG-8::the_longest_document_comes_back",
        ],
    },
    faulty! {
        DeclaredBatchLimitIsUnchecked: "a limit of 60 events is declared and checked by nobody",
        says: "Err(Invalid)",
        kills: ["input::LOG-8::a_batch_up_to_the_limits_is_taken_and_no_longer_one"],
    },
    faulty! {
        BatchesHaveABoundOfTheirOwn: "batches of more than 500 events fail, and no limit is declared",
        says: "the last operation to succeed",
        kills: [
            "input::LOG-8::a_batch_up_to_the_limits_is_taken_and_no_longer_one",
            "delivery::DLV-3::ten_thousand_events_may_be_open",
        ],
    },
    faulty! {
        LimitsAreCheckedWhileWriting: "each event of a batch is checked when it is written",
        says: "no event",
        kills: [
            "input::LOG-8::a_batch_with_one_payload_too_long_is_refused_whole",
        ],
    },
    faulty! {
        MissingStreamReadsEmpty: "a stream that is not there reads as an empty one",
        says: "Err(StreamNotFound)",
        kills: [
            "input::LOG-9::a_missing_stream_is_not_an_empty_one",
            "distribution::DST-1::a_stream_made_elsewhere_is_there",
            "input::ERR-6::a_missing_stream_comes_before_bad_input",
            "input::ERR-6::nothing_to_do_excuses_no_missing_stream",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
            "log::LOG-9::reading_a_missing_stream_is_an_error",
        ],
    },
    faulty! {
        MissingGroupHasNoLag: "the lag of a group that is not there is nothing",
        says: "Err(GroupNotFound)",
        kills: [
            "input::FRN-4::a_missing_group_has_no_lag",
            "input::ERR-6::a_missing_group_is_named",
            "progress::ERR-6::lag_looks_for_the_stream_before_the_group",
        ],
    },
    faulty! {
        MissingGroupHasZeros: "the numbers of a group that is not there are zeros",
        says: "Err(GroupNotFound)",
        kills: [
            "input::OPS-3::a_missing_group_has_no_info",
            "input::ERR-6::a_missing_group_is_named",
            "inspect::ERR-6::group_info_looks_for_the_stream_before_the_group",
        ],
    },
];

fn is<T>(result: &Result<T>, kind: ErrorKind) -> bool {
    matches!(result, Err(error) if error.kind() == kind)
}

#[derive(Default)]
struct PartitionModuloCount;

#[async_trait]
impl Defect for PartitionModuloCount {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let appended = real.backend.append_batch(stream, events.clone()).await;
        if !is(&appended, ErrorKind::Invalid) {
            return appended;
        }
        for event in &mut events {
            event.partition = Some(Partition::ZERO);
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
struct BatchIsWrittenUntilTheBadOne;

#[async_trait]
impl Defect for BatchIsWrittenUntilTheBadOne {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let appended = real.backend.append_batch(stream, events.clone()).await;
        if is(&appended, ErrorKind::Invalid) {
            for event in events {
                real.backend.append(stream, event).await?;
            }
        }
        appended
    }
}

#[derive(Default)]
struct ReadOutOfRangeIsEmpty;

#[async_trait]
impl Defect for ReadOutOfRangeIsEmpty {
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        match real.backend.read(stream, options).await {
            Err(Error::Invalid(_)) => Ok(Vec::new()),
            read => read,
        }
    }
}

#[derive(Default)]
struct QueryOutOfRangeIsEmpty;

#[async_trait]
impl Defect for QueryOutOfRangeIsEmpty {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        match real.backend.query(stream, query).await {
            Err(Error::Invalid(invalid)) if invalid.argument == "partition" => Ok(Page::default()),
            queried => queried,
        }
    }
}

#[derive(Default)]
struct FetchLeavesUnknownPartitionsOut;

#[async_trait]
impl Defect for FetchLeavesUnknownPartitionsOut {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        match real.backend.fetch(stream, group, options).await {
            Err(Error::Invalid(_)) => Ok(Vec::new()),
            fetched => fetched,
        }
    }
}

#[derive(Default)]
struct FetchClaimsBeforeItChecks;

#[async_trait]
impl Defect for FetchClaimsBeforeItChecks {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let fetched = real.backend.fetch(stream, group, options).await;
        if is(&fetched, ErrorKind::Invalid) && options.partitions.contains(Partition::ZERO) {
            let first = options.clone().with_partitions(Partition::ZERO);
            real.backend.fetch(stream, group, &first).await?;
        }
        fetched
    }
}

#[derive(Default)]
struct GroupStartLeavesUnknownPartitionsOut;

#[async_trait]
impl Defect for GroupStartLeavesUnknownPartitionsOut {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let mut options = options.clone();
        if let Start::AfterSequences(sequences) = &mut options.start {
            let mut known = BTreeMap::new();
            for (partition, sequence) in &*sequences {
                let read = ReadOptions::new().with_partition(*partition);
                if real.backend.read(stream, &read).await.is_ok() {
                    known.insert(*partition, *sequence);
                }
            }
            *sequences = known;
        }
        real.backend.create_group(stream, group, &options).await
    }
}

#[derive(Default)]
struct InvalidNamesAnotherArgument;

#[async_trait]
impl Defect for InvalidNamesAnotherArgument {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let mut made = real.backend.create_group(stream, group, options).await;
        if let Err(Error::Invalid(invalid)) = &mut made {
            invalid.argument = "partition".to_owned();
        }
        made
    }
}

#[derive(Default)]
struct ReplaysUntilTheBadPartition;

#[async_trait]
impl Defect for ReplaysUntilTheBadPartition {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        let replayed = real.backend.replay(stream, group, replay).await;
        if is(&replayed, ErrorKind::Invalid) && !matches!(replay, Replay::Events(_)) {
            let first = Replay::After {
                sequence: Sequence::ZERO,
                partitions: Partition::ZERO.into(),
            };
            real.backend.replay(stream, group, &first).await?;
        }
        replayed
    }
}

#[derive(Default)]
struct ResetsUntilTheBadPartition;

#[async_trait]
impl Defect for ResetsUntilTheBadPartition {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let reset = real.backend.reset_group(stream, group, options).await;
        if is(&reset, ErrorKind::Invalid) && options.partitions != Partitions::All {
            let first = ResetOptions::new().with_partitions(Partition::ZERO);
            real.backend.reset_group(stream, group, &first).await?;
        }
        reset
    }
}

#[derive(Default)]
struct StartBeyondIsTheEnd;

#[async_trait]
impl Defect for StartBeyondIsTheEnd {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let made = real.backend.create_group(stream, group, options).await;
        if is(&made, ErrorKind::Invalid) && matches!(options.start, Start::AfterSequence(_)) {
            let end = options.clone().with_start(Start::End);
            return real.backend.create_group(stream, group, &end).await;
        }
        made
    }
}

#[derive(Default)]
struct StartIsComparedWithPartitionZero;

#[async_trait]
impl Defect for StartIsComparedWithPartitionZero {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let made = real.backend.create_group(stream, group, options).await;
        if let (Start::AfterSequence(start), Err(Error::Invalid(_))) = (&options.start, &made) {
            let last = ReadOptions::new().with_after(start.previous());
            if !real.backend.read(stream, &last).await?.is_empty() {
                let end = options.clone().with_start(Start::End);
                return real.backend.create_group(stream, group, &end).await;
            }
        }
        made
    }
}

#[derive(Default)]
struct ResetDropsBeforeItLooksAtTheStart;

#[async_trait]
impl Defect for ResetDropsBeforeItLooksAtTheStart {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let reset = real.backend.reset_group(stream, group, options).await;
        if is(&reset, ErrorKind::Invalid) && matches!(options.start, Start::AfterSequence(_)) {
            let dropped = ResetOptions::new();
            real.backend.reset_group(stream, group, &dropped).await?;
        }
        reset
    }
}

fn missing_group(stream: &StreamName, group: &GroupName) -> Error {
    Error::GroupNotFound {
        stream: stream.clone(),
        group: group.clone(),
    }
}

#[derive(Default)]
struct MissingStreamIsMissingGroup;

#[async_trait]
impl Defect for MissingStreamIsMissingGroup {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        match real.backend.fetch(stream, group, options).await {
            Err(Error::StreamNotFound { .. }) => Err(missing_group(stream, group)),
            fetched => fetched,
        }
    }
}

#[derive(Default)]
struct MissingGroupIsMade;

#[async_trait]
impl Defect for MissingGroupIsMade {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let fetched = real.backend.fetch(stream, group, options).await;
        if !is(&fetched, ErrorKind::GroupNotFound) {
            return fetched;
        }
        let made = GroupOptions::new();
        real.backend.create_group(stream, group, &made).await?;
        real.backend.fetch(stream, group, options).await
    }
}

#[derive(Default)]
struct MissingStreamHasOnePartition;

#[async_trait]
impl Defect for MissingStreamHasOnePartition {
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let read = real.backend.read(stream, options).await;
        if is(&read, ErrorKind::StreamNotFound) && options.partition != Partition::ZERO {
            return Err(Error::invalid("partition", options.partition, "0"));
        }
        read
    }
}

#[derive(Default)]
struct PartitionsBeforeTheGroup;

#[async_trait]
impl Defect for PartitionsBeforeTheGroup {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let fetched = real.backend.fetch(stream, group, options).await;
        if let (Partitions::Only(selected), Err(Error::GroupNotFound { .. })) =
            (&options.partitions, &fetched)
        {
            for partition in selected {
                let read = ReadOptions::new().with_partition(*partition);
                if is(&real.backend.read(stream, &read).await, ErrorKind::Invalid) {
                    return Err(Error::invalid("partitions", partition, "fewer"));
                }
            }
        }
        fetched
    }
}

#[derive(Default)]
struct NoPartitionsReturnEarly;

#[async_trait]
impl Defect for NoPartitionsReturnEarly {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        real.backend.ping().await?;
        if options.partitions == Partitions::only([]) {
            return Ok(Vec::new());
        }
        real.backend.fetch(stream, group, options).await
    }
}

#[derive(Default)]
struct DeadLettersOfNoneCheckNoCursor;

#[async_trait]
impl Defect for DeadLettersOfNoneCheckNoCursor {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &rheo_core::DeadLetterOptions,
    ) -> Result<Vec<rheo_core::DeadLetter>> {
        let dead = real.backend.dead_letters(stream, group, options).await;
        if options.limit == 0 && is(&dead, ErrorKind::CursorNotFound) {
            return Ok(Vec::new());
        }
        dead
    }
}

#[derive(Default)]
struct ResetOfNoneReturnsEarly;

#[async_trait]
impl Defect for ResetOfNoneReturnsEarly {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.ping().await?;
        if options.partitions == Partitions::only([]) {
            return Ok(());
        }
        real.backend.reset_group(stream, group, options).await
    }
}

#[derive(Default)]
struct ReadOfNoneChecksNoPartition;

#[async_trait]
impl Defect for ReadOfNoneChecksNoPartition {
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        let read = real.backend.read(stream, options).await;
        if options.limit == 0 && is(&read, ErrorKind::Invalid) {
            return Ok(Vec::new());
        }
        read
    }
}

#[derive(Default)]
struct QueryOfNoneChecksNothing;

#[async_trait]
impl Defect for QueryOfNoneChecksNothing {
    async fn query(&self, real: &Real, stream: &StreamName, query: &Query) -> Result<Page> {
        let queried = real.backend.query(stream, query).await;
        if query.limit() == 0 && is(&queried, ErrorKind::Invalid) {
            return Ok(Page::default());
        }
        queried
    }
}

fn limited(real: &Real, limits: Limits) -> Capabilities {
    let declared = of_a_server(&real.backend.capabilities());
    Capabilities::builder()
        .guarantees(
            Guarantee::ALL
                .iter()
                .copied()
                .filter(|g| declared.guarantees(*g)),
        )
        .mechanisms(Mechanism::ALL.iter().copied().filter(|m| declared.uses(*m)))
        .operations(OptionalOperation::ALL.iter().copied())
        .limits(limits)
        .build()
        .expect("a valid declaration")
}

#[derive(Default)]
struct DeclaredJsonLimitIsUnchecked;

impl Defect for DeclaredJsonLimitIsUnchecked {
    fn capabilities(&self, real: &Real) -> Capabilities {
        limited(real, Limits::new().with_json_bytes(20_000))
    }
}

#[derive(Default)]
struct JsonLimitIsOneLess;

#[async_trait]
impl Defect for JsonLimitIsOneLess {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        real.backend.ping().await?;
        if let Some(long) = events
            .iter()
            .find(|event| event.payload.byte_len() >= MAX_JSON_BYTES)
        {
            let bytes = long.payload.byte_len();
            return Err(Error::invalid("payload", bytes, "fewer bytes"));
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
struct DeclaredBatchLimitIsUnchecked;

impl Defect for DeclaredBatchLimitIsUnchecked {
    fn capabilities(&self, real: &Real) -> Capabilities {
        limited(real, Limits::new().with_batch_events(60))
    }
}

#[derive(Default)]
struct BatchesHaveABoundOfTheirOwn;

#[async_trait]
impl Defect for BatchesHaveABoundOfTheirOwn {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        if events.len() > 500 {
            return Err(Error::invalid("events", events.len(), "at most 500"));
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
struct LimitsAreCheckedWhileWriting;

#[async_trait]
impl Defect for LimitsAreCheckedWhileWriting {
    fn capabilities(&self, real: &Real) -> Capabilities {
        limited(real, Limits::new().with_json_bytes(20_000))
    }
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let limits = *self.capabilities(real).limits();
        if let Err(beyond) = limits.check(&events) {
            for event in events {
                limits.check(std::slice::from_ref(&event))?;
                real.backend.append(stream, event).await?;
            }
            return Err(beyond);
        }
        real.backend.append_batch(stream, events).await
    }
}

#[derive(Default)]
struct MissingStreamReadsEmpty;

#[async_trait]
impl Defect for MissingStreamReadsEmpty {
    async fn read(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ReadOptions,
    ) -> Result<Vec<Event>> {
        match real.backend.read(stream, options).await {
            Err(Error::StreamNotFound { .. }) => Ok(Vec::new()),
            read => read,
        }
    }
}

#[derive(Default)]
struct MissingGroupHasNoLag;

#[async_trait]
impl Defect for MissingGroupHasNoLag {
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        match real.backend.lag(stream, group).await {
            Err(Error::GroupNotFound { .. }) => Ok(Lag::default()),
            lag => lag,
        }
    }
}

#[derive(Default)]
struct MissingGroupHasZeros;

#[async_trait]
impl Defect for MissingGroupHasZeros {
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        match real.backend.group_info(stream, group).await {
            Err(Error::GroupNotFound { .. }) => Ok(GroupInfo {
                stream: stream.clone(),
                group: group.clone(),
                max_attempts: MaxAttempts::default(),
                leased: 0,
                dead_letters: 0,
                lag: Lag::default(),
            }),
            info => info,
        }
    }
}
