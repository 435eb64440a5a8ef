//! Defects that the cases of `batches` are there for.

use super::Faulty;

pub(super) const FAULTY: &[Faulty] = &[];
