//! The harness of the proof: each namespace is a server of its own, simulated in memory, which
//! outlives its handles, so that durable and distributed can be declared and checked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rheo_contract::{ClockControl, Harness, HarnessError, Namespace, Opened};
use rheo_core::{Backend, Clock, async_trait};
use rheo_ets_like::MemoryStore;

use crate::defect::Real;
use crate::faulty::Faulty;
use crate::variants::Variant;

/// What stands between the suite and the memory backend.
type Wrap = Box<dyn Fn(Real) -> Arc<dyn Backend> + Send + Sync>;

/// Makes the store's clock of the one that the suite hands out.
type Tick = Box<dyn Fn(Arc<dyn Clock>) -> Arc<dyn Clock> + Send + Sync>;

pub(crate) struct Simulated {
    name: &'static str,
    clock: ClockControl,
    tick: Tick,
    wrap: Wrap,
    servers: Mutex<HashMap<Namespace, Arc<MemoryStore>>>,
}

impl Simulated {
    pub(crate) fn faulty(faulty: &'static Faulty) -> Self {
        let tick = Box::new(|clock| clock);
        Self::new(
            faulty.name,
            ClockControl::Suite,
            tick,
            Box::new(faulty.wrap),
        )
    }

    pub(crate) fn variant(variant: &'static dyn Variant) -> Self {
        let tick = Box::new(move |clock| variant.tick(clock));
        let wrap = Box::new(move |real| variant.wrap(real));
        Self::new(variant.name(), variant.clock(), tick, wrap)
    }

    fn new(name: &'static str, clock: ClockControl, tick: Tick, wrap: Wrap) -> Self {
        Self {
            name,
            clock,
            tick,
            wrap,
            servers: Mutex::default(),
        }
    }

    fn handle(&self, store: &MemoryStore, clock: Arc<dyn Clock>) -> Opened {
        let clock = (self.tick)(clock);
        let backend: Arc<dyn Backend> = Arc::new(store.open(Arc::clone(&clock)));
        Ok((self.wrap)(Real { backend, clock }))
    }

    fn store_of(&self, namespace: &Namespace) -> Result<Arc<MemoryStore>, HarnessError> {
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

    async fn open(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let store = Arc::new(MemoryStore::new());
        let opened = self.handle(&store, clock);
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.insert(namespace.clone(), store);
        opened
    }

    async fn second_handle(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.handle(&*self.store_of(namespace)?, clock)
    }

    async fn reopen(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.handle(&*self.store_of(namespace)?, clock)
    }

    async fn restart_store(&self, namespace: &Namespace) -> Result<(), HarnessError> {
        let store = self.store_of(namespace)?;
        store.shut_down();
        store.start_up();
        Ok(())
    }

    async fn open_unreachable(&self, _: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let store = MemoryStore::new();
        let opened = self.handle(&store, clock);
        store.shut_down();
        opened
    }

    async fn discard(&self, namespace: &Namespace) -> Result<(), HarnessError> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.remove(namespace);
        Ok(())
    }
}
