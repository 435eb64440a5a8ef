//! What happened in a case, in order: the operations, their results, and the moves of the clock.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rheo_core::Error;

use crate::secrets::Secrets;

tokio::task_local! {
    /// Which strand this task is.
    static STRAND: usize;
}

/// Has what a future does on record as one strand of several that run at once.
pub(crate) async fn in_strand<T>(strand: usize, future: impl Future<Output = T>) -> T {
    STRAND.scope(strand, future).await
}

/// The numbered history of one case.
#[derive(Debug, Default)]
pub(crate) struct History {
    entries: Mutex<Vec<Entry>>,
    /// Of strands that ran at once, the one that matters.
    strand: OnceLock<usize>,
    secrets: Arc<Secrets>,
    leak: OnceLock<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    strand: Option<usize>,
    what: String,
    result: Option<String>,
}

impl Entry {
    fn new(what: String, result: Option<String>) -> Self {
        let strand = STRAND.try_with(|strand| *strand).ok();
        Self {
            strand,
            what,
            result,
        }
    }
}

/// The most characters of an operation or a result that are shown.
pub(crate) const SHOWN: usize = 300;

/// The most entries that are shown: the first few and the latest.
const FIRST: usize = 10;
const LATEST: usize = 50;

/// How much is formatted where secrets are to be masked before it is cut.
const LOOKED_AT: usize = 16 * 1024;

impl History {
    /// A history that masks these.
    pub(crate) fn with(secrets: Arc<Secrets>) -> Self {
        Self {
            secrets,
            ..Self::default()
        }
    }

    /// What it masks.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Notes something that has no result.
    pub(crate) fn note(&self, what: impl fmt::Display) {
        let what = self.shown(&what);
        let entry = Entry::new(what, Some(String::new()));
        self.entries().push(entry);
    }

    /// Notes something that concerns every strand, whichever did it: all go by one clock.
    pub(crate) fn note_for_all(&self, what: impl fmt::Display) {
        let entry = Entry {
            strand: None,
            what: self.shown(&what),
            result: Some(String::new()),
        };
        self.entries().push(entry);
    }

    /// Notes the start of an operation.
    pub(crate) fn begin(&self, what: impl fmt::Display) -> usize {
        let what = self.shown(&what);
        let mut entries = self.entries();
        entries.push(Entry::new(what, None));
        entries.len() - 1
    }

    /// Notes an operation's result.
    pub(crate) fn end(&self, at: usize, result: impl fmt::Display) {
        let result = self.shown(&result);
        if let Some(entry) = self.entries().get_mut(at) {
            entry.result = Some(result);
        }
    }

    /// Looks for secrets in an error that an operation gave.
    pub(crate) fn look_at(&self, at: usize, error: &Error) {
        if let Some(text) = self.secrets.shown_by(error) {
            let call = self.entries().get(at).map(|entry| entry.numbered(at));
            let call = call.unwrap_or_default();
            let leak = format!("Err({}), and {text} shows one: {call}", error.kind());
            let _ = self.leak.set(leak);
        }
    }

    /// The first error that showed a secret, without it.
    pub(crate) fn leak(&self) -> Option<&str> {
        self.leak.get().map(String::as_str)
    }

    /// Begins again with nothing.
    pub(crate) fn clear(&self) {
        self.entries().clear();
    }

    /// Of strands that ran at once, shows this one and what is in none, and no other.
    pub(crate) fn show_strand(&self, strand: usize) {
        let _ = self.strand.set(strand);
    }

    fn visible<'a>(&self, entries: &'a [Entry]) -> Vec<&'a Entry> {
        let shown = self.strand.get();
        let is_shown = |entry: &&Entry| match (entry.strand, shown) {
            (Some(strand), Some(shown)) => strand == *shown,
            _ => true,
        };
        entries.iter().filter(is_shown).collect()
    }

    /// The last operation, if there was one.
    pub(crate) fn last_call(&self) -> Option<String> {
        let entries = self.entries();
        let entries = self.visible(&entries);
        let is_call = |entry: &&Entry| entry.result.as_deref() != Some("");
        let last = entries.iter().rposition(is_call)?;
        Some(entries[last].numbered(last))
    }

    /// The operations that have no answer yet.
    pub(crate) fn open_calls(&self) -> Vec<String> {
        let entries = self.entries();
        let entries = self.visible(&entries);
        let numbered = entries.iter().enumerate();
        let open = numbered.filter(|(_, entry)| entry.result.is_none());
        open.map(|(at, entry)| entry.numbered(at)).collect()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self, what: &impl fmt::Display) -> String {
        if self.secrets.is_empty() {
            return cut(what, SHOWN);
        }
        cut(&self.secrets.masked(&cut(what, LOOKED_AT)), SHOWN)
    }
}

impl Entry {
    fn numbered(&self, at: usize) -> String {
        format!("{}. {}", at + 1, self.what)
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.entries();
        let entries = self.visible(&entries);
        let runs: Vec<&[&Entry]> = entries.chunk_by(|a, b| a == b).collect();
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
            let entry = run[0];
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

/// No more of a text than that many bytes, with a mark.
pub(crate) fn cut(what: &impl fmt::Display, most: usize) -> String {
    /// Stops formatting once enough is there: values may be megabytes.
    struct Short {
        text: String,
        most: usize,
    }
    impl Write for Short {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.text.push_str(text);
            if self.text.len() > self.most {
                Err(fmt::Error)
            } else {
                Ok(())
            }
        }
    }
    let mut short = Short {
        text: String::new(),
        most,
    };
    if write!(short, "{what}").is_err() {
        short.text.truncate(short.text.floor_char_boundary(most));
        short.text.push('…');
    }
    short.text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn of_another_strand_only_what_concerns_all_is_shown() {
        let history = History::default();
        in_strand(0, async { history.note("a") }).await;
        in_strand(1, async {
            history.note("b");
            history.note_for_all("the clock is put forward");
        })
        .await;
        in_strand(0, async { history.note("c") }).await;
        history.show_strand(0);

        let shown = "   1. a\n   2. the clock is put forward\n   3. c\n";
        assert_eq!(history.to_string(), shown);
    }
}
