//! Retry and reject: giving an event back, giving up on it.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
