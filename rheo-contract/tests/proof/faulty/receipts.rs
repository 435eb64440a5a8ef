//! Defects that the cases of `receipts` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
