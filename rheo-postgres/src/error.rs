//! The one table from what the driver says to portable errors.

use std::io;

use rheo_core::{Cause, Error, EventId, Existing, GroupName, StreamName};
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// What an operation was about, for errors that name it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Subject<'a> {
    pub(crate) stream: Option<&'a StreamName>,
    pub(crate) group: Option<&'a GroupName>,
    /// Ids that were given: of events to append, or the `after` of a page.
    pub(crate) events: &'a [EventId],
}

impl<'a> Subject<'a> {
    pub(crate) fn of_stream(stream: &'a StreamName) -> Self {
        Self {
            stream: Some(stream),
            ..Self::default()
        }
    }

    pub(crate) fn of_group(stream: &'a StreamName, group: &'a GroupName) -> Self {
        Self {
            group: Some(group),
            ..Self::of_stream(stream)
        }
    }
}

/// How far a statement had got when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It was surely not sent.
    NotSent,
    /// It may have been sent, and changes nothing.
    SentRead,
    /// It may have been sent, and changes something.
    SentWrite,
}

impl Stage {
    /// The error when nobody knows what became of the statement.
    pub(crate) fn lost(self, why: &str) -> Error {
        match self {
            Self::NotSent | Self::SentRead => Error::BackendUnavailable(Cause::new(why)),
            Self::SentWrite => Error::Ambiguous(Cause::new(why)),
        }
    }
}

/// The portable error. Never the driver's own text: it may quote data or a connection string.
pub(crate) fn portable(error: &sqlx::Error, stage: Stage, subject: &Subject<'_>) -> Error {
    match error {
        sqlx::Error::Database(error) => match error.try_downcast_ref::<PgDatabaseError>() {
            Some(error) => {
                let detail = error.detail().unwrap_or_default();
                by_sqlstate(error.code(), is_final(error), detail, stage, subject)
            }
            None => stage.lost("the server gave an error of an unknown kind"),
        },
        sqlx::Error::PoolTimedOut => unavailable("no connection within the acquire timeout"),
        sqlx::Error::PoolClosed => unavailable("the pool is closed"),
        sqlx::Error::Io(error) if stage == Stage::NotSent => unavailable(&format!(
            "no connection, or it broke: {}",
            what_broke(error)
        )),
        sqlx::Error::Io(error) => {
            stage.lost(&format!("the connection broke: {}", what_broke(error)))
        }
        sqlx::Error::Tls(_) => stage.lost(NOT_ENCRYPTED),
        sqlx::Error::Protocol(_) => stage.lost("the server broke the protocol"),
        sqlx::Error::WorkerCrashed => stage.lost("the driver's worker ended"),
        sqlx::Error::Configuration(_) => unavailable("the connection's settings are wrong"),
        sqlx::Error::Encode(_) => failed("a value could not be encoded"),
        _ if stage == Stage::SentWrite => stage.lost("the answer could not be understood"),
        _ => failed("the answer could not be understood"),
    }
}

/// Only pools of the application's own get so far without the feature.
const NOT_ENCRYPTED: &str = match cfg!(feature = "rustls") {
    true => "no encrypted connection could be made",
    false => {
        "no encrypted connection could be made: is the cargo feature `rustls` of rheo-postgres missing?"
    }
};

/// What the system says, without its own text.
fn what_broke(error: &io::Error) -> String {
    match error.raw_os_error() {
        // The resolver's errors have neither a number nor a kind.
        None if error.kind().to_string() == "uncategorized error" => {
            "the system gives no reason, as for a host whose name it does not know".to_owned()
        }
        _ => error.kind().to_string(),
    }
}

/// Whether the statement was undone by the server and may simply be sent again.
pub(crate) fn is_worth_repeating(error: &sqlx::Error) -> bool {
    const DEADLOCK_DETECTED: &str = "40P01";
    const SERIALIZATION_FAILURE: &str = "40001";
    !ends_session(error)
        && error.as_database_error().is_some_and(|error| {
            let code = error.code();
            matches!(
                code.as_deref(),
                Some(DEADLOCK_DETECTED | SERIALIZATION_FAILURE)
            )
        })
}

/// Whether nothing more can be sent on the connection.
pub(crate) fn ends_session(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    let error = error.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    error.is_none_or(is_final)
}

fn is_final(error: &PgDatabaseError) -> bool {
    matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic)
}

fn by_sqlstate(
    code: &str,
    is_final: bool,
    detail: &str,
    stage: Stage,
    subject: &Subject<'_>,
) -> Error {
    if code.starts_with("RH") {
        return own(code, detail, subject);
    }
    match code {
        // Whatever ended the session, a commit may have been under way.
        _ if is_final && stage == Stage::SentWrite => {
            stage.lost(&format!("the server ended the session, SQLSTATE {code}"))
        }
        // A unique key: only event ids can collide, the functions see to the rest.
        "23505" => event_exists(detail, subject),
        "3F000" | "42P01" | "42883" => failed("the schema is missing or older: ensure_indexes"),
        "42501" => failed("the role lacks a privilege"),
        "25006" => unavailable("the server is read-only: a standby?"),
        "40001" | "40P01" => failed("too many conflicts with other transactions"),
        "55P03" => failed("a lock was not free in time"),
        "57014" => failed("the server ended the statement: it took too long, or was cancelled"),
        "53100" => failed("the server's disk is full"),
        "53200" => failed("the server is out of memory"),
        "53300" | "53400" => unavailable("the server has no connection left"),
        "57P03" => unavailable("the server is starting or stopping"),
        "3D000" => unavailable("there is no such database"),
        _ if code.starts_with("28") => unavailable("the server refused the role or its password"),
        _ if is_final || code.starts_with("08") || code.starts_with("57P") => {
            stage.lost(&format!("the server ended the session, SQLSTATE {code}"))
        }
        _ => failed(&format!("SQLSTATE {code}")),
    }
}

/// The SQLSTATEs that the functions of the schema raise.
fn own(code: &str, detail: &str, subject: &Subject<'_>) -> Error {
    let words: Vec<&str> = detail.split(' ').collect();
    match (code, subject.stream, subject.group, &words[..]) {
        ("RH001", Some(stream), _, _) => Error::StreamNotFound {
            stream: stream.clone(),
        },
        ("RH002", Some(stream), Some(group), _) => Error::GroupNotFound {
            stream: stream.clone(),
            group: group.clone(),
        },
        ("RH003", Some(stream), _, _) => Error::AlreadyExists(Existing::Stream(stream.clone())),
        ("RH004", _, Some(group), _) => Error::AlreadyExists(Existing::Group(group.clone())),
        ("RH006", _, _, [argument, partition, "0"]) => Error::invalid(
            *argument,
            format_args!("partition {partition}"),
            "partitions that are selected",
        ),
        ("RH006", _, _, [argument, partition, count]) => {
            let last = count.parse::<u32>().unwrap_or(1) - 1;
            Error::invalid(*argument, partition, format!("0 to {last}"))
        }
        ("RH007", _, _, [partition, sequence, high_watermark]) => Error::invalid(
            "start",
            format_args!("after sequence {sequence} in partition {partition}"),
            format!("at most the high watermark, {high_watermark}"),
        ),
        ("RH008", _, _, [id]) => {
            Error::invalid("events", id, "ids of events that are in the stream")
        }
        ("RH009", ..) => match subject.events {
            [after, ..] => Error::CursorNotFound { after: *after },
            [] => failed("SQLSTATE RH009"),
        },
        ("RH010", ..) => failed("the session's isolation is not read committed"),
        ("RH011", ..) => failed("the database's encoding is not UTF8"),
        _ => failed(&format!("SQLSTATE {code}")),
    }
}

/// The id stands in the detail, as in "Key (…)=(7, 0192…) already exists.", in any language; a role
/// without the right to read gets no detail.
fn event_exists(detail: &str, subject: &Subject<'_>) -> Error {
    let named = subject
        .events
        .iter()
        .find(|id| detail.contains(&id.to_string()));
    match named.or(subject.events.first()) {
        Some(id) => Error::AlreadyExists(Existing::Event(*id)),
        None => failed("SQLSTATE 23505"),
    }
}

pub(crate) fn unavailable(why: &str) -> Error {
    Error::BackendUnavailable(Cause::new(why))
}

pub(crate) fn failed(why: &str) -> Error {
    Error::Failed(Cause::new(why))
}

#[cfg(test)]
mod tests {
    use rheo_core::ErrorKind::{
        AlreadyExists, Ambiguous, BackendUnavailable, CursorNotFound, Failed, GroupNotFound,
        Invalid, StreamNotFound,
    };

    use super::*;

    const STAGES: [Stage; 3] = [Stage::NotSent, Stage::SentRead, Stage::SentWrite];

    #[test]
    fn every_sqlstate_has_a_portable_error() {
        let stream = StreamName::new("s").expect("allowed");
        let group = GroupName::new("g").expect("allowed");
        let id: EventId = "01890a5d-ac96-774b-bcce-b302099a8057"
            .parse()
            .expect("an id");
        let subject = Subject {
            stream: Some(&stream),
            group: Some(&group),
            events: &[id],
        };
        for (code, detail, kind) in [
            ("RH001", "", StreamNotFound),
            ("RH002", "", GroupNotFound),
            ("RH003", "", AlreadyExists),
            ("RH004", "", AlreadyExists),
            ("RH006", "partitions 4 4", Invalid),
            ("RH006", "start 1 0", Invalid),
            ("RH007", "0 9 3", Invalid),
            ("RH008", "01890a5d-ac96-774b-bcce-b302099a8057", Invalid),
            ("RH009", "", CursorNotFound),
            ("RH010", "", Failed),
            ("RH011", "", Failed),
            ("23505", "Key (a, b)=(1, x) already exists.", AlreadyExists),
            ("3F000", "", Failed),
            ("42P01", "", Failed),
            ("42883", "", Failed),
            ("42501", "", Failed),
            ("40P01", "", Failed),
            ("55P03", "", Failed),
            ("57014", "", Failed),
            ("53100", "", Failed),
            ("53200", "", Failed),
            ("22021", "", Failed),
            ("25006", "", BackendUnavailable),
            ("53300", "", BackendUnavailable),
            ("57P03", "", BackendUnavailable),
            ("3D000", "", BackendUnavailable),
            ("28P01", "", BackendUnavailable),
        ] {
            for stage in STAGES {
                let error = by_sqlstate(code, false, detail, stage, &subject);
                assert_eq!(error.kind(), kind, "{code} {stage:?}");
            }
        }
    }

    #[test]
    fn what_may_have_happened_is_ambiguous() {
        let nothing = Subject::default();
        for (code, is_final) in [
            ("57P01", true),
            ("57P02", true),
            ("08006", false),
            ("XX000", true),
        ] {
            let kinds = STAGES.map(|stage| by_sqlstate(code, is_final, "", stage, &nothing).kind());
            assert_eq!(
                kinds,
                [BackendUnavailable, BackendUnavailable, Ambiguous],
                "{code}"
            );
        }
        for error in [
            sqlx::Error::Io(io::ErrorKind::ConnectionReset.into()),
            sqlx::Error::Protocol("x".into()),
            sqlx::Error::WorkerCrashed,
        ] {
            let kinds = STAGES.map(|stage| portable(&error, stage, &nothing).kind());
            assert_eq!(
                kinds,
                [BackendUnavailable, BackendUnavailable, Ambiguous],
                "{error}"
            );
        }
    }

    /// A PANIC of a full disk, say, may come when a commit was just written there.
    #[test]
    fn whatever_ends_the_session_of_a_write_is_ambiguous() {
        for code in ["25006", "40001", "53100", "53200", "57P03", "XX000"] {
            let error = by_sqlstate(code, true, "", Stage::SentWrite, &Subject::default());
            assert_eq!(error.kind(), Ambiguous, "{code}");
        }
    }

    #[test]
    fn no_connection_means_that_nothing_was_sent() {
        for error in [sqlx::Error::PoolTimedOut, sqlx::Error::PoolClosed] {
            for stage in STAGES {
                let error = portable(&error, stage, &Subject::default());
                assert_eq!(error.kind(), BackendUnavailable);
            }
        }
    }

    #[test]
    fn the_existing_event_is_named() {
        let ids: Vec<EventId> = [
            "01890a5d-ac96-774b-bcce-b302099a8057",
            "01890a5d-ac96-774b-bcce-b302099a8058",
        ]
        .iter()
        .map(|id| id.parse().expect("an id"))
        .collect();
        let subject = Subject {
            events: &ids,
            ..Subject::default()
        };
        let error = event_exists(&format!("Schlüssel (x, y)=(7, {})", ids[1]), &subject);
        assert_eq!(error, Error::AlreadyExists(Existing::Event(ids[1])));
        let error = event_exists("", &subject);
        assert_eq!(error, Error::AlreadyExists(Existing::Event(ids[0])));
    }

    #[test]
    fn no_driver_text_gets_out() {
        let error = sqlx::Error::Io(io::Error::other("postgres://ada:secret@db"));
        let text = portable(&error, Stage::SentWrite, &Subject::default()).to_string();
        assert!(!text.contains("secret") && !text.contains("ada"), "{text}");
    }
}
