//! Groups and delivery: who gets which event, and when.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
