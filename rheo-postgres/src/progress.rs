//! A group's progress: making a group, lag, and going back.

use std::collections::BTreeMap;

use rheo_core::{
    EventId, GroupName, GroupOptions, Lag, Operation, Partition, PartitionLag, Replay,
    ResetOptions, Result, Sequence, Start, StreamName,
};
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::error::Subject;
use crate::fetch::numbers;
use crate::json::Jsonb;
use crate::row;
use crate::store::{Statement, Store};

const CREATE_GROUP: &str = "SELECT {schema}.create_group($1, $2, $3, $4, $5, $6)";
const LAG: &str = "SELECT * FROM {schema}.lag($1, $2)";
const REPLAY: &str = "SELECT {schema}.replay($1, $2, $3, $4, $5)";
const REPLAY_EVENTS: &str = "SELECT {schema}.replay_events($1, $2, $3)";
const RESET_GROUP: &str = "SELECT {schema}.reset_group($1, $2, $3, $4, $5, $6)";

impl Store {
    pub(crate) async fn create_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let subject = Subject::of_group(stream, group);
        self.rows(
            Operation::CreateGroup,
            &subject,
            CREATE_GROUP,
            |statement| {
                let statement = statement
                    .bind(stream.as_str().to_owned())
                    .bind(group.as_str().to_owned())
                    .bind(options.max_attempts.get().cast_signed());
                bind_start(statement, &options.start)
            },
        )
        .await?;
        Ok(())
    }

    pub(crate) async fn lag(&self, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let subject = Subject::of_group(stream, group);
        let rows = self
            .rows(Operation::Lag, &subject, LAG, |statement| {
                statement
                    .bind(stream.as_str().to_owned())
                    .bind(group.as_str().to_owned())
            })
            .await?;
        lag_of(&rows)
    }

    pub(crate) async fn replay(
        &self,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        match replay {
            Replay::After {
                sequence,
                partitions,
            } => {
                let partitions = numbers(partitions);
                self.replay_after(stream, group, partitions, *sequence, &BTreeMap::new())
                    .await
            }
            Replay::AfterEach(each) => {
                let named = each.keys().map(|p| i64::from(p.number())).collect();
                self.replay_after(stream, group, Some(named), Sequence::MAX, each)
                    .await
            }
            Replay::Events(ids) => self.replay_events(stream, group, ids).await,
        }
    }

    async fn replay_after(
        &self,
        stream: &StreamName,
        group: &GroupName,
        partitions: Option<Vec<i64>>,
        after: Sequence,
        each: &BTreeMap<Partition, Sequence>,
    ) -> Result<()> {
        let subject = Subject::of_group(stream, group);
        self.rows(Operation::Replay, &subject, REPLAY, |statement| {
            statement
                .bind(stream.as_str().to_owned())
                .bind(group.as_str().to_owned())
                .bind(partitions.clone())
                .bind(after.as_i64())
                .bind(by_partition(each))
        })
        .await?;
        Ok(())
    }

    async fn replay_events(
        &self,
        stream: &StreamName,
        group: &GroupName,
        ids: &[EventId],
    ) -> Result<()> {
        let subject = Subject::of_group(stream, group);
        let ids: Vec<Uuid> = ids.iter().map(|id| id.as_uuid()).collect();
        self.rows(Operation::Replay, &subject, REPLAY_EVENTS, |statement| {
            statement
                .bind(stream.as_str().to_owned())
                .bind(group.as_str().to_owned())
                .bind(ids.clone())
        })
        .await?;
        Ok(())
    }

    pub(crate) async fn reset_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let subject = Subject::of_group(stream, group);
        self.rows(Operation::ResetGroup, &subject, RESET_GROUP, |statement| {
            let statement = statement
                .bind(stream.as_str().to_owned())
                .bind(group.as_str().to_owned())
                .bind(numbers(&options.partitions));
            bind_start(statement, &options.start)
        })
        .await?;
        Ok(())
    }
}

/// The progress in rows of the function `lag`.
pub(crate) fn lag_of(rows: &[PgRow]) -> Result<Lag> {
    let of = |row: &PgRow| {
        Ok(PartitionLag {
            partition: row::partition(row)?,
            frontier: row::sequence(row, "frontier")?,
            high_watermark: row::sequence(row, "high_watermark")?,
        })
    };
    let partitions = rows.iter().map(of).collect::<Result<_>>()?;
    Ok(Lag { partitions })
}

/// A start as three values: its kind, the number that belongs to it, and sequences by partition.
fn bind_start(statement: Statement, start: &Start) -> Statement {
    let none = BTreeMap::new();
    let (kind, value, each) = match start {
        Start::Beginning => ("beginning", 0, &none),
        Start::AfterSequence(sequence) => ("after", sequence.as_i64(), &none),
        Start::AfterSequences(each) => ("each", 0, each),
        Start::AtTime(time) => ("at", time.as_micros(), &none),
        Start::End => ("end", 0, &none),
    };
    statement.bind(kind).bind(value).bind(by_partition(each))
}

/// An object with a sequence for each number of a partition.
fn by_partition(each: &BTreeMap<Partition, Sequence>) -> Jsonb {
    let named: BTreeMap<String, u64> = each
        .iter()
        .map(|(partition, sequence)| (partition.to_string(), sequence.get()))
        .collect();
    Jsonb::of(&named)
}
