//! The double under the contract suite; its scripted faults stand in for those of a network.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rheo_contract::{Fault, FaultInjector, Harness, HarnessError, Namespace, Opened, OpenedFaulty};
use rheo_core::{Clock, async_trait};
use rheo_double::{DoubleServer, Faults};

/// A server for each namespace.
#[derive(Default)]
struct Double(Mutex<HashMap<Namespace, DoubleServer>>);

impl Double {
    fn servers(&self) -> MutexGuard<'_, HashMap<Namespace, DoubleServer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Harness for Double {
    fn name(&self) -> &str {
        "rheo-double"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn open(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let server = DoubleServer::new();
        let backend = server.connect(clock);
        self.servers().insert(namespace.clone(), server);
        Ok(Arc::new(backend))
    }

    async fn open_faulty(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> OpenedFaulty {
        let servers = self.servers();
        let server = servers
            .get(namespace)
            .ok_or_else(|| HarnessError::failed("the namespace is not open"))?;
        let backend = server.connect(clock);
        let script = Script {
            server: server.clone(),
            faults: backend.faults().clone(),
            armed: AtomicBool::new(false),
        };
        Ok((Arc::new(backend), Arc::new(script)))
    }

    async fn open_unreachable(&self, _: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let server = DoubleServer::new();
        server.stop();
        Ok(Arc::new(server.connect(clock)))
    }

    async fn discard(&self, namespace: &Namespace) -> Result<(), HarnessError> {
        self.servers().remove(namespace);
        Ok(())
    }
}

/// Scripts faults for one handle. Each of its operations is one request.
struct Script {
    server: DoubleServer,
    faults: Faults,
    armed: AtomicBool,
}

#[async_trait]
impl FaultInjector for Script {
    async fn arm(&self, fault: Fault, nth: u32) -> bool {
        self.faults.clear();
        let scripted = match fault {
            Fault::Refuse => {
                self.server.stop();
                self.armed.store(true, Ordering::Relaxed);
                return true;
            }
            Fault::CutRequest => rheo_double::Fault::AmbiguousBefore,
            Fault::LoseReply => rheo_double::Fault::AmbiguousAfter,
            Fault::Slow => rheo_double::Fault::Slow(Duration::from_millis(20)),
            _ => return false,
        };
        let armed = nth == 1 && self.faults.next_of_any(scripted).is_ok();
        self.armed.store(armed, Ordering::Relaxed);
        true
    }

    fn has_struck(&self) -> bool {
        self.armed.load(Ordering::Relaxed) && self.faults.remaining() == 0
    }

    async fn heal(&self) {
        self.faults.clear();
        self.server.start();
    }
}

fn main() -> ExitCode {
    rheo_contract::run(Double::default())
}
