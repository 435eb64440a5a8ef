//! Defects that the cases of `progress` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
