//! Rheo's contract on this backend; everything that an author has to write to get a verdict.

use std::process::ExitCode;
use std::sync::Arc;

use btree_backend::BTreeBackend;
use rheo_contract::{Harness, Namespace, Opened};
use rheo_core::{Clock, async_trait};

struct BTree;

#[async_trait]
impl Harness for BTree {
    fn name(&self) -> &str {
        env!("CARGO_PKG_NAME")
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    /// Every backend has a map of its own, so the namespace needs no name.
    async fn open(&self, _namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        Ok(Arc::new(BTreeBackend::new(clock)?))
    }
}

fn main() -> ExitCode {
    rheo_contract::run(BTree)
}
