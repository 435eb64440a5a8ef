//! Unavailable handles: a store that cannot be reached, a handle that is closed.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
