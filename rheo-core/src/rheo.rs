//! The facade that applications call: input is checked once here, for all backends.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Backend, Capabilities, Confirm, DeadLetter, DeadLetterOptions, Error, Event, EventId,
    FetchOptions, GroupInfo, GroupName, GroupOptions, Lag, Lease, LeaseDuration, ListOptions,
    NewEvent, Page, Query, ReadOptions, Reason, Replay, ResetOptions, Result, RetryOptions,
    RetryOutcome, StreamInfo, StreamName, StreamOptions, Timestamp, Wakeup,
};

/// A handle on a backend, with everything that is the same for all backends.
///
/// Cheap to clone. Several can live in one process, on one backend or on several; the name tells
/// them apart in logs.
///
/// Names are taken as text or as checked values: `rheo.append("orders", …)` and
/// `rheo.append(&orders, …)` are the same. Bad input gives [`Error::Invalid`] with the argument's
/// name, and nothing is written.
///
/// Every future may be dropped at any await point (CAN-1); the docs of [`Backend`] say what each
/// operation guarantees.
#[derive(Clone)]
pub struct Rheo {
    name: Arc<str>,
    backend: Arc<dyn Backend>,
}

impl fmt::Debug for Rheo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rheo")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn checked<T, S>(text: S) -> Result<T>
where
    S: TryInto<T>,
    Error: From<S::Error>,
{
    Ok(text.try_into()?)
}

impl Rheo {
    /// An instance named `rheo`.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self::named("rheo", backend)
    }

    /// An instance with a name of its own.
    pub fn named(name: impl AsRef<str>, backend: Arc<dyn Backend>) -> Self {
        Self {
            name: name.as_ref().into(),
            backend,
        }
    }

    /// The instance's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The backend behind it.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// What the backend declares.
    pub fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    /// Ends the backend's handle; see [`Backend::close`].
    ///
    /// # Errors
    ///
    /// As the backend's.
    pub async fn close(&self) -> Result<()> {
        self.backend.close().await
    }

    /// Makes what the backend needs in its store; see [`Backend::ensure_indexes`].
    ///
    /// # Errors
    ///
    /// As the backend's.
    pub async fn ensure_indexes(&self) -> Result<()> {
        self.backend.ensure_indexes().await
    }

    /// Whether the store answers; see [`Backend::ping`].
    ///
    /// # Errors
    ///
    /// As the backend's.
    pub async fn ping(&self) -> Result<()> {
        self.backend.ping().await
    }

    /// Makes a stream; see [`Backend::create_stream`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream`, else as the backend's.
    pub async fn create_stream<S>(&self, stream: S, options: &StreamOptions) -> Result<()>
    where
        S: TryInto<StreamName>,
        Error: From<S::Error>,
    {
        self.backend.create_stream(&checked(stream)?, options).await
    }

    /// Makes a consumer group; see [`Backend::create_group`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream`, `group` or `start`, else as the backend's.
    pub async fn create_group<S, G>(
        &self,
        stream: S,
        group: G,
        options: &GroupOptions,
    ) -> Result<()>
    where
        S: TryInto<StreamName>,
        G: TryInto<GroupName>,
        Error: From<S::Error> + From<G::Error>,
    {
        let (stream, group) = (checked(stream)?, checked(group)?);
        self.backend.create_group(&stream, &group, options).await
    }

    /// Appends one event; see [`Backend::append`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream` or beyond the backend's limits, else as the backend's.
    pub async fn append<S>(&self, stream: S, event: NewEvent) -> Result<Event>
    where
        S: TryInto<StreamName>,
        Error: From<S::Error>,
    {
        let stream = checked(stream)?;
        self.capabilities()
            .limits()
            .check(std::slice::from_ref(&event))?;
        self.backend.append(&stream, event).await
    }

    /// Appends events; see [`Backend::append_batch`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream` or beyond the backend's limits, else as the backend's.
    pub async fn append_batch<S>(&self, stream: S, events: Vec<NewEvent>) -> Result<Vec<Event>>
    where
        S: TryInto<StreamName>,
        Error: From<S::Error>,
    {
        let stream = checked(stream)?;
        self.capabilities().limits().check(&events)?;
        self.backend.append_batch(&stream, events).await
    }

    /// Reads a partition; see [`Backend::read`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream`, else as the backend's.
    pub async fn read<S>(&self, stream: S, options: &ReadOptions) -> Result<Vec<Event>>
    where
        S: TryInto<StreamName>,
        Error: From<S::Error>,
    {
        self.backend.read(&checked(stream)?, options).await
    }

    /// One page of a query; the next is the same query with [`Page::next`] as its cursor.
    /// See [`Backend::query`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream`, `payload`, `metadata` or `cursor`, else as the backend's.
    pub async fn query_page<S>(&self, stream: S, query: &Query) -> Result<Page>
    where
        S: TryInto<StreamName>,
        Error: From<S::Error>,
    {
        let stream: StreamName = checked(stream)?;
        self.page(&stream, query).await
    }

    async fn page(&self, stream: &StreamName, query: &Query) -> Result<Page> {
        query.check_fields()?;
        self.backend.query(stream, query).await
    }

    /// All events of a query, page by page; the query's limit is the size of a page, and its cursor
    /// where to begin.
    ///
    /// The stream ends after the first error. Dropping it loses nothing.
    ///
    /// # Errors
    ///
    /// The items: `Invalid` for a `limit` of 0, else as [`query_page`](Self::query_page).
    ///
    /// ```
    /// use futures_util::TryStreamExt;
    /// use rheo_core::{Event, Query, Rheo};
    ///
    /// async fn all(rheo: &Rheo) -> rheo_core::Result<Vec<Event>> {
    ///     rheo.query_stream("orders", Query::new())?.try_collect().await
    /// }
    /// ```
    #[cfg(feature = "stream")]
    pub fn query_stream<S>(
        &self,
        stream: S,
        query: Query,
    ) -> Result<impl futures_core::Stream<Item = Result<Event>> + Send + use<S>>
    where
        S: TryInto<StreamName>,
        Error: From<S::Error>,
    {
        use futures_util::{StreamExt, TryStreamExt, stream};

        let name: StreamName = checked(stream)?;
        check_page_size(&query)?;
        let rheo = self.clone();
        let pages = stream::try_unfold(Some(query), move |query| {
            let (rheo, name) = (rheo.clone(), name.clone());
            async move {
                let Some(query) = query else {
                    return Ok::<_, Error>(None);
                };
                let page = rheo.page(&name, &query).await?;
                let next = page.next.map(|cursor| query.with_cursor(cursor));
                Ok(Some((page.events, next)))
            }
        });
        Ok(pages
            .map_ok(|events| stream::iter(events.into_iter().map(Ok)))
            .try_flatten()
            .boxed())
    }

    /// Claims events; see [`Backend::fetch`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream`, `group` or `partitions`, else as the backend's.
    pub async fn fetch<S, G>(
        &self,
        stream: S,
        group: G,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>>
    where
        S: TryInto<StreamName>,
        G: TryInto<GroupName>,
        Error: From<S::Error> + From<G::Error>,
    {
        let (stream, group) = (checked(stream)?, checked(group)?);
        self.backend.fetch(&stream, &group, options).await
    }

    /// Renews a lease from now on; see [`Backend::renew`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `lease_duration`, else as the backend's.
    pub async fn renew(&self, lease: &Lease, duration: Duration) -> Result<Lease> {
        self.backend
            .renew(lease, LeaseDuration::new(duration)?)
            .await
    }

    /// Renews many leases, one result each; see [`Backend::renew_batch`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `lease_duration`; the results inside are as of [`renew`](Self::renew).
    pub async fn renew_batch(
        &self,
        leases: &[Lease],
        duration: Duration,
    ) -> Result<Vec<Result<Lease>>> {
        Ok(self
            .backend
            .renew_batch(leases, LeaseDuration::new(duration)?)
            .await)
    }

    /// Settles a lease as done; see [`Backend::ack`].
    ///
    /// # Errors
    ///
    /// As the backend's.
    pub async fn ack(&self, lease: &Lease) -> Result<()> {
        self.backend.ack(lease).await
    }

    /// Settles many leases as done, one result each; see [`Backend::ack_batch`].
    pub async fn ack_batch(&self, leases: &[Lease]) -> Vec<Result<()>> {
        self.backend.ack_batch(leases).await
    }

    /// Gives an event back; see [`Backend::retry`].
    ///
    /// # Errors
    ///
    /// As the backend's.
    pub async fn retry(&self, lease: &Lease, options: &RetryOptions) -> Result<RetryOutcome> {
        self.backend.retry(lease, options).await
    }

    /// Gives many events back, one result each; see [`Backend::retry_batch`].
    pub async fn retry_batch(
        &self,
        leases: &[Lease],
        options: &RetryOptions,
    ) -> Vec<Result<RetryOutcome>> {
        self.backend.retry_batch(leases, options).await
    }

    /// Gives up on an event; see [`Backend::reject`].
    ///
    /// # Errors
    ///
    /// As the backend's.
    pub async fn reject(&self, lease: &Lease, reason: impl Into<Reason>) -> Result<()> {
        self.backend.reject(lease, &reason.into()).await
    }

    /// Gives up on many events, one result each; see [`Backend::reject_batch`].
    pub async fn reject_batch(
        &self,
        leases: &[Lease],
        reason: impl Into<Reason>,
    ) -> Vec<Result<()>> {
        self.backend.reject_batch(leases, &reason.into()).await
    }

    /// Makes delivered events claimable again; see [`Backend::replay`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream`, `group`, `partitions` or `events`, else as the backend's.
    pub async fn replay<S, G>(&self, stream: S, group: G, replay: &Replay) -> Result<()>
    where
        S: TryInto<StreamName>,
        G: TryInto<GroupName>,
        Error: From<S::Error> + From<G::Error>,
    {
        let (stream, group) = (checked(stream)?, checked(group)?);
        self.backend.replay(&stream, &group, replay).await
    }

    /// Makes everything from the first event at or after a time claimable again, in every
    /// partition: one atomic [`Backend::replay`] after one query per partition.
    ///
    /// # Errors
    ///
    /// `Unsupported` without `replay`, `contiguous_frontier` and `ordered_range_scan`; `Invalid`
    /// for `stream` or `group`, else as the backend's. Nothing is reopened then, but after
    /// `Ambiguous`.
    pub async fn replay_from_time<S, G>(&self, stream: S, group: G, time: Timestamp) -> Result<()>
    where
        S: TryInto<StreamName>,
        G: TryInto<GroupName>,
        Error: From<S::Error> + From<G::Error>,
    {
        let (stream, group): (StreamName, GroupName) = (checked(stream)?, checked(group)?);
        let mut after = BTreeMap::new();
        for progress in self.backend.lag(&stream, &group).await?.partitions {
            let first = Query::new()
                .with_partition(progress.partition)
                .with_from(time)
                .with_limit(1);
            if let Some(event) = self.backend.query(&stream, &first).await?.events.first() {
                after.insert(progress.partition, event.sequence.previous());
            }
        }
        self.backend
            .replay(&stream, &group, &Replay::AfterEach(after))
            .await
    }

    /// Makes the delivered events of a query claimable again (RPL-4): the pages first, then one
    /// atomic [`Backend::replay`]. Gives the number of events that matched.
    ///
    /// # Errors
    ///
    /// `Unsupported` without `replay` and `ordered_range_scan`; `Invalid` for `stream`, `group` or
    /// a `limit` of 0, else as the backend's. Nothing is reopened then, but after `Ambiguous`.
    pub async fn replay_query<S, G>(&self, stream: S, group: G, query: Query) -> Result<usize>
    where
        S: TryInto<StreamName>,
        G: TryInto<GroupName>,
        Error: From<S::Error> + From<G::Error>,
    {
        let (stream, group): (StreamName, GroupName) = (checked(stream)?, checked(group)?);
        check_page_size(&query)?;
        let mut chosen: BTreeSet<EventId> = BTreeSet::new();
        let mut page_of = Some(query);
        while let Some(query) = page_of {
            let page = self.page(&stream, &query).await?;
            chosen.extend(page.events.iter().map(|event| event.id));
            page_of = page.next.map(|cursor| query.with_cursor(cursor));
        }
        let matched = chosen.len();
        let replay = Replay::Events(chosen.into_iter().collect());
        self.backend.replay(&stream, &group, &replay).await?;
        Ok(matched)
    }

    /// Drops a group's delivery state and starts it again; see [`Backend::reset_group`].
    ///
    /// # Errors
    ///
    /// `ConfirmRequired` without [`Confirm::Yes`]; `Invalid` for `stream`, `group`, `partitions` or
    /// `start`, else as the backend's.
    pub async fn reset_group<S, G>(
        &self,
        stream: S,
        group: G,
        options: &ResetOptions,
        confirm: Confirm,
    ) -> Result<()>
    where
        S: TryInto<StreamName>,
        G: TryInto<GroupName>,
        Error: From<S::Error> + From<G::Error>,
    {
        let (stream, group) = (checked(stream)?, checked(group)?);
        match confirm {
            Confirm::Yes => self.backend.reset_group(&stream, &group, options).await,
            Confirm::No => Err(Error::ConfirmRequired),
        }
    }

    /// A group's frontier, high watermark and lag; see [`Backend::lag`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream` or `group`, else as the backend's.
    pub async fn lag<S, G>(&self, stream: S, group: G) -> Result<Lag>
    where
        S: TryInto<StreamName>,
        G: TryInto<GroupName>,
        Error: From<S::Error> + From<G::Error>,
    {
        self.backend.lag(&checked(stream)?, &checked(group)?).await
    }

    /// Lists streams; see [`Backend::list_streams`].
    ///
    /// # Errors
    ///
    /// As the backend's.
    pub async fn list_streams(&self, options: &ListOptions<StreamName>) -> Result<Vec<StreamInfo>> {
        self.backend.list_streams(options).await
    }

    /// Lists a stream's groups; see [`Backend::list_groups`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream`, else as the backend's.
    pub async fn list_groups<S>(
        &self,
        stream: S,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>>
    where
        S: TryInto<StreamName>,
        Error: From<S::Error>,
    {
        self.backend.list_groups(&checked(stream)?, options).await
    }

    /// Pages through a group's dead letters; see [`Backend::dead_letters`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream` or `group`, else as the backend's.
    pub async fn dead_letters<S, G>(
        &self,
        stream: S,
        group: G,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>>
    where
        S: TryInto<StreamName>,
        G: TryInto<GroupName>,
        Error: From<S::Error> + From<G::Error>,
    {
        let (stream, group) = (checked(stream)?, checked(group)?);
        self.backend.dead_letters(&stream, &group, options).await
    }

    /// Describes a group; see [`Backend::group_info`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream` or `group`, else as the backend's.
    pub async fn group_info<S, G>(&self, stream: S, group: G) -> Result<GroupInfo>
    where
        S: TryInto<StreamName>,
        G: TryInto<GroupName>,
        Error: From<S::Error> + From<G::Error>,
    {
        self.backend
            .group_info(&checked(stream)?, &checked(group)?)
            .await
    }

    /// Waits until something might be claimable; see [`Backend::wait_for_work`].
    ///
    /// # Errors
    ///
    /// `Invalid` for `stream` or `group`, else as the backend's.
    pub async fn wait_for_work<S, G>(
        &self,
        stream: S,
        group: G,
        timeout: Duration,
    ) -> Result<Wakeup>
    where
        S: TryInto<StreamName>,
        G: TryInto<GroupName>,
        Error: From<S::Error> + From<G::Error>,
    {
        let (stream, group) = (checked(stream)?, checked(group)?);
        self.backend.wait_for_work(&stream, &group, timeout).await
    }
}

fn check_page_size(query: &Query) -> Result<()> {
    if query.limit() == 0 {
        return Err(Error::invalid("limit", 0, "1 or more events a page"));
    }
    Ok(())
}
