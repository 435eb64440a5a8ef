//! Defects that the cases of `log` are there for.

mod batches;
mod ids;
mod immutability;
mod reading;
mod routing;
mod sequences;

use self::batches::*;
use self::ids::*;
use self::immutability::*;
use self::reading::*;
use self::routing::*;
use self::sequences::*;
use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        LosesASequenceNowAndThen: "every now and then a sequence is left out",
        says: "the sequences",
        kills: ["TODO-LosesASequenceNowAndThen"],
    },
    faulty! {
        OneCounterForTwoPartitions: "partitions 0 and 1 are numbered by one counter",
        says: "the sequences in partition",
        kills: ["TODO-OneCounterForTwoPartitions"],
    },
    faulty! {
        BurnsASequenceOnATakenId: "a refused id uses up a sequence",
        says: "the sequences in partition 0",
        kills: ["TODO-BurnsASequenceOnATakenId"],
    },
    faulty! {
        BurnsASequenceOnABadPartition: "a partition out of range uses up a sequence",
        says: "the sequences in partition 0",
        kills: ["TODO-BurnsASequenceOnABadPartition"],
    },
    faulty! {
        BurnsTheSequencesOfARefusedBatch: "a refused batch uses up sequences",
        says: "the sequences in partition 0",
        kills: ["TODO-BurnsTheSequencesOfARefusedBatch"],
    },
    faulty! {
        ShowsTheNewestBeforeTheOneBeforeIt: "the newest event is visible before the one before it",
        says: "the sequences that are visible",
        kills: ["TODO-ShowsTheNewestBeforeTheOneBeforeIt"],
    },
    faulty! {
        ReadsLagBehind: "the first read after an append does not see the event",
        says: "the event just appended",
        kills: ["TODO-ReadsLagBehind"],
    },
    faulty! {
        QueriesLagBehind: "the first query after an append does not see the event",
        says: "the event just appended",
        kills: ["TODO-QueriesLagBehind"],
    },
    faulty! {
        LagIsCached: "the lag stays what it was when it was asked for first",
        says: "the lag",
        kills: ["TODO-LagIsCached"],
    },
    faulty! {
        GroupPassesAnEvent: "of two events fetched together the first is passed",
        says: "the sequences delivered",
        kills: ["TODO-GroupPassesAnEvent"],
    },
    faulty! {
        BatchIsAnsweredById: "the answer of a batch is sorted by id",
        says: "the ids, in input order",
        kills: ["TODO-BatchIsAnsweredById"],
    },
    faulty! {
        BatchIsAnsweredByPartition: "the answer of a batch is sorted by partition",
        says: "the ids, in input order",
        kills: ["TODO-BatchIsAnsweredByPartition"],
    },
    faulty! {
        BatchIsWrittenBackwards: "a batch is written in reverse",
        says: "the sequences",
        kills: ["TODO-BatchIsWrittenBackwards"],
    },
    faulty! {
        BatchIsWrittenOneByOne: "a batch is written event by event, up to the bad one",
        says: "the log",
        kills: ["TODO-BatchIsWrittenOneByOne"],
    },
    faulty! {
        BatchTakesAnIdTwice: "ids in a batch are not compared with each other",
        says: "Err(AlreadyExists)",
        kills: ["TODO-BatchTakesAnIdTwice"],
    },
    faulty! {
        BatchIsCommittedPartitionByPartition: "each partition of a batch is written on its own",
        says: "no event in partition 0",
        kills: ["TODO-BatchIsCommittedPartitionByPartition"],
    },
    faulty! {
        EmptyBatchIsAnError: "an empty batch is an error",
        says: "the last operation to succeed",
        kills: ["TODO-EmptyBatchIsAnError"],
    },
    faulty! {
        EmptyBatchAsksForNoStream: "an empty batch does not look for the stream",
        says: "Err(StreamNotFound)",
        kills: ["TODO-EmptyBatchAsksForNoStream"],
    },
    faulty! {
        AppendMakesTheStream: "an append makes a missing stream",
        says: "Err(StreamNotFound)",
        kills: ["TODO-AppendMakesTheStream"],
    },
    faulty! {
        BatchOfOneNeedsBatchWrites: "a batch of one is Unsupported",
        says: "the last operation to succeed",
        kills: ["TODO-BatchOfOneNeedsBatchWrites"],
    },
    faulty! {
        AckDeletesTheEvent: "an acked event is gone from the log",
        says: "the log",
        kills: ["TODO-AckDeletesTheEvent"],
    },
    faulty! {
        RetryAppendsTheEventAgain: "a retried event is appended once more",
        says: "the log",
        kills: ["TODO-RetryAppendsTheEventAgain"],
    },
    faulty! {
        RejectMarksTheEvent: "a rejected event is marked in its metadata",
        says: "the log",
        kills: ["TODO-RejectMarksTheEvent"],
    },
    faulty! {
        LastRetryMovesTheEventOut: "an event that is retried for the last time is gone from the log",
        says: "the log",
        kills: ["TODO-LastRetryMovesTheEventOut"],
    },
    faulty! {
        ReclaimPutsTheEventBack: "an event that is delivered again is appended once more",
        says: "the log",
        kills: ["TODO-ReclaimPutsTheEventBack"],
    },
    faulty! {
        ReplayAppendsTheEventsAgain: "replayed events are appended once more",
        says: "the log after a replay",
        kills: ["TODO-ReplayAppendsTheEventsAgain"],
    },
    faulty! {
        ResetEmptiesTheLog: "resetting a group empties the log",
        says: "the log after resets",
        kills: ["TODO-ResetEmptiesTheLog"],
    },
    faulty! {
        KeysGoByTheSumOfTheirBytes: "keys are routed by another hash",
        says: "the partition of",
        kills: ["TODO-KeysGoByTheSumOfTheirBytes"],
    },
    faulty! {
        KeysAreHashedAsAscii: "what is not ASCII plays no part in the hash of a key",
        says: "the partition of",
        kills: ["TODO-KeysAreHashedAsAscii"],
    },
    faulty! {
        KeyGoesBeforeThePartition: "a given partition is ignored where there is a key",
        says: "the partition",
        kills: ["TODO-KeyGoesBeforeThePartition"],
    },
    faulty! {
        EventsWithoutKeyAreSpread: "events without a key are spread over the partitions",
        says: "the partition",
        kills: ["TODO-EventsWithoutKeyAreSpread"],
    },
    faulty! {
        SinglePartitionIsHashedToo: "a stream of one partition is routed as if it had two",
        says: "the last operation to succeed",
        kills: ["TODO-SinglePartitionIsHashedToo"],
    },
    faulty! {
        PartitionIsWrappedAround: "a partition out of range is taken modulo their number",
        says: "Err(Invalid)",
        kills: ["TODO-PartitionIsWrappedAround"],
    },
    faulty! {
        BatchGoesToOnePartition: "a batch goes to the partition of its first event",
        says: "the partitions",
        kills: ["TODO-BatchGoesToOnePartition"],
    },
    faulty! {
        GivenIdsMustBeOfVersion7: "given ids of other versions are replaced",
        says: "the id",
        kills: ["TODO-GivenIdsMustBeOfVersion7"],
    },
    faulty! {
        TakenIdIsIgnored: "an append with a taken id is Ok and writes nothing",
        says: "Err(AlreadyExists)",
        kills: ["TODO-TakenIdIsIgnored"],
    },
    faulty! {
        IdsAreUniqueInTheirPartition: "an id may be taken once in each partition",
        says: "Err(AlreadyExists)",
        kills: ["TODO-IdsAreUniqueInTheirPartition"],
    },
    faulty! {
        GeneratedIdsAreNotRemembered: "a generated id may be given once more",
        says: "Err(AlreadyExists)",
        kills: ["TODO-GeneratedIdsAreNotRemembered"],
    },
    faulty! {
        IdsAreNotedFirst: "ids are noted before the event is checked",
        says: "the last operation to succeed",
        kills: ["TODO-IdsAreNotedFirst"],
    },
    faulty! {
        IdsAreUniqueOverAllStreams: "an id may be in one stream only",
        says: "the last operation to succeed",
        kills: ["TODO-IdsAreUniqueOverAllStreams"],
    },
    faulty! {
        IdsAreOfTheTimeAndFourBits: "generated ids are made of the time and four more bits",
        says: "the last operation to succeed",
        kills: ["TODO-IdsAreOfTheTimeAndFourBits"],
    },
    faulty! {
        GeneratedIdsAreOfVersion4: "generated ids are of version 4",
        says: "an id of version 7",
        kills: ["TODO-GeneratedIdsAreOfVersion4"],
    },
    faulty! {
        GeneratedIdsAreOfAnotherClock: "generated ids are made of a clock that is wrong and runs backwards",
        says: "the time in the id",
        kills: ["TODO-GeneratedIdsAreOfAnotherClock"],
    },
    faulty! {
        ReadIncludesAfter: "`after` of a read is inclusive",
        says: "the sequences above 1",
        kills: ["TODO-ReadIncludesAfter"],
    },
    faulty! {
        ReadLimitOf0MeansAll: "a read with limit 0 gives everything",
        says: "the first 0 sequences",
        kills: ["TODO-ReadLimitOf0MeansAll"],
    },
    faulty! {
        ReadGives50ByDefault: "a read gives 50 events by default",
        says: "the sequences",
        kills: ["TODO-ReadGives50ByDefault"],
    },
    faulty! {
        ReadIsAlwaysOfPartition0: "a read ignores the partition",
        says: "partition",
        kills: ["TODO-ReadIsAlwaysOfPartition0"],
    },
    faulty! {
        ReadIsOfAllPartitions: "a read gives the events of all partitions",
        says: "partition 0, the default",
        kills: ["TODO-ReadIsOfAllPartitions"],
    },
    faulty! {
        MissingStreamReadsAsEmpty: "reading a missing stream is Ok and empty",
        says: "Err(StreamNotFound)",
        kills: ["TODO-MissingStreamReadsAsEmpty"],
    },
    faulty! {
        ReadOf0AsksForNoStream: "a read with limit 0 does not look for the stream",
        says: "Err(StreamNotFound)",
        kills: ["TODO-ReadOf0AsksForNoStream"],
    },
];
