//! Lifecycle: opening, making indexes, closing.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
