//! Capabilities: what is declared stays so, and what is not declared is refused.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
