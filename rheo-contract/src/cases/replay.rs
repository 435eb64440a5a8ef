//! Replay: going back.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
