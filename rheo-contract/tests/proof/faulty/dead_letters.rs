//! Defects that the cases of `dead_letters` are there for.

mod cursors;
mod deaths;
mod letters;
mod pages;

use super::Faulty;

pub(super) const FAULTY: &[&[Faulty]] = &[
    deaths::FAULTY,
    letters::FAULTY,
    pages::FAULTY,
    cursors::FAULTY,
];
