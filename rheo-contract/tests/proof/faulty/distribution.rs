//! Defects that the cases of `distribution` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
