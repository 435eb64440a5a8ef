//! How a handle is made: what to connect to, which schema, how long to wait.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use rheo_core::{Error, Result};
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// What [`PostgresBackend::connect`](crate::PostgresBackend::connect) needs to know.
///
/// ```
/// use std::time::Duration;
/// use rheo_postgres::Config;
///
/// let config = Config::new("postgres://rheo@localhost/shop")
///     .with_schema("orders")
///     .with_max_connections(4)
///     .with_operation_timeout(Duration::from_secs(2));
/// ```
#[derive(Clone)]
pub struct Config {
    url: String,
    pub(crate) max_connections: u32,
    pub(crate) settings: Settings,
}

/// What a handle on any pool needs to know.
///
/// ```
/// let settings = rheo_postgres::Settings::new().with_schema("orders");
/// ```
#[derive(Debug, Clone)]
pub struct Settings {
    pub(crate) schema: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) acquire_timeout: Duration,
    pub(crate) operation_timeout: Duration,
    pub(crate) coalescing: bool,
    pub(crate) notifications: bool,
}

impl Config {
    /// A database by its URL, as in `postgres://user:password@host:5432/database?sslmode=prefer`.
    ///
    /// What the URL leaves out comes from the usual variables (`PGHOST`, `PGUSER`, `PGPASSWORD` …)
    /// and the password file. It is read by `connect`, which refuses an `sslmode` that demands
    /// encryption without the cargo feature `rustls`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            max_connections: 10,
            settings: Settings::new(),
        }
    }

    /// How many connections the handle opens at most, besides one that listens for notifications
    /// while somebody waits for work; default 10.
    #[must_use]
    pub fn with_max_connections(mut self, connections: u32) -> Self {
        self.max_connections = connections;
        self
    }

    /// As [`Settings::with_schema`].
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.settings = self.settings.with_schema(schema);
        self
    }

    /// As [`Settings::with_connect_timeout`].
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings = self.settings.with_connect_timeout(timeout);
        self
    }

    /// As [`Settings::with_acquire_timeout`].
    #[must_use]
    pub fn with_acquire_timeout(mut self, timeout: Duration) -> Self {
        self.settings = self.settings.with_acquire_timeout(timeout);
        self
    }

    /// As [`Settings::with_operation_timeout`].
    #[must_use]
    pub fn with_operation_timeout(mut self, timeout: Duration) -> Self {
        self.settings = self.settings.with_operation_timeout(timeout);
        self
    }

    /// As [`Settings::with_coalescing`].
    #[must_use]
    pub fn with_coalescing(mut self, coalescing: bool) -> Self {
        self.settings = self.settings.with_coalescing(coalescing);
        self
    }

    /// As [`Settings::with_notifications`].
    #[must_use]
    pub fn with_notifications(mut self, notifications: bool) -> Self {
        self.settings = self.settings.with_notifications(notifications);
        self
    }

    /// Checks everything and reads the URL.
    pub(crate) fn connect_options(&self) -> Result<PgConnectOptions> {
        self.settings.check()?;
        if self.max_connections == 0 {
            return Err(Error::invalid("max_connections", 0, "1 or more"));
        }
        // Neither the URL nor a reason that may quote it: it may hold a password.
        let refused = || {
            Error::invalid(
                "url",
                "a text that is no such URL",
                "postgres://user:password@host:port/database",
            )
        };
        // The driver takes the URL of any product.
        let is_ours = |scheme| ["postgres", "postgresql"].contains(&scheme);
        if !self
            .url
            .split_once("://")
            .is_some_and(|(scheme, _)| is_ours(scheme))
        {
            return Err(refused());
        }
        let options = PgConnectOptions::from_str(&self.url).map_err(|_| refused())?;
        check_encryption(options.get_ssl_mode())?;
        Ok(options.disable_statement_logging())
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("url", &"***")
            .field("max_connections", &self.max_connections)
            .field("settings", &self.settings)
            .finish()
    }
}

impl Settings {
    /// The schema `rheo` and the default timeouts.
    pub fn new() -> Self {
        Self {
            schema: "rheo".to_owned(),
            connect_timeout: Duration::from_secs(5),
            acquire_timeout: Duration::from_secs(3),
            operation_timeout: Duration::from_secs(5),
            coalescing: true,
            notifications: true,
        }
    }

    /// The schema that holds everything: a lower-case letter or `_`, then letters, digits and `_`,
    /// at most 63; default `rheo`.
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// How long a new connection may take until it can be used, whoever waits for it; default 5 s.
    ///
    /// An operation waits for it no longer than [`with_acquire_timeout`](Self::with_acquire_timeout)
    /// says; then it is made without that operation, and the next one finds it.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long an operation waits for a connection, a new one or one that others use; default 3 s.
    #[must_use]
    pub fn with_acquire_timeout(mut self, timeout: Duration) -> Self {
        self.acquire_timeout = timeout;
        self
    }

    /// How long an operation may take, waiting for a connection included (ERR-4); default 5 s.
    #[must_use]
    pub fn with_operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = timeout;
        self
    }

    /// Whether single appends, and single acks, that wait at the same time on this handle go out
    /// together; default yes.
    #[must_use]
    pub fn with_coalescing(mut self, coalescing: bool) -> Self {
        self.coalescing = coalescing;
        self
    }

    /// Whether this handle tells the others by NOTIFY, at most every 20 ms for a stream, that there
    /// may be work; default yes. Without it, those who wait for work find it within a second.
    #[must_use]
    pub fn with_notifications(mut self, notifications: bool) -> Self {
        self.notifications = notifications;
        self
    }

    /// Checks everything.
    pub(crate) fn check(&self) -> Result<()> {
        check_schema(&self.schema)?;
        for (argument, timeout) in [
            ("connect_timeout", self.connect_timeout),
            ("acquire_timeout", self.acquire_timeout),
            ("operation_timeout", self.operation_timeout),
        ] {
            let allowed = Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);
            if !allowed.contains(&timeout) {
                return Err(Error::invalid(
                    argument,
                    format_args!("{timeout:?}"),
                    "1 ms to 24 h",
                ));
            }
        }
        Ok(())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

/// Without the feature, what demands encryption would only fail when it is first used.
fn check_encryption(mode: PgSslMode) -> Result<()> {
    let demands = match mode {
        PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer => return Ok(()),
        PgSslMode::Require => "require",
        PgSslMode::VerifyCa => "verify-ca",
        PgSslMode::VerifyFull => "verify-full",
    };
    if cfg!(feature = "rustls") {
        return Ok(());
    }
    Err(Error::invalid(
        "sslmode",
        demands,
        "disable, allow and prefer, unless rheo-postgres has the cargo feature `rustls`",
    ))
}

/// Only names that are the same quoted and unquoted, so that they are safe wherever SQL has them.
pub(crate) fn check_schema(schema: &str) -> Result<()> {
    let starts = |c: char| c.is_ascii_lowercase() || c == '_';
    let follows = |c: char| starts(c) || c.is_ascii_digit();
    if schema.len() <= 63 && schema.starts_with(starts) && schema.chars().all(follows) {
        return Ok(());
    }
    Err(Error::invalid(
        "schema",
        format_args!("{schema:?}"),
        "1 to 63 lower-case letters, digits and _, not a digit first",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_a_plain_name() {
        for good in ["rheo", "_", "a1_b", &"x".repeat(63)] {
            assert_eq!(check_schema(good), Ok(()), "{good}");
        }
        for bad in ["", "1a", "A", "a-b", "a\"b", "a'b", "ü", &"x".repeat(64)] {
            assert!(check_schema(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_text_shows_the_url() {
        let config = Config::new("postgres://ada:secret@[bad/db");
        assert!(!format!("{config:?}").contains("secret"));
        let error = config.connect_options().expect_err("a bad URL");
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn demanding_encryption_needs_the_feature() {
        let with = |mode: &str| Config::new(format!("postgres://ada:secret@db/db?sslmode={mode}"));
        for mode in ["disable", "allow", "prefer"] {
            assert!(with(mode).connect_options().is_ok(), "{mode}");
        }
        for mode in ["require", "verify-ca", "verify-full"] {
            let refusal = with(mode).connect_options().err().map(|e| e.to_string());
            let names_all = |text: &String| {
                text.contains(mode) && text.contains("feature `rustls`") && !text.contains("secret")
            };
            let has_feature = cfg!(feature = "rustls");
            assert_eq!(refusal.is_none(), has_feature, "{mode}");
            assert!(refusal.iter().all(names_all), "{refusal:?}");
        }
    }

    #[test]
    fn bad_values_are_refused() {
        let config = Config::new("postgres://localhost/db");
        assert!(config.connect_options().is_ok());
        for bad in [
            Config::new("mysql://localhost/db"),
            Config::new("localhost"),
            config.clone().with_max_connections(0),
            config.clone().with_schema("x y"),
            config.clone().with_operation_timeout(Duration::ZERO),
            config.clone().with_acquire_timeout(Duration::MAX),
            config.clone().with_connect_timeout(Duration::ZERO),
        ] {
            assert!(bad.connect_options().is_err(), "{bad:?}");
        }
    }
}
