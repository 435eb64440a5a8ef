//! The double under the contract suite.

use std::process::ExitCode;
use std::sync::Arc;

use rheo_contract::{Harness, Namespace, Opened};
use rheo_core::{Clock, async_trait};
use rheo_double::DoubleServer;

struct Double;

#[async_trait]
impl Harness for Double {
    fn name(&self) -> &str {
        "rheo-double"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn open(&self, _: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        Ok(Arc::new(DoubleServer::new().connect(clock)))
    }

    async fn open_unreachable(&self, _: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let server = DoubleServer::new();
        server.stop();
        Ok(Arc::new(server.connect(clock)))
    }
}

fn main() -> ExitCode {
    rheo_contract::run(Double)
}
