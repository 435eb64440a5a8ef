//! Defects that the cases of `fidelity` are there for.

mod documents;
mod everywhere;

use self::documents::*;
use self::everywhere::*;
use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        AppendAnswersWithAnotherTime: "an append answers with a time a microsecond after the event's",
        says: "the timestamp",
        kills: ["TODO-AppendAnswersWithAnotherTime"],
    },
    faulty! {
        FetchForgetsTheKey: "a fetched event has no key",
        says: "the event, fetched",
        kills: ["TODO-FetchForgetsTheKey"],
    },
    faulty! {
        BatchForgetsTheKeys: "events that are appended together lose their keys",
        says: "the appended event",
        kills: ["TODO-BatchForgetsTheKeys"],
    },
    faulty! {
        QueryForgetsTheMetadata: "an event found by a query has no metadata",
        says: "the events, queried",
        kills: ["TODO-QueryForgetsTheMetadata"],
    },
    faulty! {
        RedeliveryForgetsTheMetadata: "an event that is delivered again has no metadata",
        says: "the event, reclaimed",
        kills: ["TODO-RedeliveryForgetsTheMetadata"],
    },
    faulty! {
        RenewForgetsTheKey: "the event in a renewed lease has no key",
        says: "the event, renewed",
        kills: ["TODO-RenewForgetsTheKey"],
    },
    faulty! {
        DeadLettersForgetTheMetadata: "the event of a dead letter has no metadata",
        says: "the events of the dead letters",
        kills: ["TODO-DeadLettersForgetTheMetadata"],
    },
    faulty! {
        DeadLettersAreStampedAnew: "the event of a dead letter has the time at which it became one",
        says: "the events of the dead letters",
        kills: ["TODO-DeadLettersAreStampedAnew"],
    },
    faulty! {
        MissingKeysAreTheTextNull: "an event without a key gets the key \"null\"",
        says: "no key",
        kills: ["TODO-MissingKeysAreTheTextNull"],
    },
    faulty! {
        EmptyMetadataGetsAField: "empty metadata gets a field",
        says: "the metadata",
        kills: ["TODO-EmptyMetadataGetsAField"],
    },
    faulty! {
        TimestampsAreInMilliseconds: "timestamps are cut to milliseconds",
        says: "the timestamp",
        kills: ["TODO-TimestampsAreInMilliseconds"],
    },
    faulty! {
        TimestampsAreUnsigned: "timestamps before 1970 are 1970",
        says: "the timestamp",
        kills: ["TODO-TimestampsAreUnsigned"],
    },
    faulty! {
        TimestampsAreNanosecondsIn64Bits: "timestamps that do not fit 64 bits of nanoseconds are refused",
        says: "the last operation to succeed",
        kills: ["TODO-TimestampsAreNanosecondsIn64Bits"],
    },
    faulty! {
        TypesAreTrimmed: "blanks around a type are lost",
        says: "type and key",
        kills: ["TODO-TypesAreTrimmed"],
    },
    faulty! {
        KeysAreLowered: "keys become lower case",
        says: "type and key",
        kills: ["TODO-KeysAreLowered"],
    },
    faulty! {
        KeysAreCutAt255Bytes: "keys are cut after 255 bytes",
        says: "type and key",
        kills: ["TODO-KeysAreCutAt255Bytes"],
    },
    faulty! {
        U64GoesThroughI64: "integers above i64 become negative",
        says: "the payload",
        kills: ["TODO-U64GoesThroughI64"],
    },
    faulty! {
        IntegersGoThroughADouble: "integers are kept as doubles",
        says: "the payload",
        kills: ["TODO-IntegersGoThroughADouble"],
    },
    faulty! {
        DoublesHave15Digits: "doubles are printed with 15 digits",
        says: "the payload",
        kills: ["TODO-DoublesHave15Digits"],
    },
    faulty! {
        TinyDoublesAreZero: "subnormal doubles become zero",
        says: "the payload",
        kills: ["TODO-TinyDoublesAreZero"],
    },
    faulty! {
        WholeDoublesBecomeIntegers: "1.0 becomes 1",
        says: "the payload",
        kills: ["TODO-WholeDoublesBecomeIntegers"],
    },
    faulty! {
        LargeWholeDoublesLoseTheirPoint: "1e15 becomes 1000000000000000",
        says: "the payload",
        kills: ["TODO-LargeWholeDoublesLoseTheirPoint"],
    },
    faulty! {
        TextIsUnescapedTwice: "text is unescaped once too often",
        says: "the payload",
        kills: ["TODO-TextIsUnescapedTwice"],
    },
    faulty! {
        WhatLooksLikeNulIsRefused: "a backslash, u and four zeros are taken for U+0000",
        says: "the last operation to succeed",
        kills: ["TODO-WhatLooksLikeNulIsRefused"],
    },
    faulty! {
        TextIsNormalized: "text is brought to normal form C",
        says: "the payload",
        kills: ["TODO-TextIsNormalized"],
    },
    faulty! {
        TextHasThreeBytesACharacter: "characters of four bytes are replaced",
        says: "the payload",
        kills: ["TODO-TextHasThreeBytesACharacter"],
    },
    faulty! {
        NoncharactersAreDropped: "U+FFFE and U+FFFF are dropped",
        says: "the payload",
        kills: ["TODO-NoncharactersAreDropped"],
    },
    faulty! {
        TextIsTrimmed: "blanks around text are lost",
        says: "the payload",
        kills: ["TODO-TextIsTrimmed"],
    },
    faulty! {
        LineEndsAreConverted: "a carriage return before a line feed is lost",
        says: "the payload",
        kills: ["TODO-LineEndsAreConverted"],
    },
    faulty! {
        ControlCharactersAreDropped: "control characters are dropped",
        says: "the payload",
        kills: ["TODO-ControlCharactersAreDropped"],
    },
    faulty! {
        DotsInNamesAreReplaced: "dots in field names are replaced",
        says: "the payload",
        kills: ["TODO-DotsInNamesAreReplaced"],
    },
    faulty! {
        DollarNamesAreRefused: "field names that begin with a dollar sign are refused",
        says: "the last operation to succeed",
        kills: ["TODO-DollarNamesAreRefused"],
    },
    faulty! {
        EmptyNamesAreRefused: "empty field names are refused",
        says: "the last operation to succeed",
        kills: ["TODO-EmptyNamesAreRefused"],
    },
    faulty! {
        NamesAreLowered: "field names become lower case",
        says: "the payload",
        kills: ["TODO-NamesAreLowered"],
    },
    faulty! {
        PrototypeIsDropped: "the field __proto__ is dropped",
        says: "the payload",
        kills: ["TODO-PrototypeIsDropped"],
    },
    faulty! {
        ExtendedJsonIsRead: "documents that look like extended JSON become values",
        says: "the payload",
        kills: ["TODO-ExtendedJsonIsRead"],
    },
    faulty! {
        NullsAreLeftOut: "null fields are left out",
        says: "the payload",
        kills: ["TODO-NullsAreLeftOut"],
    },
    faulty! {
        EmptyArraysBecomeObjects: "an empty array becomes an empty object",
        says: "the payload",
        kills: ["TODO-EmptyArraysBecomeObjects"],
    },
    faulty! {
        NestingEndsAt63: "nesting deeper than 63 is refused",
        says: "the last operation to succeed",
        kills: ["TODO-NestingEndsAt63"],
    },
    faulty! {
        ArraysAreCutAt1000: "arrays are cut after 1,000 items",
        says: "the payload",
        kills: ["TODO-ArraysAreCutAt1000"],
    },
    faulty! {
        LongArraysAreSorted: "long arrays are sorted",
        says: "the payload",
        kills: ["TODO-LongArraysAreSorted"],
    },
    faulty! {
        LimitIsOfTheStoredForm: "a document of exactly the limit is refused",
        says: "the last operation to succeed",
        kills: ["TODO-LimitIsOfTheStoredForm"],
    },
];
