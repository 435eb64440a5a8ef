//! The limits: a multi-row INSERT of the same rows, and a consumer that reads a range and moves one
//! cursor, with no leases at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use crate::bed::{self, Bed, PARTITIONS, SCHEMA};
use crate::measure::{Contender, nothing};

/// Inserts batches into a table like the log; `indexes` says whether it has all of them or only the
/// key.
pub(crate) async fn insert(bed: &Bed, batch: usize, indexes: bool) -> Contender {
    let (table, name) = match indexes {
        true => ("raw_all", "raw INSERT, the same indexes"),
        false => ("raw_key", "raw INSERT, primary key and event id alone"),
    };
    let like = match indexes {
        true => "INCLUDING ALL",
        false => "INCLUDING DEFAULTS",
    };
    bed.execute(&format!(
        "CREATE TABLE IF NOT EXISTS {table} (LIKE {SCHEMA}.events {like});
         DO $$ BEGIN IF '{indexes}' = 'false' AND NOT EXISTS (
             SELECT FROM pg_index WHERE indrelid = '{table}'::regclass) THEN
             ALTER TABLE {table} ADD PRIMARY KEY (stream_id, partition, sequence);
             ALTER TABLE {table} ADD UNIQUE (stream_id, event_id);
         END IF; END $$"
    ))
    .await;
    // Every worker has a stream of its own, so that nobody waits for another's key.
    static NEXT: AtomicI64 = AtomicI64::new(1);
    let pool = bed.pool();
    let sql: Arc<str> = format!(
        "INSERT INTO {table} SELECT $1, 0, $2 + o, i, 'order.placed',
            'customer-' || ($2 + o) * 7919 % 999, p, m, $2
         FROM unnest($3::uuid[], $4::jsonb[], $5::jsonb[]) WITH ORDINALITY AS e (i, p, m, o)"
    )
    .into();
    let payload = sqlx::types::Json(bed::payload());
    let metadata = sqlx::types::Json(bed::metadata());
    Contender {
        name: name.to_owned(),
        prepare: nothing(),
        step: Arc::new(move |worker| {
            let (pool, sql) = (pool.clone(), Arc::clone(&sql));
            let (payloads, metadata) =
                (vec![payload.clone(); batch], vec![metadata.clone(); batch]);
            Box::pin(async move {
                let mut connection = pool.acquire().await.expect("connects");
                let ids: Vec<Uuid> = (0..batch)
                    .map(|_| rheo_core::EventId::generate(now()).as_uuid())
                    .collect();
                let base = NEXT.fetch_add(batch as i64, Ordering::Relaxed);
                let inserted = sqlx::query(AssertSqlSafe(sql))
                    .bind(worker as i64)
                    .bind(base)
                    .bind(ids)
                    .bind(payloads)
                    .bind(metadata)
                    .execute(&mut *connection)
                    .await;
                inserted.expect("inserted");
                batch as u64
            })
        }),
    }
}

fn now() -> rheo_core::Timestamp {
    rheo_core::Clock::now(&rheo_core::SystemClock)
}

/// Reads ranges of a stream's partitions, over and over.
pub(crate) async fn floor(bed: &Bed, stream: &str, limit: i64) -> Contender {
    bed.execute(&format!(
        "DROP TABLE IF EXISTS floor_cursor;
         CREATE TABLE floor_cursor (stream_id bigint, partition integer, at bigint, high bigint,
            PRIMARY KEY (stream_id, partition)) WITH (fillfactor = 50);
         INSERT INTO floor_cursor SELECT s.stream_id, p, 0, {SCHEMA}.high_watermark(s.stream_id, p)
         FROM {SCHEMA}.streams s, generate_series(0, {PARTITIONS} - 1) p WHERE s.name = '{stream}';
         ANALYZE floor_cursor"
    ))
    .await;
    let pool = bed.pool();
    let sql: Arc<str> = format!(
        "WITH moved AS (
             UPDATE floor_cursor SET at = (at + $2) % (high - $2)
             WHERE stream_id = (SELECT stream_id FROM {SCHEMA}.streams WHERE name = '{stream}')
                AND partition = $1 RETURNING stream_id, at)
         SELECT e.* FROM moved m JOIN {SCHEMA}.events e ON e.stream_id = m.stream_id
            AND e.partition = $1 AND e.sequence > m.at AND e.sequence <= m.at + $2"
    )
    .into();
    Contender {
        name: "floor: read a range, move one cursor".to_owned(),
        prepare: nothing(),
        step: Arc::new(move |_| {
            let (pool, sql) = (pool.clone(), Arc::clone(&sql));
            Box::pin(async move {
                let mut connection = pool.acquire().await.expect("connects");
                let rows = sqlx::query(AssertSqlSafe(sql))
                    .bind(bed::any_partition().number().cast_signed())
                    .bind(limit)
                    .fetch_all(&mut *connection)
                    .await
                    .expect("read");
                for row in &rows {
                    let _: serde_json::Value = row.get("payload");
                    let _: serde_json::Value = row.get("metadata");
                }
                rows.len() as u64
            })
        }),
    }
}
