//! Defects that the cases of `reset` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
