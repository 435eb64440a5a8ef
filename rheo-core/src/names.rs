//! Names of streams, groups, consumers and event types, and event keys: checked once, when built.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::Error;

const MAX_NAME_LEN: usize = 255;
const MAX_KEY_LEN: usize = 1_024;

fn check_name(argument: &str, text: &str) -> Result<(), Error> {
    if text.is_empty() || text.len() > MAX_NAME_LEN || text.chars().any(char::is_control) {
        return Err(Error::invalid(
            argument,
            format_args!("{text:?} ({} bytes)", text.len()),
            "1 to 255 bytes of UTF-8 without control characters",
        ));
    }
    Ok(())
}

fn check_key(argument: &str, text: &str) -> Result<(), Error> {
    if text.is_empty() || text.len() > MAX_KEY_LEN || text.contains('\0') {
        return Err(Error::invalid(
            argument,
            format_args!("{text:?} ({} bytes)", text.len()),
            "1 to 1024 bytes of UTF-8 without U+0000",
        ));
    }
    Ok(())
}

macro_rules! text_newtype {
    ($(#[$doc:meta])* $type:ident, $argument:literal, $check:ident) => {
        $(#[$doc])*
        ///
        /// Cheap to clone. Compared byte for byte: case, normal form and punctuation all count.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks the text.
            ///
            /// # Errors
            ///
            /// [`Error::Invalid`] with the argument's name when it breaks STR-2.
            pub fn new(text: impl AsRef<str>) -> Result<Self, Error> {
                let text = text.as_ref();
                $check($argument, text)?;
                Ok(Self(text.into()))
            }

            /// The text as given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $type {
            type Error = Error;
            fn try_from(text: &str) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $type {
            type Error = Error;
            fn try_from(text: String) -> Result<Self, Error> {
                Self::new(text)
            }
        }

        impl From<&$type> for $type {
            fn from(name: &$type) -> Self {
                name.clone()
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

text_newtype! {
    /// The name of a stream: 1–255 bytes of UTF-8 without control characters (STR-2).
    StreamName, "stream", check_name
}
text_newtype! {
    /// The name of a consumer group on a stream: 1–255 bytes of UTF-8 without control characters
    /// (STR-2).
    GroupName, "group", check_name
}
text_newtype! {
    /// Who fetches: 1–255 bytes of UTF-8 without control characters (STR-2).
    ///
    /// It is information for people; the fencing token is the [`LeaseId`](crate::LeaseId).
    ConsumerId, "consumer", check_name
}
text_newtype! {
    /// What kind of event this is: 1–255 bytes of UTF-8 without control characters (STR-2).
    EventType, "event_type", check_name
}
text_newtype! {
    /// What routes an event to its partition (LOG-6): 1–1,024 bytes of UTF-8 without U+0000.
    EventKey, "key", check_key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_hell_are_names() {
        for name in [
            "a.b",
            "a:b",
            "A",
            "u\u{308}",
            "\u{fc}",
            "'; DROP TABLE",
            "%",
            "$where",
            "system.x",
            " ",
            "\u{200b}",
            "🦀",
        ] {
            assert_eq!(StreamName::new(name).expect("allowed").as_str(), name);
        }
        assert!(StreamName::new("x".repeat(255)).is_ok());
    }

    #[test]
    fn bad_names_say_what_is_allowed() {
        for name in [
            "",
            "a\nb",
            "\0",
            "\u{7f}",
            "\u{85}",
            &"x".repeat(256),
            &"ü".repeat(128),
        ] {
            let Err(Error::Invalid(invalid)) = GroupName::new(name) else {
                panic!("{name:?} was accepted");
            };
            assert_eq!(invalid.argument, "group");
            assert!(invalid.allowed.contains("255"));
        }
    }

    #[test]
    fn keys_may_be_longer_and_hold_control_characters() {
        assert!(EventKey::new("a\nb").is_ok());
        assert!(EventKey::new("k".repeat(1_024)).is_ok());
        assert!(EventKey::new("k".repeat(1_025)).is_err());
        assert!(EventKey::new("").is_err());
        assert!(EventKey::new("a\0").is_err());
    }

    #[test]
    fn deserializing_checks_too() {
        assert!(serde_json::from_str::<ConsumerId>("\"worker-1\"").is_ok());
        assert!(serde_json::from_str::<ConsumerId>("\"\"").is_err());
    }
}
