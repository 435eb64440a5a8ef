//! The limit: `insert_many` of the same events, a document each, with a unique key.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use mongodb::IndexModel;
use mongodb::bson::{Document, doc, to_bson};
use mongodb::options::IndexOptions;

use crate::bed::{Bed, metadata, payload};
use crate::measure::{Contender, nothing};

pub(crate) async fn insert(bed: &Bed, batch: usize) -> Contender {
    static NEXT: AtomicI64 = AtomicI64::new(1);
    let collection = bed.collection("raw");
    let unique = IndexOptions::builder().unique(true).build();
    let key = IndexModel::builder()
        .keys(doc! { "partition": 1, "sequence": 1 })
        .options(unique)
        .build();
    collection.create_index(key).await.expect("made");
    let payload = to_bson(&payload()).expect("BSON");
    let metadata = to_bson(&metadata()).expect("BSON");
    Contender {
        name: "raw insert_many, a unique key".to_owned(),
        prepare: nothing(),
        step: Arc::new(move |worker| {
            let collection = collection.clone();
            let (payload, metadata) = (payload.clone(), metadata.clone());
            Box::pin(async move {
                let first = NEXT.fetch_add(batch as i64, Ordering::Relaxed);
                let documents = (0..batch as i64).map(|i| {
                    doc! {
                        "partition": worker as i64, "sequence": first + i, "time": first,
                        "type": "order.placed", "key": "customer-7",
                        "payload": payload.clone(), "metadata": metadata.clone(),
                    }
                });
                let documents: Vec<Document> = documents.collect();
                let inserted = collection.insert_many(documents).await;
                inserted.expect("inserted");
                Some(batch as u64)
            })
        }),
    }
}
