//! A relay in front of the server that counts commands, and loses the answer of one of them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// The first insert does not arrive: its connection breaks. When it is sent again, it arrives the
    /// first time, and the second waits until it may go on.
    Late,
}

/// The relay. Those who watch the server, and those who make a connection, are not counted.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

struct State {
    server: String,
    /// The insert that arrives late.
    late: Mutex<Vec<u8>>,
    inserts: AtomicUsize,
    is_refused: AtomicBool,
    goes_on: Notify,
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
            server: server.clone(),
            late: Mutex::default(),
            inserts: AtomicUsize::new(0),
            is_refused: AtomicBool::new(false),
            goes_on: Notify::new(),
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

    /// Answers nothing from here on, and breaks every new connection.
    pub(crate) fn fall_silent(&self) {
        self.state.is_dead.store(true, Ordering::SeqCst);
        self.state.is_silent.store(true, Ordering::SeqCst);
    }

    /// Lets the insert through that waits.
    pub(crate) fn go_on(&self) {
        self.state.goes_on.notify_one();
    }

    /// Has the server refuse the insert that waits, and those behind it.
    pub(crate) fn refuse(&self) {
        self.state.is_refused.store(true, Ordering::SeqCst);
        self.state.goes_on.notify_one();
    }

    /// How many commands there were.
    pub(crate) fn commands(&self) -> usize {
        self.state.commands.load(Ordering::SeqCst)
    }

    /// Waits until an answer is held, or an insert waits.
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
    while let Some(mut message) = message(&mut from).await {
        if state.afterwards == Afterwards::Late && name(&message) == Some(b"insert") {
            match state.inserts.fetch_add(1, Ordering::SeqCst) {
                0 => {
                    *lock(&state.late) = message;
                    return;
                }
                1 => {
                    let late = lock(&state.late).clone();
                    arrive(&state.server, &late).await;
                    state.held.notify_one();
                    state.goes_on.notified().await;
                }
                _ => {}
            }
            if state.is_refused.load(Ordering::SeqCst) {
                // The server knows no such command.
                message[NAME] = b'X';
            }
        }
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

/// Sends a message to the server, and waits until it was done.
async fn arrive(server: &str, late: &[u8]) {
    let mut server = TcpStream::connect(server)
        .await
        .expect("the server is there");
    server.write_all(late).await.expect("sent");
    let (mut answers, _requests) = server.into_split();
    message(&mut answers).await.expect("answered");
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn message(from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await.ok()?;
    let mut message = length.to_vec();
    message.resize(u32::from_le_bytes(length) as usize, 0);
    from.read_exact(&mut message[4..]).await.ok()?;
    Some(message)
}

/// Where the name of a command is: behind header, flags, the kind of the section, the length of the
/// document, and the type of the element.
const NAME: usize = 16 + 4 + 1 + 4 + 1;

/// The name of a command: the first key of its document.
fn name(message: &[u8]) -> Option<&[u8]> {
    const OP_MSG: [u8; 4] = 2_013_u32.to_le_bytes();
    if message.get(12..16) != Some(&OP_MSG) {
        return None;
    }
    message.get(NAME..)?.split(|byte| *byte == 0).next()
}

/// Whether a message is a command of the adapter.
fn is_counted(message: &[u8]) -> bool {
    name(message).is_some_and(|name| {
        !matches!(
            name,
            b"hello"
                | b"isMaster"
                | b"ismaster"
                | b"endSessions"
                | b"killCursors"
                | b"saslStart"
                | b"saslContinue"
        )
    })
}
