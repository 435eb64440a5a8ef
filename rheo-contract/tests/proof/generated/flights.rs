//! Defects that need several calls in flight over one handle, one of which is dropped or struck.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rheo_core::{Cause, Error, GroupName, Lag, Result, StreamName};

use crate::book::held;
use crate::defect::Real;
use crate::faulty::{Faulty, faulty};
use crate::generated::meddling::pause;
use crate::generated::spoils::spoils;

pub(crate) const FAULTY: &[Faulty] = &[
    faulty! {
        FollowersOfADroppedCallHang: "a lag that is asked for while another is waits for that one's answer, which never comes if it is dropped",
        says: "to end, whatever happens to a call beside it",
        kills: ["cancellation::CAN-1::calls_beside_a_dropped_one_go_on"],
    },
    faulty! {
        FollowersOfADroppedCallFail: "a lag that is asked for while another is fails when that one is dropped",
        says: "not to fail for what happens to a call beside it",
        kills: ["cancellation::CAN-1::calls_beside_a_dropped_one_go_on"],
    },
    faulty! {
        DroppedWaitersKeepTheirTurn: "appends take turns, and one that is dropped while it waits never gives its turn away",
        says: "the turn never came",
        kills: ["cancellation::CAN-1::calls_beside_a_dropped_one_go_on"],
    },
    faulty! {
        AnswersMoveUpBehindADroppedCall: "lags that are under way get each the answer of the one before when that is dropped",
        says: "the lag to be",
        kills: ["cancellation::CAN-1::calls_beside_a_dropped_one_go_on"],
    },
    faulty! {
        AcksMoveUpBehindADroppedOne: "acks under way are sent as one batch, and when one is dropped the next has its result",
        says: "Ack to have happened if it was Ok",
        kills: ["cancellation::CAN-1::calls_beside_a_dropped_one_go_on"],
    },
    faulty! {
        AcksFailTogether: "acks under way share a connection, and when it breaks those that were done are told as failures too",
        says: "to have happened if it was Ok, and else not",
        kills: ["faults::ERR-1::calls_beside_a_struck_one_are_told_what_happened"],
    },
];

/// The pauses during which others may join or come behind.
const A_WHILE: usize = 8;

/// What a leader tells those that follow it; nothing yet, its answer, or that it was dropped.
#[derive(Default)]
enum Told {
    #[default]
    Nothing,
    Answer(Result<Lag>),
    Dropped,
}

type Leads = Mutex<HashMap<(StreamName, GroupName), Arc<Mutex<Told>>>>;

/// Lags that others may follow until they are asked for.
#[derive(Default)]
struct Joined(Leads);

/// Ends with the leader.
struct Leader<'a>(&'a Leads, Arc<Mutex<Told>>);

impl Leader<'_> {
    fn stops(&self) {
        held(self.0).retain(|_, told| !Arc::ptr_eq(told, &self.1));
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        self.stops();
        let mut told = held(&self.1);
        if matches!(*told, Told::Nothing) {
            *told = Told::Dropped;
        }
    }
}

impl Joined {
    async fn lag(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        when_dropped: impl Future<Output = Result<Lag>> + Send,
    ) -> Result<Lag> {
        let key = (stream.clone(), group.clone());
        let leader = held(&self.0).get(&key).cloned();
        if let Some(told) = leader {
            loop {
                match &*held(&told) {
                    Told::Nothing => {}
                    Told::Answer(lag) => return lag.clone(),
                    Told::Dropped => break,
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            return when_dropped.await;
        }
        let told = Arc::new(Mutex::default());
        held(&self.0).insert(key, Arc::clone(&told));
        let leader = Leader(&self.0, told);
        pause(A_WHILE).await;
        leader.stops();
        let lag = real.backend.lag(stream, group).await;
        *held(&leader.1) = Told::Answer(lag.clone());
        lag
    }
}

#[derive(Default)]
struct FollowersOfADroppedCallHang(Joined);

spoils! { FollowersOfADroppedCallHang {
    lag(self, real, stream, group) {
        self.0.lag(real, stream, group, pending()).await
    }
} }

#[derive(Default)]
struct FollowersOfADroppedCallFail(Joined);

spoils! { FollowersOfADroppedCallFail {
    lag(self, real, stream, group) {
        let fails = async { Err(Error::Failed(Cause::new("the call was given up"))) };
        self.0.lag(real, stream, group, fails).await
    }
} }

/// Whose turn it is, and how many came.
#[derive(Default)]
struct DroppedWaitersKeepTheirTurn {
    turn: Mutex<usize>,
    came: Mutex<usize>,
}

/// Gives the turn away, if one has it.
struct Turn<'a>(&'a Mutex<usize>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *held(self.0) += 1;
    }
}

impl DroppedWaitersKeepTheirTurn {
    async fn turn(&self) -> Result<Turn<'_>> {
        const PATIENCE: Duration = Duration::from_secs(1);
        let mine = {
            let mut came = held(&self.came);
            *came += 1;
            *came - 1
        };
        let started = Instant::now();
        while *held(&self.turn) != mine {
            if started.elapsed() > PATIENCE {
                return Err(Error::Failed(Cause::new("the turn never came")));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(Turn(&self.turn))
    }
}

spoils! { DroppedWaitersKeepTheirTurn {
    append_batch(self, real, stream, events) {
        let _turn = self.turn().await?;
        real.backend.append_batch(stream, events).await
    }
} }

/// Calls that are under way, in order, each with what it has in place of its own.
struct Line<T>(Mutex<Vec<(usize, Option<T>)>>, Mutex<usize>);

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self(Mutex::default(), Mutex::default())
    }
}

/// A place in the line; what it leaves to those behind if it is dropped.
struct Stand<'a, T: Clone> {
    line: &'a Line<T>,
    number: usize,
    leaves: Option<T>,
}

impl<T: Clone> Line<T> {
    fn stand(&self, leaves: T) -> Stand<'_, T> {
        let number = {
            let mut count = held(&self.1);
            *count += 1;
            *count
        };
        held(&self.0).push((number, None));
        Stand {
            line: self,
            number,
            leaves: Some(leaves),
        }
    }
}

impl<T: Clone> Stand<'_, T> {
    /// Leaves the line as it should; what it has in place of its own.
    fn served(mut self) -> Option<T> {
        self.leaves = None;
        let line = held(&self.line.0);
        let place = line.iter().find(|(number, _)| *number == self.number);
        place.and_then(|(_, instead)| instead.clone())
    }
}

impl<T: Clone> Drop for Stand<'_, T> {
    fn drop(&mut self) {
        let mut line = held(&self.line.0);
        if let Some(left) = self.leaves.take() {
            let behind = line.iter_mut().filter(|(number, _)| *number > self.number);
            behind.for_each(|(_, instead)| *instead = Some(left.clone()));
        }
        line.retain(|(number, _)| *number != self.number);
    }
}

#[derive(Default)]
struct AnswersMoveUpBehindADroppedCall(Line<(StreamName, GroupName)>);

spoils! { AnswersMoveUpBehindADroppedCall {
    lag(self, real, stream, group) {
        let stand = self.0.stand((stream.clone(), group.clone()));
        pause(A_WHILE).await;
        match stand.served() {
            Some((stream, group)) => real.backend.lag(&stream, &group).await,
            None => real.backend.lag(stream, group).await,
        }
    }
} }

#[derive(Default)]
struct AcksMoveUpBehindADroppedOne(Line<()>);

spoils! { AcksMoveUpBehindADroppedOne {
    ack(self, real, lease) {
        let stand = self.0.stand(());
        pause(A_WHILE).await;
        match stand.served() {
            Some(()) => Ok(()),
            None => real.backend.ack(lease).await,
        }
    }
} }

/// Why those fail that are under way.
#[derive(Default)]
struct AcksFailTogether(Mutex<HashMap<usize, bool>>, Mutex<usize>);

spoils! { AcksFailTogether {
    ack(self, real, lease) {
        let number = {
            let mut count = held(&self.1);
            *count += 1;
            *count
        };
        held(&self.0).insert(number, false);
        let acked = real.backend.ack(lease).await;
        if matches!(acked, Err(Error::Ambiguous(_) | Error::BackendUnavailable(_))) {
            held(&self.0).values_mut().for_each(|fails| *fails = true);
        }
        pause(A_WHILE).await;
        match held(&self.0).remove(&number) {
            Some(true) if acked.is_ok() => Err(Error::Failed(Cause::new("the connection broke"))),
            _ => acked,
        }
    }
} }
