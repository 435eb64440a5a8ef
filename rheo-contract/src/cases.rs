//! The cases, one file per group of guarantees.

use std::sync::LazyLock;

use crate::case::Case;

mod batches;
mod cancellation;
mod capabilities;
mod crashes;
mod dead_letters;
mod delivery;
mod distribution;
mod durability;
mod faults;
mod fidelity;
mod histories;
mod input;
mod inspect;
mod leases;
mod lifecycle;
mod log;
mod partitions;
mod progress;
mod queries;
mod races;
mod receipts;
mod replay;
mod reset;
mod settling;
mod streams;
mod unavailable;
mod wakeup;

macro_rules! groups {
    ($($group:ident),+ $(,)?) => {
        /// The groups, in the order of listings and certificates.
        const GROUPS: &[(&str, &[Case])] = &[$((stringify!($group), $group::CASES),)+];
    };
}

groups! {
    lifecycle, capabilities, unavailable, streams, input, log, fidelity, queries, delivery, leases, receipts, settling,
    batches, dead_letters, inspect, replay, reset, partitions, progress, durability, distribution, wakeup,
    histories, races, cancellation, faults, crashes,
}

/// All cases.
pub(crate) fn all() -> &'static [Case] {
    static ALL: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let in_group = |(group, cases): &(&'static str, &'static [Case])| {
            let group = *group;
            cases.iter().map(move |case| case.in_group(group))
        };
        GROUPS.iter().flat_map(in_group).collect()
    });
    &ALL
}
