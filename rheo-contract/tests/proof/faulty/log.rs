//! Defects that the cases of `log` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
