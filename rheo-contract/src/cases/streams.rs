//! Streams and names: every name is its own, and no stream notices another.

use std::collections::BTreeSet;

use rheo_core::{
    Backend, ConsumerId, ErrorKind, EventKey, FetchOptions, Gate, GroupName, Guarantee, JsonObject,
    Lease, NewEvent, OptionalOperation, Partition, PartitionCount, Query, ReadOptions, StreamName,
    StreamOptions,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::case::{Case, case};
use crate::expect::{Outcome, expect, expect_eq, expect_error, expect_invalid};
use crate::fixture::{Fixture, new_event};
use crate::scene::{P0, P1, Stream, sequences};

const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const REPLAY: Gate = Gate::Guarantee(Guarantee::Replay);
const RANGE_SCAN: Gate = Gate::Guarantee(Guarantee::OrderedRangeScan);
const INDEXES: Gate = Gate::Guarantee(Guarantee::SecondaryIndexes);
const DEAD_LETTERS: Gate = Gate::Operation(OptionalOperation::DeadLetters);

pub(crate) const CASES: &[Case] = &[
    case!(
        "STR-1" => a_stream_has_the_partitions_it_was_made_with,
        "the number of partitions is not stored, or is one too many or too few"
    )
    .needs(&[PARTITIONS]),
    case!(
        "STR-1" => a_stream_has_one_partition_by_default,
        "the default number of partitions is not 1, or is not enforced"
    ),
    case!(
        "STR-1" => a_stream_has_up_to_1024_partitions,
        "partitions are made of something the store has few of, or numbered in one byte"
    )
    .needs(&[PARTITIONS]),
    case!(
        "STR-1" => a_stream_is_not_made_twice,
        "create_stream is an upsert that empties or replaces what is there"
    ),
    case!(
        "STR-1" => a_duplicate_does_not_change_the_partitions,
        "create_stream writes the options before it finds the name taken"
    )
    .needs(&[PARTITIONS]),
    case!(
        "STR-1" => of_concurrent_creators_one_wins,
        "create_stream looks first and inserts then, so that two creators both find nothing"
    ),
    case!(
        "STR-2" => stream_names_never_collide,
        "names are folded, trimmed, normalized or escaped on the way to the store"
    ),
    case!(
        "STR-2" => group_names_never_collide,
        "group names are folded, trimmed, normalized or escaped on the way to the store"
    ),
    case!(
        "STR-2" => stream_and_group_are_not_run_together,
        "stream and group are joined with a separator that may be in either"
    ),
    case!(
        "STR-2" => consumer_names_come_back,
        "the consumer is escaped for the store and not unescaped, or cut to the column's length"
    ),
    case!(
        "STR-2" => types_and_keys_come_back,
        "a text column trims or normalizes, or cuts a key at 255 bytes"
    ),
    case!(
        "STR-2" => types_and_keys_are_told_apart,
        "the collation of the store compares without case or blanks at the end"
    )
    .needs(&[INDEXES]),
    case!(
        "STR-2" => the_longest_names_work,
        "a column or an index entry is too short for 255 bytes, or a prefix pushes a name over it"
    ),
    case!(
        "STR-2" => long_names_that_begin_alike_are_told_apart,
        "the parts of a store that go by a name cut it to the length of an identifier"
    ),
    case!(
        "STR-3" => text_that_looks_like_a_command_is_kept,
        "values are formatted into a statement, or keys with `$` and dots are escaped one way only"
    ),
    case!(
        "STR-3" => a_filter_is_a_value_and_no_operator,
        "a filter's value is put into the query document as it is, so that an object is an operator"
    )
    .needs(&[INDEXES]),
    case!(
        "STR-3" => a_filter_is_no_pattern,
        "a filter is matched with LIKE or a regular expression"
    )
    .needs(&[INDEXES]),
    case!(
        "STR-3" => a_field_name_is_no_path,
        "a field name is put into a path, where dots, brackets and `$` have a meaning"
    )
    .needs(&[INDEXES]),
    case!(
        "STR-4" => logs_are_isolated,
        "the stream is missing from a condition or from the counter of sequences"
    ),
    case!(
        "STR-4" => queries_are_isolated,
        "the query by other columns leaves out the stream"
    )
    .needs(&[RANGE_SCAN]),
    case!(
        "STR-4" => groups_of_one_name_are_two,
        "delivery state is kept by group and sequence, without the stream"
    ),
    case!(
        "STR-4" => settling_on_one_stream_leaves_the_other,
        "a settle updates by group and sequence, without the stream"
    ),
    case!(
        "STR-4" => going_back_on_one_stream_leaves_the_other,
        "replay or reset_group deletes by group, without the stream"
    )
    .needs(&[REPLAY]),
    case!(
        "STR-4" => dead_letters_are_isolated,
        "dead letters are listed by group, without the stream"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "STR-4" => one_event_id_may_be_in_two_streams,
        "event ids are unique over the whole store"
    ),
];

/// Valid names that careless backends take for one another, or choke on.
const NAMES: &[&str] = &[
    "a",
    "A",
    "b",
    "a.b",
    "a:b",
    "a/b",
    "a\\b",
    "a|b",
    "a_b",
    "a-b",
    "a b",
    "a,b",
    "a;b",
    "a#b",
    "a\u{00fc}",
    "au\u{0308}",
    "\u{df}",
    "ss",
    "\u{130}",
    "i",
    "I",
    "a ",
    " a",
    "a  ",
    " ",
    "  ",
    "\u{3000}",
    "\u{200b}",
    "a\u{200b}",
    "%",
    "_",
    "a%",
    "a_",
    "*",
    "?",
    "a*",
    "$",
    "$a",
    "a$b",
    "'",
    "''",
    "a'b",
    "\"",
    "\"\"",
    "a\"b",
    "`",
    "a`b",
    "\\",
    "\\\\",
    ".",
    "..",
    "/",
    "../a",
    "system.users",
    "system.indexes",
    "pg_catalog",
    "_id",
    "null",
    "NULL",
    "0",
    "00",
    "1",
    "-1",
    "1.0",
    "true",
    "{}",
    "{\"a\":1}",
    "[]",
    "(a)",
    "<a>",
    "&amp;",
    "${a}",
    "{{a}}",
    "\u{1f980}",
    "\u{1f468}\u{200d}\u{1f469}",
    "\u{feff}a",
    "\u{e000}",
    "\u{10ffff}",
    "a\u{301}\u{323}",
    "a\u{323}\u{301}",
    "--",
    "a--b",
    "/*a*/",
    "'; drop table events; --",
    "\\u0061",
    "%61",
    "a\u{2028}",
];

/// Texts that some store, driver or template runs.
const COMMANDS: &[&str] = &[
    "'; DROP TABLE events; --",
    "' OR '1'='1",
    "\"); db.dropDatabase(); (\"",
    "$where",
    "{\"$ne\": null}",
    "${jndi:ldap://localhost/a}",
    "{{7*7}}",
    "$(touch /tmp/rheo)",
    "`id`",
    "%s%n%d",
    "\\'; SELECT pg_sleep(60); --",
    "COPY events FROM PROGRAM 'id'",
    "redis.call('FLUSHALL')",
    "E'\\\\x'",
    "$$ $1 $2 :name ? @p1",
];

/// A producer counts on the partitions that the stream was planned with.
async fn a_stream_has_the_partitions_it_was_made_with(t: Fixture) -> Outcome {
    let stream = t.stream(3).await?;

    for number in 0..3 {
        let partition = Partition::new(number);
        let appended = stream.append_to(partition, 1).await?;
        expect_eq("the log", stream.read(partition).await?, appended)?;
    }
    expect_one_too_many(&stream, 3).await
}

/// Most streams are made without a thought about partitions.
async fn a_stream_has_one_partition_by_default(t: Fixture) -> Outcome {
    let name = StreamName::new("orders")?;
    t.backend
        .create_stream(&name, &StreamOptions::new())
        .await?;
    let stream = t.existing_stream(name);
    let appended = stream.append(1).await?;

    expect_eq("the log", stream.read(P0).await?, appended)?;
    expect_one_too_many(&stream, 1).await
}

/// The largest stream that is allowed must work to its last partition.
async fn a_stream_has_up_to_1024_partitions(t: Fixture) -> Outcome {
    let stream = t.stream(PartitionCount::MAX).await?;
    let last = Partition::new(PartitionCount::MAX - 1);
    let appended = stream.append_to(last, 2).await?;

    expect_eq("the log", stream.read(last).await?, appended)?;
    expect_eq("the log", stream.read(P0).await?, Vec::new())?;
    let group = stream.group("billing").await?;
    expect_eq("leases", group.fetch_all("a").await?.len(), 2)?;
    expect_one_too_many(&stream, PartitionCount::MAX).await
}

async fn expect_one_too_many(stream: &Stream, count: u32) -> Outcome {
    let beyond = ReadOptions::new().with_partition(Partition::new(count));
    expect_invalid(
        stream.backend.read(&stream.name, &beyond).await,
        "partition",
    )
}

/// Every instance of a service makes its streams when it starts.
async fn a_stream_is_not_made_twice(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let lease = group.fetch_one("a").await?;
    let log = group.stream.read(P0).await?;
    let one = StreamOptions::new();
    let again = t.backend.create_stream(&group.stream.name, &one).await;

    expect_error(again, ErrorKind::AlreadyExists)?;
    expect_eq("the log", group.stream.read(P0).await?, log)?;
    group.expect_claimable("b", &[2]).await?;
    Ok(t.backend.ack(&lease).await?)
}

/// Another number of partitions would send keys elsewhere and break their order.
async fn a_duplicate_does_not_change_the_partitions(t: Fixture) -> Outcome {
    let stream = t.stream(2).await?;
    for count in [1, 2, 5] {
        let options = StreamOptions::new().with_partition_count(PartitionCount::new(count)?);
        let again = t.backend.create_stream(&stream.name, &options).await;
        expect_error(again, ErrorKind::AlreadyExists)?;
    }

    stream.append_to(P1, 1).await?;
    expect_one_too_many(&stream, 2).await
}

/// Instances that start at once must agree on who made the stream.
async fn of_concurrent_creators_one_wins(t: Fixture) -> Outcome {
    let name = StreamName::new("orders")?;
    let mut creators = JoinSet::new();
    for _ in 0..8 {
        let (backend, name) = (t.backend.clone(), name.clone());
        creators.spawn(async move { backend.create_stream(&name, &StreamOptions::new()).await });
    }
    let mut winners = 0;
    while let Some(created) = creators.join_next().await {
        match created? {
            Ok(()) => winners += 1,
            lost => drop(expect_error(lost, ErrorKind::AlreadyExists)?),
        }
    }

    expect_eq("the creators that won", winners, 1)?;
    let stream = t.existing_stream(name);
    let appended = stream.append(1).await?;
    expect_eq("the log", stream.read(P0).await?, appended)
}

/// Tenants choose the names of their streams: nobody may read another's.
async fn stream_names_never_collide(t: Fixture) -> Outcome {
    let mut streams = Vec::new();
    for name in NAMES {
        let stream = t.stream_named(name, 1).await?;
        let appended = stream.append(1).await?;
        streams.push((stream, appended));
    }

    for (stream, appended) in streams {
        expect_eq("the log", stream.read(P0).await?, appended.clone())?;
        expect_eq("the stream's name", &appended[0].stream, &stream.name)?;
    }
    Ok(())
}

/// Two teams whose groups look alike must each get every event.
async fn group_names_never_collide(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    stream.append(1).await?;
    let mut groups = Vec::new();
    for name in NAMES {
        groups.push(stream.group(name).await?);
    }

    let mut ids = BTreeSet::new();
    for group in &groups {
        let lease = group.fetch_one("a").await?;
        expect_eq("the group", &lease.group, &group.name)?;
        expect_eq("the attempt", lease.attempt, 1)?;
        ids.insert(lease.lease_id.clone());
        t.backend.ack(&lease).await?;
        group.expect_nothing("a").await?;
    }
    expect_eq("the number of lease ids", ids.len(), groups.len())
}

/// (`a`, `b:c`) and (`a:b`, `c`) are the same key to whoever joins with a colon.
async fn stream_and_group_are_not_run_together(t: Fixture) -> Outcome {
    for separator in [
        ":", ".", "/", "|", "_", "-", " ", ",", ";", "#", "$", "\\", "@", "::",
    ] {
        let stream = t.stream_named(&format!("a{separator}b"), 1).await?;
        let inner = stream.group("c").await?;
        let outer = t.stream_named(&format!("a{separator}"), 1).await?;
        let outer = outer.group(&format!("b{separator}c")).await?;
        let bare = t.existing_stream(StreamName::new("a")?);
        if separator == ":" {
            t.stream_named("a", 1).await?;
        }
        let bare = bare.group(&format!("b{separator}c")).await?;
        inner.stream.append(1).await?;

        outer.expect_nothing("x").await?;
        bare.expect_nothing("x").await?;
        let lease = inner.fetch_one("x").await?;
        for other in [&outer, &bare] {
            let forged = Lease {
                group: other.name.clone(),
                event: rheo_core::Event {
                    stream: other.stream.name.clone(),
                    ..lease.event.clone()
                },
                ..lease.clone()
            };
            expect_error(t.backend.ack(&forged).await, ErrorKind::StaleLease)?;
        }
        t.backend.ack(&lease).await?;
    }
    Ok(())
}

/// The consumer tells people who has an event; it comes back as it was given.
async fn consumer_names_come_back(t: Fixture) -> Outcome {
    let group = t.group_with_events(NAMES.len()).await?;

    for name in NAMES {
        let consumer = ConsumerId::new(name)?;
        let options = FetchOptions::new(consumer.clone());
        for lease in group.gather(options, 1).await? {
            expect_eq("the consumer", &lease.consumer, &consumer)?;
            t.backend.ack(&lease).await?;
        }
    }
    group.expect_nothing("a").await
}

/// Keys may even hold line ends: they come from other systems.
fn keys() -> Vec<String> {
    let strange = ["a\n", "a\t", "\r\n", "\u{1}", "\u{7f}", "a\u{85}"].map(str::to_owned);
    let long = ["x".repeat(1_024), format!("{}y", "x".repeat(1_023))];
    let names = NAMES.iter().map(|name| (*name).to_owned());
    names.chain(strange).chain(long).collect()
}

fn typed(name: &str) -> NewEvent {
    new_event(name, json!({ "type": name }))
}

/// A consumer chooses its code by the type: another spelling is another type.
async fn types_and_keys_come_back(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    let mut appended = Vec::new();
    for name in NAMES {
        appended.push(stream.append_event(typed(name)).await?);
    }
    for key in keys() {
        let event = t.new_event().with_key(EventKey::new(&key)?);
        appended.push(stream.append_event(event).await?);
    }

    let read = stream.read(P0).await?;
    for (event, name) in read.iter().zip(NAMES) {
        expect_eq("the type", event.event_type.as_str(), *name)?;
    }
    for (event, key) in read[NAMES.len()..].iter().zip(keys()) {
        let seen = event.key.as_ref().map(EventKey::as_str);
        expect_eq("the key", seen, Some(&*key))?;
    }
    expect_eq("the log", read, appended)
}

/// A filter for `A` must not give what belongs to `a`.
async fn types_and_keys_are_told_apart(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?;
    for name in NAMES {
        let event = typed(name).with_key(EventKey::new(name)?);
        stream.append_event(event).await?;
    }

    for (sequence, name) in (1..).zip(NAMES) {
        let by_type = Query::new().with_event_type((*name).try_into()?);
        let found = sequences(&stream.query_all(by_type).await?);
        expect_eq(
            &format!("the events of type {name:?}"),
            found,
            vec![sequence],
        )?;
        let by_key = Query::new().with_key(EventKey::new(name)?);
        let found = sequences(&stream.query_all(by_key).await?);
        expect_eq(
            &format!("the events with key {name:?}"),
            found,
            vec![sequence],
        )?;
    }
    Ok(())
}

/// Names that end in an identifier differ in their last bytes only.
async fn the_longest_names_work(t: Fixture) -> Outcome {
    for fill in ["n".repeat(254), format!("n{}m", "\u{fc}".repeat(126))] {
        let mut ids = BTreeSet::new();
        for last in ["1", "2"] {
            let name = format!("{fill}{last}");
            let stream = t.stream_named(&name, 1).await?;
            for group_last in ["1", "2"] {
                stream.group(&format!("{fill}{group_last}")).await?;
            }
            stream.append_event(typed(&name)).await?;
            let group = stream.existing_group(GroupName::new(&name)?);
            let lease = group.fetch_one(&name).await?;
            expect_eq("the consumer", lease.consumer.as_str(), &*name)?;
            expect_eq("the type", lease.event.event_type.as_str(), &*name)?;
            expect_eq("the stream", lease.event.stream.as_str(), &*name)?;
            expect_eq("the sequence", lease.event.sequence.get(), 1)?;
            ids.insert(lease.lease_id.clone());
            t.backend.ack(&lease).await?;
        }
        expect_eq("the number of lease ids", ids.len(), 2)?;
    }
    Ok(())
}

/// What one group did, or what is in one stream, is no other's affair, however alike their names.
async fn long_names_that_begin_alike_are_told_apart(t: Fixture) -> Outcome {
    let name = |length: usize, last: &str| "n".repeat(length) + last;
    for length in [31, 63, 64, 127, 128, 254] {
        let left = t.stream_named(&name(length, "1"), 1).await?;
        let right = t.stream_named(&name(length, "2"), 1).await?;
        let one = left.group(&name(length, "1")).await?;
        let two = left.group(&name(length, "2")).await?;
        let lefts = left.append(3).await?;
        let rights = right.append(1).await?;

        expect_eq("the log", left.read(P0).await?, lefts)?;
        expect_eq("the log", right.read(P0).await?, rights)?;
        let leases = one.expect_claimable(&name(length, "1"), &[1, 2, 3]).await?;
        let others = two.expect_claimable(&name(length, "2"), &[1, 2, 3]).await?;
        one.ack(&leases[..1]).await?;
        one.reject(&leases[1], "bad").await?;
        for (lease, other) in leases.iter().zip(&others) {
            let forged = Lease {
                group: two.name.clone(),
                ..lease.clone()
            };
            expect_error(t.backend.ack(&forged).await, ErrorKind::StaleLease)?;
            t.backend.ack(other).await?;
        }
        one.ack(&leases[2..]).await?;
        two.expect_nothing("a").await?;
        let elsewhere = right.group(&name(length, "1")).await?;
        elsewhere.expect_claimable("a", &[1]).await?;
    }
    Ok(())
}

/// Names, fields and values come from anywhere, and nobody may run code with them.
async fn text_that_looks_like_a_command_is_kept(t: Fixture) -> Outcome {
    let bystander = t.group_with_events(2).await?;
    for text in COMMANDS {
        let stream = t.stream_named(text, 1).await?;
        let group = stream.group(text).await?;
        let object = json!({ *text: text, "nested": { *text: [text] } });
        let event = new_event(text, object.clone())
            .with_key(EventKey::new(text)?)
            .with_metadata(JsonObject::metadata(object)?);
        let appended = stream.append_event(event.clone()).await?;
        expect_eq("the payload", &appended.payload, &event.payload)?;

        expect_eq("the log", stream.read(P0).await?, vec![appended.clone()])?;
        let lease = group.fetch_one(text).await?;
        expect_eq("the event", &lease.event, &appended)?;
        group.reject(&lease, text).await?;
        group.expect_nothing(text).await?;
    }
    bystander.expect_claimable("a", &[1, 2]).await?;
    expect_eq(
        "the log",
        sequences(&bystander.stream.read(P0).await?),
        vec![1, 2],
    )
}

async fn stream_with_payloads(t: &Fixture, payloads: &[Value]) -> Outcome<Stream> {
    let stream = t.stream(1).await?;
    for payload in payloads {
        stream.append_event(new_event("t", payload.clone())).await?;
    }
    Ok(stream)
}

async fn expect_found(stream: &Stream, field: &str, value: Value, found: &[u64]) -> Outcome {
    let what = format!("the events whose field {field:?} is {value}");
    let query = Query::new().with_payload_field(field, value)?;
    let seen = sequences(&stream.query_all(query).await?);
    expect_eq(&what, seen, found.to_vec())
}

/// `{"$ne": null}` as a value once opened every account of a login form.
async fn a_filter_is_a_value_and_no_operator(t: Fixture) -> Outcome {
    let operators = [
        json!({ "$ne": null }),
        json!({ "$gt": "" }),
        json!({ "$exists": true }),
        json!({ "$in": ["a"] }),
        json!({ "$regex": ".*" }),
        json!({ "$where": "true" }),
    ];
    let mut payloads = vec![json!({ "f": "a" }), json!({ "f": "" }), json!({})];
    payloads.extend(operators.iter().map(|operator| json!({ "f": operator })));
    let stream = stream_with_payloads(&t, &payloads).await?;

    for (sequence, operator) in (4..).zip(operators) {
        expect_found(&stream, "f", operator, &[sequence]).await?;
    }
    expect_found(&stream, "f", json!({ "$ne": 1 }), &[]).await
}

/// A customer called `%` must not see all the others.
async fn a_filter_is_no_pattern(t: Fixture) -> Outcome {
    let values = ["a", "ab", "%", "_", "a%", ".*", "*", "' OR '1'='1", "A"];
    let payloads: Vec<Value> = values.iter().map(|value| json!({ "f": value })).collect();
    let stream = stream_with_payloads(&t, &payloads).await?;

    for (sequence, value) in (1..).zip(values) {
        expect_found(&stream, "f", json!(value), &[sequence]).await?;
    }
    expect_found(&stream, "f", json!("a_"), &[]).await
}

/// A field may be called anything, also `a.b`, and that is not the `b` of `a`.
async fn a_field_name_is_no_path(t: Fixture) -> Outcome {
    let payloads = [
        json!({ "a.b": 1 }),
        json!({ "a": { "b": 1 } }),
        json!({ "$a": 1 }),
        json!({ "": 1 }),
        json!({ "a[0]": 1 }),
        json!({ "a": [1] }),
        json!({ "f'": 1 }),
        json!({ "$where": 1 }),
        json!({ "f\"": 1 }),
        json!({ "{a}": 1 }),
    ];
    let stream = stream_with_payloads(&t, &payloads).await?;

    for (field, found) in [
        ("a.b", &[1][..]),
        ("$a", &[3]),
        ("", &[4]),
        ("a[0]", &[5]),
        ("a.0", &[]),
        ("f'", &[7]),
        ("$where", &[8]),
        ("f\"", &[9]),
        ("{a}", &[10]),
        ("a,b", &[]),
        ("f", &[]),
    ] {
        expect_found(&stream, field, json!(1), found).await?;
    }
    expect_found(&stream, "a", json!({ "b": 1 }), &[2]).await?;
    expect_found(&stream, "a", json!(1), &[]).await
}

/// Each stream counts for itself, and gives just its own.
async fn logs_are_isolated(t: Fixture) -> Outcome {
    let (left, right) = (t.stream(1).await?, t.stream(1).await?);
    let mut lefts = left.append(1).await?;
    let mut rights = right.append(2).await?;
    lefts.extend(left.append(2).await?);
    rights.extend(right.append(1).await?);

    expect_eq("the sequences", sequences(&lefts), vec![1, 2, 3])?;
    expect_eq("the sequences", sequences(&rights), vec![1, 2, 3])?;
    expect_eq("the log", left.read(P0).await?, lefts)?;
    expect_eq("the log", right.read(P0).await?, rights)
}

/// A report on one stream must not count another's events.
async fn queries_are_isolated(t: Fixture) -> Outcome {
    let (left, right) = (t.stream(1).await?, t.stream(1).await?);
    let lefts = left.append(2).await?;
    let rights = right.append(1).await?;

    expect_eq("the events", left.query_all(Query::new()).await?, lefts)?;
    let one = Query::new().with_limit(1);
    expect_eq("the events", right.query_all(one).await?, rights)
}

/// `billing` is a good name on every stream.
async fn groups_of_one_name_are_two(t: Fixture) -> Outcome {
    let (left, right) = (t.group_with_events(2).await?, t.group_with_events(3).await?);
    let leases = left.expect_claimable("a", &[1, 2]).await?;
    left.ack(&leases).await?;

    right.expect_claimable("a", &[1, 2, 3]).await?;
    left.expect_nothing("a").await
}

/// The same group, partition and sequence: only the stream differs.
async fn settling_on_one_stream_leaves_the_other(t: Fixture) -> Outcome {
    let (left, right) = (t.group_with_events(4).await?, t.group_with_events(4).await?);
    let lefts = left.fetch_exactly("a", 4).await?;
    let rights = right.fetch_exactly("a", 4).await?;
    let again = rheo_core::RetryOptions::new();
    t.backend.ack(&lefts[0]).await?;
    t.backend.retry(&lefts[1], &again).await?;
    left.reject(&lefts[2], "bad").await?;

    right.expect_nothing("b").await?;
    right.ack(&rights).await?;
    left.expect_claimable("b", &[2]).await?;
    Ok(t.backend.ack(&lefts[3]).await?)
}

/// An operator who goes back on one stream must not repeat another's work.
async fn going_back_on_one_stream_leaves_the_other(t: Fixture) -> Outcome {
    let (left, right) = (t.group_with_events(2).await?, t.group_with_events(2).await?);
    left.ack(&left.fetch_exactly("a", 2).await?).await?;
    let rights = right.fetch_exactly("a", 2).await?;
    t.backend.ack(&rights[0]).await?;

    left.replay_after(0).await?;
    right.expect_nothing("b").await?;
    left.reset(&rheo_core::ResetOptions::new()).await?;
    right.expect_nothing("b").await?;
    t.backend.ack(&rights[1]).await?;
    left.expect_claimable("b", &[1, 2]).await?;
    Ok(())
}

/// Whoever repairs one stream's dead letters must not see another's.
async fn dead_letters_are_isolated(t: Fixture) -> Outcome {
    let (left, right) = (t.group_with_events(1).await?, t.group_with_events(1).await?);
    left.reject(&left.fetch_one("a").await?, "bad").await?;

    expect_eq("dead letters", left.dead_letters().await?.len(), 1)?;
    expect_eq("dead letters", right.dead_letters().await?.len(), 0)
}

/// A copy of a stream keeps its ids.
async fn one_event_id_may_be_in_two_streams(t: Fixture) -> Outcome {
    let (left, right) = (t.stream(1).await?, t.stream(1).await?);
    let event = t.new_event().with_id(t.unknown_id());
    let lefts = left.append_event(event.clone()).await?;
    let rights = right.append_event(event).await?;

    expect(
        lefts.id == rights.id,
        "the id that was given",
        format!("{} and {}", lefts.id, rights.id),
    )?;
    expect_eq("the log", left.read(P0).await?, vec![lefts])?;
    expect_eq("the log", right.read(P0).await?, vec![rights])
}
