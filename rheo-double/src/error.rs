//! The one table from the server's errors to portable ones.

use rheo_core::{Cause, Error, Existing, GroupName, StreamName};

use crate::server::ServerError;

/// What the server said of a group.
pub(crate) fn portable(error: ServerError, stream: &StreamName, group: &GroupName) -> Error {
    match error {
        ServerError::Stopped => stopped(error),
        ServerError::NoGroup => Error::GroupNotFound {
            stream: stream.clone(),
            group: group.clone(),
        },
        ServerError::BusyGroup => Error::AlreadyExists(Existing::Group(group.clone())),
    }
}

/// The script was not run.
pub(crate) fn stopped(error: ServerError) -> Error {
    Error::BackendUnavailable(Cause::new(error.to_string()))
}

/// The handle is closed.
pub(crate) fn closed() -> Error {
    Error::BackendUnavailable(Cause::new("this handle is closed"))
}

#[cfg(test)]
mod tests {
    use rheo_core::ErrorKind;

    use super::*;

    #[test]
    fn every_native_error_has_a_portable_one() {
        let stream = StreamName::new("s").expect("allowed");
        let group = GroupName::new("g").expect("allowed");
        for (native, kind) in [
            (ServerError::Stopped, ErrorKind::BackendUnavailable),
            (ServerError::NoGroup, ErrorKind::GroupNotFound),
            (ServerError::BusyGroup, ErrorKind::AlreadyExists),
        ] {
            assert_eq!(portable(native, &stream, &group).kind(), kind);
        }
    }
}
