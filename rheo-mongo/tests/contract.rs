//! The MongoDB backend under the contract suite, on the server that `RHEO_MONGO_URL` names.

use std::env;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mongodb::Client;
use mongodb::bson::doc;
use mongodb::options::{ClientOptions, ServerAddress};
use rheo_contract::{Harness, HarnessError, Namespace, Opened, Part, Server, secrets_of_url};
use rheo_core::{Backend, Clock, async_trait};
use rheo_mongo::{Config, MongoBackend};

/// A database for each namespace, on a deployment that may hold other things.
struct Mongo {
    url: String,
    client: tokio::sync::OnceCell<Client>,
    has_change_streams: tokio::sync::OnceCell<bool>,
}

/// Each case has handles of its own, so there are many at once.
const CONNECTIONS: u32 = 4;

impl Mongo {
    fn config(&self, namespace: &Namespace) -> Config {
        Config::new(&self.url)
            .with_database(namespace.as_str())
            .with_max_connections(CONNECTIONS)
    }

    async fn connect(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.open_with(self.config(namespace), clock).await
    }

    async fn open_with(&self, config: Config, clock: Arc<dyn Clock>) -> Opened {
        let config = config.with_change_streams(self.has_change_streams().await?);
        let backend = MongoBackend::connect(config, clock).await?;
        backend.ensure_indexes().await?;
        Ok(Arc::new(backend))
    }

    /// A replica set has them, and so has a router of a sharded cluster.
    async fn has_change_streams(&self) -> Result<bool, mongodb::error::Error> {
        let asked = || async {
            let admin = self.client().await?.database("admin");
            let hello = admin.run_command(doc! { "hello": 1 }).await?;
            Ok(hello.contains_key("setName") || hello.get_str("msg") == Ok("isdbgrid"))
        };
        self.has_change_streams
            .get_or_try_init(asked)
            .await
            .copied()
    }

    async fn client(&self) -> Result<&Client, mongodb::error::Error> {
        let connect = || Client::with_uri_str(&self.url);
        self.client.get_or_try_init(connect).await
    }
}

#[async_trait]
impl Harness for Mongo {
    fn name(&self) -> &str {
        "rheo-mongo"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn open(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.connect(namespace, clock).await
    }

    fn secrets(&self) -> Vec<String> {
        secrets_of_url(&self.url)
    }

    async fn server(&self) -> Result<Option<Server>, HarnessError> {
        let admin = self.client().await?.database("admin");
        let info = admin.run_command(doc! { "buildInfo": 1 }).await?;
        // A server that speaks the protocol goes by its own name and version.
        let server = match info.get_str("secantusVersion") {
            Ok(version) => Server {
                product: "SecantusDB".to_owned(),
                version: version.to_owned(),
            },
            Err(_) => Server {
                product: product(&info),
                version: info.get_str("version")?.to_owned(),
            },
        };
        Ok(Some(server))
    }

    async fn second_handle(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.connect(namespace, clock).await
    }

    async fn narrow_handle(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let config = self.config(namespace).with_max_connections(1);
        self.open_with(config, clock).await
    }

    async fn store_address(&self) -> Result<SocketAddr, HarnessError> {
        let options = ClientOptions::parse(&self.url).await?;
        let Some(ServerAddress::Tcp { host, port }) = options.hosts.first() else {
            return Err(HarnessError::failed("RHEO_MONGO_URL names no TCP address"));
        };
        let found = tokio::net::lookup_host((&**host, port.unwrap_or(27_017)))
            .await?
            .next();
        found.ok_or_else(|| HarnessError::failed("the host of RHEO_MONGO_URL has no address"))
    }

    async fn reopen(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.connect(namespace, clock).await
    }

    async fn open_via(
        &self,
        namespace: &Namespace,
        clock: Arc<dyn Clock>,
        address: SocketAddr,
    ) -> Opened {
        let config = Config::new(through(&self.url, address))
            .with_database(namespace.as_str())
            .with_max_connections(2)
            .with_selection_timeout(Duration::from_millis(300))
            .with_operation_timeout(Duration::from_secs(2));
        let config = config.with_change_streams(self.has_change_streams().await?);
        Ok(Arc::new(MongoBackend::connect(config, clock).await?))
    }

    async fn restart_store(&self, _namespace: &Namespace) -> Result<(), HarnessError> {
        let Some(pid_file) = env::var_os("RHEO_MONGO_PID_FILE") else {
            return Err(HarnessError::NotSupplied(Part::RestartStore));
        };
        let admin = self.client().await?.database("admin");
        let serves = || {
            let admin = admin.clone();
            async move { admin.run_command(doc! { "ping": 1 }).await.is_ok() }
        };
        Ok(rheo_workers::kill_and_wait(pid_file.as_ref(), serves).await?)
    }

    async fn discard(&self, namespace: &Namespace) -> Result<(), HarnessError> {
        let database = self.client().await?.database(namespace.as_str());
        database.drop().await?;
        Ok(())
    }
}

/// The same URL with another host, which is asked directly.
fn through(url: &str, address: SocketAddr) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("mongodb", url));
    let scheme = scheme.trim_end_matches("+srv");
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, options) = rest.split_at(end);
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    let at = if user.is_empty() { "" } else { "@" };
    let options = options.trim_start_matches('/');
    let and = if options.contains('?') { '&' } else { '?' };
    format!("{scheme}://{user}{at}{address}/{options}{and}directConnection=true")
}

/// MongoDB says what its modules and its shell's engine are; what does not is something else.
fn product(info: &mongodb::bson::Document) -> String {
    match info.get_str("javascriptEngine") {
        Ok("mozjs") => "MongoDB".to_owned(),
        _ => "a server that speaks MongoDB's protocol".to_owned(),
    }
}

fn main() -> ExitCode {
    let Ok(url) = env::var("RHEO_MONGO_URL") else {
        eprintln!(
            "error: RHEO_MONGO_URL is not set: the URL of a MongoDB deployment to test on, \
             e.g. mongodb://localhost"
        );
        return ExitCode::from(rheo_contract::EXIT_NOT_STARTED);
    };
    rheo_contract::run(Mongo {
        url,
        client: tokio::sync::OnceCell::new(),
        has_change_streams: tokio::sync::OnceCell::new(),
    })
}
