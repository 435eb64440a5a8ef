//! Defects that the cases of `wakeup` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
