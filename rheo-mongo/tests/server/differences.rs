//! The faults that `KNOWN_DIFFERENCES.md` lists: there on SecantusDB, and nowhere else.

use std::collections::BTreeSet;

use mongodb::bson::{Document, doc};
use mongodb::{Client, Collection};

use crate::bed;

/// Whether `findAndModify` gives one image from before to several callers.
async fn before_images_are_shared(collection: Collection<Document>) -> bool {
    const CALLERS: usize = 4;
    const CALLS: usize = 250;
    let zero = doc! { "_id": 1, "count": 0 };
    collection.insert_one(zero).await.expect("inserted");
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let collection = collection.clone();
            tokio::spawn(async move {
                let mut seen = Vec::new();
                for _ in 0..CALLS {
                    let add = doc! { "$inc": { "count": 1 } };
                    let before = collection.find_one_and_update(doc! { "_id": 1 }, add).await;
                    let before = before.expect("updated").expect("it is there");
                    seen.push(before.get_i32("count").expect("a number"));
                }
                seen
            })
        })
        .collect();
    let mut images = Vec::new();
    for caller in callers {
        images.extend(caller.await.expect("ran to its end"));
    }
    let different: BTreeSet<i32> = images.iter().copied().collect();
    different.len() < images.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_listed_faults_are_those_of_secantusdb() {
    let listed = include_str!("../../KNOWN_DIFFERENCES.md");
    let client = Client::with_uri_str(bed::url()).await.expect("a URL");
    let admin = client.database("admin");
    let info = admin.run_command(doc! { "buildInfo": 1 }).await;
    let info = info.expect("told");
    let database = client.database(&format!("rheo_{}", uuid::Uuid::new_v4().simple()));
    let is_there = before_images_are_shared(database.collection("images")).await;
    database.drop().await.expect("dropped");

    assert!(listed.contains("`before_images_are_shared`"));
    match info.get_str("secantusVersion") {
        Ok(version) => assert!(
            is_there,
            "SecantusDB {version} has it no more: strike it off"
        ),
        Err(_) => assert!(!is_there, "this server has the fault as well"),
    }
}
