//! What an author supplies so that the suite can reach their backend.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use rheo_core::{Backend, Clock};
use serde::{Deserialize, Serialize};

use crate::faults::FaultInjector;
use crate::proxy::Proxy;

/// How the suite gets at a backend.
///
/// Three methods are required: a name, a version, and [`open`](Self::open). The others are parts
/// that some cases need; each says which guarantee makes it necessary. A case whose guarantee is
/// declared but whose part is missing **fails** and says what to supply: it is never skipped.
///
/// Every case gets a namespace of its own, and cases run at the same time. All methods, and those of the
/// backends that it opens, work on one Tokio runtime that lives as long as the process, so what a harness
/// keeps (a connection pool, a client) may be shared between cases. The threads that call them are each
/// case's own: a method that blocks its thread fails its case alone.
#[async_trait]
pub trait Harness: Send + Sync + 'static {
    /// The backend's name, e.g. that of its crate.
    fn name(&self) -> &str;

    /// The backend's version, e.g. `env!("CARGO_PKG_VERSION")`.
    fn version(&self) -> &str;

    /// Opens a backend on a namespace that nothing else uses, and that is empty.
    ///
    /// All time must come from `clock`, unless [`clock_control`](Self::clock_control) says
    /// otherwise. Tables and indexes must be there afterwards: call `ensure_indexes` if the backend
    /// needs it.
    async fn open(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened;

    /// Whose time the backend goes by; default [`ClockControl::Suite`].
    fn clock_control(&self) -> ClockControl {
        ClockControl::Suite
    }

    /// Texts that no error may show, e.g. the password for the store, and the URL that holds it; default
    /// none (ERR-11).
    ///
    /// The suite looks for them in every error that the backend gives, and masks them in all that it
    /// prints or writes. [`secrets_of_url`](crate::secrets_of_url) gives those of a URL. Name nothing
    /// that may stand in an error for another reason, as a password `postgres` would. What has fewer than
    /// six characters is not looked for, and the run says so.
    ///
    /// Needed by nothing; without it the case about them tries nothing, and the certificate says so.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }

    /// The product and version of the server behind the backend, truly named; default none.
    async fn server(&self) -> Result<Option<Server>, HarnessError> {
        Ok(None)
    }

    /// Opens one more handle on a namespace while the first one is open.
    ///
    /// Needed by `distributed`.
    async fn second_handle(&self, _namespace: &Namespace, _clock: Arc<dyn Clock>) -> Opened {
        Err(HarnessError::NotSupplied(Part::SecondHandle))
    }

    /// Opens one more handle that has as little as a handle can have, e.g. a pool of one connection:
    /// what is left behind in a pool shows there first.
    ///
    /// Needed by nothing; without it the cases that drop futures use an ordinary handle, and the
    /// certificate says so.
    async fn narrow_handle(&self, _namespace: &Namespace, _clock: Arc<dyn Clock>) -> Opened {
        Err(HarnessError::NotSupplied(Part::NarrowHandle))
    }

    /// Opens a namespace again after all its handles were closed.
    ///
    /// Needed by `durable`.
    async fn reopen(&self, _namespace: &Namespace, _clock: Arc<dyn Clock>) -> Opened {
        Err(HarnessError::NotSupplied(Part::Reopen))
    }

    /// Opens a handle that reaches the store through `address` instead of the store's own.
    ///
    /// Serves [`open_unreachable`](Self::open_unreachable).
    async fn open_via(
        &self,
        _namespace: &Namespace,
        _clock: Arc<dyn Clock>,
        _address: SocketAddr,
    ) -> Opened {
        Err(HarnessError::NotSupplied(Part::OpenVia))
    }

    /// Where the store listens, so that the suite can put a proxy in front of it.
    ///
    /// Serves [`open_faulty`](Self::open_faulty).
    async fn store_address(&self) -> Result<SocketAddr, HarnessError> {
        Err(HarnessError::NotSupplied(Part::StoreAddress))
    }

    /// Opens one more handle on a namespace, and gives what makes things go wrong for it.
    ///
    /// Needed by nothing; without it the cases about faults try nothing, and the certificate says so.
    /// The default puts a TCP proxy in front of [`store_address`](Self::store_address), and opens a
    /// handle through it with [`open_via`](Self::open_via).
    ///
    /// The handle has the default operation timeout, as all that are opened for the suite: the cases
    /// give each operation 5 s and some room (ERR-4), and do not ask what was configured. A shorter one
    /// is fine as well, and saves time: every frozen operation lasts as long as its timeout.
    /// It should have few connections, two say, so that what a fault costs it adds up. It works on the same
    /// streams and groups as the handle of the case: a backend without `distributed` has no use for it
    /// unless that can be.
    async fn open_faulty(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> OpenedFaulty {
        let proxy = Proxy::to(self.store_address().await?).await?;
        let backend = self.open_via(namespace, clock, proxy.address()).await?;
        Ok((backend, Arc::new(proxy)))
    }

    /// Opens a handle whose store cannot be reached; the handle itself must be there.
    ///
    /// Needed by `durable` and `distributed`. The default uses [`open_via`](Self::open_via) with a
    /// local port on which nobody listens.
    async fn open_unreachable(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let closed_port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        match self.open_via(namespace, clock, closed_port).await {
            Err(HarnessError::NotSupplied(_)) => {
                Err(HarnessError::NotSupplied(Part::OpenUnreachable))
            }
            opened => opened,
        }
    }

    /// Kills the store (SIGKILL, where it is a process) and starts it again with its data; returns
    /// when it can be reached.
    ///
    /// Needed by nothing; without it no case restarts the store, and the certificate says so. No other
    /// case of this process runs meanwhile. Under a runner that gives each case a process of its own,
    /// as cargo-nextest does, it is not called.
    async fn restart_store(&self, _namespace: &Namespace) -> Result<(), HarnessError> {
        Err(HarnessError::NotSupplied(Part::RestartStore))
    }

    /// Throws a namespace away after its case; default does nothing.
    async fn discard(&self, _namespace: &Namespace) -> Result<(), HarnessError> {
        Ok(())
    }
}

/// What opening a handle gives.
pub type Opened = Result<Arc<dyn Backend>, HarnessError>;

/// What opening a handle with faults gives.
pub type OpenedFaulty = Result<(Arc<dyn Backend>, Arc<dyn FaultInjector>), HarnessError>;

/// A name for the data of one case, different for every case and run.
///
/// At most 40 characters, lower-case ASCII letters, digits and `_`, beginning with a letter: good
/// as the name of a schema, a database or a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Namespace(String);

impl Namespace {
    pub(crate) fn unique() -> Self {
        let mut buffer = uuid::Uuid::encode_buffer();
        let id = uuid::Uuid::new_v4()
            .simple()
            .encode_lower(&mut buffer)
            .to_owned();
        Self(format!("rheo_{id}"))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whose time a backend goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockControl {
    /// That of the clock it was opened with: the suite moves it and never waits.
    Suite,
    /// The store's own: the suite waits for short real leases to end. Cases that set the clock, to put
    /// it back or to the end of time, are not exercised, and the certificate says so.
    Store,
}

/// The server behind a backend, for the certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// The product, truly: a server that speaks another's protocol goes by its own name.
    pub product: String,
    /// Its version.
    pub version: String,
}

/// An optional part of [`Harness`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "each names the method of Harness that documents it"
)]
pub enum Part {
    SecondHandle,
    NarrowHandle,
    Reopen,
    OpenVia,
    StoreAddress,
    OpenFaulty,
    OpenUnreachable,
    RestartStore,
    Secrets,
    SuiteClock,
}

impl Part {
    /// The method to write.
    pub fn method(self) -> &'static str {
        match self {
            Self::SecondHandle => "Harness::second_handle",
            Self::NarrowHandle => "Harness::narrow_handle",
            Self::Reopen => "Harness::reopen",
            Self::OpenVia => "Harness::open_via",
            Self::StoreAddress => "Harness::store_address or Harness::open_faulty",
            Self::OpenFaulty => "Harness::open_faulty with such faults",
            Self::OpenUnreachable => "Harness::open_via or Harness::open_unreachable",
            Self::RestartStore => "Harness::restart_store, in a process that all cases share",
            Self::Secrets => "Harness::secrets",
            Self::SuiteClock => "ClockControl::Suite",
        }
    }
}

/// Why a harness could not do its part.
#[derive(Debug)]
pub enum HarnessError {
    /// The harness does not have this part.
    NotSupplied(Part),
    /// Something failed; `?` makes this of any error, [`HarnessError::failed`] of a text.
    Failed(String),
}

impl HarnessError {
    /// Something failed that is no error of its own, e.g. a missing environment variable.
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }
}

impl<E: std::error::Error> From<E> for HarnessError {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

impl fmt::Display for HarnessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSupplied(part) => write!(f, "the harness has no {}", part.method()),
            Self::Failed(why) => f.write_str(why),
        }
    }
}
