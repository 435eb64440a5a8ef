//! A delivery state as the document that it is in the store.
//!
//! ```json
//! {
//!   "_id": "5c0a….0003",          group, partition
//!   "version": 17,                compared by every write
//!   "writes": [-5, 99, …],        the last writes, so that one whose answer was lost is found
//!   "cursor": 120, "resume": 101,
//!   "claims": [{"attempts": 1, "due": 1764433556000001, "token": UUID("…"), "consumer": "worker-1",
//!               "open": [103, 110, 115, 120]}],       first, last, first, last …
//!   "facts": [{"kind": "dead", "sequence": 99, "since": 16, "attempt": 3, "reason": "bad", "at": …}]
//! }
//! ```

use mongodb::bson::{Bson, Document, doc};
use rheo_core::{ConsumerId, Error, Reason, Result, Sequence, Timestamp};
use uuid::Uuid;

use crate::batch::uuid;
use crate::delivery::{Claim, Dead, Delivery, Fact, Holder};
use crate::error::failed;
use crate::sequences::Sequences;

/// How many writes a document remembers.
pub(crate) const REMEMBERED_WRITES: usize = 8;

/// A state, and the writes that made it, the last one last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) state: Delivery,
    pub(crate) writes: Vec<i64>,
}

impl Record {
    /// What another write makes of it.
    pub(crate) fn followed_by(&self, state: Delivery, write: i64) -> Self {
        let kept = self.writes.len().min(REMEMBERED_WRITES - 1);
        let mut writes = self.writes[self.writes.len() - kept..].to_vec();
        writes.push(write);
        Self { state, writes }
    }

    pub(crate) fn to_document(&self, id: &str) -> Document {
        let state = &self.state;
        doc! {
            "_id": id,
            "version": state.version,
            "writes": self.writes.clone(),
            "cursor": state.cursor.as_i64(),
            "resume": state.resume.map(Sequence::as_i64),
            "claims": state.claims.iter().map(claim_document).collect::<Vec<_>>(),
            "facts": state.facts.iter().map(fact_document).collect::<Vec<_>>(),
        }
    }

    pub(crate) fn from_document(document: &Document) -> Result<Self> {
        let resume = match document.get("resume") {
            Some(Bson::Int64(resume)) => Some(Sequence::try_from(*resume)?),
            _ => None,
        };
        let writes = array(document, "writes")?.iter();
        let state = Delivery {
            version: document.get_i64("version").map_err(damaged)?,
            cursor: sequence(document, "cursor")?,
            resume,
            claims: documents(document, "claims")?
                .map(claim)
                .collect::<Result<_>>()?,
            facts: documents(document, "facts")?
                .map(fact)
                .collect::<Result<_>>()?,
        };
        let writes = writes.filter_map(Bson::as_i64).collect();
        Ok(Self { state, writes })
    }
}

fn claim_document(claim: &Claim) -> Document {
    let ranges = claim.open.ranges().iter();
    let ends = ranges.flat_map(|(first, last)| [first.cast_signed(), last.cast_signed()]);
    let mut document = doc! {
        "attempts": i64::from(claim.attempts),
        "due": claim.due.as_micros(),
        "open": ends.collect::<Vec<i64>>(),
    };
    if let Some(holder) = &claim.holder {
        document.insert("token", uuid(holder.token));
        document.insert("consumer", holder.consumer.as_str());
    }
    document
}

fn claim(document: Result<&Document>) -> Result<Claim> {
    let document = document?;
    let ends: Vec<u64> = array(document, "open")?
        .iter()
        .filter_map(|end| end.as_i64().map(i64::cast_unsigned))
        .collect();
    let ranges = ends
        .chunks_exact(2)
        .map(|ends| (ends[0], ends[1]))
        .collect();
    let holder = match document.get("token") {
        None => None,
        Some(Bson::Binary(token)) => Some(Holder {
            token: Uuid::from_slice(&token.bytes).map_err(damaged)?,
            consumer: ConsumerId::new(document.get_str("consumer").map_err(damaged)?)?,
        }),
        Some(_) => return Err(damaged(())),
    };
    Ok(Claim {
        attempts: small(document, "attempts")?,
        due: timestamp(document, "due")?,
        holder,
        open: Sequences::from_ranges(ranges).ok_or_else(|| damaged(()))?,
    })
}

fn fact_document(fact: &Fact) -> Document {
    match fact {
        Fact::Dead {
            sequence,
            since,
            dead,
        } => doc! {
            "kind": "dead",
            "sequence": sequence.as_i64(),
            "since": since,
            "attempt": i64::from(dead.attempt),
            "reason": dead.reason.as_str(),
            "at": dead.dead_at.as_micros(),
        },
        Fact::Gone {
            sequence,
            since,
            is_contested,
        } => doc! {
            "kind": "gone",
            "sequence": sequence.as_i64(),
            "since": since,
            "is_contested": is_contested,
        },
        Fact::GoneAbove { sequence, since } => doc! {
            "kind": "gone_above",
            "sequence": sequence.as_i64(),
            "since": since,
        },
    }
}

fn fact(document: Result<&Document>) -> Result<Fact> {
    let document = document?;
    let sequence = sequence(document, "sequence")?;
    let since = document.get_i64("since").map_err(damaged)?;
    match document.get_str("kind").map_err(damaged)? {
        "dead" => Ok(Fact::Dead {
            sequence,
            since,
            dead: dead(document)?,
        }),
        "gone" => Ok(Fact::Gone {
            sequence,
            since,
            is_contested: document.get_bool("is_contested").map_err(damaged)?,
        }),
        "gone_above" => Ok(Fact::GoneAbove { sequence, since }),
        _ => Err(damaged(())),
    }
}

/// What a document says of a dead letter, be it a fact or one of its own.
pub(crate) fn dead(document: &Document) -> Result<Dead> {
    Ok(Dead {
        attempt: small(document, "attempt")?,
        reason: Reason::new(document.get_str("reason").map_err(damaged)?),
        dead_at: timestamp(document, "at")?,
    })
}

pub(crate) fn sequence(document: &Document, name: &str) -> Result<Sequence> {
    Sequence::try_from(document.get_i64(name).map_err(damaged)?)
}

fn timestamp(document: &Document, name: &str) -> Result<Timestamp> {
    Timestamp::from_micros(document.get_i64(name).map_err(damaged)?)
}

fn small(document: &Document, name: &str) -> Result<u32> {
    u32::try_from(document.get_i64(name).map_err(damaged)?).map_err(damaged)
}

fn array<'a>(document: &'a Document, name: &str) -> Result<&'a Vec<Bson>> {
    document.get_array(name).map_err(damaged)
}

fn documents<'a>(
    document: &'a Document,
    name: &str,
) -> Result<impl Iterator<Item = Result<&'a Document>>> {
    let array = array(document, name)?.iter();
    Ok(array.map(|item| item.as_document().ok_or_else(|| damaged(()))))
}

pub(crate) fn damaged<E>(_: E) -> Error {
    failed("a document of the delivery state is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(number: u64) -> Sequence {
        Sequence::new(number).expect("in range")
    }

    #[test]
    fn a_record_comes_back_from_its_document() {
        let open = Sequences::from_ranges(vec![(3, 5), (7, 7)]).expect("ranges");
        let held = Claim {
            attempts: u32::MAX,
            due: Timestamp::MAX,
            holder: Some(Holder {
                token: Uuid::from_u128(7),
                consumer: ConsumerId::new("$a.b").expect("allowed"),
            }),
            open: open.clone(),
        };
        let waiting = Claim {
            attempts: 0,
            due: Timestamp::MIN,
            holder: None,
            open,
        };
        let facts = vec![
            Fact::Dead {
                sequence: seq(2),
                since: 4,
                dead: Dead {
                    attempt: 1,
                    reason: Reason::new("ü"),
                    dead_at: Timestamp::UNIX_EPOCH,
                },
            },
            Fact::Gone {
                sequence: seq(1),
                since: 5,
                is_contested: true,
            },
            Fact::GoneAbove {
                sequence: Sequence::ZERO,
                since: 6,
            },
        ];
        for resume in [None, Some(seq(9))] {
            let state = Delivery {
                version: 6,
                cursor: Sequence::MAX,
                resume,
                claims: vec![held.clone(), waiting.clone()],
                facts: facts.clone(),
            };
            let record = Record {
                state,
                writes: vec![-1, 2],
            };
            let document = record.to_document("id");
            assert_eq!(Record::from_document(&document), Ok(record));
        }
    }

    #[test]
    fn only_the_last_writes_are_remembered() {
        let mut record = Record {
            state: Delivery::new(Sequence::ZERO),
            writes: Vec::new(),
        };
        for write in 0..20 {
            record = record.followed_by(record.state.successor(), write);
        }
        assert_eq!(record.writes, [12, 13, 14, 15, 16, 17, 18, 19]);
        assert_eq!(record.state.version, 20);
    }
}
