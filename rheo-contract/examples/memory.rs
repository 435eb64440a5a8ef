//! The whole contract target of a backend's author, here for the memory backend.
//!
//! In your crate this is `tests/contract.rs`, with `[[test]] name = "contract"` and
//! `harness = false` in `Cargo.toml`.

use std::process::ExitCode;
use std::sync::Arc;

use rheo_contract::{Harness, Namespace, Opened};
use rheo_core::{Clock, async_trait};
use rheo_ets_like::MemoryBackend;

struct Memory;

#[async_trait]
impl Harness for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn open(&self, _: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        Ok(Arc::new(MemoryBackend::new(clock)))
    }
}

fn main() -> ExitCode {
    rheo_contract::run(Memory)
}
