//! Eight workers in two processes share one group while events are appended.

use std::env;
use std::sync::Arc;

use mongodb::bson::{Bson, Document, doc};
use rheo_core::{Backend, SystemClock};
use rheo_mongo::{Config, MongoBackend};
use tokio::process::Command;

use crate::bed::{self, Bed};

const EVENTS: u64 = 100_000;
/// Set for the second process: the database that it works on.
const DATABASE_OF_PARENT: &str = "RHEO_TEST_DATABASE_OF_PARENT";

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_a_group() {
    if env::var(DATABASE_OF_PARENT).is_ok() {
        return;
    }
    let bed = Bed::new(Arc::new(SystemClock)).await;
    let mut child = Command::new(env::current_exe().expect("this test"));
    child
        .args(["--exact", "workers::the_second_process", "--nocapture"])
        .env(DATABASE_OF_PARENT, &bed.database);
    let backend = bed.backend().await;
    let open = || open(bed.database.clone());
    rheo_workers::share(Arc::clone(&backend) as _, EVENTS, open, child).await;

    // What is done costs nothing: a document per partition, with nothing open in it.
    rheo_workers::finish(&*backend).await;
    let states = bed.beside().await.collection::<Document>("deliveries");
    let count = states.count_documents(doc! {}).await.expect("counted");
    assert_eq!(count, u64::from(rheo_workers::PARTITIONS));
    let nothing = Bson::Array(Vec::new());
    let empty = doc! { "claims": &nothing, "facts": &nothing };
    let empty = states.count_documents(empty).await.expect("counted");
    assert_eq!(empty, count);
    bed.drop().await;
}

/// Not a test by itself: the other half of the workers, in a process of their own.
#[tokio::test(flavor = "multi_thread")]
async fn the_second_process() {
    if let Ok(database) = env::var(DATABASE_OF_PARENT) {
        rheo_workers::work_as_second_process(EVENTS, || open(database.clone())).await;
    }
}

async fn open(database: String) -> Arc<dyn Backend> {
    let config = Config::new(bed::url())
        .with_database(database)
        .with_max_connections(3);
    let backend = MongoBackend::connect(config, Arc::new(SystemClock)).await;
    Arc::new(backend.expect("the settings are right"))
}
