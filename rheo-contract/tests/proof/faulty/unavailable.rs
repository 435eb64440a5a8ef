//! Defects that the cases of `unavailable` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
