//! Ops inspect: listing streams and groups, describing a group.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
