//! The textbook: a document per delivery, claimed and acked by updates.

use std::sync::Arc;

use futures_util::TryStreamExt;
use mongodb::IndexModel;
use mongodb::bson::{Bson, Document, doc, to_bson};

use crate::bed::{Bed, payload};
use crate::measure::Contender;

/// As many as a repetition may need; claims get slower with every one that is done.
const EVENTS: u64 = 20_000;

pub(crate) async fn consume(bed: &Bed, limit: u64) -> Contender {
    let deliveries = bed.collection("textbook");
    let key = IndexModel::builder()
        .keys(doc! { "state": 1, "sequence": 1 })
        .build();
    deliveries.create_index(key).await.expect("made");
    let by_token = IndexModel::builder().keys(doc! { "token": 1 }).build();
    deliveries.create_index(by_token).await.expect("made");
    let all = deliveries.clone();
    let payload = to_bson(&payload()).expect("BSON");
    Contender {
        name: "a document per delivery".to_owned(),
        prepare: Box::new(move || {
            let (all, payload) = (all.clone(), payload.clone());
            Box::pin(async move {
                all.delete_many(doc! {}).await.expect("deleted");
                for first in (0..EVENTS as i64).step_by(1_000) {
                    let event = |sequence: i64| {
                        doc! { "sequence": sequence, "state": "new", "payload": payload.clone() }
                    };
                    let events: Vec<Document> = (first..first + 1_000).map(event).collect();
                    all.insert_many(events).await.expect("inserted");
                }
            })
        }),
        step: Arc::new(move |_| {
            let deliveries = deliveries.clone();
            Box::pin(async move {
                let token = uuid::Uuid::new_v4().to_string();
                let new = deliveries
                    .find(doc! { "state": "new" })
                    .sort(doc! { "sequence": 1 })
                    .limit(limit as i64)
                    .projection(doc! { "_id": 1 })
                    .await
                    .expect("found");
                let new: Vec<Document> = new.try_collect().await.expect("read");
                let ids: Vec<Bson> = new.iter().filter_map(|d| d.get("_id").cloned()).collect();
                if ids.is_empty() {
                    return None;
                }
                let free = doc! { "_id": { "$in": ids }, "state": "new" };
                let claim = doc! { "$set": { "state": "leased", "token": &token } };
                deliveries.update_many(free, claim).await.expect("claimed");
                let mine = doc! { "token": &token };
                let claimed = deliveries.find(mine.clone()).await.expect("found");
                let claimed: Vec<Document> = claimed.try_collect().await.expect("read");
                let ack = doc! { "$set": { "state": "done" } };
                deliveries.update_many(mine, ack).await.expect("acked");
                // None, where others were faster.
                Some(claimed.len() as u64)
            })
        }),
    }
}
