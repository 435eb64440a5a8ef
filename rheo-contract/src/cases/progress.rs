//! Frontier and lag: how far a group is.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
