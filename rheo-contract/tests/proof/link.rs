//! The line between a handle and its store: where calls wait, and where things go wrong.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rheo_contract::{Fault, FaultInjector};
use rheo_core::{
    Backend, Capabilities, Cause, DeadLetter, DeadLetterOptions, Error, Event, FetchOptions,
    GroupInfo, GroupName, GroupOptions, Lag, Lease, LeaseDuration, ListOptions, NewEvent, Page,
    Query, ReadOptions, Reason, Replay, ResetOptions, Result, RetryOptions, RetryOutcome,
    StreamInfo, StreamName, StreamOptions, Wakeup, async_trait,
};
use tokio::task::yield_now;

use crate::journal::{Journal, What};

/// The timeout of a request whose answer does not come.
const TIMEOUT: Duration = Duration::from_millis(30);
/// A slow request: so many pauses, each of this length.
const PAUSES: usize = 8;
const PAUSE: Duration = Duration::from_millis(1);

/// Why an operation has no answer, as a driver tells it.
pub(crate) const REFUSED: &str = "the connection was refused";
pub(crate) const LOST: &str = "the connection was lost";
pub(crate) const TIMED_OUT: &str = "no answer came in time";

/// A correct adapter of the memory store. Each operation is two requests, one that begins it and one
/// that does it, and waits before and after each; what was done is written down.
pub(crate) struct Link {
    pub(crate) store: Arc<dyn Backend>,
    pub(crate) line: Arc<Line>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) handle: usize,
}

/// What happens to requests.
#[derive(Default)]
pub(crate) struct Line(Mutex<Plan>);

#[derive(Default)]
struct Plan {
    armed: Option<Fault>,
    /// Requests until it strikes.
    left: u32,
    struck: bool,
}

/// What became of a request.
enum Fate {
    Answered,
    /// It was never sent.
    Refused,
    /// It did not arrive.
    Unsent,
    /// It arrived, and its answer did not, for this reason.
    Unanswered(&'static str),
}

impl Line {
    async fn request(&self) -> Fate {
        yield_now().await;
        match self.next() {
            Some(Fault::Refuse) => Fate::Refused,
            Some(Fault::CutRequest | Fault::CutWithinRequest) => Fate::Unsent,
            Some(Fault::LoseReply | Fault::CutWithinReply) => Fate::Unanswered(LOST),
            Some(Fault::Freeze) => {
                tokio::time::sleep(TIMEOUT).await;
                Fate::Unanswered(TIMED_OUT)
            }
            Some(Fault::Slow) => {
                for _ in 0..PAUSES {
                    tokio::time::sleep(PAUSE).await;
                }
                Fate::Answered
            }
            // A connection that ends after a reply is opened again, which nobody notices.
            _ => Fate::Answered,
        }
    }

    fn next(&self) -> Option<Fault> {
        let mut plan = self.plan();
        let fault = plan.armed?;
        if matches!(fault, Fault::Refuse | Fault::Slow) {
            return Some(fault);
        }
        if fault == Fault::Freeze && plan.struck {
            return Some(fault);
        }
        if plan.struck {
            return None;
        }
        plan.left = plan.left.saturating_sub(1);
        if plan.left > 0 {
            return None;
        }
        plan.struck = true;
        Some(fault)
    }

    fn plan(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl FaultInjector for Line {
    async fn arm(&self, fault: Fault, nth: u32) -> bool {
        *self.plan() = Plan {
            armed: Some(fault),
            left: nth,
            struck: matches!(fault, Fault::Refuse | Fault::Slow),
        };
        true
    }

    fn has_struck(&self) -> bool {
        self.plan().struck
    }

    async fn heal(&self) {
        self.plan().armed = None;
    }
}

impl Link {
    /// An operation that only reads: whatever went wrong, it can be made again.
    async fn read_only<T>(&self, operation: impl Future<Output = Result<T>> + Send) -> Result<T> {
        self.begin().await?;
        match self.line.request().await {
            Fate::Answered => {
                let answer = operation.await;
                yield_now().await;
                answer
            }
            Fate::Refused => Err(unavailable(REFUSED)),
            Fate::Unsent => Err(unavailable(LOST)),
            Fate::Unanswered(why) => Err(unavailable(why)),
        }
    }

    /// An operation that writes; `done` writes down what it did.
    async fn write<T>(
        &self,
        operation: impl Future<Output = Result<T>> + Send,
        done: impl FnOnce(&T) -> Vec<(Lease, What)> + Send,
    ) -> Result<T>
    where
        T: Send,
    {
        self.begin().await?;
        let fate = self.line.request().await;
        let ambiguous = |why| Err(Error::Ambiguous(Cause::new(why)));
        let lost = match fate {
            Fate::Refused => return Err(unavailable(REFUSED)),
            Fate::Unsent => return ambiguous(LOST),
            Fate::Answered => None,
            Fate::Unanswered(why) => Some(why),
        };
        let answer = operation.await;
        if let Ok(answer) = &answer {
            self.journal.note(self.handle, done(answer));
        }
        yield_now().await;
        lost.map_or(answer, ambiguous)
    }

    /// The first request: nothing is written yet.
    async fn begin(&self) -> Result<()> {
        match self.line.request().await {
            Fate::Answered => Ok(()),
            Fate::Refused => Err(unavailable(REFUSED)),
            Fate::Unsent => Err(unavailable(LOST)),
            Fate::Unanswered(why) => Err(unavailable(why)),
        }
    }
}

fn unavailable(why: &str) -> Error {
    Error::BackendUnavailable(Cause::new(why))
}

fn nothing<T>(_: &T) -> Vec<(Lease, What)> {
    Vec::new()
}

#[async_trait]
impl Backend for Link {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
    async fn close(&self) -> Result<()> {
        self.store.close().await
    }
    async fn ensure_indexes(&self) -> Result<()> {
        self.write(self.store.ensure_indexes(), nothing).await
    }
    async fn ping(&self) -> Result<()> {
        self.read_only(self.store.ping()).await
    }
    async fn create_stream(&self, stream: &StreamName, options: &StreamOptions) -> Result<()> {
        self.write(self.store.create_stream(stream, options), nothing)
            .await
    }
    async fn create_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        self.write(self.store.create_group(stream, group, options), nothing)
            .await
    }
    async fn append(&self, stream: &StreamName, event: NewEvent) -> Result<Event> {
        self.write(self.store.append(stream, event), nothing).await
    }
    async fn append_batch(&self, stream: &StreamName, events: Vec<NewEvent>) -> Result<Vec<Event>> {
        self.write(self.store.append_batch(stream, events), nothing)
            .await
    }
    async fn read(&self, stream: &StreamName, options: &ReadOptions) -> Result<Vec<Event>> {
        self.read_only(self.store.read(stream, options)).await
    }
    async fn query(&self, stream: &StreamName, query: &Query) -> Result<Page> {
        self.read_only(self.store.query(stream, query)).await
    }
    async fn fetch(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let claimed = |leases: &Vec<Lease>| {
            let leases = leases.iter().cloned();
            leases.map(|lease| (lease, What::Claimed)).collect()
        };
        self.write(self.store.fetch(stream, group, options), claimed)
            .await
    }
    async fn renew(&self, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = |renewed: &Lease| vec![(renewed.clone(), What::Renewed)];
        self.write(self.store.renew(lease, duration), renewed).await
    }
    async fn ack(&self, lease: &Lease) -> Result<()> {
        let acked = |_: &()| vec![(lease.clone(), What::Acked)];
        self.write(self.store.ack(lease), acked).await
    }
    async fn retry(&self, lease: &Lease, options: &RetryOptions) -> Result<RetryOutcome> {
        let retried = |_: &RetryOutcome| vec![(lease.clone(), What::Retried)];
        self.write(self.store.retry(lease, options), retried).await
    }
    async fn reject(&self, lease: &Lease, reason: &Reason) -> Result<()> {
        let rejected = |_: &()| vec![(lease.clone(), What::Rejected)];
        self.write(self.store.reject(lease, reason), rejected).await
    }
    async fn replay(&self, stream: &StreamName, group: &GroupName, replay: &Replay) -> Result<()> {
        let reopened = |_: &()| self.journal.reopened_by(stream, group, replay);
        self.write(self.store.replay(stream, group, replay), reopened)
            .await
    }
    async fn reset_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let reopened = |_: &()| self.journal.reset(stream, group, &options.partitions);
        self.write(self.store.reset_group(stream, group, options), reopened)
            .await
    }
    async fn lag(&self, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        self.read_only(self.store.lag(stream, group)).await
    }
    async fn list_streams(&self, options: &ListOptions<StreamName>) -> Result<Vec<StreamInfo>> {
        self.read_only(self.store.list_streams(options)).await
    }
    async fn list_groups(
        &self,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        self.read_only(self.store.list_groups(stream, options))
            .await
    }
    async fn dead_letters(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        self.read_only(self.store.dead_letters(stream, group, options))
            .await
    }
    async fn group_info(&self, stream: &StreamName, group: &GroupName) -> Result<GroupInfo> {
        self.read_only(self.store.group_info(stream, group)).await
    }
    async fn wait_for_work(
        &self,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        self.read_only(self.store.wait_for_work(stream, group, timeout))
            .await
    }
}
