//! A database of its own on the server that `RHEO_MONGO_URL` names, dropped at the end.

use std::env;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mongodb::Client;
use mongodb::options::{ClientOptions, ServerAddress};
use rheo_core::{Backend, Clock};
use rheo_mongo::{Config, MongoBackend};

/// A fresh database.
pub(crate) struct Bed {
    pub(crate) url: String,
    pub(crate) database: String,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Bed {
    /// Makes it.
    pub(crate) async fn new(clock: Arc<dyn Clock>) -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let bed = Self {
            url: url(),
            database: format!("rheo_{id}"),
            clock,
        };
        let backend = bed.backend().await;
        backend
            .ensure_indexes()
            .await
            .expect("the indexes are made");
        bed
    }

    /// A handle of its own on the database.
    pub(crate) async fn backend(&self) -> Arc<MongoBackend> {
        self.connect(Config::new(&self.url)).await
    }

    /// A handle that reaches the server through an address; `patience` is the operation timeout.
    pub(crate) async fn via(&self, address: SocketAddr, patience: Duration) -> Arc<MongoBackend> {
        let config = Config::new(format!("mongodb://{address}/?directConnection=true"))
            .with_selection_timeout(patience * 2 / 5)
            .with_operation_timeout(patience);
        self.connect(config).await
    }

    /// A handle with settings of its own.
    pub(crate) async fn connect(&self, config: Config) -> Arc<MongoBackend> {
        let config = config.with_database(&self.database);
        let backend = MongoBackend::connect(config, Arc::clone(&self.clock)).await;
        Arc::new(backend.expect("the settings are right"))
    }

    /// Where the server is.
    pub(crate) async fn server(&self) -> String {
        let options = ClientOptions::parse(&self.url).await.expect("a URL");
        match &options.hosts[0] {
            ServerAddress::Tcp { host, port } => format!("{host}:{}", port.unwrap_or(27_017)),
            other => panic!("{other} has no port to be relayed to"),
        }
    }

    /// The database beside all handles.
    pub(crate) async fn beside(&self) -> mongodb::Database {
        let client = Client::with_uri_str(&self.url).await.expect("a URL");
        client.database(&self.database)
    }

    /// Throws the database away.
    pub(crate) async fn drop(self) {
        self.beside().await.drop().await.expect("dropped");
    }
}

/// The server to test on.
pub(crate) fn url() -> String {
    env::var("RHEO_MONGO_URL").unwrap_or_else(|_| {
        panic!(
            "RHEO_MONGO_URL is not set: the URL of a MongoDB deployment to test on, e.g. \
             mongodb://localhost"
        )
    })
}
