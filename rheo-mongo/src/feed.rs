//! What others append, as the deployment tells it: a change stream, which is never relied upon.
//!
//! It has a client of its own, since a change stream that waits keeps a connection. It begins when
//! somebody first waits for work, and ends with the handle. Those who wait look by themselves all the
//! same, since a lease that expires or a delay that ends is no change of the log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::config::Config;

/// How long to wait until watching again after a failure.
const RECOVERY: Duration = Duration::from_secs(1);
/// What a server says that has no change streams: it is no replica set.
const NOT_A_REPLICA_SET: i32 = 40_573;

/// The ids of streams that something was appended to.
pub(crate) struct Feed {
    appended: broadcast::Sender<Arc<str>>,
    watching: Mutex<Watching>,
}

#[derive(Default)]
enum Watching {
    #[default]
    NotYet,
    By(JoinHandle<()>),
    /// The handle has ended.
    NoMore,
}

/// One that hears of them.
pub(crate) struct Listener(broadcast::Receiver<Arc<str>>);

impl Feed {
    pub(crate) fn new() -> Self {
        Self {
            appended: broadcast::Sender::new(256),
            watching: Mutex::default(),
        }
    }

    /// Hears of everything from here on, once the change stream is there.
    pub(crate) fn listen(&self, config: &Config) -> Listener {
        let listener = Listener(self.appended.subscribe());
        let mut watching = self.watching();
        if config.change_streams && matches!(*watching, Watching::NotYet) {
            let watch = watch(config.clone(), self.appended.clone());
            *watching = Watching::By(tokio::spawn(watch));
        }
        listener
    }

    /// Ends the change stream, for good.
    pub(crate) fn stop(&self) {
        if let Watching::By(task) = std::mem::replace(&mut *self.watching(), Watching::NoMore) {
            task.abort();
        }
    }

    fn watching(&self) -> MutexGuard<'_, Watching> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Listener {
    /// Waits until something was appended to a stream.
    pub(crate) async fn hear_of(&mut self, stream_id: &str) {
        loop {
            match self.0.recv().await {
                Ok(appended) if *appended == *stream_id => return,
                Ok(_) => {}
                // Some were missed: any of them might have been it.
                Err(RecvError::Lagged(_)) => return,
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

/// Watches the log until the handle ends, or for good where the server cannot.
async fn watch(config: Config, appended: broadcast::Sender<Arc<str>>) {
    loop {
        if let Err(error) = watch_once(&config, &appended).await
            && matches!(&*error.kind, ErrorKind::Command(said) if said.code == NOT_A_REPLICA_SET)
        {
            return;
        }
        tokio::time::sleep(RECOVERY).await;
    }
}

async fn watch_once(
    config: &Config,
    appended: &broadcast::Sender<Arc<str>>,
) -> mongodb::error::Result<()> {
    let Ok(mut options) = config.client_options().await else {
        return Ok(());
    };
    options.max_pool_size = Some(1);
    let client = Client::with_options(options)?;
    let log = client
        .database(&config.database)
        .collection::<Document>("log");
    let keys = [
        doc! { "$match": { "operationType": "insert" } },
        doc! { "$project": { "operationType": 1, "documentKey": 1 } },
    ];
    let watch = log.watch().pipeline(keys).max_await_time(RECOVERY);
    let mut changes = watch.await?;
    while changes.is_alive() {
        // The server answers every so often, also when nothing happens; one that is frozen does not.
        let change = timeout(RECOVERY + config.operation_timeout, changes.next_if_any());
        let Ok(change) = change.await else {
            return Ok(());
        };
        let Some(change) = change? else {
            continue;
        };
        let key = change.document_key.as_ref();
        let key = key.and_then(|key| key.get_str("_id").ok());
        if let Some((stream_id, _)) = key.and_then(|key| key.split_once('.')) {
            // Nobody may be waiting just now.
            let _ = appended.send(stream_id.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_feed_that_was_stopped_does_not_begin_again() {
        let config = Config::new("mongodb://localhost:1").with_change_streams(true);
        let feed = Feed::new();
        let _first = feed.listen(&config);
        assert!(matches!(*feed.watching(), Watching::By(_)));
        feed.stop();
        let _late = feed.listen(&config);
        assert!(matches!(*feed.watching(), Watching::NoMore));
    }
}
