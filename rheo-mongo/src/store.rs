//! How a command is sent: one at a time, each with a deadline, none in a transaction.
//!
//! Every command of this crate is atomic by itself and is sent by [`read`](Store::read) or
//! [`write`](Store::write), so nothing stays open in the server between two of them.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::options::{CollectionOptions, DatabaseOptions, IndexOptions};
use mongodb::{Client, Collection, Cursor, Database, IndexModel};
use rheo_core::{
    Clock, Error, GroupName, MaxAttempts, Partition, PartitionCount, Result, Sequence, StreamName,
    Timestamp,
};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::config::{Config, primary, read_concern, write_concern};
use crate::error::{Fault, Stage, failed, unavailable};
use crate::feed::Feed;
use crate::record::Record;

/// A client, the collections, and what this handle remembers.
pub(crate) struct Store {
    pub(crate) config: Config,
    pub(crate) clock: Arc<dyn Clock>,
    client: Client,
    pub(crate) database: Database,
    pub(crate) streams: Collection<Document>,
    pub(crate) groups: Collection<Document>,
    pub(crate) log: Collection<RawDocumentBuf>,
    pub(crate) deliveries: Collection<Document>,
    pub(crate) dead_letters: Collection<Document>,
    is_closed: AtomicBool,
    has_indexes: AtomicBool,
    /// Streams and groups that were found before: they are there for ever, and do not change.
    known_streams: Memory<StreamName, Stream>,
    known_groups: Memory<(StreamName, GroupName), Group>,
    /// The last sequence of a partition that was seen: the log may have gone on since.
    pub(crate) heads: Memory<(Arc<str>, Partition), Sequence>,
    /// The last state that was seen: somebody may have changed it since.
    pub(crate) records: Memory<String, Arc<Record>>,
    /// Something was appended, or made claimable, on this handle.
    pub(crate) work: Notify,
    /// Something was appended on others.
    pub(crate) feed: Feed,
}

/// A stream as the store knows it.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) name: StreamName,
    /// Its name in keys: of one length and without a dot, which names are not.
    pub(crate) id: Arc<str>,
    pub(crate) count: PartitionCount,
}

/// A group as the store knows it.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) name: GroupName,
    /// As a stream's.
    pub(crate) id: Arc<str>,
    pub(crate) max_attempts: MaxAttempts,
    /// Where it started in each partition.
    pub(crate) starts: Arc<[Sequence]>,
}

impl Group {
    /// The key of the state in a partition.
    pub(crate) fn state_key(&self, partition: Partition) -> String {
        format!("{}.{:04}", self.id, partition.number())
    }

    pub(crate) fn start(&self, partition: Partition) -> Sequence {
        let start = self.starts.get(partition.number() as usize);
        start.copied().unwrap_or_default()
    }
}

/// What is remembered is forgotten when it is more than this.
const MOST_REMEMBERED: usize = 20_000;

/// Things that were seen, by key; only so many.
#[derive(Debug)]
pub(crate) struct Memory<K, V>(Mutex<HashMap<K, V>>);

impl<K: Eq + Hash, V: Clone> Memory<K, V> {
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.lock().get(key).cloned()
    }

    pub(crate) fn put(&self, key: K, value: V) {
        let mut memory = self.lock();
        if memory.len() >= MOST_REMEMBERED {
            memory.clear();
        }
        memory.insert(key, value);
    }

    pub(crate) fn forget(&self, key: &K) {
        self.lock().remove(key);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Default for Memory<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl Store {
    pub(crate) async fn connect(config: Config, clock: Arc<dyn Clock>) -> Result<Self> {
        let options = config.client_options().await?;
        let client = Client::with_options(options).map_err(|_| {
            Error::invalid(
                "url",
                "settings that do not go together",
                "settings that the driver can use",
            )
        })?;
        let options = DatabaseOptions::builder()
            .write_concern(write_concern())
            .read_concern(read_concern())
            .selection_criteria(primary())
            .build();
        let database = client.database_with_options(&config.database, options);
        Ok(Self {
            streams: collection(&database, "streams"),
            groups: collection(&database, "groups"),
            log: collection(&database, "log"),
            deliveries: collection(&database, "deliveries"),
            dead_letters: collection(&database, "dead_letters"),
            database,
            client,
            config,
            clock,
            is_closed: AtomicBool::new(false),
            has_indexes: AtomicBool::new(false),
            known_streams: Memory::default(),
            known_groups: Memory::default(),
            heads: Memory::default(),
            records: Memory::default(),
            work: Notify::new(),
            feed: Feed::new(),
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// When an operation that begins now has to be done.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.config.operation_timeout
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(unavailable("this handle is closed"));
        }
        Ok(())
    }

    /// Ends this handle; waits for what is under way, for as long as an operation may take.
    pub(crate) async fn close(&self) {
        if !self.is_closed.swap(true, Ordering::SeqCst) {
            self.work.notify_waiters();
            self.feed.stop();
            let shutdown = async { self.client.clone().shutdown().immediate(true).await };
            let _ = tokio::time::timeout(self.config.operation_timeout, shutdown).await;
        }
    }

    /// Sends a command that changes nothing.
    pub(crate) async fn read<T>(
        &self,
        deadline: Instant,
        command: impl IntoFuture<Output = mongodb::error::Result<T>>,
    ) -> Result<T> {
        self.check_open()?;
        let answer = self.send(deadline, command).await;
        answer.map_err(|fault| fault.portable(Stage::Read))
    }

    /// Sends a command that changes something; who calls knows how to find out whether it did.
    pub(crate) async fn write<T>(
        &self,
        deadline: Instant,
        command: impl IntoFuture<Output = mongodb::error::Result<T>>,
    ) -> Result<T, Fault> {
        self.send(deadline, command).await
    }

    async fn send<T>(
        &self,
        deadline: Instant,
        command: impl IntoFuture<Output = mongodb::error::Result<T>>,
    ) -> Result<T, Fault> {
        match timeout_at(deadline, command.into_future()).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(Fault::Said(error)),
            Err(_) => Err(Fault::TimedOut),
        }
    }

    /// All that a cursor gives.
    pub(crate) async fn all<T>(
        &self,
        deadline: Instant,
        find: impl IntoFuture<Output = mongodb::error::Result<Cursor<T>>>,
    ) -> Result<Vec<T>>
    where
        T: serde::de::DeserializeOwned + Unpin + Send + Sync,
    {
        let cursor = self.read(deadline, find).await?;
        self.read(deadline, cursor.try_collect()).await
    }

    /// Inserts a document with a key that decides who is first: whether this one is there now. It is
    /// known by a field that no other document has.
    pub(crate) async fn insert_first(
        &self,
        deadline: Instant,
        collection: &Collection<Document>,
        document: &Document,
        own_field: &str,
    ) -> Result<bool> {
        self.check_open()?;
        // What was lost once may still get there, whatever becomes of it when it is sent again.
        let mut lost = None;
        loop {
            let sent = self.write(deadline, collection.insert_one(document)).await;
            let Err(fault) = sent else {
                return Ok(true);
            };
            let error = fault.portable(Stage::Write);
            if fault.is_unknown() {
                lost = Some(error.clone());
            }
            if fault.is_duplicate() || fault.is_unknown() {
                let key = doc! { "_id": document.get("_id").cloned() };
                match self.read(deadline, collection.find_one(key)).await {
                    Ok(Some(found)) => {
                        return Ok(found.get(own_field) == document.get(own_field));
                    }
                    Ok(None) => {}
                    Err(error) => return Err(lost.unwrap_or(error)),
                }
            }
            let is_passing = fault.is_unknown() || fault.is_not_primary();
            if !is_passing || Instant::now() >= deadline {
                return Err(lost.unwrap_or(error));
            }
            pause(1).await;
        }
    }

    // What there is

    /// Whether the server answers (ERR-9).
    pub(crate) async fn ping(&self, deadline: Instant) -> Result<()> {
        let ping = self.database.run_command(doc! { "ping": 1 });
        let answer = self.read(deadline, ping).await;
        answer.map(drop).map_err(|error| match error {
            Error::Failed(cause) => Error::BackendUnavailable(cause),
            other => other,
        })
    }

    /// Makes the indexes, and with them the collections.
    pub(crate) async fn ensure_indexes(&self, deadline: Instant) -> Result<()> {
        self.check_open()?;
        let given = IndexOptions::builder()
            .unique(true)
            .partial_filter_expression(doc! { "given": { "$exists": true } })
            .build();
        let log = [
            index(doc! { "stream": 1, "partition": 1, "first": 1 }, None),
            index(doc! { "stream": 1, "given": 1 }, Some(given)),
            index(doc! { "stream": 1, "time": 1 }, None),
        ];
        let places = doc! { "group": 1, "partition": 1, "sequence": 1 };
        let made = self.write(deadline, self.log.create_indexes(log)).await;
        made.map_err(|fault| fault.portable(Stage::Write))?;
        let dead_letters = self.dead_letters.create_index(index(places, None));
        let made = self.write(deadline, dead_letters).await;
        made.map_err(|fault| fault.portable(Stage::Write))?;
        self.has_indexes.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// As [`ensure_indexes`](Self::ensure_indexes), if this handle has not made them yet.
    pub(crate) async fn need_indexes(&self, deadline: Instant) -> Result<()> {
        match self.has_indexes.load(Ordering::SeqCst) {
            true => Ok(()),
            false => self.ensure_indexes(deadline).await,
        }
    }

    pub(crate) async fn stream(&self, deadline: Instant, name: &StreamName) -> Result<Stream> {
        self.check_open()?;
        if let Some(stream) = self.known_streams.get(name) {
            return Ok(stream);
        }
        let find = self.streams.find_one(doc! { "_id": name.as_str() });
        let Some(found) = self.read(deadline, find).await? else {
            return Err(Error::StreamNotFound {
                stream: name.clone(),
            });
        };
        let stream = stream(&found)?;
        self.known_streams.put(name.clone(), stream.clone());
        Ok(stream)
    }

    /// A stream, and a group on it.
    pub(crate) async fn group(
        &self,
        deadline: Instant,
        stream: &StreamName,
        name: &GroupName,
    ) -> Result<(Stream, Group)> {
        let stream = self.stream(deadline, stream).await?;
        let key = (stream.name.clone(), name.clone());
        if let Some(group) = self.known_groups.get(&key) {
            return Ok((stream, group));
        }
        let find = self
            .groups
            .find_one(doc! { "_id": group_key(&stream, name.as_str()) });
        let Some(found) = self.read(deadline, find).await? else {
            return Err(Error::GroupNotFound {
                stream: stream.name,
                group: name.clone(),
            });
        };
        let group = group(&found)?;
        self.known_groups.put(key, group.clone());
        Ok((stream, group))
    }
}

/// The key of a group: those of a stream follow each other in the order of their names.
pub(crate) fn group_key(stream: &Stream, name: &str) -> String {
    format!("{}.{name}", stream.id)
}

pub(crate) fn stream(document: &Document) -> Result<Stream> {
    let count = document.get_i32("partitions").map_err(damaged)?;
    Ok(Stream {
        name: StreamName::new(document.get_str("_id").map_err(damaged)?)?,
        id: document.get_str("stream").map_err(damaged)?.into(),
        count: PartitionCount::new(count.cast_unsigned())?,
    })
}

pub(crate) fn group(document: &Document) -> Result<Group> {
    let max_attempts = document.get_i64("max_attempts").map_err(damaged)?;
    let starts = document.get_array("starts").map_err(damaged)?.iter();
    let start = |start: &Bson| Sequence::try_from(start.as_i64().unwrap_or(-1));
    Ok(Group {
        name: GroupName::new(document.get_str("name").map_err(damaged)?)?,
        id: document.get_str("group").map_err(damaged)?.into(),
        max_attempts: MaxAttempts::new(u32::try_from(max_attempts).map_err(damaged)?)?,
        starts: starts.map(start).collect::<Result<_>>()?,
    })
}

fn damaged<E>(_: E) -> Error {
    failed("a document of a stream or group is damaged")
}

fn collection<T: Send + Sync>(database: &Database, name: &str) -> Collection<T> {
    let options = CollectionOptions::builder()
        .write_concern(write_concern())
        .read_concern(read_concern())
        .selection_criteria(primary())
        .build();
    database.collection_with_options(name, options)
}

fn index(keys: Document, options: Option<IndexOptions>) -> IndexModel {
    IndexModel::builder().keys(keys).options(options).build()
}

/// A new name for keys.
pub(crate) fn new_id() -> String {
    let mut buffer = uuid::Uuid::encode_buffer();
    let id = uuid::Uuid::new_v4();
    id.simple().encode_lower(&mut buffer).to_owned()
}

/// Waits a little and at random, the longer the more often it was in vain.
pub(crate) async fn pause(times: u32) {
    let most = 1_000_u64 << times.min(5);
    tokio::time::sleep(Duration::from_micros(fastrand::u64(0..most))).await;
}
