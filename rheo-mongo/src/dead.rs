//! The dead letters: a document each, which say what the facts of a delivery state said.
//!
//! A state can be written only as a whole, so its facts are true or not there. A dead letter is
//! written afterwards, maybe by several at once, maybe by one that was asleep for an hour. Each
//! document therefore has the version that it is true *since*, and a fact is written on the condition
//! that the document is older: whatever comes late, or again, changes nothing. For the same reason a
//! dead letter that was replayed is not deleted but marked: were it deleted, one that comes late would
//! write it again.

use std::collections::BTreeMap;

use mongodb::bson::{Document, doc};
use rheo_core::{Error, Partition, Result, Sequence};
use tokio::time::Instant;

use crate::config::write_concern;
use crate::delivery::{Dead, Delivery, Fact};
use crate::error::{Fault, Stage};
use crate::record::{dead, sequence};
use crate::store::{Group, Store};

/// Facts in one command.
const AT_ONCE: usize = 250;

impl Store {
    /// Writes facts down, any number of times, by anybody: how many of them, from the first, as it takes
    /// no more than half of the time that is left. The others are for the operations that come.
    pub(crate) async fn write_facts(
        &self,
        deadline: Instant,
        group: &Group,
        partition: Partition,
        facts: &[Fact],
    ) -> Result<usize> {
        let begun = Instant::now();
        let half = deadline.saturating_duration_since(begun) / 2;
        let mut written = 0;
        for facts in facts.chunks(AT_ONCE) {
            if begun.elapsed() > half {
                break;
            }
            let updates = facts.iter().map(|fact| update(group, partition, fact));
            let mut command = doc! {
                "update": self.dead_letters.name(),
                "updates": updates.collect::<Vec<_>>(),
                "ordered": false,
            };
            if let Ok(concern) = mongodb::bson::to_bson(&write_concern()) {
                command.insert("writeConcern", concern);
            }
            let sent = self
                .write(deadline, self.database.run_command(command))
                .await;
            let answer = sent.map_err(|fault: Fault| fault.portable(Stage::Read))?;
            check(&answer)?;
            written += facts.len();
        }
        Ok(written)
    }

    /// The dead letters of a partition above a sequence, ascending: the documents with the facts of
    /// the state over them. The state must have been read before: what has left it since is in the
    /// documents.
    pub(crate) async fn dead_after(
        &self,
        deadline: Instant,
        group: &Group,
        partition: Partition,
        state: &Delivery,
        after: Sequence,
        limit: usize,
    ) -> Result<BTreeMap<Sequence, Dead>> {
        let facts = state.facts.iter().filter_map(|fact| match fact {
            Fact::Dead { sequence, dead, .. } if *sequence > after => {
                Some((*sequence, dead.clone()))
            }
            _ => None,
        });
        let mut letters: BTreeMap<Sequence, Dead> = facts.collect();
        let mut from = after;
        loop {
            let mut filter = of_partition(group, partition);
            filter.insert("sequence", doc! { "$gt": from.as_i64() });
            filter.insert("is_dead", true);
            let wanted = limit.saturating_add(state.facts.len());
            let find = self
                .dead_letters
                .find(filter)
                .sort(doc! { "sequence": 1 })
                .limit(i64::try_from(wanted).unwrap_or(i64::MAX));
            let found = self.all(deadline, find).await?;
            let is_all = found.len() < wanted;
            let mut kept = 0;
            for document in found {
                let of = sequence(&document, "sequence")?;
                let since = document.get_i64("since").unwrap_or_default();
                from = of;
                if !state.ends(of, since) {
                    letters.entry(of).or_insert(dead(&document)?);
                    kept += 1;
                }
            }
            if is_all || kept >= limit {
                break;
            }
        }
        while letters.len() > limit {
            letters.pop_last();
        }
        Ok(letters)
    }

    /// How many dead letters a partition has, according to its state and the documents.
    pub(crate) async fn dead_count(
        &self,
        deadline: Instant,
        group: &Group,
        states: &BTreeMap<Partition, std::sync::Arc<crate::record::Record>>,
    ) -> Result<u64> {
        let (plain, mixed): (Vec<_>, Vec<_>) = states
            .iter()
            .partition(|(_, record)| record.state.facts.is_empty());
        let plain: Vec<i32> = plain
            .iter()
            .map(|(p, _)| p.number().cast_signed())
            .collect();
        let mut count = 0;
        if !plain.is_empty() {
            let filter = doc! {
                "group": &*group.id,
                "partition": { "$in": plain },
                "is_dead": true,
            };
            let counted = self.read(deadline, self.dead_letters.count_documents(filter));
            count += counted.await?;
        }
        for (partition, record) in mixed {
            let all = self.dead_after(
                deadline,
                group,
                *partition,
                &record.state,
                Sequence::ZERO,
                usize::MAX,
            );
            count += all.await?.len() as u64;
        }
        Ok(count)
    }
}

fn of_partition(group: &Group, partition: Partition) -> Document {
    doc! { "group": &*group.id, "partition": partition.number().cast_signed() }
}

/// The statement that writes a fact where the document is older.
fn update(group: &Group, partition: Partition, fact: &Fact) -> Document {
    let key = |sequence: &Sequence| {
        let state = group.state_key(partition);
        format!("{state}.{:019}", sequence.get())
    };
    let place = |sequence: &Sequence| {
        doc! {
            "group": &*group.id,
            "partition": partition.number().cast_signed(),
            "sequence": sequence.as_i64(),
        }
    };
    match fact {
        Fact::Dead {
            sequence,
            since,
            dead,
        } => {
            let mut set = place(sequence);
            set.extend(doc! {
                "since": since,
                "is_dead": true,
                "attempt": i64::from(dead.attempt),
                "reason": dead.reason.as_str(),
                "at": dead.dead_at.as_micros(),
            });
            doc! {
                "q": { "_id": key(sequence), "since": { "$lt": since } },
                "u": { "$set": set },
                "upsert": true,
            }
        }
        Fact::Gone {
            sequence,
            since,
            is_contested,
        } => {
            let mut set = place(sequence);
            set.extend(doc! { "since": since, "is_dead": false });
            doc! {
                "q": { "_id": key(sequence), "since": { "$lt": since } },
                "u": { "$set": set, "$unset": { "reason": "" } },
                "upsert": is_contested,
            }
        }
        Fact::GoneAbove { sequence, since } => {
            let mut older = of_partition(group, partition);
            older.insert("sequence", doc! { "$gt": sequence.as_i64() });
            older.insert("since", doc! { "$lt": since });
            doc! {
                "q": older,
                "u": { "$set": { "since": since, "is_dead": false }, "$unset": { "reason": "" } },
                "multi": true,
            }
        }
    }
}

/// A document that is there and not older makes an upsert fail on its key: then all is well.
fn check(answer: &Document) -> Result<()> {
    const DUPLICATE_KEY: i32 = 11_000;
    let is_confirmed = !answer.contains_key("writeConcernError");
    let errors = answer
        .get_array("writeErrors")
        .map(Vec::as_slice)
        .unwrap_or_default();
    let is_newer = errors.iter().all(|error| {
        let code = error.as_document().map(|error| error.get_i32("code"));
        matches!(code, Some(Ok(DUPLICATE_KEY)))
    });
    match is_confirmed && is_newer {
        true => Ok(()),
        // They are in the state still, and will be written again.
        false => Err(unavailable()),
    }
}

fn unavailable() -> Error {
    crate::error::unavailable("dead letters could not be written")
}
