//! Streams and names: what a stream is, and that names are data.

use crate::case::Case;

pub(crate) const CASES: &[Case] = &[];
