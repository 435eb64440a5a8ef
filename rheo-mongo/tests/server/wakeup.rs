//! OPS-4: who waits hears of what another handle appended, by the change stream where there is one.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::doc;
use rheo_core::{
    Backend, ConsumerId, FetchOptions, GroupName, GroupOptions, NewEvent, StreamName,
    StreamOptions, SystemClock, Wakeup,
};
use rheo_mongo::Config;
use serde_json::json;

use crate::bed::Bed;

/// Whoever looks this seldom finds nothing before the test is over.
const SELDOM: Duration = Duration::from_secs(3_600);
/// How long the change stream may take to begin, in appends.
const APPENDS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_hears_of_what_another_handle_appended() {
    let bed = Bed::new(Arc::new(SystemClock)).await;
    let hello = bed.beside().await.run_command(doc! { "hello": 1 }).await;
    let is_replica_set = hello.expect("told").contains_key("setName");
    let config = Config::new(&bed.url).with_change_streams(true);
    let waiting = bed
        .connect(match is_replica_set {
            true => config.with_poll_interval(SELDOM),
            // There are none: it is found by looking.
            false => config,
        })
        .await;
    let appending = bed.backend().await;
    let stream = StreamName::new("s").expect("allowed");
    let group = GroupName::new("g").expect("allowed");
    let options = StreamOptions::new();
    let made = appending.create_stream(&stream, &options).await;
    made.expect("made");
    let options = GroupOptions::new();
    let made = appending.create_group(&stream, &group, &options).await;
    made.expect("made");

    let fetch = FetchOptions::new(ConsumerId::new("a").expect("allowed"));
    for _ in 0..APPENDS {
        let append = async {
            // After the wait has looked and found nothing.
            tokio::time::sleep(Duration::from_millis(200)).await;
            let event = NewEvent::new("t", json!({})).expect("allowed");
            appending.append(&stream, event).await
        };
        let wait = waiting.wait_for_work(&stream, &group, Duration::from_secs(2));
        let (woken, appended) = tokio::join!(wait, append);
        appended.expect("appended");
        let leases = waiting.fetch(&stream, &group, &fetch).await;
        for acked in waiting.ack_batch(&leases.expect("fetched")).await {
            acked.expect("acked");
        }
        if woken.expect("waited") == Wakeup::MaybeWork {
            bed.drop().await;
            return;
        }
    }
    panic!("{APPENDS} appends, and it hears of none");
}
