//! Defects that the cases of `lifecycle` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
