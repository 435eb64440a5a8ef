//! Looking at streams, groups and dead letters.

use rheo_core::{
    DeadLetter, DeadLetterOptions, GroupInfo, GroupName, ListOptions, MaxAttempts, Operation,
    PartitionCount, Reason, Result, StreamInfo, StreamName,
};

use crate::error::{Subject, failed};
use crate::progress::lag_of;
use crate::row::{self, column, number, small};
use crate::store::Store;

const LIST_STREAMS: &str = "SELECT name, partition_count FROM {schema}.streams \
     WHERE name > $1 ORDER BY name LIMIT $2";
const LIST_GROUPS: &str = "SELECT name FROM {schema}.list_groups($1, $2, $3)";
const DEAD_LETTERS: &str = "SELECT * FROM {schema}.dead_letters($1, $2, $3, $4)";
const GROUP_INFO: &str =
    "SELECT * FROM {schema}.group_info($1, $2), {schema}.lag($1, $2) ORDER BY partition";

/// Below every name: none is empty.
const BELOW_ALL_NAMES: &str = "";

impl Store {
    pub(crate) async fn list_streams(
        &self,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        let after = options
            .after
            .as_ref()
            .map_or(BELOW_ALL_NAMES, |n| n.as_str());
        let rows = self
            .rows(
                Operation::ListStreams,
                &Subject::default(),
                LIST_STREAMS,
                |statement| {
                    statement
                        .bind(after.to_owned())
                        .bind(i64::from(options.limit))
                },
            )
            .await?;
        rows.iter()
            .map(|row| {
                Ok(StreamInfo {
                    stream: StreamName::new(column::<&str>(row, "name")?)?,
                    partition_count: PartitionCount::new(small(row, "partition_count")?)?,
                })
            })
            .collect()
    }

    pub(crate) async fn list_groups(
        &self,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        let after = options
            .after
            .as_ref()
            .map_or(BELOW_ALL_NAMES, |n| n.as_str());
        let subject = Subject::of_stream(stream);
        let rows = self
            .rows(Operation::ListGroups, &subject, LIST_GROUPS, |statement| {
                statement
                    .bind(stream.as_str().to_owned())
                    .bind(after.to_owned())
                    .bind(i64::from(options.limit))
            })
            .await?;
        rows.iter()
            .map(|row| GroupName::new(column::<&str>(row, "name")?))
            .collect()
    }

    pub(crate) async fn dead_letters(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let after: Vec<_> = options.after.into_iter().collect();
        let subject = Subject {
            events: &after,
            ..Subject::of_group(stream, group)
        };
        let rows = self
            .rows(
                Operation::DeadLetters,
                &subject,
                DEAD_LETTERS,
                |statement| {
                    statement
                        .bind(stream.as_str().to_owned())
                        .bind(group.as_str().to_owned())
                        .bind(options.after.map(|id| id.as_uuid()))
                        .bind(i64::from(options.limit))
                },
            )
            .await?;
        rows.iter()
            .map(|row| {
                Ok(DeadLetter {
                    event: row::event(stream, row)?,
                    group: group.clone(),
                    attempt: small(row, "attempt")?,
                    reason: Reason::new(column::<&str>(row, "reason")?),
                    dead_at: row::timestamp(row, "dead_at")?,
                })
            })
            .collect()
    }

    pub(crate) async fn group_info(
        &self,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let subject = Subject::of_group(stream, group);
        let rows = self
            .rows(Operation::GroupInfo, &subject, GROUP_INFO, |statement| {
                statement
                    .bind(stream.as_str().to_owned())
                    .bind(group.as_str().to_owned())
            })
            .await?;
        let row = rows
            .first()
            .ok_or_else(|| failed("the group has no partition"))?;
        Ok(GroupInfo {
            stream: stream.clone(),
            group: group.clone(),
            max_attempts: MaxAttempts::new(small(row, "max_attempts")?)?,
            leased: number(row, "leased")?,
            dead_letters: number(row, "dead")?,
            lag: lag_of(&rows)?,
        })
    }
}
