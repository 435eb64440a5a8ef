//! A backend that notes every call and its result in the history.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rheo_core::{
    Backend, Capabilities, DeadLetter, DeadLetterOptions, Event, FetchOptions, GroupInfo,
    GroupName, GroupOptions, Lag, Lease, LeaseDuration, ListOptions, NewEvent, Page, Query,
    ReadOptions, Reason, Replay, ResetOptions, Result, RetryOptions, RetryOutcome, StreamInfo,
    StreamName, StreamOptions, Wakeup,
};

use crate::describe::{Append, Brief, Fetch, Leases, Placed, QueryText, Results, Shown, ok};
use crate::history::History;

/// The backend under test, with every call on record.
#[derive(Clone)]
pub(crate) struct Recorder {
    label: &'static str,
    backend: Arc<dyn Backend>,
    history: Arc<History>,
}

impl Recorder {
    /// `label` tells handles apart in the history; empty for the first.
    pub(crate) fn new(
        label: &'static str,
        backend: Arc<dyn Backend>,
        history: Arc<History>,
    ) -> Self {
        Self {
            label,
            backend,
            history,
        }
    }

    /// What tells it apart in the history.
    pub(crate) fn label(&self) -> &'static str {
        self.label
    }

    /// The backend itself, for a look that is not worth recording.
    pub(crate) fn unrecorded(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    async fn record<T: Brief>(
        &self,
        what: impl fmt::Display,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let at = self.history.begin(format_args!("{}{what}", self.label));
        let result = call.await;
        match &result {
            Ok(value) => self.history.end(at, ok(value)),
            Err(error) => {
                self.history
                    .end(at, format_args!("Err({}): {error}", error.kind()));
                self.history.look_at(at, error);
            }
        }
        result
    }

    async fn record_batch<T: fmt::Debug>(
        &self,
        what: impl fmt::Display,
        call: impl Future<Output = Vec<Result<T>>>,
    ) -> Vec<Result<T>> {
        let at = self.history.begin(format_args!("{}{what}", self.label));
        let results = call.await;
        self.history.end(at, Results(&results));
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            self.history.look_at(at, error);
        }
        results
    }
}

#[async_trait]
impl Backend for Recorder {
    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    async fn close(&self) -> Result<()> {
        self.record("close", self.backend.close()).await
    }

    async fn ensure_indexes(&self) -> Result<()> {
        self.record("ensure_indexes", self.backend.ensure_indexes())
            .await
    }

    async fn ping(&self) -> Result<()> {
        self.record("ping", self.backend.ping()).await
    }

    async fn create_stream(&self, stream: &StreamName, options: &StreamOptions) -> Result<()> {
        let count = options.partition_count.get();
        let what = format_args!("create_stream({stream:?}, {count} partitions)").to_string();
        self.record(what, self.backend.create_stream(stream, options))
            .await
    }

    async fn create_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        let (start, max) = (&options.start, options.max_attempts.get());
        let what = format!("create_group({stream:?}, {group:?}, {start:?}, max_attempts {max})");
        self.record(what, self.backend.create_group(stream, group, options))
            .await
    }

    async fn append(&self, stream: &StreamName, event: NewEvent) -> Result<Event> {
        let what = format!("append({stream:?}, {})", Append(&event));
        let call = self.backend.append(stream, event);
        self.record(what, call).await
    }

    async fn append_batch(&self, stream: &StreamName, events: Vec<NewEvent>) -> Result<Vec<Event>> {
        let what = format!("append_batch({stream:?}, {})", Shown(&events, Append));
        let call = self.backend.append_batch(stream, events);
        self.record(what, call).await
    }

    async fn read(&self, stream: &StreamName, options: &ReadOptions) -> Result<Vec<Event>> {
        let ReadOptions {
            partition,
            after,
            limit,
            ..
        } = options;
        let what = format!("read({stream:?}, {partition:?}, after {after:?}, limit {limit})");
        self.record(what, self.backend.read(stream, options)).await
    }

    async fn query(&self, stream: &StreamName, query: &Query) -> Result<Page> {
        let what = format!("query({stream:?}, {})", QueryText(query));
        self.record(what, self.backend.query(stream, query)).await
    }

    async fn fetch(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let what = format!("fetch({stream:?}, {group:?}, {})", Fetch(options));
        let call = self.backend.fetch(stream, group, options);
        self.record(what, call).await
    }

    async fn renew(&self, lease: &Lease, duration: LeaseDuration) -> Result<Lease> {
        let what = format!("renew({}, {:?})", Placed(lease), duration.as_duration());
        let call = self.backend.renew(lease, duration);
        self.record(what, call).await
    }

    async fn ack(&self, lease: &Lease) -> Result<()> {
        let what = format!("ack({})", Placed(lease));
        self.record(what, self.backend.ack(lease)).await
    }

    async fn retry(&self, lease: &Lease, options: &RetryOptions) -> Result<RetryOutcome> {
        let what = format!(
            "retry({}, delay {:?}, reason {:?})",
            Placed(lease),
            options.delay.as_duration(),
            options.reason
        );
        self.record(what, self.backend.retry(lease, options)).await
    }

    async fn reject(&self, lease: &Lease, reason: &Reason) -> Result<()> {
        let what = format!("reject({}, {reason:?})", Placed(lease));
        self.record(what, self.backend.reject(lease, reason)).await
    }

    async fn renew_batch(&self, leases: &[Lease], duration: LeaseDuration) -> Vec<Result<Lease>> {
        let what = format!(
            "renew_batch({}, {:?})",
            Leases(leases),
            duration.as_duration()
        );
        self.record_batch(what, self.backend.renew_batch(leases, duration))
            .await
    }

    async fn ack_batch(&self, leases: &[Lease]) -> Vec<Result<()>> {
        let what = format!("ack_batch({})", Leases(leases));
        self.record_batch(what, self.backend.ack_batch(leases))
            .await
    }

    async fn retry_batch(
        &self,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        let delay = options.delay.as_duration();
        let what = format!("retry_batch({}, delay {delay:?})", Leases(leases));
        self.record_batch(what, self.backend.retry_batch(leases, options))
            .await
    }

    async fn reject_batch(&self, leases: &[Lease], reason: &Reason) -> Vec<Result<()>> {
        let what = format!("reject_batch({}, {reason:?})", Leases(leases));
        self.record_batch(what, self.backend.reject_batch(leases, reason))
            .await
    }

    async fn replay(&self, stream: &StreamName, group: &GroupName, replay: &Replay) -> Result<()> {
        let what = format!("replay({stream:?}, {group:?}, {replay:?})");
        self.record(what, self.backend.replay(stream, group, replay))
            .await
    }

    async fn reset_group(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let (start, partitions) = (&options.start, &options.partitions);
        let what = format!("reset_group({stream:?}, {group:?}, {start:?}, {partitions:?})");
        self.record(what, self.backend.reset_group(stream, group, options))
            .await
    }

    async fn lag(&self, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let what = format!("lag({stream:?}, {group:?})");
        self.record(what, self.backend.lag(stream, group)).await
    }

    async fn list_streams(&self, options: &ListOptions<StreamName>) -> Result<Vec<StreamInfo>> {
        let what = format!(
            "list_streams(after {:?}, limit {})",
            options.after, options.limit
        );
        self.record(what, self.backend.list_streams(options)).await
    }

    async fn list_groups(
        &self,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        let ListOptions { after, limit, .. } = options;
        let what = format!("list_groups({stream:?}, after {after:?}, limit {limit})");
        self.record(what, self.backend.list_groups(stream, options))
            .await
    }

    async fn dead_letters(
        &self,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let DeadLetterOptions { after, limit, .. } = options;
        let what = format!("dead_letters({stream:?}, {group:?}, after {after:?}, limit {limit})");
        self.record(what, self.backend.dead_letters(stream, group, options))
            .await
    }

    async fn group_info(&self, stream: &StreamName, group: &GroupName) -> Result<GroupInfo> {
        let what = format!("group_info({stream:?}, {group:?})");
        self.record(what, self.backend.group_info(stream, group))
            .await
    }

    async fn wait_for_work(
        &self,
        stream: &StreamName,
        group: &GroupName,
        timeout: Duration,
    ) -> Result<Wakeup> {
        let what = format!("wait_for_work({stream:?}, {group:?}, {timeout:?})");
        self.record(what, self.backend.wait_for_work(stream, group, timeout))
            .await
    }
}
