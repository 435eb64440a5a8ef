//! Texts that must show nowhere: what a harness names as secret is looked for in errors, and masked in all
//! that the suite says.

use std::error::Error as _;

use rheo_core::Error;

/// Fewer characters than this may be anywhere by chance.
pub(crate) const LEAST: usize = 6;

/// What stands for a secret.
const MASK: &str = "***";

/// The secrets of a harness.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// The longest first, since one may be part of another; also as `Debug` writes them.
    texts: Vec<String>,
    too_short: usize,
}

impl Secrets {
    pub(crate) fn new(given: Vec<String>) -> Self {
        let all = given.len();
        let long_enough = |text: &String| text.chars().count() >= LEAST;
        let given: Vec<String> = given.into_iter().filter(long_enough).collect();
        let too_short = all - given.len();
        let escaped = given.iter().map(|text| text.escape_debug().to_string());
        let mut texts: Vec<String> = escaped.chain(given.iter().cloned()).collect();
        texts.sort_by_key(|text| (std::cmp::Reverse(text.len()), text.clone()));
        texts.dedup();
        Self { texts, too_short }
    }

    /// Whether there is none to look for.
    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// How many are too short to be looked for.
    pub(crate) fn too_short(&self) -> usize {
        self.too_short
    }

    /// The text with a mark in place of each secret.
    pub(crate) fn masked(&self, text: &str) -> String {
        let mask = |text: String, secret: &String| text.replace(secret, MASK);
        self.texts.iter().fold(text.to_owned(), mask)
    }

    /// Which text of an error shows a secret, if one does: its own, that of a source, or one for
    /// programmers.
    pub(crate) fn shown_by(&self, error: &Error) -> Option<&'static str> {
        if self.is_empty() {
            return None;
        }
        let mut sources = Vec::new();
        let mut source = error.source();
        while let Some(error) = source {
            sources.push(format!("{error} {error:?}"));
            source = error.source();
        }
        if self.is_in(&error.to_string()) {
            Some("its text")
        } else if self.is_in(&format!("{error:?}")) {
            Some("its text for programmers (Debug)")
        } else if sources.iter().any(|text| self.is_in(text)) {
            Some("the text of its source")
        } else {
            None
        }
    }

    fn is_in(&self, text: &str) -> bool {
        self.texts.iter().any(|secret| text.contains(secret))
    }
}

/// What is secret of a connection URL, for [`Harness::secrets`](crate::Harness::secrets): the URL itself,
/// and its password, as it stands there and decoded.
///
/// A password that is also the name of the user, the host or the database is left out, since an error may
/// name those.
///
/// ```
/// # use rheo_contract::secrets_of_url;
/// let url = "postgres://ada:p%40ssword@db.example/orders";
/// assert_eq!(secrets_of_url(url), [url, "ada:p%40ssword", "p%40ssword", "p@ssword"]);
/// assert_eq!(secrets_of_url("mongodb://localhost"), ["mongodb://localhost"]);
/// ```
pub fn secrets_of_url(url: &str) -> Vec<String> {
    let mut secrets = vec![url.to_owned()];
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let user_info = authority.rsplit_once('@').map(|(user_info, _)| user_info);
    let pair = user_info.and_then(|user_info| Some((user_info, user_info.split_once(':')?)));
    if let Some((user_info, (_, password))) = pair.filter(|(_, (_, password))| !password.is_empty())
    {
        secrets.push(user_info.to_owned());
        let elsewhere = url.replacen(&format!(":{password}@"), "@", 1);
        let mut passwords = vec![password.to_owned(), decoded(password)];
        passwords.dedup();
        secrets.extend(
            passwords
                .into_iter()
                .filter(|one| !elsewhere.contains(&**one)),
        );
    }
    secrets
}

/// A text without percent-encoding.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let code = more
            .get(..2)
            .and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        let (byte, after) = match (first, byte) {
            (b'%', Some(byte)) => (byte, &more[2..]),
            _ => (*first, more),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use rheo_core::Cause;

    use super::*;

    fn secrets() -> Secrets {
        let given = ["s3cret!", "db://ada:s3cret!@host", "abc", "two\\words"];
        Secrets::new(given.map(str::to_owned).to_vec())
    }

    #[test]
    fn each_is_masked_and_the_short_are_left() {
        let text = "db://ada:s3cret!@host or s3cret! or abc, two\\words or \"two\\\\words\"";
        assert_eq!(secrets().masked(text), "*** or *** or abc, *** or \"***\"");
        assert_eq!(secrets().too_short(), 1);
    }

    #[test]
    fn a_secret_in_an_error_is_found() {
        let shown = |text: &str| secrets().shown_by(&Error::Failed(Cause::new(text)));
        assert_eq!(shown("user ada, password s3cret!"), Some("its text"));
        assert_eq!(shown("user ada, password unknown"), None);
        let invalid = Error::invalid("limit", "s3cret!", "less");
        assert_eq!(secrets().shown_by(&invalid), Some("its text"));
    }

    #[test]
    fn a_password_that_names_something_else_too_is_no_secret() {
        let url = "postgres://postgres:postgres@localhost/test";
        assert_eq!(secrets_of_url(url), [url, "postgres:postgres"]);
        assert_eq!(secrets_of_url("a://b:@c"), ["a://b:@c"]);
    }
}
