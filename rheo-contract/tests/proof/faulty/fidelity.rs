//! Defects that the cases of `fidelity` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
