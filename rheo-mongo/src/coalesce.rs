//! Sending together what waits at the same time.
//!
//! The first to come has its request sent at once. Those who come while that is under way wait, and
//! go out together as the next write. So one caller alone loses nothing, and many share a write. A
//! task of its own sends: a caller that goes away takes nobody with it, and leaves nothing half done.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheo_core::{Error, Result};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::error::{ambiguous, unavailable};

/// Requests that wait, by what keeps them apart: those of one key go out together.
#[derive(Debug)]
pub(crate) struct Coalescer<Key, Request, Answer> {
    queues: Arc<Queues<Key, Request, Answer>>,
}

/// A key is there while a task is sending for it.
type Queues<Key, Request, Answer> = Mutex<HashMap<Key, Vec<Waiting<Request, Answer>>>>;

#[derive(Debug)]
struct Waiting<Request, Answer> {
    request: Request,
    deadline: Instant,
    is_sent: Arc<AtomicBool>,
    answer: oneshot::Sender<Result<Answer>>,
}

/// Something that takes room in the write that it goes out with.
pub(crate) trait Weigh {
    /// How much, where a write holds [`MOST_WEIGHT`].
    fn weight(&self) -> usize;
}

/// What a write holds; a request that weighs more goes out alone.
pub(crate) const MOST_WEIGHT: usize = 1_000_000;

impl<Key, Request, Answer> Coalescer<Key, Request, Answer>
where
    Key: Clone + Eq + Hash + Send + 'static,
    Request: Weigh + Send + 'static,
    Answer: Send + 'static,
{
    pub(crate) fn new() -> Self {
        Self {
            queues: Arc::default(),
        }
    }

    /// Has a request sent, alone or with others of the key, and gives its answer.
    ///
    /// `send` gives an answer for each request, in order, before the deadline, which is that of the
    /// most impatient caller; it is the same for all callers.
    pub(crate) async fn ask<Send, Sent>(
        &self,
        key: Key,
        request: Request,
        deadline: Instant,
        send: Send,
    ) -> Result<Answer>
    where
        Send: Fn(Vec<Request>, Instant) -> Sent + std::marker::Send + 'static,
        Sent: Future<Output = Vec<Result<Answer>>> + std::marker::Send,
    {
        let is_sent = Arc::new(AtomicBool::new(false));
        let (sender, mut answer) = oneshot::channel();
        let patience = deadline.saturating_duration_since(Instant::now());
        let waiting = Waiting {
            request,
            // A little earlier, so that the caller hears what it was.
            deadline: deadline - patience / 20,
            is_sent: Arc::clone(&is_sent),
            answer: sender,
        };
        if self.enqueue(&key, waiting) {
            let mut sending = Sending {
                queues: Arc::clone(&self.queues),
                key,
                is_idle: false,
            };
            tokio::spawn(async move {
                while let Some(batch) = sending.next() {
                    let Some(deadline) = batch.iter().map(|waiting| waiting.deadline).min() else {
                        continue;
                    };
                    let (requests, callers): (Vec<_>, Vec<_>) =
                        batch.into_iter().map(|w| (w.request, w.answer)).unzip();
                    let answers = send(requests, deadline).await;
                    for (caller, answer) in callers.into_iter().zip(answers) {
                        // A caller that went away wants no answer.
                        let _ = caller.send(answer);
                    }
                }
            });
        }
        match timeout_at(deadline, &mut answer).await {
            Ok(Ok(answer)) => answer,
            _ => {
                // First this, then that: the task does it the other way round.
                drop(answer);
                match is_sent.load(Ordering::SeqCst) {
                    true => Err(lost()),
                    false => Err(unavailable("it was not sent within the operation timeout")),
                }
            }
        }
    }

    /// Whether nobody is sending for that key yet.
    fn enqueue(&self, key: &Key, waiting: Waiting<Request, Answer>) -> bool {
        match lock(&self.queues).entry(key.clone()) {
            Entry::Occupied(mut sending) => {
                sending.get_mut().push(waiting);
                false
            }
            Entry::Vacant(idle) => {
                idle.insert(vec![waiting]);
                true
            }
        }
    }
}

fn lost() -> Error {
    ambiguous("no answer within the operation timeout")
}

/// The right to send for a key; given back when it is dropped, whatever ends the task.
struct Sending<Key: Eq + Hash, Request, Answer> {
    queues: Arc<Queues<Key, Request, Answer>>,
    key: Key,
    /// Whether it was given back already, so that another task may have it.
    is_idle: bool,
}

impl<Key: Eq + Hash, Request: Weigh, Answer> Sending<Key, Request, Answer> {
    /// What waits now, less those who went away; with nothing there, the key is idle again.
    fn next(&mut self) -> Option<Vec<Waiting<Request, Answer>>> {
        let mut batch = {
            let mut queues = lock(&self.queues);
            let queue = queues.get_mut(&self.key)?;
            if queue.is_empty() {
                queues.remove(&self.key);
                self.is_idle = true;
                return None;
            }
            let mut room = MOST_WEIGHT;
            let fits = |waiting: &Waiting<Request, Answer>| {
                let weight = waiting.request.weight();
                let fits = weight <= room;
                room = room.saturating_sub(weight);
                fits
            };
            let count = queue.iter().map(fits).take_while(|fits| *fits).count();
            let rest = queue.split_off(count.max(1));
            std::mem::replace(queue, rest)
        };
        batch.retain(|waiting| {
            waiting.is_sent.store(true, Ordering::SeqCst);
            !waiting.answer.is_closed()
        });
        Some(batch)
    }
}

impl<Key: Eq + Hash, Request, Answer> Drop for Sending<Key, Request, Answer> {
    fn drop(&mut self) {
        // Only a task that was stopped, or panicked, still has it.
        if !self.is_idle {
            lock(&self.queues).remove(&self.key);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
