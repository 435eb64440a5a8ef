//! Defects that the cases of `replay` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
