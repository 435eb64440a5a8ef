//! Defects that the cases of `inspect` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
