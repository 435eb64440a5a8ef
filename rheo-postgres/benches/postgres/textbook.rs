//! The textbook design: a delivery row per event, claimed with `FOR UPDATE SKIP LOCKED`, and updated
//! when it is done.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use crate::bed::{Bed, PARTITIONS, SCHEMA};
use crate::measure::Contender;

/// Claims and acks the events of a stream above `history` in each partition.
pub(crate) async fn consume(
    bed: &Arc<Bed>,
    stream: &'static str,
    history: u64,
    limit: i64,
) -> Contender {
    let table = format!("textbook_{}", stream.replace('-', "_"));
    bed.execute(&format!(
        "CREATE TABLE IF NOT EXISTS {table} (partition integer, sequence bigint, state smallint,
            token uuid, expires_at bigint, PRIMARY KEY (partition, sequence));
         CREATE INDEX IF NOT EXISTS {table}_open ON {table} (partition, sequence) WHERE state < 2"
    ))
    .await;
    let pool = bed.pool();
    let fetch: Arc<str> = format!(
        "WITH claimed AS (
             UPDATE {table} d SET state = 1, token = $3, expires_at = 30000000
             FROM (SELECT partition, sequence FROM {table}
                WHERE partition = $1 AND state < 2 AND (state = 0 OR expires_at <= 0)
                ORDER BY sequence LIMIT $2 FOR UPDATE SKIP LOCKED) c
             WHERE d.partition = c.partition AND d.sequence = c.sequence
             RETURNING d.partition, d.sequence)
         SELECT e.* FROM claimed c JOIN {SCHEMA}.events e
            ON e.stream_id = (SELECT stream_id FROM {SCHEMA}.streams WHERE name = '{stream}')
            AND e.partition = c.partition AND e.sequence = c.sequence"
    )
    .into();
    let ack: Arc<str> = format!(
        "UPDATE {table} SET state = 2 WHERE partition = $1 AND sequence = ANY ($2) AND token = $3"
    )
    .into();
    let prepare = {
        let (bed, table) = (Arc::clone(bed), table.clone());
        Box::new(move || -> futures_util::future::BoxFuture<'static, ()> {
            let (bed, table) = (Arc::clone(&bed), table.clone());
            Box::pin(async move {
                bed.execute(&format!(
                    "TRUNCATE {table};
                     INSERT INTO {table} SELECT e.partition, e.sequence,
                        CASE WHEN e.sequence <= {history} THEN 2 ELSE 0 END, NULL, 0
                     FROM {SCHEMA}.events e JOIN {SCHEMA}.streams s USING (stream_id)
                     WHERE s.name = '{stream}';
                     ANALYZE {table}; CHECKPOINT"
                ))
                .await;
            })
        })
    };
    Contender {
        name: "textbook: a row per event, SKIP LOCKED".to_owned(),
        prepare,
        step: Arc::new(move |_| {
            let pool = pool.clone();
            let (fetch, ack) = (Arc::clone(&fetch), Arc::clone(&ack));
            Box::pin(async move {
                let mut connection = pool.acquire().await.expect("connects");
                let (partition, token) =
                    (fastrand::u32(0..PARTITIONS).cast_signed(), Uuid::new_v4());
                let rows = sqlx::query(AssertSqlSafe(fetch))
                    .bind(partition)
                    .bind(limit)
                    .bind(token)
                    .fetch_all(&mut *connection)
                    .await
                    .expect("fetched");
                let sequences: Vec<i64> = rows.iter().map(|row| row.get("sequence")).collect();
                for row in &rows {
                    let _: serde_json::Value = row.get("payload");
                    let _: serde_json::Value = row.get("metadata");
                }
                let acked = sqlx::query(AssertSqlSafe(ack))
                    .bind(partition)
                    .bind(sequences)
                    .bind(token)
                    .execute(&mut *connection)
                    .await;
                acked.expect("acked");
                rows.len() as u64
            })
        }),
    }
}
