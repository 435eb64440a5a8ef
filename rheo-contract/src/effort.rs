//! How much a run tried, and how much it may try.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::harness::Part;

/// How much of what is generated a run tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// A tenth of the default, for a save-and-run loop. Certifies nothing.
    Quick,
    /// What a certificate asks for at least.
    #[default]
    Default,
    /// Twenty times the default, for nightly runs.
    Long,
}

impl Budget {
    /// The names, as settings and options spell them.
    pub const NAMES: [&str; 3] = ["quick", "default", "long"];

    /// That long at the default.
    pub(crate) fn time(self, at_default: Duration) -> Duration {
        match self {
            Self::Quick => at_default / 10,
            Self::Default => at_default,
            Self::Long => at_default * 20,
        }
    }

    /// How many times as long a case may take as by default.
    pub(crate) fn patience(self) -> u32 {
        match self {
            Self::Quick | Self::Default => 1,
            Self::Long => 20,
        }
    }

    /// Of things to try one by one, those that are tried: all of them, or at random some that make up a
    /// third.
    pub(crate) fn some_of<T>(self, mut all: Vec<T>, random: impl Fn(u64) -> u64) -> Vec<T> {
        if self == Self::Quick {
            let left = all.len().div_ceil(3);
            while all.len() > left {
                let at = random(all.len() as u64);
                all.remove(usize::try_from(at).unwrap_or(0));
            }
        }
        all
    }

    /// That many at the default, at least one.
    pub(crate) fn times(self, at_default: usize) -> usize {
        match self {
            Self::Quick => (at_default / 10).max(1),
            Self::Default => at_default,
            Self::Long => at_default * 20,
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [quick, default, long] = Self::NAMES;
        f.write_str(match self {
            Self::Quick => quick,
            Self::Default => default,
            Self::Long => long,
        })
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Quick, Self::Default, Self::Long]
            .into_iter()
            .find(|budget| budget.to_string() == text)
            .ok_or_else(|| format!("a budget is one of {}", Self::NAMES.join(", ")))
    }
}

macro_rules! efforts {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// How much of what is generated was tried.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Effort {
            $($(#[$doc])* pub $name: u64,)+
        }

        /// Counts what is tried.
        #[derive(Debug, Default)]
        pub(crate) struct Tally {
            $($name: AtomicU64,)+
            lacking: Mutex<BTreeSet<&'static str>>,
        }

        impl Tally {
            $(pub(crate) fn $name(&self, more: u64) {
                self.$name.fetch_add(more, Ordering::Relaxed);
            })+

            /// Notes that something was not exercised, for lack of a part of the harness.
            pub(crate) fn lacks(&self, part: Part) {
                self.lacking
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(part.method());
            }

            /// What was not exercised.
            pub(crate) fn not_exercised(&self) -> Vec<String> {
                let lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
                lacking.iter().map(|part| (*part).to_owned()).collect()
            }

            pub(crate) fn total(&self) -> Effort {
                Effort { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

efforts! {
    /// Random histories that were compared with the model.
    histories,
    /// Operations in them.
    operations,
    /// Operations that ran at the same time as others and were checked together.
    interleaved_operations,
    /// Places at which a connection was cut, or an answer lost, in the middle of an operation.
    cut_points,
    /// Places at which the future of an operation was dropped.
    drop_points,
    /// Processes that were killed while they worked.
    kills,
}
