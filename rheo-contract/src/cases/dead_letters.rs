//! Dead letters: what they keep, how they page, whose they are.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
