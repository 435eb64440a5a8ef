//! Sending together what waits at the same time.
//!
//! The first to come has its request sent at once. Those who come while that is under way wait, and
//! go out together as the next statement. So one caller alone loses nothing, and many share a
//! commit. The statement is run by a task of its own: a caller that goes away takes nobody with it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

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
    /// Set by the task that sends it, or by the caller that will not wait: the first decides.
    is_taken: Arc<AtomicBool>,
    answer: oneshot::Sender<Answer>,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked<Answer> {
    /// This.
    Answered(Answer),
    /// The time was up before it was sent, and it will not be.
    NotSent,
    /// The time was up after it was sent.
    Lost,
}

/// No more than this in one statement.
const MOST_TOGETHER: usize = 1_000;

impl<Key, Request, Answer> Coalescer<Key, Request, Answer>
where
    Key: Clone + Eq + Hash + Send + 'static,
    Request: Send + 'static,
    Answer: Send + 'static,
{
    pub(crate) fn new() -> Self {
        Self {
            queues: Arc::default(),
        }
    }

    /// Has a request sent, alone or with others of the key, and gives its answer.
    ///
    /// `send` gives an answer for each request, in order, before its deadline, which is that of the
    /// most impatient caller; it is the same for all callers.
    pub(crate) async fn ask<Send, Sent>(
        &self,
        key: Key,
        request: Request,
        deadline: Instant,
        send: Send,
    ) -> Asked<Answer>
    where
        Send: Fn(Vec<Request>, Instant) -> Sent + std::marker::Send + 'static,
        Sent: Future<Output = Vec<Answer>> + std::marker::Send,
    {
        let patience = deadline.saturating_duration_since(Instant::now());
        let is_taken = Arc::new(AtomicBool::new(false));
        let (sender, mut answer) = oneshot::channel();
        let waiting = Waiting {
            request,
            // A little earlier, so that the caller hears what it was.
            deadline: deadline - patience / 20,
            is_taken: Arc::clone(&is_taken),
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
                    for (caller, answer) in callers.into_iter().zip(send(requests, deadline).await)
                    {
                        // A caller that went away wants no answer.
                        let _ = caller.send(answer);
                    }
                }
            });
        }
        match timeout_at(deadline, &mut answer).await {
            Ok(Ok(answer)) => Asked::Answered(answer),
            _ => {
                // From here on the task sends it no more.
                match is_taken.swap(true, Ordering::SeqCst) {
                    true => Asked::Lost,
                    false => Asked::NotSent,
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

/// The right to send for a key; given back when it is dropped, whatever ends the task.
struct Sending<Key: Eq + Hash, Request, Answer> {
    queues: Arc<Queues<Key, Request, Answer>>,
    key: Key,
    /// Whether it was given back already, so that another task may have it.
    is_idle: bool,
}

impl<Key: Eq + Hash, Request, Answer> Sending<Key, Request, Answer> {
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
            let rest = queue.split_off(queue.len().min(MOST_TOGETHER));
            std::mem::replace(queue, rest)
        };
        batch.retain(|waiting| {
            !waiting.answer.is_closed() && !waiting.is_taken.swap(true, Ordering::SeqCst)
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn deadline() -> Instant {
        Instant::now() + PATIENCE
    }

    /// Gives each request the number of those that it went out with.
    async fn count(requests: Vec<u32>, _: Instant) -> Vec<(u32, usize)> {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let together = requests.len();
        requests.into_iter().map(|r| (r, together)).collect()
    }

    /// Answers just before the deadline that it would have passed.
    async fn hang(requests: Vec<u32>, deadline: Instant) -> Vec<u32> {
        tokio::time::sleep_until(deadline).await;
        requests
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_goes_alone_and_the_rest_together() {
        let coalescer: Coalescer<(), u32, (u32, usize)> = Coalescer::new();
        let first = coalescer.ask((), 0, deadline(), count);
        let rest = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            join_all((1..10).map(|i| coalescer.ask((), i, deadline(), count))).await
        };
        let (first, rest) = tokio::join!(first, rest);
        assert_eq!(first, Asked::Answered((0, 1)));
        for (i, answer) in (1..).zip(rest) {
            assert_eq!(answer, Asked::Answered((i, 9)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_apart_and_idle_in_the_end() {
        let coalescer: Coalescer<u32, u32, (u32, usize)> = Coalescer::new();
        let asked = (0..10).map(|i| coalescer.ask(i, i, deadline(), count));
        for (i, answer) in (0..).zip(join_all(asked).await) {
            assert_eq!(answer, Asked::Answered((i, 1)));
        }
        tokio::task::yield_now().await;
        assert!(lock(&coalescer.queues).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_is_not_sent_and_harms_no_other() {
        let coalescer: Coalescer<(), u32, (u32, usize)> = Coalescer::new();
        {
            let mut gone = std::pin::pin!(coalescer.ask((), 0, deadline(), count));
            assert!(futures_util::poll!(gone.as_mut()).is_pending());
        }
        let answer = coalescer.ask((), 1, deadline(), count).await;
        assert_eq!(answer, Asked::Answered((1, 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_too_long_is_never_sent() {
        let coalescer: Coalescer<(), u32, u32> = Coalescer::new();
        let slow = coalescer.ask((), 0, deadline(), hang);
        let impatient = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            coalescer
                .ask((), 1, Instant::now() + PATIENCE / 2, hang)
                .await
        };
        let (slow, impatient) = tokio::join!(slow, impatient);
        assert_eq!(slow, Asked::Answered(0));
        assert_eq!(impatient, Asked::NotSent);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_leaves_the_key_to_others() {
        let coalescer: Coalescer<(), u32, u32> = Coalescer::new();
        let panics = |_: Vec<u32>, _| async { panic!("on purpose") };
        assert_eq!(coalescer.ask((), 0, deadline(), panics).await, Asked::Lost);
        let answer = coalescer.ask((), 1, deadline(), hang).await;
        assert_eq!(answer, Asked::Answered(1));
    }
}
