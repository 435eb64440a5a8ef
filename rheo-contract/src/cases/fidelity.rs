//! Data fidelity: what goes in comes out, value for value.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
