//! What claims, appends and makes groups, each somewhere else.

use rheo_core::{
    Backend, ConsumerId, ErrorKind, Event, EventKey, FetchOptions, GroupName, GroupOptions,
    JsonObject, Lease, NewEvent, Partition, Sequence, Start, StreamName,
};
use serde_json::json;

use super::settles::{Given, give, take};
use super::{Scene, ask, days};
use crate::expect::{Outcome, expect, expect_eq, expect_error};
use crate::fixture::new_event;
use crate::scene::{P0, places_of};

impl Scene {
    /// One fetch in each partition of each group, with a consumer, limit and duration of its own.
    pub(super) async fn claim(&self) -> Outcome {
        let mut asks = Vec::new();
        let all: Vec<Given<Lease>> = self.groups.iter().map(|_| Given::default()).collect();
        for (progress, all) in self.groups.iter().zip(&all) {
            for partition in (0..self.partitions).map(Partition::new) {
                let number = asks.len();
                let consumer = ConsumerId::new(format!("consumer-{number}"))?;
                let options = FetchOptions::new(consumer)
                    .with_limit(u32::try_from(number % 3).unwrap_or(0) + 1)
                    .with_lease_duration(days(number as u64 + 10)?)
                    .with_partitions(partition);
                let group = progress.group.via(&self.handle(number));
                let all = all.clone();
                asks.push(ask(async move {
                    let leases = group.fetch_with(&options).await?;
                    expect(
                        leases.len() <= options.limit as usize,
                        format!("at most {} leases for this fetch", options.limit),
                        leases.len(),
                    )?;
                    for lease in &leases {
                        let event = &lease.event;
                        let lasts = lease.expires_at.saturating_since(lease.leased_at);
                        let seen = (&event.stream, &lease.group, event.partition);
                        let expected = (&group.stream.name, &group.name, partition);
                        expect_eq("what this fetch claims from", seen, expected)?;
                        let seen = (&lease.consumer, lasts);
                        let expected = (&options.consumer, options.lease_duration.as_duration());
                        expect_eq("for whom and how long this fetch claims", seen, expected)?;
                    }
                    give(&all, leases);
                    Ok(())
                }));
            }
        }
        let nobody = GroupName::new("nobody")?;
        let handle = self.handle(asks.len());
        let stream = self.logs[0].0.name.clone();
        asks.push(ask(async move {
            let options = FetchOptions::new(ConsumerId::new("nobody")?);
            let fetched = handle.fetch(&stream, &nobody, &options).await;
            expect_error(fetched, ErrorKind::GroupNotFound).map(drop)
        }));
        self.all_at_once(asks).await?;
        for (progress, all) in self.groups.iter().zip(&all) {
            let mut leases = take(all);
            leases.extend(progress.group.fetch_all("rest").await?);
            let log = self.logs[progress.stream].1.iter().flatten();
            let place = |event: &Event| (event.partition.number(), event.sequence.get());
            let mut places: Vec<(u32, u64)> = log.map(place).collect();
            places.retain(|(partition, sequence)| {
                *partition != 0 || *sequence > progress.done() as u64
            });
            places.sort_unstable();
            let group = &progress.group.name;
            expect_eq(
                &format!("the places that {group} claims in all"),
                places_of(&leases),
                places,
            )?;
        }
        Ok(())
    }

    /// Appends to each partition of each stream, one with an id that is taken and one to no stream.
    pub(super) async fn append(&self) -> Outcome {
        let mut asks = Vec::new();
        let all: Vec<Given<Event>> = self.logs.iter().map(|_| Given::default()).collect();
        let shared = self.t.unknown_id();
        for ((stream, log), all) in self.logs.iter().zip(&all) {
            for round in 0..3 {
                for partition in (0..self.partitions).map(Partition::new) {
                    let mut given = self.own_event()?.with_partition(partition);
                    if round == 0 && partition == P0 {
                        given = given.with_id(shared);
                    }
                    let stream = stream.via(&self.handle(asks.len()));
                    let all = all.clone();
                    asks.push(ask(async move {
                        let event = stream.append_event(given.clone()).await?;
                        let expected = Event {
                            id: given.id.unwrap_or(event.id),
                            stream: stream.name,
                            partition,
                            sequence: event.sequence,
                            event_type: given.event_type,
                            key: given.key,
                            payload: given.payload,
                            metadata: given.metadata,
                            timestamp: event.timestamp,
                        };
                        expect_eq("the event that this call appends", &event, &expected)?;
                        give(&all, [event]);
                        Ok(())
                    }));
                }
            }
            let taken = log[0][0].id;
            let given = self.own_event()?.with_id(taken);
            let (handle, name) = (self.handle(asks.len()), stream.name.clone());
            asks.push(ask(async move {
                let appended = handle.append(&name, given).await;
                expect_error(appended, ErrorKind::AlreadyExists).map(drop)
            }));
        }
        let (handle, given) = (self.handle(asks.len()), self.own_event()?);
        let missing = StreamName::new("missing")?;
        asks.push(ask(async move {
            let appended = handle.append(&missing, given).await;
            expect_error(appended, ErrorKind::StreamNotFound).map(drop)
        }));
        self.all_at_once(asks).await?;
        for ((stream, log), all) in self.logs.iter().zip(&all) {
            let mut appended = take(all);
            appended.sort_by_key(|event| event.sequence);
            for (at, before) in log.iter().enumerate() {
                let partition = Partition::new(u32::try_from(at).unwrap_or(u32::MAX));
                let mut expected = before.clone();
                let here = appended.iter().filter(|event| event.partition == partition);
                expected.extend(here.cloned());
                let seen = stream.read(partition).await?;
                expect_eq("the events after appends at once", seen, expected)?;
            }
        }
        Ok(())
    }

    fn own_event(&self) -> Outcome<NewEvent> {
        let number = self.t.number();
        let kind = ["placed", "paid", "sent"][usize::try_from(number % 3).unwrap_or(0)];
        let metadata = JsonObject::metadata(json!({ "trace": number }))?;
        let key = EventKey::new(format!("customer-{number}"))?;
        let event = new_event(kind, json!({ "number": number }));
        Ok(event.with_metadata(metadata).with_key(key))
    }

    /// Groups with starts of their own, one that is there already, and one on no stream.
    pub(super) async fn make_groups(&self) -> Outcome {
        let mut asks = Vec::new();
        let mut made = Vec::new();
        for (stream, log) in &self.logs {
            for name in ["audit", "search", "billing"] {
                let after = made.len() as u64 + 1;
                let start = Start::AfterSequences([(P0, Sequence::new(after)?)].into());
                let options = GroupOptions::new().with_start(start);
                let group = stream.existing_group(GroupName::new(name)?);
                let (handle, group_there) = (self.handle(asks.len()), group.clone());
                let is_there = name == "billing";
                asks.push(ask(async move {
                    let (stream, name) = (&group_there.stream.name, &group_there.name);
                    let made = handle.create_group(stream, name, &options).await;
                    if is_there {
                        return expect_error(made, ErrorKind::AlreadyExists).map(drop);
                    }
                    Ok(made?)
                }));
                if !is_there {
                    made.push((group, after, log[0].len() as u64));
                }
            }
        }
        let (handle, missing) = (self.handle(asks.len()), StreamName::new("missing")?);
        asks.push(ask(async move {
            let (name, options) = (GroupName::new("audit")?, GroupOptions::new());
            let made = handle.create_group(&missing, &name, &options).await;
            expect_error(made, ErrorKind::StreamNotFound).map(drop)
        }));
        self.all_at_once(asks).await?;
        for (group, after, last) in made {
            let leases = self.claim_all(&group, P0).await?;
            let expected: Vec<(u32, u64)> = (after + 1..=last).map(|at| (0, at)).collect();
            let what = format!("the places that {} begins with", group.name);
            expect_eq(&what, places_of(&leases), expected)?;
        }
        Ok(())
    }
}
