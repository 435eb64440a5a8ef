//! Appends, and what reads and queries give of them.

use std::collections::{BTreeMap, BTreeSet};

use rheo_core::{Error, ErrorKind, Event, EventId, NewEvent, OrderBy, Position, Query};

use super::{About, Anomaly, History, may_fail, place_of};
use crate::describe::{Brief, QueryText};
use crate::race::{Clocks, Done, What};

impl History {
    /// LOG-1, LOG-5, LOG-10, ERR-1: an append does what it answers, and that is what was asked for.
    pub(super) fn check_appends(&self, found: &mut Vec<Anomaly>) {
        for done in &self.done {
            match &done.what {
                What::Append(asked, Ok(event)) => self.check_append(done, asked, event, found),
                What::Append(asked, Err(error)) => {
                    self.check_failed_append(done, asked, error, found);
                }
                _ => {}
            }
        }
    }

    fn check_append(&self, done: &Done, asked: &NewEvent, event: &Event, found: &mut Vec<Anomaly>) {
        let differing = self.differing(done, asked, event);
        if !differing.is_empty() {
            found.push(Anomaly::new(
                "append that answers another event (LOG-5)",
                About::event(event).by(done),
                format!("{} as in {asked:?}", differing.join(", ")),
                format!("{event:?}"),
            ));
        }
        let logged = self.event(event.partition, event.sequence);
        if logged != Some(event) {
            found.push(Anomaly::new(
                "lost event (LOG-10)",
                About::event(event).by(done),
                format!("{} in the log, as append returned it", event.brief()),
                logged.map_or("nothing there".to_owned(), Brief::brief),
            ));
        }
        let higher = self.appended_before(done).find(|(_, other)| {
            other.partition == event.partition && other.sequence > event.sequence
        });
        if let Some((by, higher)) = higher {
            let higher = higher.sequence;
            found.push(Anomaly::new(
                "order broken (LOG-1)",
                About::event(event).and(by).by(done),
                format!("a sequence above {higher}, whose append had ended before"),
                event.brief(),
            ));
        }
    }

    fn check_failed_append(
        &self,
        done: &Done,
        asked: &NewEvent,
        error: &Error,
        found: &mut Vec<Anomaly>,
    ) {
        let kind = error.kind();
        if kind == ErrorKind::Ambiguous {
            return;
        }
        let is_it = |event: &&Event| Some(event.id) == asked.id;
        if let Some(event) = self.log.iter().flatten().find(is_it) {
            found.push(Anomaly::new(
                "failed append that happened (ERR-1)",
                About::event(event).by(done),
                format!("no event, since append gave Err({kind})"),
                event.brief(),
            ));
        }
        if !may_fail(kind) {
            found.push(Anomaly::new(
                "append refused (LOG-10)",
                About::default().by(done),
                "append to succeed, whoever else appends",
                format!("Err({kind})"),
            ));
        }
    }

    /// What an event has otherwise than it was asked for.
    fn differing(&self, done: &Done, asked: &NewEvent, event: &Event) -> Vec<&'static str> {
        let partition = asked.partition.unwrap_or(event.partition);
        let knows_the_time = self.clocks == Clocks::Agree;
        let fields = [
            ("id", asked.id.is_none_or(|id| id == event.id)),
            ("stream", self.stream == event.stream),
            ("partition", partition == event.partition),
            ("type", asked.event_type == event.event_type),
            ("key", asked.key == event.key),
            ("payload", asked.payload == event.payload),
            ("metadata", asked.metadata == event.metadata),
            ("time", !knows_the_time || done.now == event.timestamp),
        ];
        let differing = fields.into_iter().filter(|(_, is_equal)| !is_equal);
        differing.map(|(field, _)| field).collect()
    }

    /// LOG-1, LOG-5, LOG-7: the log has what was appended, each event once and as it was asked for.
    pub(super) fn check_log(&self, found: &mut Vec<Anomaly>) {
        let mut known: BTreeMap<EventId, (&Done, &NewEvent)> = BTreeMap::new();
        for done in &self.done {
            if let What::Append(asked, _) = &done.what {
                known.extend(asked.id.map(|id| (id, (done, asked))));
            }
        }
        let mut ids = BTreeSet::new();
        for events in &self.log {
            for (event, sequence) in events.iter().zip(1..) {
                if event.sequence.get() != sequence {
                    found.push(Anomaly::new(
                        "hole or repeated sequence (LOG-1)",
                        About::event(event),
                        format!("sequence {sequence} next"),
                        event.brief(),
                    ));
                }
                let appended = known.get(&event.id);
                if !ids.insert(event.id) || appended.is_none() {
                    found.push(Anomaly::new(
                        "event that nobody appended, or twice (LOG-7)",
                        About::event(event),
                        "each event once",
                        event.brief(),
                    ));
                }
                let differing = appended.map(|(by, asked)| self.differing(by, asked, event));
                if differing.is_some_and(|differing| !differing.is_empty()) {
                    found.push(Anomaly::new(
                        "event that is another one in the log (LOG-5)",
                        About::event(event),
                        "it to be as it was appended",
                        format!("{event:?}"),
                    ));
                }
            }
        }
    }

    /// LOG-2, LOG-10: a read gives a prefix of the log, with everything whose append had ended.
    pub(super) fn check_reads(&self, found: &mut Vec<Anomaly>) {
        for done in &self.done {
            let What::Read(partition, events) = &done.what else {
                continue;
            };
            let log = &self.log[partition.number() as usize];
            if !log.starts_with(events) {
                let same = log.iter().zip(events).take_while(|(a, b)| a == b);
                let first = (partition.number(), same.count() as u64 + 1);
                found.push(Anomaly::new(
                    "event that shows up later (LOG-2)",
                    About::place(first).by(done),
                    format!("the first {} events of the log", events.len()),
                    events.brief(),
                ));
            }
            let least = self.least(done, *partition);
            if (events.len() as u64) < least {
                found.push(Anomaly::new(
                    "appended event that a later read does not give (LOG-10)",
                    About::place((partition.number(), least)).by(done),
                    format!("at least {least} events"),
                    events.len(),
                ));
            }
        }
    }

    /// QRY-1 to QRY-3, LOG-2, LOG-10.
    pub(super) fn check_queries(&self, found: &mut Vec<Anomaly>) {
        for done in &self.done {
            if let What::Query(query, pages) = &done.what {
                check_pages(done, query, pages, found);
                let events: Vec<&Event> = pages.iter().flatten().collect();
                self.check_selection(done, query, &events, found);
            }
        }
    }

    /// All pages together give what matches: everything that was there when the query began, and of one
    /// partition no event before a lower one.
    fn check_selection(
        &self,
        done: &Done,
        query: &Query,
        events: &[&Event],
        found: &mut Vec<Anomaly>,
    ) {
        for event in events {
            if !self.is_in_the_log(event) || !query.matches(event) {
                found.push(Anomaly::new(
                    "event that a query does not match, or that is not in the log (LOG-5, QRY-1)",
                    About::event(event).by(done),
                    format!("an event of the log, for {}", QueryText(query)),
                    event.brief(),
                ));
            }
        }
        let given: BTreeSet<_> = events.iter().map(|event| place_of(event)).collect();
        // In another order, or over several partitions, an event may be appended where a scan was already.
        if query.partition.is_some() && query.order.by == OrderBy::Sequence {
            let passed = given
                .iter()
                .zip(1..)
                .find(|(place, lower)| place.1 != *lower);
            if let Some(((partition, above), lower)) = passed {
                found.push(Anomaly::new(
                    "event that shows up later (LOG-2)",
                    About::place((*partition, lower)).by(done),
                    format!("sequence {lower}, since {above} is there"),
                    format!("none, for {}", QueryText(query)),
                ));
            }
        }
        let missing = self
            .appended_before(done)
            .find(|(_, event)| query.matches(event) && !given.contains(&place_of(event)));
        if let Some((by, event)) = missing {
            found.push(Anomaly::new(
                "appended event that a later query does not give (LOG-10, QRY-3)",
                About::event(event).and(by).by(done),
                format!("{} for {}", event.brief(), QueryText(query)),
                "a query without it",
            ));
        }
    }
}

/// Pages are no larger than asked for, and their events in order: none of them twice.
fn check_pages(done: &Done, query: &Query, pages: &[Vec<Event>], found: &mut Vec<Anomaly>) {
    let limit = query.limit() as usize;
    if let Some(page) = pages.iter().find(|page| page.len() > limit) {
        found.push(Anomaly::new(
            "page of more events than asked for (QRY-1)",
            About::default().by(done),
            format!("at most {limit}"),
            page.len(),
        ));
    }
    let events: Vec<&Event> = pages.iter().flatten().collect();
    for pair in events.windows(2) {
        let order = query.order.compare(&position(pair[0]), &position(pair[1]));
        if order.is_ge() {
            found.push(Anomaly::new(
                "event given twice, or out of order (QRY-2, QRY-3)",
                About::event(pair[1]).by(done),
                format!("what follows {}, for {}", pair[0].brief(), QueryText(query)),
                pair[1].brief(),
            ));
        }
    }
}

fn position(event: &Event) -> Position {
    Position {
        timestamp: event.timestamp,
        sequence: event.sequence,
        partition: event.partition,
    }
}
