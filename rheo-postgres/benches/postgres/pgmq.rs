//! pgmq, as its own crate installs it: read, then archive or delete.

use std::sync::Arc;

use pgmq::PGMQueueExt;
use sqlx::Row;

use crate::bed::{self, Bed};
use crate::measure::Contender;

pub(crate) const QUEUE: &str = "bench";

/// Installs it into the bench's database.
pub(crate) async fn install(bed: &Bed) {
    let queue = PGMQueueExt::new_with_pool(bed.pool()).await;
    let installed = queue.install_sql_from_embedded().await;
    installed.expect("installed");
    bed.execute(&format!("SELECT pgmq.create('{QUEUE}')")).await;
}

/// Sends batches.
pub(crate) async fn send(bed: &Bed, batch: usize) -> Contender {
    let pool = bed.pool();
    let message = sqlx::types::Json(bed::payload());
    Contender {
        name: "pgmq send_batch".to_owned(),
        prepare: crate::measure::nothing(),
        step: Arc::new(move |_| {
            let pool = pool.clone();
            let messages = vec![message.clone(); batch];
            Box::pin(async move {
                let mut connection = pool.acquire().await.expect("connects");
                let sent = sqlx::query("SELECT * FROM pgmq.send_batch($1, $2::jsonb[])")
                    .bind(QUEUE)
                    .bind(messages)
                    .fetch_all(&mut *connection)
                    .await;
                sent.expect("sent").len() as u64
            })
        }),
    }
}

/// Reads and archives, or deletes, out of a backlog; with that many archived before.
pub(crate) async fn consume(
    bed: &Arc<Bed>,
    is_archived: bool,
    history: u64,
    backlog: u64,
    limit: i32,
) -> Contender {
    let pool = bed.pool();
    let done = match is_archived {
        true => "SELECT pgmq.archive($1, $2::bigint[])",
        false => "SELECT pgmq.delete($1, $2::bigint[])",
    };
    let prepare = {
        let bed = Arc::clone(bed);
        Box::new(move || -> futures_util::future::BoxFuture<'static, ()> {
            let bed = Arc::clone(&bed);
            Box::pin(async move {
                let message = bed::payload().to_value();
                bed.execute(&format!(
                    "SELECT pgmq.purge_queue('{QUEUE}');
                     TRUNCATE pgmq.a_{QUEUE};
                     INSERT INTO pgmq.a_{QUEUE} (msg_id, vt, message)
                     SELECT -i, now(), '{message}' FROM generate_series(1, {history}) i;
                     INSERT INTO pgmq.q_{QUEUE} (vt, message)
                     SELECT now(), '{message}' FROM generate_series(1, {backlog}) i;
                     ANALYZE pgmq.q_{QUEUE}; ANALYZE pgmq.a_{QUEUE}; CHECKPOINT"
                ))
                .await;
            })
        })
    };
    Contender {
        name: match is_archived {
            true => "pgmq read + archive".to_owned(),
            false => "pgmq read + delete".to_owned(),
        },
        prepare,
        step: Arc::new(move |_| {
            let pool = pool.clone();
            Box::pin(async move {
                let mut connection = pool.acquire().await.expect("connects");
                let rows = sqlx::query("SELECT * FROM pgmq.read($1, 30, $2)")
                    .bind(QUEUE)
                    .bind(limit)
                    .fetch_all(&mut *connection)
                    .await
                    .expect("read");
                let ids: Vec<i64> = rows.iter().map(|row| row.get("msg_id")).collect();
                for row in &rows {
                    let _: serde_json::Value = row.get("message");
                }
                let finished = sqlx::query(done)
                    .bind(QUEUE)
                    .bind(ids)
                    .fetch_all(&mut *connection)
                    .await;
                finished.expect("done");
                rows.len() as u64
            })
        }),
    }
}
