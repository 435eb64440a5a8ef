//! Defects that show only when calls overlap, in what is answered: it is another call's, or too much.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use rheo_core::{
    ConsumerId, Error, Event, EventId, Existing, LeaseDuration, NewEvent, Sequence, Timestamp,
};

use crate::book::held;
use crate::faulty::{Faulty, faulty};
use crate::generated::meddling::{
    OpenAppends, UnderWay, append_openly, pause, slowness, stored_log,
};
use crate::generated::spoils::spoils;

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        QueriesPassOpenAppends: "a query leaves out events whose append is under way, and gives later ones",
        says: "event that shows up later (LOG-2)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        QueriesEndBeforeOpenAppends: "a query gives of each partition what is before the first append under way, also where one after it is done",
        says: "appended event that a later query does not give (LOG-10, QRY-3)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        PagesBeginOneEarlyDuringAppends: "a page begins with the last event of the one before while something is appended",
        says: "event given twice, or out of order (QRY-2, QRY-3)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        LagEndsBeforeOpenAppends: "the high watermark is before the first append under way, also where one after it is done",
        says: "high watermark below what was appended (LOG-10)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        LagCountsReservedSequences: "an append under way reserves ten sequences, which the high watermark counts",
        says: "high watermark above what was appended (FRN-4)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingAppendsShareMetadata: "where two appends overlap, the second has the metadata of the first",
        says: "append that answers another event (LOG-5)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingAppendsAnswerTheSameKey: "where two appends overlap, the answer to the second has the key of the first",
        says: "append that answers another event (LOG-5)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingAppendsCollide: "an append that finds another one under way gives up, since its sequence exists",
        says: "append refused (LOG-10)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingFetchesCollide: "a fetch that finds others under way is told that a lease is stale",
        says: "fetch refused (DLV-3)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingFetchesShareAConsumer: "where two fetches overlap, the leases of the second bear the consumer of the first",
        says: "lease of another group or consumer (DLV-8)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingFetchesShareADuration: "where two fetches overlap, the leases of the second last as long as those of the first",
        says: "lease of another duration (DLV-8)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingFetchesShareATime: "a fetch that overlaps another one takes the time of the last that did not",
        says: "lease of another time (DLV-8)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingFetchesGiveTheLastFirst: "a fetch that overlaps another one gives its leases in reverse",
        says: "leases out of order (DLV-4)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingFetchesGiveOneMore: "a fetch that overlaps another one gives a lease more than asked for",
        says: "more leases than asked for (DLV-3)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
    faulty! {
        OverlappingRenewalsAnswerTheSameEnd: "a renewal that overlaps another one answers with the end that the lease had",
        says: "renewal that answers another lease (LSE-6)",
        kills: ["races::DLV-7::concurrent_histories_of_one_handle_have_no_anomaly"],
    },
];

#[derive(Default)]
struct QueriesPassOpenAppends(AtomicUsize);

spoils! { QueriesPassOpenAppends {
    append_batch(self, real, stream, events) {
        append_openly(real, stream, events, slowness(&self.0)).await
    }
    query(self, real, stream, query) {
        let mut page = real.backend.query(stream, query).await?;
        let open = real.beside.of::<OpenAppends>();
        page.events.retain(|event| !open.has(&event.id));
        Ok(page)
    }
} }

#[derive(Default)]
struct QueriesEndBeforeOpenAppends(AtomicUsize);

/// The lowest events whose appends are under way, of all partitions.
fn first_open<'a>(log: &'a [Event], open: &OpenAppends) -> Vec<&'a Event> {
    let mut first: Vec<&Event> = Vec::new();
    for event in log.iter().filter(|event| open.has(&event.id)) {
        if first.iter().all(|other| other.partition != event.partition) {
            first.push(event);
        }
    }
    first
}

spoils! { QueriesEndBeforeOpenAppends {
    append_batch(self, real, stream, events) {
        append_openly(real, stream, events, slowness(&self.0)).await
    }
    query(self, real, stream, query) {
        let mut page = real.backend.query(stream, query).await?;
        let open = real.beside.of::<OpenAppends>();
        if open.is_any() {
            let log = stored_log(real, stream).await;
            let first = first_open(&log, &open);
            let is_after = |event: &Event, first: &Event| {
                first.partition == event.partition && first.sequence <= event.sequence
            };
            page.events.retain(|event| !first.iter().any(|first| is_after(event, first)));
        }
        Ok(page)
    }
} }

/// The last events of pages, by the cursors that follow.
type Ends = Mutex<HashMap<String, Event>>;

#[derive(Default)]
struct PagesBeginOneEarlyDuringAppends(Ends);

spoils! { PagesBeginOneEarlyDuringAppends {
    append_batch(self, real, stream, events) {
        append_openly(real, stream, events, 6).await
    }
    query(self, real, stream, query) {
        let before = query.cursor.as_ref().and_then(|cursor| held(&self.0).get(cursor.as_str()).cloned());
        let again = before.filter(|_| real.beside.of::<OpenAppends>().is_any() && query.limit() > 1);
        let rest = query.clone().with_limit(query.limit() - u32::from(again.is_some()));
        let mut page = real.backend.query(stream, &rest).await?;
        page.events.splice(0..0, again);
        if let (Some(next), Some(last)) = (&page.next, page.events.last()) {
            held(&self.0).insert(next.as_str().to_owned(), last.clone());
        }
        Ok(page)
    }
} }

#[derive(Default)]
struct LagEndsBeforeOpenAppends(AtomicUsize);

spoils! { LagEndsBeforeOpenAppends {
    append_batch(self, real, stream, events) {
        append_openly(real, stream, events, slowness(&self.0)).await
    }
    lag(self, real, stream, group) {
        let mut lag = real.backend.lag(stream, group).await?;
        let open = real.beside.of::<OpenAppends>();
        if open.is_any() {
            let log = stored_log(real, stream).await;
            for event in first_open(&log, &open) {
                let here = lag.partitions.iter_mut().filter(|p| p.partition == event.partition);
                here.for_each(|p| p.high_watermark = event.sequence.previous());
            }
        }
        Ok(lag)
    }
} }

#[derive(Default)]
struct LagCountsReservedSequences;

spoils! { LagCountsReservedSequences {
    append_batch(self, real, stream, events) {
        append_openly(real, stream, events, 6).await
    }
    lag(self, real, stream, group) {
        let mut lag = real.backend.lag(stream, group).await?;
        if real.beside.of::<OpenAppends>().is_any() {
            for progress in &mut lag.partitions {
                progress.high_watermark = Sequence::new(progress.high_watermark.get() + 10)?;
            }
        }
        Ok(lag)
    }
} }

#[derive(Default)]
struct OverlappingAppendsShareMetadata;

spoils! { OverlappingAppendsShareMetadata {
    append_batch(self, real, stream, events) {
        let open = real.beside.of::<UnderWay<NewEvent>>();
        let first = open.all().pop();
        let _open: Vec<_> = events.iter().map(|event| open.begin(event.clone())).collect();
        let mut events = events;
        if let (Some(first), [event]) = (first, &mut events[..]) {
            event.metadata = first.metadata;
        }
        real.backend.append_batch(stream, events).await
    }
} }

#[derive(Default)]
struct OverlappingAppendsAnswerTheSameKey;

spoils! { OverlappingAppendsAnswerTheSameKey {
    append_batch(self, real, stream, events) {
        let open = real.beside.of::<UnderWay<NewEvent>>();
        let first = open.all().pop();
        let _open: Vec<_> = events.iter().map(|event| open.begin(event.clone())).collect();
        let mut events = real.backend.append_batch(stream, events).await?;
        if let (Some(first), [event]) = (first, &mut events[..]) {
            event.key = first.key;
        }
        Ok(events)
    }
} }

#[derive(Default)]
struct OverlappingAppendsCollide;

spoils! { OverlappingAppendsCollide {
    append_batch(self, real, stream, events) {
        let open = real.beside.of::<UnderWay<EventId>>();
        let id = events.first().and_then(|event| event.id);
        if let Some(id) = id.filter(|_| open.is_any()) {
            return Err(Error::AlreadyExists(Existing::Event(id)));
        }
        let _open = id.map(|id| open.begin(id));
        real.backend.append_batch(stream, events).await
    }
} }

/// Fetches that are under way, by their consumers.
type Fetching = UnderWay<ConsumerId>;

#[derive(Default)]
struct OverlappingFetchesCollide;

spoils! { OverlappingFetchesCollide {
    fetch(self, real, stream, group, options) {
        let fetching = real.beside.of::<Fetching>();
        if fetching.all().len() >= 2 {
            return Err(Error::StaleLease);
        }
        let _fetching = fetching.begin(options.consumer.clone());
        real.backend.fetch(stream, group, options).await
    }
} }

#[derive(Default)]
struct OverlappingFetchesShareAConsumer;

spoils! { OverlappingFetchesShareAConsumer {
    fetch(self, real, stream, group, options) {
        let fetching = real.beside.of::<Fetching>();
        let first = fetching.all().pop();
        let _fetching = fetching.begin(options.consumer.clone());
        let mut leases = real.backend.fetch(stream, group, options).await?;
        for lease in &mut leases {
            lease.consumer = first.clone().unwrap_or(lease.consumer.clone());
        }
        Ok(leases)
    }
} }

#[derive(Default)]
struct OverlappingFetchesShareADuration;

spoils! { OverlappingFetchesShareADuration {
    fetch(self, real, stream, group, options) {
        let fetching = real.beside.of::<UnderWay<LeaseDuration>>();
        let first = fetching.all().pop();
        let _fetching = fetching.begin(options.lease_duration);
        let duration = first.unwrap_or(options.lease_duration);
        let options = options.clone().with_lease_duration(duration);
        real.backend.fetch(stream, group, &options).await
    }
} }

#[derive(Default)]
struct OverlappingFetchesShareATime(Mutex<Option<Timestamp>>);

spoils! { OverlappingFetchesShareATime {
    fetch(self, real, stream, group, options) {
        let fetching = real.beside.of::<Fetching>();
        let overlaps = fetching.is_any();
        let _fetching = fetching.begin(options.consumer.clone());
        let mut leases = real.backend.fetch(stream, group, options).await?;
        let shared = held(&self.0).filter(|_| overlaps);
        let now = shared.unwrap_or(real.now());
        *held(&self.0) = Some(now);
        for lease in &mut leases {
            lease.leased_at = now;
            lease.expires_at = now.saturating_add(options.lease_duration.as_duration());
        }
        pause(4).await;
        Ok(leases)
    }
} }

#[derive(Default)]
struct OverlappingFetchesGiveTheLastFirst;

spoils! { OverlappingFetchesGiveTheLastFirst {
    fetch(self, real, stream, group, options) {
        let fetching = real.beside.of::<Fetching>();
        let overlaps = fetching.is_any();
        let _fetching = fetching.begin(options.consumer.clone());
        let mut leases = real.backend.fetch(stream, group, options).await?;
        if overlaps {
            leases.reverse();
        }
        Ok(leases)
    }
} }

#[derive(Default)]
struct OverlappingFetchesGiveOneMore;

spoils! { OverlappingFetchesGiveOneMore {
    fetch(self, real, stream, group, options) {
        let fetching = real.beside.of::<Fetching>();
        let more = u32::from(fetching.is_any() && options.limit > 0);
        let _fetching = fetching.begin(options.consumer.clone());
        let options = options.clone().with_limit(options.limit.saturating_add(more));
        real.backend.fetch(stream, group, &options).await
    }
} }

#[derive(Default)]
struct OverlappingRenewalsAnswerTheSameEnd;

spoils! { OverlappingRenewalsAnswerTheSameEnd {
    renew(self, real, lease, duration) {
        let renewing = real.beside.of::<UnderWay<LeaseDuration>>();
        let overlaps = renewing.is_any();
        let _renewing = renewing.begin(duration);
        let mut renewed = real.backend.renew(lease, duration).await?;
        if overlaps {
            renewed.expires_at = lease.expires_at;
        }
        Ok(renewed)
    }
} }
