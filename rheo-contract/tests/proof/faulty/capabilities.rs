//! Defects that the cases of `capabilities` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
