//! What happened in a case, in order: the operations, their results, and the moves of the clock.

use std::fmt::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The numbered history of one case.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Vec<Entry>>);

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    what: String,
    result: Option<String>,
}

/// The most characters of an operation or a result that are shown.
pub(crate) const SHOWN: usize = 300;

/// The most entries that are shown: the first few and the latest.
const FIRST: usize = 10;
const LATEST: usize = 50;

impl History {
    /// Notes something that has no result.
    pub(crate) fn note(&self, what: impl fmt::Display) {
        self.entries().push(Entry {
            what: shown(&what),
            result: Some(String::new()),
        });
    }

    /// Notes the start of an operation.
    pub(crate) fn begin(&self, what: impl fmt::Display) -> usize {
        let mut entries = self.entries();
        entries.push(Entry {
            what: shown(&what),
            result: None,
        });
        entries.len() - 1
    }

    /// Notes an operation's result.
    pub(crate) fn end(&self, at: usize, result: impl fmt::Display) {
        if let Some(entry) = self.entries().get_mut(at) {
            entry.result = Some(shown(&result));
        }
    }

    /// The last operation, if there was one.
    pub(crate) fn last_call(&self) -> Option<String> {
        let entries = self.entries();
        let is_call = |entry: &&Entry| entry.result.as_deref() != Some("");
        let last = entries.iter().rposition(|entry| is_call(&entry))?;
        Some(format!("{}. {}", last + 1, entries[last].what))
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries();
        let runs: Vec<&[Entry]> = entries.chunk_by(|a, b| a == b).collect();
        let skipped = FIRST..runs.len().saturating_sub(LATEST).max(FIRST);
        let mut number = 0;
        for (at, run) in runs.iter().enumerate() {
            number += run.len();
            if skipped.contains(&at) {
                if at == skipped.start {
                    let hidden: usize = runs[skipped.clone()].iter().map(|run| run.len()).sum();
                    writeln!(f, "   … {hidden} more …")?;
                }
                continue;
            }
            let entry = &run[0];
            write!(f, "  {number:>2}. {}", entry.what)?;
            match entry.result.as_deref() {
                None => f.write_str(" -> no answer yet")?,
                Some("") => {}
                Some(result) => write!(f, " -> {result}")?,
            }
            if run.len() > 1 {
                write!(f, " ({} times in a row)", run.len())?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn shown(what: &impl fmt::Display) -> String {
    /// Stops formatting once enough is there: values may be megabytes.
    struct Short(String);
    impl Write for Short {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.push_str(text);
            if self.0.len() > SHOWN {
                Err(fmt::Error)
            } else {
                Ok(())
            }
        }
    }
    let mut short = Short(String::new());
    if write!(short, "{what}").is_err() {
        short.0.truncate(short.0.floor_char_boundary(SHOWN));
        short.0.push('…');
    }
    short.0
}
