//! Wakeup: waiting until work might be there.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
