//! Defects that the cases of `queries` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
