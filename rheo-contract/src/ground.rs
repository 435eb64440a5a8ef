//! The ground that backends stand on: one runtime for all cases, which what a harness keeps between
//! cases may rely on. A case itself runs on threads of its own, so that one that blocks holds up no other.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use rheo_core::{
    Backend, Capabilities, Clock, DeadLetter, DeadLetterOptions, Event, FetchOptions, GroupInfo,
    GroupName, GroupOptions, Lag, Lease, LeaseDuration, ListOptions, NewEvent, Page, Query,
    ReadOptions, Reason, Replay, ResetOptions, Result, RetryOptions, RetryOutcome, StreamInfo,
    StreamName, StreamOptions, Wakeup,
};
use tokio::runtime::Handle;

use crate::faults::{Fault, FaultInjector};
use crate::harness::{
    ClockControl, Harness, HarnessError, Namespace, Opened, OpenedFaulty, Server,
};

/// A future whose connections, timers and tasks are those of another runtime, whoever polls it.
struct On<F> {
    future: Option<F>,
    ground: Handle,
}

impl<F: Future + Unpin> Future for On<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _entered = this.ground.enter();
        match &mut this.future {
            Some(future) => Pin::new(future).poll(context),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for On<F> {
    fn drop(&mut self) {
        let _entered = self.ground.enter();
        self.future = None;
    }
}

/// Something that works on the ground, and is dropped there.
pub(crate) struct Grounded<T> {
    inner: Option<T>,
    ground: Handle,
}

impl<T> Grounded<T> {
    pub(crate) fn new(inner: T, ground: &Handle) -> Self {
        Self {
            inner: Some(inner),
            ground: ground.clone(),
        }
    }

    /// Begins something on the ground.
    fn on<'a, R>(
        &'a self,
        begin: impl FnOnce(&'a T) -> Pin<Box<dyn Future<Output = R> + Send + 'a>>,
    ) -> On<Pin<Box<dyn Future<Output = R> + Send + 'a>>> {
        let _entered = self.ground.enter();
        On {
            future: self.inner.as_ref().map(begin),
            ground: self.ground.clone(),
        }
    }

    fn inner(&self) -> &T {
        match &self.inner {
            Some(inner) => inner,
            None => unreachable!("it is taken when this is dropped, and not before"),
        }
    }
}

impl<T> Drop for Grounded<T> {
    fn drop(&mut self) {
        let _entered = self.ground.enter();
        self.inner = None;
    }
}

impl Grounded<Arc<dyn Harness>> {
    fn backend(&self, opened: Opened) -> Opened {
        Ok(Arc::new(Grounded::new(opened?, &self.ground)))
    }
}

#[async_trait]
impl Harness for Grounded<Arc<dyn Harness>> {
    fn name(&self) -> &str {
        self.inner().name()
    }

    fn version(&self) -> &str {
        self.inner().version()
    }

    async fn open(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.backend(self.on(|harness| harness.open(namespace, clock)).await)
    }

    fn clock_control(&self) -> ClockControl {
        self.inner().clock_control()
    }

    fn secrets(&self) -> Vec<String> {
        self.inner().secrets()
    }

    async fn server(&self) -> Result<Option<Server>, HarnessError> {
        self.on(|harness| harness.server()).await
    }

    async fn second_handle(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.backend(
            self.on(|harness| harness.second_handle(namespace, clock))
                .await,
        )
    }

    async fn narrow_handle(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.backend(
            self.on(|harness| harness.narrow_handle(namespace, clock))
                .await,
        )
    }

    async fn reopen(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.backend(self.on(|harness| harness.reopen(namespace, clock)).await)
    }

    async fn open_via(
        &self,
        namespace: &Namespace,
        clock: Arc<dyn Clock>,
        address: SocketAddr,
    ) -> Opened {
        self.backend(
            self.on(|harness| harness.open_via(namespace, clock, address))
                .await,
        )
    }

    async fn store_address(&self) -> Result<SocketAddr, HarnessError> {
        self.on(|harness| harness.store_address()).await
    }

    async fn open_faulty(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> OpenedFaulty {
        let (backend, injector) = self
            .on(|harness| harness.open_faulty(namespace, clock))
            .await?;
        Ok((
            Arc::new(Grounded::new(backend, &self.ground)),
            Arc::new(Grounded::new(injector, &self.ground)),
        ))
    }

    async fn open_unreachable(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        self.backend(
            self.on(|harness| harness.open_unreachable(namespace, clock))
                .await,
        )
    }

    async fn restart_store(&self, namespace: &Namespace) -> Result<(), HarnessError> {
        self.on(|harness| harness.restart_store(namespace)).await
    }

    async fn discard(&self, namespace: &Namespace) -> Result<(), HarnessError> {
        self.on(|harness| harness.discard(namespace)).await
    }
}

#[async_trait]
impl FaultInjector for Grounded<Arc<dyn FaultInjector>> {
    async fn arm(&self, fault: Fault, nth: u32) -> bool {
        self.on(|injector| injector.arm(fault, nth)).await
    }

    fn has_struck(&self) -> bool {
        self.inner().has_struck()
    }

    async fn heal(&self) {
        self.on(|injector| injector.heal()).await;
    }
}

macro_rules! backend_on_the_ground {
    ($($method:ident($($arg:ident: $type:ty),*) -> $result:ty;)+) => {
        #[async_trait]
        impl Backend for Grounded<Arc<dyn Backend>> {
            fn capabilities(&self) -> Capabilities {
                let _entered = self.ground.enter();
                self.inner().capabilities()
            }
            $(async fn $method(&self, $($arg: $type),*) -> $result {
                self.on(|backend| backend.$method($($arg),*)).await
            })+
        }
    };
}

backend_on_the_ground! {
    close() -> Result<()>;
    ensure_indexes() -> Result<()>;
    ping() -> Result<()>;
    create_stream(stream: &StreamName, options: &StreamOptions) -> Result<()>;
    create_group(stream: &StreamName, group: &GroupName, options: &GroupOptions) -> Result<()>;
    append(stream: &StreamName, event: NewEvent) -> Result<Event>;
    append_batch(stream: &StreamName, events: Vec<NewEvent>) -> Result<Vec<Event>>;
    read(stream: &StreamName, options: &ReadOptions) -> Result<Vec<Event>>;
    query(stream: &StreamName, query: &Query) -> Result<Page>;
    fetch(stream: &StreamName, group: &GroupName, options: &FetchOptions) -> Result<Vec<Lease>>;
    renew(lease: &Lease, duration: LeaseDuration) -> Result<Lease>;
    ack(lease: &Lease) -> Result<()>;
    retry(lease: &Lease, options: &RetryOptions) -> Result<RetryOutcome>;
    reject(lease: &Lease, reason: &Reason) -> Result<()>;
    renew_batch(leases: &[Lease], duration: LeaseDuration) -> Vec<Result<Lease>>;
    ack_batch(leases: &[Lease]) -> Vec<Result<()>>;
    retry_batch(leases: &[Lease], options: &RetryOptions) -> Vec<Result<RetryOutcome>>;
    reject_batch(leases: &[Lease], reason: &Reason) -> Vec<Result<()>>;
    replay(stream: &StreamName, group: &GroupName, replay: &Replay) -> Result<()>;
    reset_group(stream: &StreamName, group: &GroupName, options: &ResetOptions) -> Result<()>;
    lag(stream: &StreamName, group: &GroupName) -> Result<Lag>;
    list_streams(options: &ListOptions<StreamName>) -> Result<Vec<StreamInfo>>;
    list_groups(stream: &StreamName, options: &ListOptions<GroupName>) -> Result<Vec<GroupName>>;
    dead_letters(stream: &StreamName, group: &GroupName, options: &DeadLetterOptions)
        -> Result<Vec<DeadLetter>>;
    group_info(stream: &StreamName, group: &GroupName) -> Result<GroupInfo>;
    wait_for_work(stream: &StreamName, group: &GroupName, timeout: Duration) -> Result<Wakeup>;
}
