//! Defects that the cases of `durability` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
