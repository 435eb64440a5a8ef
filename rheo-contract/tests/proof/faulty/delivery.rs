//! Defects that the cases of `delivery` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
