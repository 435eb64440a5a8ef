//! The failures that a run of tests told, picked from what it printed.

use std::fmt;

/// How many of them are kept.
const MOST: usize = 20;
/// How much of each, with its name.
const LINES: usize = 16;

/// What was told of the tests that failed.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    told: Vec<Vec<String>>,
    /// Whether lines belong to the latest of them.
    is_open: bool,
    left_out: usize,
}

impl Failures {
    /// Takes one line that was printed.
    pub(crate) fn line(&mut self, line: &str) {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            self.is_open = self.told.len() < MOST;
            match self.is_open {
                true => self.told.push(vec![line.to_owned()]),
                false => self.left_out += 1,
            }
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.is_open = false;
        } else if self.is_open
            && !line.is_empty()
            && let Some(told) = self.told.last_mut()
            && told.len() < LINES
        {
            told.push(line.to_owned());
        }
    }
}

impl fmt::Display for Failures {
    /// Each on lines of its own, after a line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.told.iter().flatten() {
            write!(f, "\n{line}")?;
        }
        if self.left_out > 0 {
            write!(f, "\nand {} more", self.left_out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> String {
        let mut failures = Failures::default();
        lines.iter().for_each(|line| failures.line(line));
        failures.to_string()
    }

    #[test]
    fn each_failure_is_kept_with_its_reason() {
        let told = of(&[
            "test one ... FAILED",
            "",
            "failures:",
            "",
            "---- one ----",
            "expected: 1",
            "",
            "---- two stdout ----",
            "seen: 2",
            "",
            "failures:",
            "    one",
            "    two",
            "test result: FAILED.",
        ]);
        assert_eq!(
            told,
            "\n---- one ----\nexpected: 1\n---- two stdout ----\nseen: 2"
        );
    }

    #[test]
    fn long_ones_and_many_are_cut() {
        let long = of(&["---- long ----", "a line"].repeat(MOST + 2));
        assert!(long.ends_with("and 2 more"), "{long}");
        let mut lines = vec!["---- long ----"];
        lines.extend(["a line"; 2 * LINES]);
        assert_eq!(of(&lines).lines().count(), LINES + 1);
    }

    #[test]
    fn nothing_failed() {
        assert_eq!(of(&["test one ... ok", "test result: ok."]), "");
    }
}
