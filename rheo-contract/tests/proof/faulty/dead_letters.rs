//! Defects that the cases of `dead_letters` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
