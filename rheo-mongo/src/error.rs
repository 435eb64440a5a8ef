//! The one table from what the driver says to portable errors.

use mongodb::error::{ErrorKind, NO_WRITES_PERFORMED, SYSTEM_OVERLOADED_ERROR, WriteFailure};
use rheo_core::{Cause, Error};

/// What a command was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It changes nothing.
    Read,
    /// It changes something.
    Write,
}

impl Stage {
    /// The error when nobody knows what became of the command.
    fn lost(self, why: &str) -> Error {
        match self {
            Self::Read => unavailable(why),
            Self::Write => Error::Ambiguous(Cause::new(why)),
        }
    }
}

/// Why a command gave no answer that could be used.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The driver or the server said so.
    Said(mongodb::error::Error),
    /// The time was up.
    TimedOut,
}

/// The code of a unique key that is there already.
const DUPLICATE_KEY: i32 = 11_000;

/// Refused before anything was done: this server is no primary, or not any more.
const NOT_PRIMARY: [i32; 4] = [10_058, 10_107, 13_435, 13_436];

impl Fault {
    /// The portable error. Never the driver's own text: it may quote data or a connection string.
    pub(crate) fn portable(&self, stage: Stage) -> Error {
        match self {
            Self::Said(error) => portable(error, stage),
            Self::TimedOut => stage.lost("no answer within the operation timeout"),
        }
    }

    /// Whether the write may have happened all the same.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self.portable(Stage::Write), Error::Ambiguous(_))
    }

    /// Whether a unique key was there already.
    pub(crate) fn is_duplicate(&self) -> bool {
        self.refusal()
            .is_some_and(|(_, code)| code == DUPLICATE_KEY)
    }

    /// Whether the server did nothing because it is no primary: there may soon be another.
    pub(crate) fn is_not_primary(&self) -> bool {
        let code = match self {
            Self::Said(error) => match &*error.kind {
                ErrorKind::Command(error) => Some(error.code),
                _ => self.refusal().map(|(_, code)| code),
            },
            Self::TimedOut => None,
        };
        code.is_some_and(|code| NOT_PRIMARY.contains(&code))
    }

    /// Which of the documents of an ordered insert was refused. Those before it were inserted, those
    /// behind it were not.
    pub(crate) fn refused_at(&self) -> Option<usize> {
        self.refusal().map(|(at, _)| at)
    }

    /// The document that was refused, and the code why.
    fn refusal(&self) -> Option<(usize, i32)> {
        let Self::Said(error) = self else {
            return None;
        };
        match &*error.kind {
            ErrorKind::Write(WriteFailure::WriteError(error)) => Some((0, error.code)),
            ErrorKind::InsertMany(error) if error.write_concern_error.is_none() => {
                match error.write_errors.as_deref() {
                    Some([error]) => Some((error.index, error.code)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

fn portable(error: &mongodb::error::Error, stage: Stage) -> Error {
    let nothing_was_written = error.contains_label(NO_WRITES_PERFORMED);
    match &*error.kind {
        ErrorKind::ServerSelection { .. } => unavailable("no primary within the selection timeout"),
        ErrorKind::DnsResolve { .. } => unavailable("the names of the hosts could not be resolved"),
        ErrorKind::Authentication { .. } => unavailable("the server refused the user or password"),
        ErrorKind::InvalidTlsConfig { .. } => unavailable("the settings of encryption are wrong"),
        ErrorKind::IncompatibleServer { .. } => {
            unavailable("the server's version is not supported")
        }
        ErrorKind::Shutdown => unavailable("this handle is closed"),
        _ if nothing_was_written => unavailable("the server did not get to the write"),
        // What the driver says when a connection breaks before it is made: nothing was sent on it.
        ErrorKind::Io(_) if error.contains_label(SYSTEM_OVERLOADED_ERROR) => {
            unavailable("no connection could be made")
        }
        ErrorKind::Io(error) => stage.lost(&format!("the connection broke: {}", error.kind())),
        ErrorKind::ConnectionPoolCleared { .. } => stage.lost("the connections were given up"),
        ErrorKind::Command(error) => by_code(error.code, stage),
        ErrorKind::Write(WriteFailure::WriteError(error)) => by_code(error.code, stage),
        ErrorKind::Write(WriteFailure::WriteConcernError(error)) => {
            not_confirmed(error.code, stage)
        }
        ErrorKind::InsertMany(error) => {
            match (&error.write_concern_error, error.write_errors.as_deref()) {
                (Some(error), _) => not_confirmed(error.code, stage),
                (None, Some([error, ..])) => by_code(error.code, stage),
                _ => stage.lost("the answer could not be understood"),
            }
        }
        ErrorKind::InvalidArgument { .. } | ErrorKind::BsonSerialization(_) => {
            failed("a value could not be encoded")
        }
        _ => stage.lost("the answer could not be understood"),
    }
}

/// The write is on the primary, but not known to be on a majority.
fn not_confirmed(code: i32, stage: Stage) -> Error {
    stage.lost(&format!("a majority did not confirm it, code {code}"))
}

fn by_code(code: i32, stage: Stage) -> Error {
    match code {
        13 => failed("the user lacks a privilege"),
        18 => unavailable("the server refused the user or password"),
        26 => failed("a collection is missing: ensure_indexes"),
        112 => failed("too many conflicts with other operations"),
        DUPLICATE_KEY => failed("a key is there already"),
        10_334 => failed("a document is too large"),
        14_031 => failed("the server's disk is full"),
        _ if NOT_PRIMARY.contains(&code) => unavailable("the server is not the primary"),
        // A router that found none.
        133 => unavailable("no primary within the selection timeout"),
        // Cut off somewhere in between.
        6 | 7 | 50 | 64 | 89 | 91 | 134 | 189 | 202 | 262 | 279 | 317 | 9_001 | 11_600..=11_602 => {
            stage.lost(&format!("the server ended the command, code {code}"))
        }
        _ => failed(&format!("the server refused the command, code {code}")),
    }
}

pub(crate) fn unavailable(why: &str) -> Error {
    Error::BackendUnavailable(Cause::new(why))
}

pub(crate) fn failed(why: &str) -> Error {
    Error::Failed(Cause::new(why))
}

pub(crate) fn ambiguous(why: &str) -> Error {
    Error::Ambiguous(Cause::new(why))
}

#[cfg(test)]
mod tests {
    use std::io;

    use rheo_core::ErrorKind::{Ambiguous, BackendUnavailable, Failed};

    use super::*;

    #[test]
    fn every_code_has_a_portable_error() {
        for (code, read, write) in [
            (13, Failed, Failed),
            (18, BackendUnavailable, BackendUnavailable),
            (26, Failed, Failed),
            (112, Failed, Failed),
            (11_000, Failed, Failed),
            (10_334, Failed, Failed),
            (14_031, Failed, Failed),
            (2, Failed, Failed),
            (10_058, BackendUnavailable, BackendUnavailable),
            (10_107, BackendUnavailable, BackendUnavailable),
            (13_435, BackendUnavailable, BackendUnavailable),
            (13_436, BackendUnavailable, BackendUnavailable),
            (50, BackendUnavailable, Ambiguous),
            (64, BackendUnavailable, Ambiguous),
            (91, BackendUnavailable, Ambiguous),
            (189, BackendUnavailable, Ambiguous),
            (133, BackendUnavailable, BackendUnavailable),
            (202, BackendUnavailable, Ambiguous),
            (11_600, BackendUnavailable, Ambiguous),
            (11_602, BackendUnavailable, Ambiguous),
        ] {
            assert_eq!(by_code(code, Stage::Read).kind(), read, "{code}");
            assert_eq!(by_code(code, Stage::Write).kind(), write, "{code}");
        }
    }

    #[test]
    fn what_may_have_happened_is_ambiguous() {
        let broken = mongodb::error::Error::from(io::Error::from(io::ErrorKind::ConnectionReset));
        for fault in [Fault::Said(broken), Fault::TimedOut] {
            assert!(fault.is_unknown());
            assert!(!fault.is_duplicate());
            assert_eq!(fault.portable(Stage::Read).kind(), BackendUnavailable);
            assert_eq!(fault.portable(Stage::Write).kind(), Ambiguous);
        }
        assert_eq!(not_confirmed(64, Stage::Write).kind(), Ambiguous);
    }

    #[test]
    fn no_driver_text_gets_out() {
        let error = io::Error::other("mongodb://ada:secret@db");
        let fault = Fault::Said(mongodb::error::Error::from(error));
        let text = fault.portable(Stage::Write).to_string();
        assert!(!text.contains("secret") && !text.contains("ada"), "{text}");
    }
}
