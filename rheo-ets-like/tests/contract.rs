//! The memory backend under the contract suite.

use std::process::ExitCode;
use std::sync::Arc;

use rheo_contract::{Harness, Namespace, Opened};
use rheo_core::{Clock, async_trait};
use rheo_ets_like::{MemoryBackend, MemoryStore};

struct Memory;

#[async_trait]
impl Harness for Memory {
    fn name(&self) -> &str {
        "rheo-ets-like"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn open(&self, _: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        Ok(Arc::new(MemoryBackend::new(clock)))
    }

    async fn open_unreachable(&self, _: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let store = MemoryStore::new();
        store.shut_down();
        Ok(Arc::new(store.open(clock)))
    }
}

fn main() -> ExitCode {
    rheo_contract::run(Memory)
}
