//! The line between a handle and its store: where calls wait, and where things go wrong.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rheo_contract::{Fault, FaultInjector};
use rheo_core::{
    Backend, Capabilities, Cause, DeadLetter, DeadLetterOptions, Error, Event, FetchOptions,
    GroupInfo, GroupName, GroupOptions, Lag, Lease, LeaseDuration, ListOptions, NewEvent, Page,
    Query, ReadOptions, Reason, Replay, ResetOptions, Result, RetryOptions, RetryOutcome,
    StreamInfo, StreamName, StreamOptions, Wakeup, async_trait,
};
use tokio::task::yield_now;

use crate::book::held;
use crate::journal::{Journal, Late, What};

/// The timeout of a request whose answer does not come.
const TIMEOUT: Duration = Duration::from_millis(30);
/// A slow request: so many pauses, each of this length.
const PAUSES: usize = 8;
const PAUSE: Duration = Duration::from_millis(1);

/// Why an operation has no answer, as a driver tells it.
pub(crate) const REFUSED: &str = "the connection was refused";
pub(crate) const LOST: &str = "the connection was lost";
pub(crate) const TIMED_OUT: &str = "no answer came in time";

/// Whether an error says that.
pub(crate) fn is(error: &Error, why: &str) -> bool {
    match error {
        Error::Ambiguous(cause) | Error::BackendUnavailable(cause) => cause.as_str() == why,
        _ => false,
    }
}

/// Whether a write was sent, and had no answer in time.
pub(crate) fn has_no_answer<T>(answer: &Result<T>) -> bool {
    let is_late = |error: &Error| matches!(error, Error::Ambiguous(_)) && is(error, TIMED_OUT);
    answer.as_ref().is_err_and(is_late)
}

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
pub(crate) struct Line {
    plan: Mutex<Plan>,
    pub(crate) late: Arc<Late>,
}

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
    /// It has no answer in time, and arrives when the store is healed.
    Late,
}

/// A call that was held back, as an owner of its arguments: `late!(self, [lent, …] store => call)`.
macro_rules! late {
    ($link:ident, [$($lent:ident),*] $store:ident => $call:expr) => {{
        let $store = Arc::clone(&$link.store);
        $(let $lent = $lent.clone();)*
        async move {
            let _ = $call.await;
        }
    }};
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
            Some(Fault::HoldRequest) => {
                tokio::time::sleep(TIMEOUT).await;
                Fate::Late
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

    fn plan(&self) -> MutexGuard<'_, Plan> {
        held(&self.plan)
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
        let healed = self.plan().armed.take();
        let late = self.late.take();
        if healed == Some(Fault::HoldRequest) {
            for late in late {
                late.await;
            }
        }
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
            Fate::Late => Err(unavailable(TIMED_OUT)),
        }
    }

    /// An operation that writes; `done` writes down what it did, `late` is the same call for when it was
    /// held back.
    async fn write<T>(
        &self,
        operation: impl Future<Output = Result<T>> + Send,
        late: impl Future<Output = ()> + Send + 'static,
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
            Fate::Late => {
                self.line.late.hold(late);
                return ambiguous(TIMED_OUT);
            }
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
            Fate::Late => Err(unavailable(TIMED_OUT)),
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
        let late = late!(self, [] store => store.ensure_indexes());
        self.write(self.store.ensure_indexes(), late, nothing).await
    }
    async fn ping(&self) -> Result<()> {
        self.read_only(self.store.ping()).await
    }
    async fn create_stream(&self, stream: &StreamName, options: &StreamOptions) -> Result<()> {
        let late = late!(self, [stream, options] store => store.create_stream(&stream, &options));
        self.write(self.store.create_stream(stream, options), late, nothing)
            .await
    }
    async fn create_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let late = late!(self, [stream, group, options] store => {
            store.create_group(&stream, &group, &options)
        });
        let created = self.store.create_group(stream, group, options);
        self.write(created, late, nothing).await
    }
    async fn append(&self, stream: &StreamName, event: NewEvent) -> Result<Event> {
        let late = late!(self, [stream, event] store => store.append(&stream, event));
        self.write(self.store.append(stream, event), late, nothing)
            .await
    }
    async fn append_batch(&self, stream: &StreamName, events: Vec<NewEvent>) -> Result<Vec<Event>> {
        let late = late!(self, [stream, events] store => store.append_batch(&stream, events));
        self.write(self.store.append_batch(stream, events), late, nothing)
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
        let late = late!(self, [stream, group, options] store => {
            store.fetch(&stream, &group, &options)
        });
        self.write(self.store.fetch(stream, group, options), late, claimed)
            .await
    }
    async fn renew(&self, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let renewed = |renewed: &Lease| vec![(renewed.clone(), What::Renewed)];
        let late = late!(self, [lease] store => store.renew(&lease, duration));
        self.write(self.store.renew(lease, duration), late, renewed)
            .await
    }
    async fn ack(&self, lease: &Lease) -> Result<()> {
        let acked = |_: &()| vec![(lease.clone(), What::Acked)];
        let late = late!(self, [lease] store => store.ack(&lease));
        self.write(self.store.ack(lease), late, acked).await
    }
    async fn retry(&self, lease: &Lease, options: &RetryOptions) -> Result<RetryOutcome> {
        let retried = |_: &RetryOutcome| vec![(lease.clone(), What::Retried)];
        let late = late!(self, [lease, options] store => store.retry(&lease, &options));
        self.write(self.store.retry(lease, options), late, retried)
            .await
    }
    async fn reject(&self, lease: &Lease, reason: &Reason) -> Result<()> {
        let rejected = |_: &()| vec![(lease.clone(), What::Rejected)];
        let late = late!(self, [lease, reason] store => store.reject(&lease, &reason));
        self.write(self.store.reject(lease, reason), late, rejected)
            .await
    }
    async fn replay(&self, stream: &StreamName, group: &GroupName, replay: &Replay) -> Result<()> {
        let reopened = |_: &()| self.journal.reopened_by(stream, group, replay);
        let late = late!(self, [stream, group, replay] store => {
            store.replay(&stream, &group, &replay)
        });
        self.write(self.store.replay(stream, group, replay), late, reopened)
            .await
    }
    async fn reset_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let reopened = |_: &()| self.journal.reset(stream, group, &options.partitions);
        let late = late!(self, [stream, group, options] store => {
            store.reset_group(&stream, &group, &options)
        });
        let reset = self.store.reset_group(stream, group, options);
        self.write(reset, late, reopened).await
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
