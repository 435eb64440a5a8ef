//! Telling each other that there may be work: LISTEN and NOTIFY, which are never relied upon.
//!
//! A notification is not part of the transaction that made the work: committing one takes a lock on
//! the whole server, and would have every append wait for every other. It is sent afterwards by a
//! task of the handle, at most every [`PAUSE`], and for all streams at once. Who waits for work looks
//! by itself every [`LOOK`], since a lease that expires or a delay that ends tells nobody.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rheo_core::{GroupName, Operation, Result, StreamName, Wakeup};
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::error::Subject;
use crate::row::column;
use crate::store::Store;

/// The channel is the schema's name, and what is sent on it the name of the stream. Nothing waits
/// for this to reach the disk.
const NOTIFY: &str = "SELECT set_config('synchronous_commit', 'off', true), \
     (SELECT count(pg_notify($1, s)) FROM unnest($2::text[]) s)";
const MAY_HAVE_WORK: &str = "SELECT {schema}.may_have_work($1, $2, $3) AS may_have_work";

/// The least time between two notifications.
const PAUSE: Duration = Duration::from_millis(20);
/// How often those who wait look by themselves.
const LOOK: Duration = Duration::from_millis(500);
/// How long to wait until listening again after a failure.
const RECOVERY: Duration = Duration::from_secs(1);
/// Who waits longer than that is told that the time is up.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What one handle has to tell and to hear.
#[derive(Debug)]
pub(crate) struct Wakeups {
    store: Arc<Store>,
    news: Arc<Mutex<News>>,
    heard: broadcast::Sender<Arc<str>>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

/// Streams that the others were not told of yet.
#[derive(Debug, Default)]
struct News {
    streams: BTreeSet<StreamName>,
    is_told: bool,
}

impl Wakeups {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            news: Arc::default(),
            heard: broadcast::Sender::new(256),
            listening: Mutex::default(),
        }
    }

    /// Tells everybody that a stream may have work; returns at once.
    pub(crate) fn tell(&self, stream: &StreamName) {
        if !self.store.settings.notifications {
            return;
        }
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        news.streams.insert(stream.clone());
        if !news.is_told {
            news.is_told = true;
            tokio::spawn(tell_all(Arc::clone(&self.store), Arc::clone(&self.news)));
        }
    }

    /// Waits until something might be claimable (OPS-4).
    pub(crate) async fn wait_for_work(
        &self,
        stream: &StreamName,
        group: &GroupName,
        patience: Duration,
    ) -> Result<Wakeup> {
        let deadline = Instant::now() + patience.min(LONGEST);
        let mut heard = self.listen();
        loop {
            if self.store.may_have_work(stream, group).await? {
                return Ok(Wakeup::MaybeWork);
            }
            let look_again = deadline.min(Instant::now() + LOOK);
            if Instant::now() >= deadline {
                return Ok(Wakeup::TimedOut);
            }
            let of_this_stream = async {
                loop {
                    match heard.recv().await {
                        Ok(name) if *name == *stream.as_str() => return,
                        Ok(_) => {}
                        // Some were missed: any of them might have been it.
                        Err(broadcast::error::RecvError::Lagged(_)) => return,
                        Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                    }
                }
            };
            let _ = tokio::time::timeout_at(look_again, of_this_stream).await;
        }
    }

    /// Ends what runs in the background.
    pub(crate) fn stop(&self) {
        let mut listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = listening.take() {
            task.abort();
        }
    }

    fn listen(&self) -> broadcast::Receiver<Arc<str>> {
        let receiver = self.heard.subscribe();
        let mut listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if listening.is_none() && self.store.check_open().is_ok() {
            let task = hear_all(Arc::clone(&self.store), self.heard.clone());
            *listening = Some(tokio::spawn(task));
        }
        receiver
    }
}

impl Drop for Wakeups {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Store {
    async fn may_have_work(&self, stream: &StreamName, group: &GroupName) -> Result<bool> {
        let subject = Subject::of_group(stream, group);
        let row = self
            .row_until(
                self.deadline(),
                Operation::WaitForWork,
                &subject,
                MAY_HAVE_WORK,
                |statement| {
                    statement
                        .bind(stream.as_str().to_owned())
                        .bind(group.as_str().to_owned())
                        .bind(self.now().as_micros())
                },
            )
            .await?;
        column(&row, "may_have_work")
    }
}

async fn tell_all(store: Arc<Store>, news: Arc<Mutex<News>>) {
    loop {
        let streams: Vec<String> = {
            let mut news = news.lock().unwrap_or_else(PoisonError::into_inner);
            if news.streams.is_empty() {
                news.is_told = false;
                return;
            }
            let streams = std::mem::take(&mut news.streams);
            streams.iter().map(ToString::to_string).collect()
        };
        // Whoever is not told looks by itself.
        let _ = store
            .rows(Operation::Ping, &Subject::default(), NOTIFY, |statement| {
                statement
                    .bind(store.settings.schema.clone())
                    .bind(streams.clone())
            })
            .await;
        sleep(PAUSE).await;
    }
}

async fn hear_all(store: Arc<Store>, heard: broadcast::Sender<Arc<str>>) {
    loop {
        // A connection of its own: it would keep one of the pool for ever.
        let own = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(store.settings.connect_timeout)
            .connect_lazy_with((*store.pool.connect_options()).clone());
        if let Ok(Ok(mut listener)) = timeout(
            store.settings.connect_timeout,
            PgListener::connect_with(&own),
        )
        .await
            && listener.listen(&store.settings.schema).await.is_ok()
        {
            while let Ok(notification) = listener.recv().await {
                // Nobody may be waiting just now.
                let _ = heard.send(notification.payload().into());
            }
        }
        sleep(RECOVERY).await;
    }
}
