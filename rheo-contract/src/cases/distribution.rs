//! Distribution: several handles on one namespace.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
