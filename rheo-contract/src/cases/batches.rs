//! Batches of settles: one result each, in order, and none carries another.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
