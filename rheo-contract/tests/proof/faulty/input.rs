//! Defects that the cases of `input` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
