//! Counts that hold for some groups, some leases or some numbers only.

use std::collections::{HashMap, HashSet};
use std::marker::PhantomData;
use std::sync::Mutex;

use rheo_core::{
    FetchOptions, GroupInfo, GroupName, GroupOptions, Lease, MaxAttempts, Partition, Replay,
    ResetOptions, Result, Sequence, StreamName, async_trait,
};

use crate::book::{Book, held};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        LeasesAreCountedTo1000: "leases are counted up to a thousand",
        says: "the number of leases and of dead letters",
        kills: ["inspect::OPS-3::group_info_counts_any_number_of_leases_and_dead_letters"],
    },
    faulty! {
        DeadLettersAreCountedTo100: "dead letters are counted up to a hundred",
        says: "the number of leases and of dead letters",
        kills: ["inspect::OPS-3::group_info_counts_any_number_of_leases_and_dead_letters"],
    },
    faulty! {
        LeasesAreCountedInTenPartitions: "leases are counted in the first ten partitions",
        says: "the number of leases and of dead letters",
        kills: ["inspect::OPS-3::group_info_counts_over_twelve_partitions"],
    },
    faulty! {
        LeasesAreCountedToAttempt3: "leases are counted up to attempt 3",
        says: "the number of leases and of dead letters",
        kills: ["inspect::OPS-3::group_info_counts_a_lease_at_any_attempt"],
    },
    faulty! {
        NothingIsCountedAfterAReplay: "after a replay nothing is leased or dead until something is fetched",
        says: "the number of leases and of dead letters",
        kills: ["inspect::OPS-3::group_info_counts_what_a_replay_left"],
    },
    faulty! {
        LeasesAreCountedAboveTheStart: "leases are counted above the group's start",
        says: "the number of leases and of dead letters",
        kills: ["inspect::OPS-3::group_info_counts_chosen_events_below_the_start"],
    },
    faulty! {
        InfoGivesTheDefaultAttemptsAfterAReset: "after a reset the default attempts are given",
        says: "max_attempts to be 7",
        kills: ["inspect::OPS-3::group_info_gives_max_attempts_after_going_back"],
    },
];

#[derive(Default)]
struct LeasesAreCountedTo1000;

#[async_trait]
impl Defect for LeasesAreCountedTo1000 {
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let mut info = real.backend.group_info(stream, group).await?;
        info.leased = info.leased.min(1_000);
        Ok(info)
    }
}

#[derive(Default)]
struct DeadLettersAreCountedTo100;

#[async_trait]
impl Defect for DeadLettersAreCountedTo100 {
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let mut info = real.backend.group_info(stream, group).await?;
        info.dead_letters = info.dead_letters.min(100);
        Ok(info)
    }
}

/// Which leases are counted.
trait Counts: Default + Send + Sync + 'static {
    fn counts(lease: &Lease) -> bool;
}

#[derive(Default)]
struct InTenPartitions;

impl Counts for InTenPartitions {
    fn counts(lease: &Lease) -> bool {
        lease.event.partition < Partition::new(10)
    }
}

#[derive(Default)]
struct ToAttempt3;

impl Counts for ToAttempt3 {
    fn counts(lease: &Lease) -> bool {
        lease.attempt <= 3
    }
}

#[derive(Default)]
struct CountsSome<Of>(Book, PhantomData<Of>);

type LeasesAreCountedInTenPartitions = CountsSome<InTenPartitions>;
type LeasesAreCountedToAttempt3 = CountsSome<ToAttempt3>;

#[async_trait]
impl<Of: Counts> Defect for CountsSome<Of> {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.0.fetch(real, stream, group, options).await
    }
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let mut info = real.backend.group_info(stream, group).await?;
        let current = self.0.current(real, stream, group).await;
        let is_left_out = |lease: &&Lease| !Of::counts(lease);
        info.leased -= current.iter().filter(is_left_out).count() as u64;
        Ok(info)
    }
}

type Named = (StreamName, GroupName);

#[derive(Default)]
struct NothingIsCountedAfterAReplay(Mutex<HashSet<Named>>);

#[async_trait]
impl Defect for NothingIsCountedAfterAReplay {
    async fn replay(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        replay: &Replay,
    ) -> Result<()> {
        real.backend.replay(stream, group, replay).await?;
        held(&self.0).insert((stream.clone(), group.clone()));
        Ok(())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        held(&self.0).remove(&(stream.clone(), group.clone()));
        real.backend.fetch(stream, group, options).await
    }
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let mut info = real.backend.group_info(stream, group).await?;
        if held(&self.0).contains(&(stream.clone(), group.clone())) {
            (info.leased, info.dead_letters) = (0, 0);
        }
        Ok(info)
    }
}

#[derive(Default)]
struct LeasesAreCountedAboveTheStart {
    book: Book,
    starts: Mutex<HashMap<Named, Sequence>>,
}

#[async_trait]
impl Defect for LeasesAreCountedAboveTheStart {
    async fn create_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &GroupOptions,
    ) -> Result<()> {
        real.backend.create_group(stream, group, options).await?;
        let lag = real.backend.lag(stream, group).await?;
        let start = lag.partitions[0].frontier;
        held(&self.starts).insert((stream.clone(), group.clone()), start);
        Ok(())
    }
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let mut info = real.backend.group_info(stream, group).await?;
        let key = (stream.clone(), group.clone());
        let start = held(&self.starts).get(&key).copied().unwrap_or_default();
        let current = self.book.current(real, stream, group).await;
        let is_below = |lease: &&Lease| lease.event.sequence <= start;
        info.leased -= current.iter().filter(is_below).count() as u64;
        Ok(info)
    }
}

#[derive(Default)]
struct InfoGivesTheDefaultAttemptsAfterAReset(Mutex<HashSet<Named>>);

#[async_trait]
impl Defect for InfoGivesTheDefaultAttemptsAfterAReset {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        real.backend.reset_group(stream, group, options).await?;
        held(&self.0).insert((stream.clone(), group.clone()));
        Ok(())
    }
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let mut info = real.backend.group_info(stream, group).await?;
        if held(&self.0).contains(&(stream.clone(), group.clone())) {
            info.max_attempts = MaxAttempts::default();
        }
        Ok(info)
    }
}
