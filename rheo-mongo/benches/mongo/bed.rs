//! A database of its own on the server that `RHEO_MONGO_URL` names, and what is put into it.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::options::{Acknowledgment, CollectionOptions, WriteConcern};
use mongodb::{Client, Collection};
use rheo_core::{
    Backend, ConsumerId, EventKey, FetchOptions, GroupName, GroupOptions, JsonObject, NewEvent,
    Partition, PartitionCount, StreamName, StreamOptions, SystemClock,
};
use rheo_mongo::{Config, MongoBackend};
use serde_json::{Value, json};

pub(crate) const PARTITIONS: u32 = 16;

pub(crate) struct Bed {
    client: Client,
    database: String,
    pub(crate) backend: Arc<MongoBackend>,
}

impl Bed {
    pub(crate) async fn new() -> Self {
        let url = std::env::var("RHEO_MONGO_URL").expect(
            "RHEO_MONGO_URL is set to the URL of a MongoDB deployment, e.g. mongodb://localhost",
        );
        let database = format!("rheo_bench_{}", uuid::Uuid::new_v4().simple());
        let config = Config::new(&url)
            .with_database(&database)
            .with_operation_timeout(Duration::from_secs(60));
        let backend = MongoBackend::connect(config, Arc::new(SystemClock)).await;
        let backend = backend.expect("the settings are right");
        backend.ensure_indexes().await.expect("made");
        Self {
            client: Client::with_uri_str(&url).await.expect("a URL"),
            database,
            backend: Arc::new(backend),
        }
    }

    pub(crate) async fn server(&self) -> String {
        let admin = self.client.database("admin");
        let info = admin.run_command(doc! { "buildInfo": 1 }).await;
        let info = info.expect("told");
        match info.get_str("secantusVersion") {
            Ok(version) => format!("SecantusDB {version}"),
            Err(_) => format!("MongoDB {}", info.get_str("version").expect("told")),
        }
    }

    /// A collection beside the backend's, as durable as they are.
    pub(crate) fn collection(&self, name: &str) -> Collection<Document> {
        let concern = WriteConcern::builder()
            .w(Acknowledgment::Majority)
            .journal(true)
            .build();
        let options = CollectionOptions::builder().write_concern(concern).build();
        let database = self.client.database(&self.database);
        database.collection_with_options(name, options)
    }

    /// A stream with all partitions, and a group on it.
    pub(crate) async fn stream(&self, name: &str) -> (StreamName, GroupName) {
        let stream = StreamName::new(name).expect("allowed");
        let group = GroupName::new("bench").expect("allowed");
        let count = PartitionCount::new(PARTITIONS).expect("allowed");
        let options = StreamOptions::new().with_partition_count(count);
        let made = self.backend.create_stream(&stream, &options).await;
        made.expect("made");
        let options = GroupOptions::new();
        let made = self.backend.create_group(&stream, &group, &options).await;
        made.expect("made");
        (stream, group)
    }

    /// Appends that many events to each partition, 100 at a time.
    pub(crate) async fn fill(&self, stream: &StreamName, events: u64) {
        let tasks = (0..PARTITIONS).map(|partition| {
            let (backend, stream) = (Arc::clone(&self.backend), stream.clone());
            tokio::spawn(async move {
                let mut left = events;
                while left > 0 {
                    let count = left.min(100);
                    let event = |_| new_event().with_partition(Partition::new(partition));
                    let appended = backend.append_batch(&stream, (0..count).map(event).collect());
                    appended.await.expect("appended");
                    left -= count;
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("ran to its end");
        }
    }

    /// Has a group ack about that many events.
    pub(crate) async fn ack(&self, (stream, group): &(StreamName, GroupName), events: u64) {
        let consumer = ConsumerId::new("bench").expect("allowed");
        let options = FetchOptions::new(consumer).with_limit(1_000);
        let mut acked = 0;
        while acked < events {
            let leases = self.backend.fetch(stream, group, &options).await;
            let leases = leases.expect("fetched");
            acked += leases.len() as u64;
            for result in self.backend.ack_batch(&leases).await {
                result.expect("acked");
            }
        }
    }

    pub(crate) async fn drop(self) {
        let dropped = self.client.database(&self.database).drop().await;
        dropped.expect("dropped");
    }
}

/// About 200 bytes of JSON.
pub(crate) fn payload() -> Value {
    json!({
        "order": 4_711, "customer": "customer-7", "total": 129.5, "currency": "EUR",
        "lines": [{"sku": "A-1", "count": 2}, {"sku": "B-22", "count": 1}],
        "note": "leave it at the door, please",
    })
}

pub(crate) fn metadata() -> Value {
    json!({"source": "shop", "trace": "0af7651916cd43dd"})
}

pub(crate) fn new_event() -> NewEvent {
    let key = format!("customer-{}", fastrand::u32(0..10_000));
    let event = NewEvent::new("order.placed", payload()).expect("allowed");
    event
        .with_key(EventKey::new(key).expect("allowed"))
        .with_metadata(JsonObject::metadata(metadata()).expect("allowed"))
}

pub(crate) fn any_partition() -> Partition {
    Partition::new(fastrand::u32(0..PARTITIONS))
}
