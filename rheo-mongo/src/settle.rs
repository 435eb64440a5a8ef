//! Settling and renewing leases: any number, one write for each state that they are about.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use rheo_core::{Error, GroupName, Lease, Partition, Result, StreamName};

use crate::apply::Op;
use crate::change::{Changes, Done, Place};
use crate::delivery::{Given, Settle, Settled};
use crate::error::failed;
use crate::store::Store;

impl Changes {
    /// Does the same with many leases, and gives a result for each, in order (LSE-8).
    pub(crate) async fn settle(
        &self,
        store: &Arc<Store>,
        leases: &[Lease],
        settle: &Settle,
    ) -> Vec<Result<Settled>> {
        type Key<'a> = (&'a StreamName, &'a GroupName, Partition);
        let mut of_states: BTreeMap<Key<'_>, Vec<usize>> = BTreeMap::new();
        for (index, lease) in leases.iter().enumerate() {
            let key = (&lease.event.stream, &lease.group, lease.event.partition);
            of_states.entry(key).or_default().push(index);
        }
        let each = of_states.into_values().map(|indexes| async {
            let of_state: Vec<&Lease> = indexes.iter().map(|index| &leases[*index]).collect();
            let results = match self.settle_in_one(store, &of_state, settle).await {
                Ok(results) => results,
                Err(error) => vec![Err(error); indexes.len()],
            };
            indexes.into_iter().zip(results).collect::<Vec<_>>()
        });
        let mut results: BTreeMap<usize, Result<Settled>> =
            join_all(each).await.into_iter().flatten().collect();
        let lost = || Err(failed("a result is missing"));
        (0..leases.len())
            .map(|index| results.remove(&index).unwrap_or_else(lost))
            .collect()
    }

    async fn settle_in_one(
        &self,
        store: &Arc<Store>,
        leases: &[&Lease],
        settle: &Settle,
    ) -> Result<Vec<Result<Settled>>> {
        let Some(first) = leases.first() else {
            return Ok(Vec::new());
        };
        let deadline = store.deadline();
        let found = store
            .group(deadline, &first.event.stream, &first.group)
            .await;
        let (stream, group) = match found {
            // A lease of nothing is stale (LSE-2).
            Err(Error::StreamNotFound { .. } | Error::GroupNotFound { .. }) => {
                return Err(Error::StaleLease);
            }
            found => found?,
        };
        let partition = first.event.partition;
        if stream.count.check("partition", partition).is_err() {
            return Err(Error::StaleLease);
        }
        let place = Place {
            stream,
            group,
            partition,
        };
        let op = Op::Settle {
            leases: leases.iter().map(|lease| Given::of(lease)).collect(),
            settle: settle.clone(),
        };
        match self.ask(store, place, op, deadline).await? {
            Done::Settled(results) => Ok(results),
            _ => Err(failed("the answer of another operation came back")),
        }
    }
}
