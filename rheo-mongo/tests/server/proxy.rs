//! A relay in front of the server that counts commands, and loses the answer of one of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What happens once the command was executed whose answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// Nothing gets through any more: to the server, as if the process had died.
    Dead,
    /// Only that connection breaks.
    Goes,
    /// As `Goes`, and the next answer is lost as well: the driver repeats a command just once.
    GoesTwice,
    /// Only that connection hangs, until everything recovers.
    Held,
    /// Nothing is answered any more, but every connection is accepted and stays open.
    Silent,
}

/// The relay. Those who watch the server, and those who make a connection, are not counted.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

struct State {
    /// The number of the command whose answer is lost, from 1; 0 for the very first word.
    loses: usize,
    afterwards: Afterwards,
    commands: AtomicUsize,
    is_dead: AtomicBool,
    is_silent: AtomicBool,
    died: Notify,
    held: Notify,
}

impl Proxy {
    pub(crate) async fn start(server: String, loses: usize, afterwards: Afterwards) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let state = Arc::new(State {
            loses,
            afterwards,
            commands: AtomicUsize::new(0),
            is_dead: AtomicBool::new(false),
            is_silent: AtomicBool::new(loses == 0),
            died: Notify::new(),
            held: Notify::new(),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if shared.is_dead.load(Ordering::SeqCst) {
                    continue;
                }
                if let Ok(server) = TcpStream::connect(&server).await {
                    tokio::spawn(relay(client, server, Arc::clone(&shared)));
                }
            }
        });
        Self { address, state }
    }

    /// Lets everything through again, on new connections.
    pub(crate) fn recover(&self) {
        self.state.is_silent.store(false, Ordering::SeqCst);
        self.state.died.notify_waiters();
    }

    /// Waits until an answer is held.
    pub(crate) async fn held(&self) {
        self.state.held.notified().await;
    }

    /// Whether it came to the command whose answer is lost.
    pub(crate) fn has_lost(&self) -> bool {
        self.state.commands.load(Ordering::SeqCst) >= self.state.loses
    }
}

async fn relay(client: TcpStream, server: TcpStream, state: Arc<State>) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let is_lost = Arc::new(AtomicBool::new(false));
    let died = state.died.notified();
    tokio::select! {
        () = requests(from_client, to_server, &state, &is_lost) => {}
        () = answers(from_server, to_client, &state, &is_lost) => {}
        () = died => {}
    }
    if is_lost.load(Ordering::SeqCst) && state.afterwards == Afterwards::Dead {
        state.is_dead.store(true, Ordering::SeqCst);
        state.died.notify_waiters();
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &State,
    is_lost: &AtomicBool,
) {
    while let Some(message) = message(&mut from).await {
        if is_counted(&message) {
            let number = state.commands.fetch_add(1, Ordering::SeqCst) + 1;
            let more = usize::from(state.afterwards == Afterwards::GoesTwice);
            if (state.loses..=state.loses + more).contains(&number) {
                is_lost.store(true, Ordering::SeqCst);
            }
        }
        if to.write_all(&message).await.is_err() {
            return;
        }
    }
}

/// Ends when an answer comes that shall be lost: by then the command was executed.
async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &State,
    is_lost: &AtomicBool,
) {
    while let Some(message) = message(&mut from).await {
        match state.afterwards {
            Afterwards::Silent if is_lost.load(Ordering::SeqCst) => {
                state.is_silent.store(true, Ordering::SeqCst);
            }
            Afterwards::Held if is_lost.load(Ordering::SeqCst) => {
                state.held.notify_one();
                std::future::pending::<()>().await;
            }
            _ => {}
        }
        if state.is_silent.load(Ordering::SeqCst) {
            continue;
        }
        if is_lost.load(Ordering::SeqCst) || to.write_all(&message).await.is_err() {
            return;
        }
    }
}

async fn message(from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await.ok()?;
    let mut message = length.to_vec();
    message.resize(u32::from_le_bytes(length) as usize, 0);
    from.read_exact(&mut message[4..]).await.ok()?;
    Some(message)
}

/// Whether a message is a command of the adapter, by its name: the first key of its document.
fn is_counted(message: &[u8]) -> bool {
    const OP_MSG: [u8; 4] = 2_013_u32.to_le_bytes();
    // Header, flags, the kind of the section, the length of the document, the type of the element.
    const NAME: usize = 16 + 4 + 1 + 4 + 1;
    if message.get(12..16) != Some(&OP_MSG) {
        return false;
    }
    let name = message.get(NAME..).unwrap_or_default();
    let end = name.iter().position(|byte| *byte == 0).unwrap_or_default();
    !matches!(
        &name[..end],
        b"hello"
            | b"isMaster"
            | b"ismaster"
            | b"endSessions"
            | b"killCursors"
            | b"saslStart"
            | b"saslContinue"
    )
}
