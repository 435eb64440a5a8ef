//! Defects that the cases of `partitions` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
