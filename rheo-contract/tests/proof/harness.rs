//! The harness of the proof: each namespace is a server of its own, simulated in memory, which
//! outlives its handles, so that durable and distributed can be declared and checked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rheo_contract::{ClockControl, Harness, HarnessError, Namespace, Opened, OpenedFaulty};
use rheo_core::{Backend, Clock, async_trait};
use rheo_ets_like::MemoryStore;

use crate::defect::{Real, SECRET};
use crate::faulty::Faulty;
use crate::journal::{Beside, Journal};
use crate::link::{Line, Link};
use crate::variants::Variant;

/// What stands between the suite and the memory backend.
type Wrap = Box<dyn Fn(Real) -> Arc<dyn Backend> + Send + Sync>;

/// Makes the store's clock of the one that the suite hands out.
type Tick = Box<dyn Fn(Arc<dyn Clock>) -> Arc<dyn Clock> + Send + Sync>;

/// How many connections a handle has, if it is not a narrow one.
const POOL: usize = 16;
/// The same of one that meets faults: what a fault costs it is to add up.
const FAULTY_POOL: usize = 2;

pub(crate) struct Simulated {
    name: &'static str,
    clock: ClockControl,
    tick: Tick,
    wrap: Wrap,
    distance: Distance,
    servers: Mutex<HashMap<Namespace, Arc<Server>>>,
}

/// What is between a handle and its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distance {
    /// Nothing: no call ever waits.
    None,
    /// A line on which calls wait, and may be cut off.
    Line,
}

/// A store and what is known of it.
#[derive(Default)]
struct Server {
    store: MemoryStore,
    journal: Arc<Journal>,
    beside: Arc<Beside>,
    handles: AtomicUsize,
}

impl Simulated {
    pub(crate) fn faulty(faulty: &'static Faulty) -> Self {
        let tick = Box::new(|clock| clock);
        let wrap = Box::new(faulty.wrap);
        Self::new(faulty.name, ClockControl::Suite, tick, wrap)
    }

    /// The same with a line between its handles and their store.
    pub(crate) fn distant(faulty: &'static Faulty) -> Self {
        Self {
            distance: Distance::Line,
            ..Self::faulty(faulty)
        }
    }

    pub(crate) fn variant(variant: &'static dyn Variant) -> Self {
        let tick = Box::new(move |clock| variant.tick(clock));
        let wrap = Box::new(move |real| variant.wrap(real));
        Self {
            distance: Distance::Line,
            ..Self::new(variant.name(), variant.clock(), tick, wrap)
        }
    }

    fn new(name: &'static str, clock: ClockControl, tick: Tick, wrap: Wrap) -> Self {
        Self {
            name,
            clock,
            tick,
            wrap,
            distance: Distance::None,
            servers: Mutex::default(),
        }
    }

    fn handle(
        &self,
        server: &Server,
        clock: Arc<dyn Clock>,
        pool: usize,
    ) -> (Arc<dyn Backend>, Arc<Line>) {
        let clock = (self.tick)(clock);
        let store: Arc<dyn Backend> = Arc::new(server.store.open(Arc::clone(&clock)));
        let handle = server.handles.fetch_add(1, Ordering::Relaxed);
        let line = Arc::new(Line::default());
        let journal = Arc::clone(&server.journal);
        let backend: Arc<dyn Backend> = match self.distance {
            Distance::None => Arc::clone(&store),
            Distance::Line => Arc::new(Link {
                store: Arc::clone(&store),
                line: Arc::clone(&line),
                journal: Arc::clone(&journal),
                handle,
            }),
        };
        let real = Real {
            backend,
            clock,
            store,
            journal,
            beside: Arc::clone(&server.beside),
            handle,
            pool,
            late: Arc::clone(&line.late),
        };
        ((self.wrap)(real), line)
    }

    fn opened(&self, namespace: &Namespace, clock: Arc<dyn Clock>, pool: usize) -> Opened {
        let server = self.server_of(namespace)?;
        Ok(self.handle(&server, clock, pool).0)
    }

    fn server_of(&self, namespace: &Namespace) -> Result<Arc<Server>, HarnessError> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let server = servers.get(namespace).map(Arc::clone);
        server.ok_or_else(|| HarnessError::Failed(format!("no server for {namespace}")))
    }
}

#[async_trait]
impl Harness for Simulated {
    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn clock_control(&self) -> ClockControl {
        self.clock
    }

    fn secrets(&self) -> Vec<String> {
        vec![SECRET.to_owned()]
    }

    async fn open(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let server = Arc::new(Server::default());
        let opened = self.handle(&server, clock, POOL).0;
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.insert(namespace.clone(), server);
        Ok(opened)
    }

    async fn second_handle(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.opened(namespace, clock, POOL)
    }

    async fn narrow_handle(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.opened(namespace, clock, 1)
    }

    async fn open_faulty(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> OpenedFaulty {
        let server = self.server_of(namespace)?;
        let (backend, line) = self.handle(&server, clock, FAULTY_POOL);
        Ok((backend, line))
    }

    async fn reopen(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.opened(namespace, clock, POOL)
    }

    async fn restart_store(&self, namespace: &Namespace) -> Result<(), HarnessError> {
        let server = self.server_of(namespace)?;
        server.store.shut_down();
        server.store.start_up();
        Ok(())
    }

    async fn open_unreachable(&self, _: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let server = Server::default();
        let opened = self.handle(&server, clock, POOL).0;
        server.store.shut_down();
        Ok(opened)
    }

    async fn discard(&self, namespace: &Namespace) -> Result<(), HarnessError> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.remove(namespace);
        Ok(())
    }
}
