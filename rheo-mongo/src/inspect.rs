//! Looking at streams, groups and dead letters.

use mongodb::bson::doc;
use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, GroupInfo, GroupName, ListOptions, Partition, Result,
    Sequence, StreamInfo, StreamName,
};

use crate::store::{Store, group, group_key, stream};

impl Store {
    pub(crate) async fn list_streams(
        &self,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        let deadline = self.deadline();
        if options.limit == 0 {
            // To the server, no limit is no bound.
            return self.ping(deadline).await.map(|()| Vec::new());
        }
        // Below every name: none is empty.
        let after = options.after.as_ref().map_or("", |name| name.as_str());
        let find = self
            .streams
            .find(doc! { "_id": { "$gt": after } })
            .sort(doc! { "_id": 1 })
            .limit(i64::from(options.limit));
        let found = self.all(deadline, find).await?;
        let info = |document| {
            let stream = stream(&document)?;
            Ok(StreamInfo {
                stream: stream.name,
                partition_count: stream.count,
            })
        };
        found.into_iter().map(info).collect()
    }

    pub(crate) async fn list_groups(
        &self,
        name: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        let deadline = self.deadline();
        let stream = self.stream(deadline, name).await?;
        if options.limit == 0 {
            // Nothing to do; but whether the store is reached comes first (ERR-6).
            return self.ping(deadline).await.map(|()| Vec::new());
        }
        let after = options.after.as_ref().map_or("", |name| name.as_str());
        // The next character after the dot that ends the stream's part of the key.
        let end = format!("{}/", stream.id);
        let range = doc! { "$gt": group_key(&stream, after), "$lt": end };
        let find = self
            .groups
            .find(doc! { "_id": range })
            .sort(doc! { "_id": 1 })
            .limit(i64::from(options.limit));
        let found = self.all(deadline, find).await?;
        let name = |document| Ok(group(&document)?.name);
        found.into_iter().map(name).collect()
    }

    /// A page of dead letters by partition, then sequence (DLQ-5).
    pub(crate) async fn dead_letters(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let deadline = self.deadline();
        let (stream, group) = self.group(deadline, stream, group).await?;
        let all: Vec<Partition> = stream.count.partitions().collect();
        let records = self.records(deadline, &group, &all).await?;
        let not_found = |after| Error::CursorNotFound { after };
        let mut from = (Partition::ZERO, Sequence::ZERO);
        if let Some(after) = options.after {
            let places = self.places(deadline, &stream, &[after]).await?;
            from = *places.get(&after).ok_or_else(|| not_found(after))?;
            let record = records.get(&from.0).ok_or_else(|| not_found(after))?;
            let before = from.1.previous();
            let first = self.dead_after(deadline, &group, from.0, &record.state, before, 1);
            if !first.await?.contains_key(&from.1) {
                return Err(not_found(after));
            }
        }
        let limit = options.limit as usize;
        let mut letters = Vec::new();
        for (partition, record) in records {
            let room = limit - letters.len();
            if partition < from.0 || room == 0 {
                continue;
            }
            let after = match partition == from.0 {
                true => from.1,
                false => Sequence::ZERO,
            };
            let dead = self
                .dead_after(deadline, &group, partition, &record.state, after, room)
                .await?;
            let sequences = dead.keys().copied().collect();
            let mut events = self
                .events_at(deadline, &stream, partition, &sequences)
                .await?;
            letters.extend(dead.into_iter().filter_map(|(sequence, dead)| {
                Some(DeadLetter {
                    event: events.remove(&sequence)?,
                    group: group.name.clone(),
                    attempt: dead.attempt,
                    reason: dead.reason,
                    dead_at: dead.dead_at,
                })
            }));
        }
        Ok(letters)
    }

    /// What a group is and how it stands (OPS-3).
    pub(crate) async fn group_info(
        &self,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let deadline = self.deadline();
        let (stream, group) = self.group(deadline, stream, group).await?;
        let all: Vec<Partition> = stream.count.partitions().collect();
        let records = self.records(deadline, &group, &all).await?;
        let dead_letters = self.dead_count(deadline, &group, &records).await?;
        let frontiers = records
            .iter()
            .map(|(p, record)| (*p, record.state.frontier()));
        let lag = self.lag_of(deadline, &stream, frontiers.collect()).await?;
        Ok(GroupInfo {
            stream: stream.name,
            group: group.name,
            max_attempts: group.max_attempts,
            leased: records.values().map(|record| record.state.leased()).sum(),
            dead_letters,
            lag,
        })
    }
}
