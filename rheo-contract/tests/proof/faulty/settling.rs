//! Defects that the cases of `settling` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
