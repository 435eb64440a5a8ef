//! The faulty backends, one file per group of cases that is there for them.

use std::sync::Arc;

use rheo_core::Backend;

use crate::defect::Real;

/// A backend with one named defect.
pub(crate) struct Faulty {
    pub(crate) name: &'static str,
    /// What it does wrong, in a sentence.
    pub(crate) defect: &'static str,
    /// Part of the reason that the first of `kills` gives.
    pub(crate) message: &'static str,
    /// Exactly the cases that fail it, by full name; the one made for it first.
    pub(crate) kills: &'static [&'static str],
    pub(crate) wrap: fn(Real) -> Arc<dyn Backend>,
}

/// `faulty! { Type: "defect", says: "part of the reason", kills: ["group::RULE::case", …] }`, where
/// `Type` is a `Defect + Default`; each handle gets a new one.
macro_rules! faulty {
    (
        $type:ident: $defect:literal,
        says: $message:literal,
        kills: [$($case:literal),+ $(,)?] $(,)?
    ) => {
        $crate::faulty::Faulty {
            name: stringify!($type),
            defect: $defect,
            message: $message,
            kills: &[$($case),+],
            wrap: |real| {
                std::sync::Arc::new($crate::defect::Wrapped {
                    real,
                    defect: Box::new($type::default()),
                })
            },
        }
    };
}
pub(crate) use faulty;

mod batches;
mod bounds;
mod capabilities;
mod clocks;
mod dead_letters;
mod delivery;
mod distribution;
mod durability;
mod durations;
mod fidelity;
mod input;
mod inspect;
mod leases;
mod lifecycle;
mod log;
mod partitions;
mod progress;
mod queries;
mod races;
mod reach;
mod receipts;
mod replay;
mod reset;
mod settling;
mod streams;
mod unavailable;
mod wakeup;

macro_rules! groups {
    ($($group:ident),+ $(,)?) => {
        const GROUPS: &[&[Faulty]] = &[$($group::FAULTY,)+];
    };
}

groups! {
    lifecycle, capabilities, unavailable, streams, input, log, fidelity, queries, receipts, batches, inspect, reset,
    partitions, progress, durability, distribution, wakeup, races, durations, bounds, reach, clocks,
}

/// Groups whose defects are in files by topic, each with its own list.
const DIVIDED: &[&[&[Faulty]]] = &[
    delivery::FAULTY,
    leases::FAULTY,
    settling::FAULTY,
    dead_letters::FAULTY,
    replay::FAULTY,
    &[
        reset::starts::FAULTY,
        reset::attempts::FAULTY,
        batches::single::FAULTY,
    ],
    &[
        input::fields::FAULTY,
        inspect::counts::FAULTY,
        queries::several::FAULTY,
        wakeup::told::FAULTY,
    ],
];

pub(crate) fn all() -> impl Iterator<Item = &'static Faulty> {
    let divided = DIVIDED.iter().copied().flatten();
    GROUPS.iter().chain(divided).copied().flatten()
}
