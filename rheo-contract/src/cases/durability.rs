//! Durability: what was confirmed is there after the namespace is opened again.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
