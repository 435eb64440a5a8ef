//! A TCP proxy between a backend and its store that cuts, loses, freezes, slows and holds back.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::faults::{Fault, FaultInjector};

/// How much is forwarded at once, at most: more than any request of the suite's usual cases.
const CHUNK: usize = 64 * 1_024;
/// A slow store's pieces, the pause after each, and how many there are: a bound, since what a handle waits
/// for, it need not wait for long.
const PIECE: usize = 512;
const PAUSE: Duration = Duration::from_millis(5);
const PAUSES: u32 = 30;
/// How long the store has to answer a request that was held back.
const LATE_ANSWER: Duration = Duration::from_secs(1);

/// Forwards between its address and a store's.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

struct Shared {
    store: SocketAddr,
    plan: Mutex<Plan>,
    /// Counted up to end all connections.
    era: watch::Sender<u64>,
    /// Whether nothing is forwarded.
    frozen: watch::Sender<bool>,
    /// What became of the request that was held back.
    held: watch::Sender<Held>,
}

/// A request that is held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// There is none, or it was answered.
    None,
    Back,
    /// It is on its way to the store.
    Released,
}

#[derive(Debug, Default)]
struct Plan {
    armed: Option<Fault>,
    /// Requests until it strikes.
    left: u32,
    struck: bool,
    refusing: bool,
    /// Pauses to come of a slow store.
    pauses: u32,
}

impl Plan {
    fn pauses_now(&mut self) -> bool {
        let pauses = self.pauses > 0;
        self.pauses = self.pauses.saturating_sub(1);
        pauses
    }
}

/// What becomes of a request.
enum Forward {
    All,
    Nothing,
    Half,
    Late,
    /// Forwarded; this becomes of the reply.
    Then(Reply),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    /// It is that of a request that was held back.
    Late,
    Lost,
    Half,
    Last,
}

impl Proxy {
    /// Listens on a free local port.
    pub(crate) async fn to(store: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            store,
            plan: Mutex::default(),
            era: watch::Sender::new(0),
            frozen: watch::Sender::new(false),
            held: watch::Sender::new(Held::None),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self {
            address,
            shared,
            accepting,
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.shared.end_connections();
    }
}

#[async_trait]
impl FaultInjector for Proxy {
    async fn arm(&self, fault: Fault, nth: u32) -> bool {
        let mut plan = self.shared.plan();
        *plan = Plan {
            armed: Some(fault),
            left: nth,
            ..Plan::default()
        };
        match fault {
            Fault::Refuse => {
                plan.refusing = true;
                plan.struck = true;
                drop(plan);
                self.shared.end_connections();
            }
            Fault::Slow => {
                plan.pauses = PAUSES;
                plan.struck = true;
            }
            _ => {}
        }
        true
    }

    fn has_struck(&self) -> bool {
        self.shared.plan().struck
    }

    async fn heal(&self) {
        let was_frozen = *self.shared.frozen.borrow();
        let struck = self.shared.plan().struck;
        *self.shared.plan() = Plan {
            struck,
            ..Plan::default()
        };
        if was_frozen {
            // What was held back while it was frozen is lost, as after a failover.
            self.shared.end_connections();
            self.shared.frozen.send_replace(false);
        }
        self.shared.release().await;
    }
}

impl Shared {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_connections(&self) {
        self.era.send_modify(|era| *era += 1);
    }

    /// Lets the request that was held back go, and waits for the store's answer to it.
    async fn release(&self) {
        let is_back = |held: &mut Held| {
            let was_back = *held == Held::Back;
            if was_back {
                *held = Held::Released;
            }
            was_back
        };
        if self.held.send_if_modified(is_back) {
            self.late_answer().await;
        }
    }

    /// Waits for the answer to a request that was held back; after a while there is none.
    async fn late_answer(&self) {
        let mut held = self.held.subscribe();
        let answered = held.wait_for(|held| *held == Held::None);
        let answered = tokio::time::timeout(LATE_ANSWER, answered).await.is_ok();
        if !answered {
            self.held.send_replace(Held::None);
        }
    }

    /// What becomes of the request that is about to be forwarded.
    fn next_request(&self) -> Forward {
        let mut plan = self.plan();
        let Some(fault) = plan.armed.filter(|_| !plan.struck) else {
            return Forward::All;
        };
        plan.left = plan.left.saturating_sub(1);
        if plan.left > 0 {
            return Forward::All;
        }
        plan.struck = true;
        match fault {
            Fault::HoldRequest => {
                self.held.send_replace(Held::Back);
                Forward::Late
            }
            Fault::CutRequest => Forward::Nothing,
            Fault::CutWithinRequest => Forward::Half,
            Fault::LoseReply => Forward::Then(Reply::Lost),
            Fault::CutWithinReply => Forward::Then(Reply::Half),
            Fault::CutAfterReply => Forward::Then(Reply::Last),
            Fault::Freeze => {
                self.frozen.send_replace(true);
                Forward::All
            }
            _ => Forward::All,
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // No file is free, say: one may be soon.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Before it is looked whether it is refused: what begins to be refused then ends it.
        let era = shared.era.subscribe();
        if !shared.plan().refusing {
            tokio::spawn(forward(client, Arc::clone(&shared), era));
        }
    }
}

/// One connection; it ends with its era, or when either side or a fault ends it.
async fn forward(client: TcpStream, shared: Arc<Shared>, mut era: watch::Receiver<u64>) {
    let Ok(store) = TcpStream::connect(shared.store).await else {
        return;
    };
    let _ = (client.set_nodelay(true), store.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_store, to_store) = store.into_split();
    let reply = watch::Sender::new(None);
    let replies = reply.subscribe();
    tokio::select! {
        biased;
        _ = era.changed() => {}
        _ = requests(from_client, to_store, reply, &shared) => {}
        _ = answers(from_store, to_client, replies, &shared) => {}
    }
}

async fn requests(
    mut client: OwnedReadHalf,
    mut store: OwnedWriteHalf,
    reply: watch::Sender<Option<Reply>>,
    shared: &Shared,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = client.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        let request = &chunk[..read];
        match shared.next_request() {
            Forward::All => {}
            Forward::Nothing => return Ok(()),
            Forward::Half => {
                let _ = store.write_all(&request[..read / 2]).await;
                return Ok(());
            }
            Forward::Late => {
                reply.send_replace(Some(Reply::Late));
                let request = request.to_vec();
                let is_open = late(request, &mut client, &mut store, shared).await?;
                reply.send_replace(None);
                if !is_open {
                    return Ok(());
                }
                continue;
            }
            Forward::Then(then) => {
                reply.send_replace(Some(then));
            }
        }
        thaw(shared).await;
        pass_on(request, &mut store, shared).await?;
    }
}

/// Holds back a request, and what follows it, until it is released, and forwards until the store has
/// answered. The client may have hung up meanwhile, of which the store must not hear before: false then.
async fn late(
    mut request: Vec<u8>,
    client: &mut OwnedReadHalf,
    store: &mut OwnedWriteHalf,
    shared: &Shared,
) -> io::Result<bool> {
    let mut chunk = vec![0; CHUNK];
    let mut is_open = true;
    let mut held = shared.held.subscribe();
    loop {
        tokio::select! {
            _ = held.wait_for(|held| *held != Held::Back) => break,
            read = client.read(&mut chunk), if is_open => match read {
                Ok(read) if read > 0 => request.extend_from_slice(&chunk[..read]),
                _ => is_open = false,
            }
        }
    }
    thaw(shared).await;
    pass_on(&request, store, shared).await?;
    let mut answered = pin!(shared.late_answer());
    loop {
        tokio::select! {
            () = &mut answered => return Ok(is_open),
            read = client.read(&mut chunk), if is_open => match read {
                Ok(read) if read > 0 => pass_on(&chunk[..read], store, shared).await?,
                _ => is_open = false,
            }
        }
    }
}

async fn answers(
    mut store: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    reply: watch::Receiver<Option<Reply>>,
    shared: &Shared,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = store.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        thaw(shared).await;
        let answer = &chunk[..read];
        let becomes = *reply.borrow();
        match becomes {
            None => pass_on(answer, &mut client, shared).await?,
            Some(Reply::Late) => {
                // What the store sends unasked meanwhile is no answer.
                shared.held.send_if_modified(|held| {
                    let is_answer = *held == Held::Released;
                    if is_answer {
                        *held = Held::None;
                    }
                    is_answer
                });
                // Whoever asked has given up long ago, perhaps.
                let _ = client.write_all(answer).await;
            }
            Some(Reply::Lost) => return Ok(()),
            Some(Reply::Half) => return client.write_all(&answer[..read / 2]).await,
            Some(Reply::Last) => return client.write_all(answer).await,
        }
    }
}

/// Waits while the store is frozen.
async fn thaw(shared: &Shared) {
    let mut frozen = shared.frozen.subscribe();
    let _ = frozen.wait_for(|frozen| !frozen).await;
}

async fn pass_on(bytes: &[u8], to: &mut OwnedWriteHalf, shared: &Shared) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() && shared.plan().pauses_now() {
        let (piece, after) = rest.split_at(rest.len().min(PIECE));
        to.write_all(piece).await?;
        tokio::time::sleep(PAUSE).await;
        rest = after;
    }
    to.write_all(rest).await
}

#[cfg(test)]
mod tests {
    use super::*;

    type Tried<T = ()> = Result<T, Box<dyn std::error::Error>>;

    /// More than one read of the proxy, and less than sockets keep.
    const LONG: usize = CHUNK + CHUNK / 2;

    /// A store that answers each request of that many bytes, and counts them.
    async fn store(of_bytes: usize) -> Tried<(SocketAddr, watch::Receiver<usize>)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (answered, count) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut request = vec![0; of_bytes];
                while client.read_exact(&mut request).await.is_ok() {
                    answered.send_modify(|count| *count += 1);
                    let _ = client.write_all(b"ok").await;
                }
            }
        });
        Ok((address, count))
    }

    #[tokio::test]
    async fn a_long_request_arrives_whole_though_its_client_has_gone() -> Tried {
        let (address, answered) = store(LONG).await?;
        let proxy = Proxy::to(address).await?;
        assert!(proxy.arm(Fault::HoldRequest, 1).await);
        let mut client = TcpStream::connect(proxy.address()).await?;
        client.write_all(&vec![7; LONG]).await?;
        drop(client);
        while !proxy.has_struck() {
            tokio::task::yield_now().await;
        }
        assert_eq!(*answered.borrow(), 0);

        proxy.heal().await;
        assert_eq!(*answered.borrow(), 1);
        Ok(())
    }

    #[tokio::test]
    async fn a_connection_goes_on_after_its_late_request() -> Tried {
        let (address, answered) = store(4).await?;
        let proxy = Proxy::to(address).await?;
        assert!(proxy.arm(Fault::HoldRequest, 2).await);
        let mut client = TcpStream::connect(proxy.address()).await?;
        let mut reply = [0; 2];
        client.write_all(b"1st?").await?;
        client.read_exact(&mut reply).await?;
        client.write_all(b"2nd?").await?;
        while !proxy.has_struck() {
            tokio::task::yield_now().await;
        }
        proxy.heal().await;
        client.read_exact(&mut reply).await?;
        client.write_all(b"3rd?").await?;
        client.read_exact(&mut reply).await?;
        assert_eq!(*answered.borrow(), 3);
        Ok(())
    }
}
