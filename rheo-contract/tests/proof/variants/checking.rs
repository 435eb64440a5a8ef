//! Variants that check in another order: between bad input and what exists already it is free (ERR-6).

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{
    Error, ErrorKind, Event, EventId, Existing, GroupName, GroupOptions, NewEvent, Result,
    StreamName, async_trait,
};

use super::{Differing, Variant};
use crate::defect::{Defect, Real};

pub(super) const ALL: &[&dyn Variant] = &[
    &Differing("IdsBeforePartitions", IdsBeforePartitions::default),
    &Differing("NameBeforeStart", NameBeforeStart::default),
];

fn is_invalid<T>(result: &Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == ErrorKind::Invalid)
}

/// It looks ids up before it checks the partitions.
#[derive(Default)]
struct IdsBeforePartitions(Mutex<HashSet<(StreamName, EventId)>>);

#[async_trait]
impl Defect for IdsBeforePartitions {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        let ids: Vec<EventId> = events.iter().filter_map(|event| event.id).collect();
        let appended = real.backend.append_batch(stream, events).await;
        let mut known = self.0.lock().expect("not poisoned");
        if is_invalid(&appended) {
            let taken = ids
                .iter()
                .find(|id| known.contains(&(stream.clone(), **id)));
            if let Some(id) = taken {
                return Err(Error::AlreadyExists(Existing::Event(*id)));
            }
        }
        let new = appended.iter().flatten();
        known.extend(new.map(|event| (stream.clone(), event.id)));
        appended
    }
}

/// It finds that a group is there before it checks the start.
#[derive(Default)]
struct NameBeforeStart;

#[async_trait]
impl Defect for NameBeforeStart {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let made = real.backend.create_group(stream, group, options).await;
        if is_invalid(&made) && real.backend.lag(stream, group).await.is_ok() {
            return Err(Error::AlreadyExists(Existing::Group(group.clone())));
        }
        made
    }
}
