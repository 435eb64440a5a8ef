//! What can go wrong between a backend and its store, and who makes it go wrong.

use std::fmt;

use async_trait::async_trait;

/// Something that goes wrong between a backend and its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// All connections are cut and new ones refused, until the store is healed.
    Refuse,
    /// The connection is cut instead of forwarding a request.
    CutRequest,
    /// The connection is cut in the middle of a request.
    CutWithinRequest,
    /// A request is forwarded, and the connection is cut instead of its reply.
    LoseReply,
    /// The connection is cut in the middle of a reply.
    CutWithinReply,
    /// The connection is cut after a reply.
    CutAfterReply,
    /// Nothing is forwarded any more, and nothing is closed either, until the store is healed.
    Freeze,
    /// Everything is forwarded slowly, in small pieces, until the store is healed.
    Slow,
    /// A request is held back, and reaches the store when that is healed, whoever still waits for its
    /// answer; all else is forwarded. Then [`FaultInjector::heal`] returns when the store has answered
    /// it, or a second later.
    HoldRequest,
}

impl Fault {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Refuse,
        Self::CutRequest,
        Self::CutWithinRequest,
        Self::LoseReply,
        Self::CutWithinReply,
        Self::CutAfterReply,
        Self::Freeze,
        Self::Slow,
        Self::HoldRequest,
    ];

    /// What happens, in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refuse => "connections are refused",
            Self::CutRequest => "a request is cut off",
            Self::CutWithinRequest => "a request is cut in two",
            Self::LoseReply => "a reply is lost",
            Self::CutWithinReply => "a reply is cut in two",
            Self::CutAfterReply => "the connection ends after a reply",
            Self::Freeze => "the store freezes",
            Self::Slow => "the store is slow",
            Self::HoldRequest => "a request arrives late",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Makes things go wrong for one handle, see [`Harness::open_faulty`](crate::Harness::open_faulty), whose
/// default is a TCP proxy that can make all of them.
///
/// A request is what the handle sends to its store at once and what is answered at once: a message and its
/// reply, or without a network whatever comes closest, the call of a function or a script, say. An operation
/// may be one request or many; which of them does what, the suite need not know.
///
/// Other handles go on meanwhile, since the suite has several struck at once; [`Fault::Refuse`] alone may
/// be an outage for all handles of the namespace.
#[async_trait]
pub trait FaultInjector: Send + Sync {
    /// Lets `fault` strike at the `nth` request from now, counted from 1, in place of what was armed before.
    ///
    /// [`Fault::Refuse`] and [`Fault::Slow`] strike at once, whatever `nth` is. [`Fault::Freeze`] begins with
    /// the `nth` request. These three last until [`heal`](Self::heal); the others strike once.
    ///
    /// False if it has no such fault, or cannot make it strike there: nothing is armed then. A case whose
    /// faults strike nothing is not exercised, and the certificate says so.
    async fn arm(&self, fault: Fault, nth: u32) -> bool;

    /// Whether the fault that was armed last has struck: some request met it, or, where it strikes at once,
    /// it is in force. The suite asks after the operation, and also after [`heal`](Self::heal).
    fn has_struck(&self) -> bool;

    /// Ends every fault: from now on the store can be reached. It returns when that is so; what was held
    /// back has arrived by then ([`Fault::HoldRequest`]).
    ///
    /// The handle's connections may still be broken: the suite pings until it works again.
    async fn heal(&self);
}
