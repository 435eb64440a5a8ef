//! Defects that the cases of `dead_letters` are there for.

mod cursors;
mod deaths;
mod pages;

use super::Faulty;

pub(super) const FAULTY: &[&[Faulty]] = &[deaths::FAULTY, pages::FAULTY, cursors::FAULTY];
