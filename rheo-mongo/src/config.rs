//! How a handle is made: what to connect to, which database, how long to wait.

use std::fmt;
use std::time::Duration;

use mongodb::options::{
    Acknowledgment, ClientOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};
use rheo_core::{Error, Result};

use crate::error::unavailable;

/// What [`MongoBackend::connect`](crate::MongoBackend::connect) needs to know.
///
/// ```
/// use std::time::Duration;
/// use rheo_mongo::Config;
///
/// let config = Config::new("mongodb://localhost/?replicaSet=rs0")
///     .with_database("shop")
///     .with_max_connections(4)
///     .with_operation_timeout(Duration::from_secs(2));
/// ```
#[derive(Clone)]
pub struct Config {
    url: String,
    pub(crate) database: String,
    pub(crate) max_connections: u32,
    pub(crate) selection_timeout: Duration,
    pub(crate) operation_timeout: Duration,
    poll_interval: Option<Duration>,
    pub(crate) change_streams: bool,
}

impl Config {
    /// A deployment by its URL, as in `mongodb://user:password@host:27017/?replicaSet=rs0`.
    ///
    /// Hosts, credentials, encryption and the like are taken from it. What a rule depends on is not
    /// (DUR-1): write concern, read concern, read preference, retries and timeouts are set by the
    /// adapter whatever the URL says. With `directConnection=true` the driver reads from whatever member
    /// the URL names, so it must be the primary: on another one, what was just appended may be missed.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            database: "rheo".to_owned(),
            max_connections: 10,
            selection_timeout: Duration::from_secs(3),
            operation_timeout: Duration::from_secs(5),
            poll_interval: None,
            change_streams: false,
        }
    }

    /// The database that holds everything: 1 to 63 letters, digits, `_` and `-`; default `rheo`.
    #[must_use]
    pub fn with_database(mut self, database: impl Into<String>) -> Self {
        self.database = database.into();
        self
    }

    /// How many connections the handle opens to a server at most, besides those that watch it;
    /// default 10.
    #[must_use]
    pub fn with_max_connections(mut self, connections: u32) -> Self {
        self.max_connections = connections;
        self
    }

    /// How long to wait for a primary, and for a connection to it; default 3 s.
    #[must_use]
    pub fn with_selection_timeout(mut self, timeout: Duration) -> Self {
        self.selection_timeout = timeout;
        self
    }

    /// How long an operation may take, waiting for a primary included (ERR-4); default 5 s.
    #[must_use]
    pub fn with_operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = timeout;
        self
    }

    /// How often `wait_for_work` looks; default 100 ms, and 1 s with change streams. What is appended
    /// on the same handle is noticed at once.
    #[must_use]
    pub fn with_poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = Some(interval);
        self
    }

    /// Whether a change stream tells those who wait for work what other handles append; default no.
    ///
    /// The deployment has to be a replica set or a sharded cluster; elsewhere nothing is told, and
    /// what others append is found by looking. Each handle on which somebody waits has one connection
    /// more for it. Declares `change_feed`.
    #[must_use]
    pub fn with_change_streams(mut self, change_streams: bool) -> Self {
        self.change_streams = change_streams;
        self
    }

    pub(crate) fn poll_interval(&self) -> Duration {
        let by_default = match self.change_streams {
            true => Duration::from_secs(1),
            false => Duration::from_millis(100),
        };
        self.poll_interval.unwrap_or(by_default)
    }

    /// Checks everything and reads the URL.
    pub(crate) async fn client_options(&self) -> Result<ClientOptions> {
        self.check()?;
        let parsing = ClientOptions::parse(&self.url);
        let parsed = tokio::time::timeout(self.operation_timeout, async { parsing.await }).await;
        let mut options = match parsed {
            Ok(Ok(options)) => options,
            Ok(Err(_)) if is_srv(&self.url) && !cfg!(feature = "srv") => {
                return Err(Error::invalid(
                    "url",
                    "mongodb+srv",
                    "mongodb, unless rheo-mongo has the cargo feature `srv`",
                ));
            }
            // Neither the URL nor the reason, which may quote it: it may hold a password.
            Ok(Err(error)) if is_about_names(&error) => {
                return Err(unavailable("the names of the hosts could not be resolved"));
            }
            Ok(Err(_)) => {
                return Err(Error::invalid(
                    "url",
                    "a text that is no such URL",
                    "mongodb://user:password@host:port/?replicaSet=name",
                ));
            }
            Err(_) => {
                return Err(unavailable(
                    "the names of the hosts were not resolved in time",
                ));
            }
        };
        options.app_name.get_or_insert_with(|| "rheo".to_owned());
        options.max_pool_size = Some(self.max_connections);
        options.connect_timeout = Some(self.selection_timeout);
        options.server_selection_timeout = Some(self.selection_timeout);
        options.retry_reads = Some(true);
        // What became of the first attempt would not be told: the adapter repeats writes itself.
        options.retry_writes = Some(false);
        options.write_concern = Some(write_concern());
        options.read_concern = Some(read_concern());
        options.selection_criteria = Some(primary());
        Ok(options)
    }

    fn check(&self) -> Result<()> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let name = &self.database;
        if name.is_empty() || name.len() > 63 || !name.chars().all(is_allowed) {
            return Err(Error::invalid(
                "database",
                format_args!("{name:?}"),
                "1 to 63 letters, digits, _ and -",
            ));
        }
        if self.max_connections == 0 {
            return Err(Error::invalid("max_connections", 0, "1 or more"));
        }
        for (argument, duration) in [
            ("selection_timeout", self.selection_timeout),
            ("operation_timeout", self.operation_timeout),
            ("poll_interval", self.poll_interval()),
        ] {
            let allowed = Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);
            if !allowed.contains(&duration) {
                return Err(Error::invalid(
                    argument,
                    format_args!("{duration:?}"),
                    "1 ms to 24 h",
                ));
            }
        }
        Ok(())
    }
}

/// What is confirmed is on the disks of a majority, and survives a change of the primary.
pub(crate) fn write_concern() -> WriteConcern {
    WriteConcern::builder()
        .w(Acknowledgment::Majority)
        .journal(true)
        .build()
}

/// What is read is on a majority too: a head that was read cannot be rolled back.
pub(crate) fn read_concern() -> ReadConcern {
    ReadConcern::majority()
}

/// Only the primary has all that was confirmed.
pub(crate) fn primary() -> SelectionCriteria {
    SelectionCriteria::ReadPreference(ReadPreference::Primary)
}

fn is_srv(url: &str) -> bool {
    url.starts_with("mongodb+srv://")
}

fn is_about_names(error: &mongodb::error::Error) -> bool {
    matches!(*error.kind, mongodb::error::ErrorKind::DnsResolve { .. })
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("url", &"***")
            .field("database", &self.database)
            .field("max_connections", &self.max_connections)
            .field("selection_timeout", &self.selection_timeout)
            .field("operation_timeout", &self.operation_timeout)
            .field("poll_interval", &self.poll_interval())
            .field("change_streams", &self.change_streams)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use mongodb::options::Tls;

    use super::*;

    #[tokio::test]
    async fn the_url_cannot_weaken_a_promise() {
        let weak = "mongodb://localhost/?w=0&journal=false&readConcernLevel=local\
                    &readPreference=secondaryPreferred&retryWrites=true&appName=shop";
        let options = Config::new(weak).client_options().await.expect("a URL");
        assert_eq!(options.write_concern, Some(write_concern()));
        assert_eq!(options.read_concern, Some(read_concern()));
        assert_eq!(options.selection_criteria, Some(primary()));
        assert_eq!(options.retry_writes, Some(false));
        assert_eq!(options.app_name.as_deref(), Some("shop"));
    }

    #[tokio::test]
    async fn no_text_shows_the_url() {
        let config = Config::new("mongodb://ada:secret@[bad/db");
        assert!(!format!("{config:?}").contains("secret"));
        let error = config.client_options().await.expect_err("a bad URL");
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    /// Encryption is always there: without TLS in the driver it refuses these options.
    #[tokio::test]
    async fn encryption_needs_no_feature() {
        let url = "mongodb://localhost/?tls=true&tlsAllowInvalidCertificates=true";
        let options = Config::new(url).client_options().await.expect("a URL");
        assert!(matches!(options.tls, Some(Tls::Enabled(_))));
    }

    #[cfg(not(feature = "srv"))]
    #[tokio::test]
    async fn names_to_be_looked_up_need_the_feature() {
        let config = Config::new("mongodb+srv://ada:secret@cluster.example/");
        let error = config.client_options().await.expect_err("no such feature");
        assert_eq!(error.kind(), rheo_core::ErrorKind::Invalid);
        let text = error.to_string();
        assert!(
            text.contains("feature `srv`") && !text.contains("secret"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn bad_values_are_refused() {
        let config = Config::new("mongodb://localhost");
        assert!(config.client_options().await.is_ok());
        for bad in [
            config.clone().with_max_connections(0),
            config.clone().with_database("a.b"),
            config.clone().with_database(""),
            config.clone().with_operation_timeout(Duration::ZERO),
            config.clone().with_selection_timeout(Duration::MAX),
            config.clone().with_poll_interval(Duration::ZERO),
        ] {
            let refused = bad.client_options().await;
            assert!(matches!(refused, Err(Error::Invalid(_))), "{bad:?}");
        }
    }
}
