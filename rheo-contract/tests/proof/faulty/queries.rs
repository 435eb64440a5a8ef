//! Defects that the cases of `queries` are there for.

mod bounds;
mod cursors;
mod filters;
mod order;
mod values;

use self::bounds::*;
use self::cursors::*;
use self::filters::*;
use self::order::*;
use self::values::*;
use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        TypesAreComparedByLike: "types are compared by LIKE",
        says: "the sequences with",
        kills: ["TODO-TypesAreComparedByLike"],
    },
    faulty! {
        TypesAreComparedWithoutCase: "types are compared without case",
        says: "the sequences with",
        kills: ["TODO-TypesAreComparedWithoutCase"],
    },
    faulty! {
        KeysAreComparedByLike: "keys are compared by LIKE",
        says: "the sequences with",
        kills: ["TODO-KeysAreComparedByLike"],
    },
    faulty! {
        KeysAreComparedWithoutTheirBlanks: "blanks around keys play no part",
        says: "the sequences with",
        kills: ["TODO-KeysAreComparedWithoutTheirBlanks"],
    },
    faulty! {
        MissingKeyIsFoundByNull: "events without a key are found by the key \"null\"",
        says: "the sequences with",
        kills: ["TODO-MissingKeyIsFoundByNull"],
    },
    faulty! {
        PartitionOf0IsNone: "partition 0 in a query means all",
        says: "the events of partition 0",
        kills: ["TODO-PartitionOf0IsNone"],
    },
    faulty! {
        MetadataIsSearchedInThePayload: "metadata filters look at the payload",
        says: "metadata v = 1",
        kills: ["TODO-MetadataIsSearchedInThePayload"],
    },
    faulty! {
        PayloadIsSearchedInBoth: "payload filters look at the metadata too",
        says: "payload v = 1",
        kills: ["TODO-PayloadIsSearchedInBoth"],
    },
    faulty! {
        OneOfThePayloadFieldsIsEnough: "one of the payload filters is enough",
        says: "what matches all",
        kills: ["TODO-OneOfThePayloadFieldsIsEnough"],
    },
    faulty! {
        TypeIsLeftOutWhereThereIsAKey: "the type plays no part where there is a key",
        says: "what matches all",
        kills: ["TODO-TypeIsLeftOutWhereThereIsAKey"],
    },
    faulty! {
        MetadataIsLeftOutWhereThereIsAPayload: "metadata filters play no part where there are payload filters",
        says: "what matches all",
        kills: ["TODO-MetadataIsLeftOutWhereThereIsAPayload"],
    },
    faulty! {
        UntilIsExclusive: "the end of a time range is exclusive",
        says: "the sequences from",
        kills: ["TODO-UntilIsExclusive"],
    },
    faulty! {
        FromIsExclusive: "the beginning of a time range is exclusive",
        says: "the sequences from",
        kills: ["TODO-FromIsExclusive"],
    },
    faulty! {
        TimeRangeIsOfMilliseconds: "time ranges are rounded to milliseconds",
        says: "the sequences from",
        kills: ["TODO-TimeRangeIsOfMilliseconds"],
    },
    faulty! {
        AfterSequenceIsInclusive: "after_sequence is inclusive",
        says: "the sequences above",
        kills: ["TODO-AfterSequenceIsInclusive"],
    },
    faulty! {
        UntilSequenceIsExclusive: "until_sequence is exclusive",
        says: "the sequences above",
        kills: ["TODO-UntilSequenceIsExclusive"],
    },
    faulty! {
        ContradictionIsInvalid: "bounds that contradict each other are refused",
        says: "the last operation to succeed",
        kills: ["TODO-ContradictionIsInvalid"],
    },
    faulty! {
        TimesAreSwappedIntoOrder: "a time range that is the wrong way round is turned",
        says: "the sequences found",
        kills: ["TODO-TimesAreSwappedIntoOrder"],
    },
    faulty! {
        QueryLimitOf0MeansAll: "a query with limit 0 gives everything",
        says: "a page of limit 0",
        kills: ["TODO-QueryLimitOf0MeansAll"],
    },
    faulty! {
        LimitOf0HasANextPage: "a page of limit 0 has a next one",
        says: "no next page",
        kills: ["TODO-LimitOf0HasANextPage"],
    },
    faulty! {
        QueryLimitIsSigned: "limits above 2147483647 overflow",
        says: "a page of limit",
        kills: ["TODO-QueryLimitIsSigned"],
    },
    faulty! {
        QueryGives50ByDefault: "a query gives 50 events by default",
        says: "the sequences of a page",
        kills: ["TODO-QueryGives50ByDefault"],
    },
    faulty! {
        LimitComesBeforeTheFilters: "a page is cut before it is filtered",
        says: "the first page of two",
        kills: ["TODO-LimitComesBeforeTheFilters"],
    },
    faulty! {
        IndexesAreOverAllStreams: "indexes are searched without the stream",
        says: "the events found",
        kills: ["TODO-IndexesAreOverAllStreams"],
    },
    faulty! {
        MissingStreamIsEmptyToQueries: "querying a missing stream is Ok and empty",
        says: "Err(StreamNotFound)",
        kills: ["TODO-MissingStreamIsEmptyToQueries"],
    },
    faulty! {
        QueryOf0AsksForNoStream: "a query with limit 0 does not look for the stream",
        says: "Err(StreamNotFound)",
        kills: ["TODO-QueryOf0AsksForNoStream"],
    },
    faulty! {
        ValuesAreComparedAsText: "values are compared as text",
        says: "the sequences with",
        kills: ["TODO-ValuesAreComparedAsText"],
    },
    faulty! {
        TrueIs1: "true equals 1",
        says: "the sequences with",
        kills: ["TODO-TrueIs1"],
    },
    faulty! {
        MissingFieldsAreNull: "a missing field equals null",
        says: "the sequences with",
        kills: ["TODO-MissingFieldsAreNull"],
    },
    faulty! {
        NullIsFoundNowhere: "null equals nothing, itself neither",
        says: "the sequences with",
        kills: ["TODO-NullIsFoundNowhere"],
    },
    faulty! {
        NumbersAreComparedAsTheyAreWritten: "1 and 1.0 differ",
        says: "the sequences with",
        kills: ["TODO-NumbersAreComparedAsTheyAreWritten"],
    },
    faulty! {
        NumbersAreComparedAsDoubles: "numbers are compared as doubles",
        says: "the sequences with",
        kills: ["TODO-NumbersAreComparedAsDoubles"],
    },
    faulty! {
        ObjectsAreComparedByContainment: "an object with more in it matches too",
        says: "the sequences with",
        kills: ["TODO-ObjectsAreComparedByContainment"],
    },
    faulty! {
        ObjectsAreComparedAsText: "objects are compared as text",
        says: "the sequences with",
        kills: ["TODO-ObjectsAreComparedAsText"],
    },
    faulty! {
        ArraysAreFoundByTheirItems: "an array is found by one of its items",
        says: "the sequences with",
        kills: ["TODO-ArraysAreFoundByTheirItems"],
    },
    faulty! {
        ArraysAreComparedAsSets: "the order of items plays no part",
        says: "the sequences with",
        kills: ["TODO-ArraysAreComparedAsSets"],
    },
    faulty! {
        OperatorsAreRun: "values that look like operators are run",
        says: "the sequences with",
        kills: ["TODO-OperatorsAreRun"],
    },
    faulty! {
        FieldNamesArePaths: "a dot in a field's name descends",
        says: "the sequences with",
        kills: ["TODO-FieldNamesArePaths"],
    },
    faulty! {
        TiesOfSequencesComeBackwards: "equal sequences come by descending partition",
        says: "sequence and partition by",
        kills: ["TODO-TiesOfSequencesComeBackwards"],
    },
    faulty! {
        OrderBySequenceIsByPartition: "order by sequence is by partition first",
        says: "sequence and partition by",
        kills: ["TODO-OrderBySequenceIsByPartition"],
    },
    faulty! {
        OrderByTimestampIsThenByPartition: "equal timestamps come by partition first",
        says: "sequence and partition by",
        kills: ["TODO-OrderByTimestampIsThenByPartition"],
    },
    faulty! {
        OrderByTimestampIsThatOfTheLog: "order by timestamp is by sequence",
        says: "sequence and partition by",
        kills: ["TODO-OrderByTimestampIsThatOfTheLog"],
    },
    faulty! {
        TiesNeverDescend: "ties ascend in a descending order too",
        says: "sequence and partition by",
        kills: ["TODO-TiesNeverDescend"],
    },
    faulty! {
        CursorIsTheSequenceAlone: "pages go on at the next sequence",
        says: "sequence and partition in pages",
        kills: ["TODO-CursorIsTheSequenceAlone"],
    },
    faulty! {
        CursorIsTheTimestampAlone: "pages go on at the next timestamp",
        says: "sequence and partition in pages",
        kills: ["TODO-CursorIsTheTimestampAlone"],
    },
    faulty! {
        CursorIsInclusive: "pages begin with the last event of the page before",
        says: "sequence and partition in pages",
        kills: ["TODO-CursorIsInclusive"],
    },
    faulty! {
        PagesLeaveRoom: "a page of four holds three",
        says: "the sizes of the pages",
        kills: ["TODO-PagesLeaveRoom"],
    },
    faulty! {
        PageEndsAfterTenThatDoNotMatch: "a page ends after ten events were looked at",
        says: "the sizes of the pages",
        kills: ["TODO-PageEndsAfterTenThatDoNotMatch"],
    },
    faulty! {
        CursorIsAnOffset: "a cursor is a number of events",
        says: "the events from before",
        kills: ["TODO-CursorIsAnOffset"],
    },
    faulty! {
        CursorIsRememberedByTheHandle: "a cursor means something to its handle only",
        says: "the last operation to succeed",
        kills: ["TODO-CursorIsRememberedByTheHandle"],
    },
    faulty! {
        CursorIsUsedUp: "a cursor can be used once",
        says: "the last operation to succeed",
        kills: ["TODO-CursorIsUsedUp"],
    },
    faulty! {
        OnlyTheLatestCursorIsValid: "a query makes earlier cursors invalid",
        says: "the last operation to succeed",
        kills: ["TODO-OnlyTheLatestCursorIsValid"],
    },
    faulty! {
        CursorHoldsTheFilters: "a cursor is refused for other filters",
        says: "the last operation to succeed",
        kills: ["TODO-CursorHoldsTheFilters"],
    },
    faulty! {
        DamagedCursorIsIgnored: "a damaged cursor means the first page",
        says: "Err(Invalid)",
        kills: ["TODO-DamagedCursorIsIgnored"],
    },
    faulty! {
        CursorHasNoChecksum: "the checksum of a cursor is not looked at",
        says: "Err(Invalid)",
        kills: ["TODO-CursorHasNoChecksum"],
    },
    faulty! {
        CursorOfAnyOrderIsTaken: "a cursor of another order goes on in its own order",
        says: "Err(Invalid)",
        kills: ["TODO-CursorOfAnyOrderIsTaken"],
    },
    faulty! {
        LimitOf0AsksForNoCursor: "with limit 0 the cursor is not looked at",
        says: "Err(Invalid)",
        kills: ["TODO-LimitOf0AsksForNoCursor"],
    },
    faulty! {
        QueriesClaimEvents: "a query claims an event for each group",
        says: "the sequences still claimable",
        kills: ["TODO-QueriesClaimEvents"],
    },
];
