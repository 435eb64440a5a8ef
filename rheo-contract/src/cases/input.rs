//! Input validation: what only the backend can check.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
