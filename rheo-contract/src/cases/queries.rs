//! Queries and paging: filters, order, cursors.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
