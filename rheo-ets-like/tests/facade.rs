//! The facade [`Rheo`] on a real backend: input is checked once, pages follow each other, and going
//! back by time or by query does just that.

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use rheo_core::{
    Confirm, ConsumerId, Cursor, DeadLetterOptions, Direction, Error, Event, EventId, EventKey,
    EventType, FetchOptions, GroupName, GroupOptions, JsonObject, LeaseDuration, LeaseId,
    ListOptions, ManualClock, MaxAttempts, NewEvent, OrderBy, Partition, PartitionCount,
    Partitions, Query, ReadOptions, Replay, ResetOptions, RetryDelay, Rheo, Sequence, Start,
    StreamName, StreamOptions, Timestamp,
};
use rheo_ets_like::{MemoryBackend, MemoryStore};
use serde_json::{Value, json};

const PARTITIONS: u32 = 3;

/// An instance with stream `orders` of three partitions and group `billing`, at 1970.
async fn rheo() -> (Rheo, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    let rheo = Rheo::new(Arc::new(MemoryBackend::new(clock.clone())));
    let count = PartitionCount::new(PARTITIONS).expect("allowed");
    let options = StreamOptions::new().with_partition_count(count);
    rheo.create_stream("orders", &options).await.expect("new");
    rheo.create_group("orders", "billing", &GroupOptions::new())
        .await
        .expect("new");
    (rheo, clock)
}

fn order(number: u32) -> NewEvent {
    NewEvent::new(
        "order.placed",
        json!({"number": number, "even": number.is_multiple_of(2)}),
    )
    .expect("allowed")
    .with_partition(Partition::new(number % PARTITIONS))
}

/// Appends orders 0 to `count` - 1, a microsecond after each other.
async fn append_orders(rheo: &Rheo, clock: &ManualClock, count: u32) {
    for number in 0..count {
        rheo.append("orders", order(number))
            .await
            .expect("appended");
        clock.advance(Duration::from_micros(1));
    }
}

fn worker(limit: u32) -> FetchOptions {
    FetchOptions::new(ConsumerId::new("worker").expect("allowed")).with_limit(limit)
}

/// Fetches and acks what there is; gives the numbers of the orders, ascending.
async fn drain(rheo: &Rheo) -> Vec<u64> {
    let leases = rheo
        .fetch("orders", "billing", &worker(u32::MAX))
        .await
        .expect("fetched");
    for acked in rheo.ack_batch(&leases).await {
        acked.expect("current");
    }
    let mut numbers: Vec<u64> = leases.iter().map(|lease| number(&lease.event)).collect();
    numbers.sort_unstable();
    numbers
}

fn number(event: &Event) -> u64 {
    event
        .payload
        .get("number")
        .and_then(Value::as_u64)
        .expect("an order")
}

fn assert_invalid<T: std::fmt::Debug>(argument: &str, outcome: Result<T, Error>) {
    match outcome {
        Err(Error::Invalid(invalid)) => {
            assert_eq!(invalid.argument, argument);
            assert!(!invalid.allowed.is_empty());
        }
        other => panic!("{argument}: expected Invalid, got {other:?}"),
    }
}

fn seq(number: u64) -> Sequence {
    Sequence::new(number).expect("in range")
}

#[test]
fn bad_values_cannot_be_built() {
    let deep = (0..64).fold(json!({}), |inner, _| json!({"a": inner}));
    assert_invalid("stream", StreamName::new("a\nb"));
    assert_invalid("group", GroupName::new(""));
    assert_invalid("consumer", ConsumerId::new("x".repeat(256)));
    assert_invalid("event_type", EventType::new("\u{7f}"));
    assert_invalid("event_type", NewEvent::new("", json!({})));
    assert_invalid("key", EventKey::new("\0"));
    assert_invalid("event_id", "not-a-uuid".parse::<EventId>());
    assert_invalid("payload", NewEvent::new("t", json!([1])));
    assert_invalid("payload", JsonObject::payload(json!({"a": "\0"})));
    assert_invalid("payload", JsonObject::payload(deep));
    assert_invalid(
        "metadata",
        JsonObject::metadata(json!({"a": "x".repeat(1_048_576)})),
    );
    assert_invalid("payload", Query::new().with_payload_field("\0", json!(1)));
    assert_invalid(
        "metadata",
        Query::new().with_metadata_field("a", json!("\0")),
    );
    assert_invalid("partition_count", PartitionCount::new(0));
    assert_invalid("max_attempts", MaxAttempts::new(0));
    assert_invalid("sequence", Sequence::new(u64::MAX));
    assert_invalid("timestamp", "yesterday".parse::<Timestamp>());
    assert_invalid("lease_duration", LeaseDuration::new(Duration::ZERO));
    assert_invalid("delay", RetryDelay::new(Duration::MAX));
}

#[tokio::test]
async fn bad_names_are_invalid_at_every_entry_and_nothing_is_written() {
    let (rheo, _) = rheo().await;
    let bad = "a\nb";
    let (stream, group) = (StreamOptions::new(), GroupOptions::new());
    let (reset, dead) = (ResetOptions::new(), DeadLetterOptions::new());
    let replay = Replay::after(Sequence::ZERO);
    let soon = Duration::from_millis(1);

    assert_invalid("stream", rheo.create_stream(bad, &stream).await);
    assert_invalid("stream", rheo.create_group(bad, "g", &group).await);
    assert_invalid("stream", rheo.append(bad, order(0)).await);
    assert_invalid("stream", rheo.append_batch(bad, vec![order(0)]).await);
    assert_invalid("stream", rheo.read(bad, &ReadOptions::new()).await);
    assert_invalid("stream", rheo.query_page(bad, &Query::new()).await);
    assert_invalid("stream", rheo.query_stream(bad, Query::new()).map(drop));
    assert_invalid("stream", rheo.fetch(bad, "billing", &worker(1)).await);
    assert_invalid("stream", rheo.replay(bad, "billing", &replay).await);
    assert_invalid(
        "stream",
        rheo.replay_from_time(bad, "billing", Timestamp::MIN).await,
    );
    assert_invalid(
        "stream",
        rheo.replay_query(bad, "billing", Query::new()).await,
    );
    assert_invalid(
        "stream",
        rheo.reset_group(bad, "billing", &reset, Confirm::Yes).await,
    );
    assert_invalid("stream", rheo.lag(bad, "billing").await);
    assert_invalid("stream", rheo.list_groups(bad, &ListOptions::new()).await);
    assert_invalid("stream", rheo.dead_letters(bad, "billing", &dead).await);
    assert_invalid("stream", rheo.group_info(bad, "billing").await);
    assert_invalid("stream", rheo.wait_for_work(bad, "billing", soon).await);

    assert_invalid("group", rheo.create_group("orders", bad, &group).await);
    assert_invalid("group", rheo.fetch("orders", bad, &worker(1)).await);
    assert_invalid("group", rheo.replay("orders", bad, &replay).await);
    assert_invalid(
        "group",
        rheo.replay_from_time("orders", bad, Timestamp::MIN).await,
    );
    assert_invalid(
        "group",
        rheo.replay_query("orders", bad, Query::new()).await,
    );
    assert_invalid(
        "group",
        rheo.reset_group("orders", bad, &reset, Confirm::Yes).await,
    );
    assert_invalid("group", rheo.lag("orders", bad).await);
    assert_invalid("group", rheo.dead_letters("orders", bad, &dead).await);
    assert_invalid("group", rheo.group_info("orders", bad).await);
    assert_invalid("group", rheo.wait_for_work("orders", bad, soon).await);

    assert_nothing_was_written(&rheo).await;
}

#[tokio::test]
async fn bad_arguments_are_invalid_at_every_entry_and_nothing_is_written() {
    let (rheo, _) = rheo().await;
    let beyond = Partition::new(PARTITIONS);
    let unknown = Replay::Events(vec![EventId::generate(Timestamp::UNIX_EPOCH)]);
    let too_far = Start::AfterSequence(seq(1));
    let damaged = Query::new().with_cursor(Cursor::from_text("?"));
    let mut no_field = Query::new();
    no_field.payload.insert("\0".into(), json!(1));

    let batch = vec![order(0), order(1).with_partition(beyond)];
    assert_invalid("partition", rheo.append_batch("orders", batch).await);
    let misplaced = order(0).with_partition(beyond);
    assert_invalid("partition", rheo.append("orders", misplaced).await);
    let read = ReadOptions::new().with_partition(beyond);
    assert_invalid("partition", rheo.read("orders", &read).await);
    let query = Query::new().with_partition(beyond);
    assert_invalid("partition", rheo.query_page("orders", &query).await);
    assert_invalid("cursor", rheo.query_page("orders", &damaged).await);
    assert_invalid("payload", rheo.query_page("orders", &no_field).await);
    let no_page = Query::new().with_limit(0);
    assert_invalid(
        "limit",
        rheo.query_stream("orders", no_page.clone()).map(drop),
    );
    assert_invalid(
        "limit",
        rheo.replay_query("orders", "billing", no_page).await,
    );

    let group = GroupOptions::new().with_start(too_far.clone());
    assert_invalid("start", rheo.create_group("orders", "late", &group).await);
    let fetch = worker(1).with_partitions(beyond);
    assert_invalid("partitions", rheo.fetch("orders", "billing", &fetch).await);
    assert_invalid("events", rheo.replay("orders", "billing", &unknown).await);
    let replay = Replay::After {
        sequence: seq(0),
        partitions: Partitions::from(beyond),
    };
    assert_invalid(
        "partitions",
        rheo.replay("orders", "billing", &replay).await,
    );
    let reset = ResetOptions::new().with_partitions(beyond);
    let outcome = rheo
        .reset_group("orders", "billing", &reset, Confirm::Yes)
        .await;
    assert_invalid("partitions", outcome);
    let reset = ResetOptions::new().with_start(too_far);
    let outcome = rheo
        .reset_group("orders", "billing", &reset, Confirm::Yes)
        .await;
    assert_invalid("start", outcome);

    assert_nothing_was_written(&rheo).await;
}

async fn assert_nothing_was_written(rheo: &Rheo) {
    let streams = rheo
        .list_streams(&ListOptions::new())
        .await
        .expect("listed");
    assert_eq!(streams.len(), 1);
    let groups = rheo
        .list_groups("orders", &ListOptions::new())
        .await
        .expect("listed");
    assert_eq!(groups.len(), 1);
    let page = rheo
        .query_page("orders", &Query::new())
        .await
        .expect("valid");
    assert_eq!(page.events, []);
    let info = rheo.group_info("orders", "billing").await.expect("there");
    assert_eq!(
        (info.leased, info.dead_letters, info.lag.total()),
        (0, 0, 0)
    );
}

#[tokio::test]
async fn a_lease_duration_of_nothing_is_invalid_and_renews_nothing() {
    let (rheo, clock) = rheo().await;
    append_orders(&rheo, &clock, 1).await;
    let leases = rheo
        .fetch("orders", "billing", &worker(1))
        .await
        .expect("fetched");
    assert_invalid(
        "lease_duration",
        rheo.renew(&leases[0], Duration::ZERO).await,
    );
    assert_invalid(
        "lease_duration",
        rheo.renew_batch(&leases, Duration::MAX).await,
    );
    clock.set(leases[0].expires_at);
    let reclaimed = rheo
        .fetch("orders", "billing", &worker(1))
        .await
        .expect("fetched");
    assert_eq!(reclaimed[0].attempt, 2);
}

#[tokio::test]
async fn a_reset_must_be_confirmed() {
    let (rheo, clock) = rheo().await;
    append_orders(&rheo, &clock, 4).await;
    assert_eq!(drain(&rheo).await, [0, 1, 2, 3]);
    let reset = ResetOptions::new();

    let refused = rheo
        .reset_group("orders", "billing", &reset, Confirm::No)
        .await;
    assert_eq!(refused, Err(Error::ConfirmRequired));
    assert!(drain(&rheo).await.is_empty());

    let done = rheo
        .reset_group("orders", "billing", &reset, Confirm::Yes)
        .await;
    assert_eq!(done, Ok(()));
    assert_eq!(drain(&rheo).await, [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_query_streams_everything_page_by_page_over_all_partitions() {
    let (rheo, clock) = rheo().await;
    append_orders(&rheo, &clock, 20).await;
    for limit in [1, 2, 7, 20, 100] {
        for direction in [Direction::Ascending, Direction::Descending] {
            let query = Query::new()
                .with_order_by(OrderBy::Timestamp)
                .with_direction(direction)
                .with_limit(limit);
            let events = rheo.query_stream("orders", query).expect("valid");
            let events: Vec<Event> = events.try_collect().await.expect("no page fails");
            let mut numbers: Vec<u64> = events.iter().map(number).collect();
            if direction == Direction::Descending {
                numbers.reverse();
            }
            assert_eq!(numbers, (0..20).collect::<Vec<u64>>());
        }
    }
}

#[tokio::test]
async fn a_query_stream_ends_after_the_first_error() {
    let (rheo, clock) = rheo().await;
    append_orders(&rheo, &clock, 4).await;
    let pages = rheo
        .query_stream("orders", Query::new().with_limit(2))
        .expect("valid");
    let mut pages = Box::pin(pages);
    assert!(pages.try_next().await.expect("available").is_some());
    assert!(pages.try_next().await.expect("available").is_some());
    rheo.close().await.expect("closes");
    assert!(matches!(
        pages.try_next().await,
        Err(Error::BackendUnavailable(_))
    ));
    assert_eq!(pages.try_next().await, Ok(None));
}

#[tokio::test]
async fn replay_from_a_time_reopens_what_came_then_or_later() {
    let (rheo, clock) = rheo().await;
    append_orders(&rheo, &clock, 9).await;
    drain(&rheo).await;
    let time = Timestamp::from_micros(5).expect("in range");
    rheo.replay_from_time("orders", "billing", time)
        .await
        .expect("replayed");
    assert_eq!(drain(&rheo).await, [5, 6, 7, 8]);

    rheo.replay_from_time("orders", "billing", Timestamp::MAX)
        .await
        .expect("replayed");
    assert!(drain(&rheo).await.is_empty());
}

#[tokio::test]
async fn replay_of_a_query_reopens_just_what_matches() {
    let (rheo, clock) = rheo().await;
    append_orders(&rheo, &clock, 9).await;
    drain(&rheo).await;
    let even = Query::new()
        .with_payload_field("even", json!(true))
        .expect("allowed")
        .with_limit(2);
    assert_eq!(rheo.replay_query("orders", "billing", even).await, Ok(5));
    assert_eq!(drain(&rheo).await, [0, 2, 4, 6, 8]);
}

#[tokio::test]
async fn a_made_up_lease_is_stale() {
    let (rheo, clock) = rheo().await;
    append_orders(&rheo, &clock, 1).await;
    let lease = rheo
        .fetch("orders", "billing", &worker(1))
        .await
        .expect("fetched")
        .remove(0);
    let mut made_up = Vec::new();
    for change in 0..5 {
        let mut other = lease.clone();
        match change {
            0 => other.event.stream = StreamName::new("other").expect("allowed"),
            1 => other.group = GroupName::new("other").expect("allowed"),
            2 => other.event.partition = Partition::new(7),
            3 => other.event.sequence = seq(9),
            _ => other.lease_id = LeaseId::generate(),
        }
        assert_eq!(rheo.ack(&other).await, Err(Error::StaleLease));
        made_up.push(other);
    }
    made_up.extend([lease.clone(), lease]);
    let outcomes = rheo.ack_batch(&made_up).await;
    let (ok, stale): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!((ok.len(), stale.len()), (1, 6));
    assert!(
        stale
            .into_iter()
            .all(|outcome| outcome == Err(Error::StaleLease))
    );
}

#[tokio::test]
async fn several_instances_live_in_one_process() {
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    let store = MemoryStore::new();
    let instance = |name: &str| Rheo::named(name, Arc::new(store.open(clock.clone())));
    let (writer, reader) = (instance("writer"), instance("reader"));
    let stranger = Rheo::named("stranger", Arc::new(MemoryBackend::new(clock.clone())));
    assert_eq!([writer.name(), reader.name()], ["writer", "reader"]);

    writer
        .create_stream("orders", &StreamOptions::new())
        .await
        .expect("new");
    let event = NewEvent::new("order.placed", json!({"number": 1})).expect("allowed");
    let event = writer.append("orders", event).await.expect("appended");
    assert_eq!(
        reader.read("orders", &ReadOptions::new()).await,
        Ok(vec![event])
    );
    let missing = stranger.read("orders", &ReadOptions::new()).await;
    assert!(matches!(missing, Err(Error::StreamNotFound { .. })));

    writer.close().await.expect("closes");
    assert!(matches!(
        writer.ping().await,
        Err(Error::BackendUnavailable(_))
    ));
    assert_eq!(reader.ping().await, Ok(()));
}
