//! Defects that the cases of `streams` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
