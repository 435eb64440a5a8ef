//! The portable error vocabulary: one type for every backend, free of driver types.

use std::convert::Infallible;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{EventId, Gate, GroupName, Operation, StreamName};

/// What every operation of Rheo returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in words that mean the same on every backend.
///
/// # For callers
///
/// Match on the variant, or on the small [`kind`](Error::kind). [`Error::is_lost`] tells a lease
/// holder to stop working on the event; [`Error::is_retryable`] tells whether the very same call
/// may be made again (ERR-3).
///
/// # For implementers
///
/// Keep one table that maps every driver error to one of these. `Failed`, `Invalid` and
/// `BackendUnavailable` promise that nothing happened (ERR-1); when you cannot know, say
/// `Ambiguous` (ERR-2), but never for a read (ERR-3). No text may show a credential (ERR-11):
/// [`Cause::new`] takes those of URLs out, and knows no others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "error", content = "detail", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Error {
    /// The stream is missing. It is looked up before the group.
    #[error("stream {stream:?} does not exist: create it with create_stream")]
    StreamNotFound {
        /// The stream that was asked for.
        stream: StreamName,
    },
    /// The stream exists, the group does not.
    #[error("group {group:?} does not exist on stream {stream:?}: create it with create_group")]
    GroupNotFound {
        /// The stream, which exists.
        stream: StreamName,
        /// The group that was asked for.
        group: GroupName,
    },
    /// A stream, a group or an event id exists already; nothing was changed.
    #[error("{0} already exists: nothing was changed")]
    AlreadyExists(Existing),
    /// The lease is not the current claim of its event: it was settled, replaced, replayed, reset,
    /// or never given out. Nothing was changed.
    #[error("the lease is stale: its event was settled, claimed again, replayed or reset")]
    StaleLease,
    /// The lease id is the current claim, but the receipt differs. Nothing was changed.
    #[error("the receipt does not belong to the current claim of this event")]
    ReceiptMismatch,
    /// The event id given as `after` is not among the dead letters.
    #[error("no dead letter has the event id {after}: start again without `after`")]
    CursorNotFound {
        /// The id that was given.
        after: EventId,
    },
    /// A drain of the same consumer is pending.
    #[error("a drain is already pending: wait for it")]
    AlreadyDraining,
    /// An optional operation, or an argument that needs an optional guarantee, which this backend
    /// does not declare in its [`Capabilities`](crate::Capabilities).
    #[error("{operation} is not supported here: {missing} is not declared")]
    Unsupported {
        /// The operation that was called.
        operation: Operation,
        /// The undeclared guarantee or operation it needs, as named in the capabilities.
        missing: std::borrow::Cow<'static, str>,
    },
    /// The store cannot be reached, or the handle is closed; nothing was done.
    #[error("the backend is unavailable: {0}")]
    BackendUnavailable(Cause),
    /// `reset_group` was called without confirmation; nothing was done.
    #[error("reset_group drops delivery state: pass Confirm::Yes to do it")]
    ConfirmRequired,
    /// Bad input; nothing was written.
    #[error(transparent)]
    Invalid(Invalid),
    /// The write may have happened: the answer was lost. Look before doing it again.
    #[error("the outcome is unknown, it may have happened: {0}")]
    Ambiguous(Cause),
    /// The operation definitely did not happen, for a reason outside this vocabulary.
    #[error("it did not happen: {0}")]
    Failed(Cause),
}

impl Error {
    /// Shorthand for [`Error::Invalid`].
    pub fn invalid(
        argument: impl Into<String>,
        given: impl fmt::Display,
        allowed: impl Into<String>,
    ) -> Self {
        Self::Invalid(Invalid::new(argument, given, allowed))
    }

    /// What an operation gives that needs an undeclared guarantee or optional operation (CAP-6).
    ///
    /// ```
    /// use rheo_core::{Error, Guarantee, Operation};
    /// let error = Error::unsupported(Operation::Replay, Guarantee::Replay);
    /// assert_eq!(error.to_string(), "replay is not supported here: replay is not declared");
    /// ```
    pub fn unsupported(operation: Operation, missing: impl Into<Gate>) -> Self {
        Self::Unsupported {
            operation,
            missing: missing.into().as_str().into(),
        }
    }

    /// The variant without its fields.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::StreamNotFound { .. } => ErrorKind::StreamNotFound,
            Self::GroupNotFound { .. } => ErrorKind::GroupNotFound,
            Self::AlreadyExists(_) => ErrorKind::AlreadyExists,
            Self::StaleLease => ErrorKind::StaleLease,
            Self::ReceiptMismatch => ErrorKind::ReceiptMismatch,
            Self::CursorNotFound { .. } => ErrorKind::CursorNotFound,
            Self::AlreadyDraining => ErrorKind::AlreadyDraining,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::BackendUnavailable(_) => ErrorKind::BackendUnavailable,
            Self::ConfirmRequired => ErrorKind::ConfirmRequired,
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Ambiguous(_) => ErrorKind::Ambiguous,
            Self::Failed(_) => ErrorKind::Failed,
        }
    }

    /// Whether the holder no longer owns the lease and must stop working on its event (ERR-3).
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::StaleLease | Self::ReceiptMismatch)
    }

    /// Whether the very same call may be made again and might then succeed (ERR-3).
    ///
    /// True where nothing happened and the reason may pass: `BackendUnavailable`, `Failed` and
    /// `AlreadyDraining`. `Ambiguous` is not: first find out what happened. An append to one
    /// partition whose events carry ids is the exception that makes itself safe, since repeating it
    /// gives `AlreadyExists` if it did happen (LOG-7).
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::BackendUnavailable(_) | Self::Failed(_) | Self::AlreadyDraining
        )
    }
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

macro_rules! kinds {
    ($($kind:ident,)+) => {
        /// The variants of [`Error`] without their fields, to compare and to count by.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "each names the variant of Error that documents it")]
        pub enum ErrorKind { $($kind,)+ }

        impl ErrorKind {
            /// All of them, in the order of [`Error`].
            pub const ALL: &[Self] = &[$(Self::$kind,)+];
        }
    };
}

kinds! {
    StreamNotFound,
    GroupNotFound,
    AlreadyExists,
    StaleLease,
    ReceiptMismatch,
    CursorNotFound,
    AlreadyDraining,
    Unsupported,
    BackendUnavailable,
    ConfirmRequired,
    Invalid,
    Ambiguous,
    Failed,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What [`Error::AlreadyExists`] found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Existing {
    /// A stream of that name.
    Stream(StreamName),
    /// A group of that name on the stream.
    Group(GroupName),
    /// An event with that id in the stream, or twice in one batch.
    Event(EventId),
}

impl fmt::Display for Existing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(name) => write!(f, "stream {:?}", name.as_str()),
            Self::Group(name) => write!(f, "group {:?}", name.as_str()),
            Self::Event(id) => write!(f, "event {id}"),
        }
    }
}

/// Bad input: which argument, what was given, what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("invalid {argument}: got {given}, allowed is {allowed}; nothing was written")]
pub struct Invalid {
    /// The argument's name, as in the call or the options' field.
    pub argument: String,
    /// What was given, shortened to at most 200 bytes.
    pub given: String,
    /// What is allowed, in words.
    pub allowed: String,
}

impl Invalid {
    const MAX_GIVEN: usize = 200;

    /// Describes bad input; `given` is shortened, since input may be huge.
    pub fn new(
        argument: impl Into<String>,
        given: impl fmt::Display,
        allowed: impl Into<String>,
    ) -> Self {
        Self {
            argument: argument.into(),
            given: shorten(given.to_string(), Self::MAX_GIVEN),
            allowed: allowed.into(),
        }
    }
}

/// Why an operation failed, as a portable text without credentials.
///
/// At most 500 bytes. Whatever stands between `://` and `@` is replaced by `***`, so that a
/// connection string that slips into a driver's message does not get out.
///
/// ```
/// use rheo_core::Cause;
/// let cause = Cause::new("connecting to postgres://ada:secret@db/rheo timed out");
/// assert_eq!(cause.as_str(), "connecting to postgres://***@db/rheo timed out");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cause(String);

impl Cause {
    const MAX_LEN: usize = 500;

    /// Takes a text, removes credentials from URLs in it and shortens it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(shorten(without_credentials(&text.into()), Self::MAX_LEN))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn without_credentials(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://").map(|at| at + 3) {
        let (before, url) = rest.split_at(start);
        clean.push_str(before);
        let authority = url
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\''))
            .map_or(url, |end| &url[..end]);
        // A raw password may itself contain '/', '?' or '#', so the last '@' of the word counts.
        let word = url
            .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\''))
            .map_or(url, |end| &url[..end]);
        let credentials = authority.rfind('@').or_else(|| word.rfind('@'));
        rest = match credentials {
            Some(at) => {
                clean.push_str("***");
                &url[at..]
            }
            None => url,
        };
    }
    clean.push_str(rest);
    clean
}

/// Cuts a text at a character boundary so that it has at most `max` bytes, with a mark.
fn shorten(mut text: String, max: usize) -> String {
    const MARK: &str = "…";
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max - MARK.len()));
        text.push_str(MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lost_fencing_token_is_lost() {
        assert!(Error::StaleLease.is_lost());
        assert!(Error::ReceiptMismatch.is_lost());
        assert!(!Error::ConfirmRequired.is_lost());
        assert!(!Error::Ambiguous(Cause::new("timeout")).is_lost());
    }

    #[test]
    fn an_ambiguous_call_may_not_simply_be_repeated() {
        assert!(!Error::Ambiguous(Cause::new("timeout")).is_retryable());
        assert!(Error::Failed(Cause::new("deadlock")).is_retryable());
        assert!(Error::BackendUnavailable(Cause::new("refused")).is_retryable());
        assert!(!Error::StaleLease.is_retryable());
    }

    #[test]
    fn a_cause_holds_no_credentials() {
        for (text, clean) in [
            ("at mongodb://u:p@h:1/db now", "at mongodb://***@h:1/db now"),
            ("a://x:y@h b://z@i", "a://***@h b://***@i"),
            ("a://u:p/w@h/db", "a://***@h/db"),
            ("a://u:p@w@h/db", "a://***@h/db"),
            ("see https://host/path", "see https://host/path"),
            ("no url: a@b", "no url: a@b"),
        ] {
            assert_eq!(Cause::new(text).as_str(), clean);
        }
    }

    #[test]
    fn given_is_shortened_at_a_character_boundary() {
        let invalid = Invalid::new("payload", "ü".repeat(1_000), "less");
        assert!(invalid.given.len() <= 200);
        assert!(invalid.given.ends_with('…'));
    }

    #[test]
    fn errors_survive_serialization() {
        let error = Error::invalid("limit", 0, "1 or more");
        let text = serde_json::to_string(&error).expect("serializes");
        assert_eq!(serde_json::from_str::<Error>(&text).expect("reads"), error);
    }
}
