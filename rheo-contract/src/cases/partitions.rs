//! Partitions: each on its own, all of them together.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
