//! Defects that the cases of `inspect` are there for.

pub(super) mod counts;

use std::collections::HashMap;
use std::sync::Mutex;

use rheo_core::{
    Capabilities, Error, FetchOptions, GroupInfo, GroupName, Guarantee, Lag, Lease, ListOptions,
    MaxAttempts, Operation, Partition, PartitionCount, Reason, ResetOptions, Result, RetryOptions,
    RetryOutcome, StreamInfo, StreamName, async_trait,
};

use super::Faulty;
use crate::book::{Book, all_dead, held};
use crate::defect::{Defect, Real, without};

pub(super) const FAULTY: &[Faulty] = &[
    faulty! {
        StreamsAreListedWithoutCase: "streams are ordered without regard to case",
        says: "the streams to be equal",
        kills: ["inspect::OPS-1::streams_are_listed_by_the_bytes_of_their_names"],
    },
    faulty! {
        StreamsAreListedByUtf16: "streams are ordered by the UTF-16 units of their names",
        says: "the streams to be equal",
        kills: ["inspect::OPS-1::streams_are_listed_by_the_bytes_of_their_names"],
    },
    faulty! {
        StreamsHaveOnePartition: "streams are listed with one partition",
        says: "the streams to be equal",
        kills: ["inspect::OPS-1::streams_are_listed_with_their_number_of_partitions"],
    },
    faulty! {
        StreamsAfterIsInclusive: "a page of streams begins with the one given as after",
        says: "the streams above \"a\" to be [\"c\", \"e\"]",
        kills: [
            "inspect::OPS-1::streams_are_listed_above_after",
            "inspect::OPS-1::more_than_a_hundred_streams_are_listed",
        ],
    },
    faulty! {
        StreamsAfterMustExist: "above a name that no stream has there are none",
        says: "the streams above \"b\" to be [\"c\", \"e\"]",
        kills: ["inspect::OPS-1::streams_are_listed_above_after"],
    },
    faulty! {
        StreamsLimit0IsNone: "a limit of 0 gives all streams",
        says: "a page of 0 streams to be []",
        kills: ["inspect::OPS-1::a_limit_bounds_a_page_of_streams"],
    },
    faulty! {
        StreamsAreListedPerGroup: "a stream is listed once for each of its groups",
        says: "the streams to be [\"bare\", \"full\"]",
        kills: ["inspect::OPS-1::a_stream_is_listed_once_whatever_is_in_it"],
    },
    faulty! {
        GroupsAreListedWithoutCase: "groups are ordered without regard to case",
        says: "the groups to be equal",
        kills: ["inspect::OPS-2::groups_are_listed_by_the_bytes_of_their_names"],
    },
    faulty! {
        GroupsAfterIsInclusive: "a page of groups begins with the one given as after",
        says: "the groups above \"a\" to be [\"c\", \"e\"]",
        kills: [
            "inspect::OPS-2::groups_are_listed_above_after",
            "inspect::OPS-2::more_than_a_hundred_groups_are_listed",
        ],
    },
    faulty! {
        GroupsAfterIsWithoutCase: "the bound of a page of groups is compared without regard to case",
        says: "the groups above \"A\" to be [\"a\", \"c\", \"e\"]",
        kills: ["inspect::OPS-2::groups_are_listed_above_after"],
    },
    faulty! {
        GroupsLimit0IsNone: "a limit of 0 gives all groups",
        says: "a page of 0 groups to be []",
        kills: ["inspect::OPS-2::a_limit_bounds_a_page_of_groups"],
    },
    faulty! {
        GroupsAreFoundByPrefix: "the groups of all streams whose names begin alike are listed",
        says: "the groups of \"a\" to be [\"of a\"]",
        kills: ["inspect::OPS-2::the_groups_of_other_streams_are_not_listed"],
    },
    faulty! {
        AMissingStreamHasNoGroups: "the groups of a missing stream are an empty list",
        says: "Err(StreamNotFound)",
        kills: [
            "inspect::ERR-6::the_groups_of_a_missing_stream_are_not_an_empty_list",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::listing_nothing_excuses_no_missing_group",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
        ],
    },
    faulty! {
        InfoGivesTheDefaultAttempts: "a group is described with the default number of attempts",
        says: "max_attempts to be 1",
        kills: [
            "inspect::OPS-3::group_info_gives_names_and_max_attempts",
            "inspect::OPS-3::group_info_gives_max_attempts_after_going_back",
        ],
    },
    faulty! {
        InfoCountsWhatWaits: "events that wait for a retry count as leased",
        says: "the number of leases and of dead letters to be (3, 0)",
        kills: [
            "inspect::OPS-3::group_info_counts_current_leases",
            "inspect::OPS-3::group_info_counts_a_lease_at_any_attempt",
            "inspect::OPS-3::group_info_counts_nothing_after_a_reset",
            "inspect::OPS-3::group_info_counts_nothing_of_other_groups",
            "inspect::OPS-3::group_info_counts_what_a_replay_left",
        ],
    },
    faulty! {
        InfoForgetsExpiredLeases: "expired leases do not count as leased",
        says: "the number of leases and of dead letters to be (2, 0)",
        kills: ["inspect::OPS-3::group_info_counts_expired_leases_that_nobody_reclaimed"],
    },
    faulty! {
        InfoCountsRejects: "only rejected events count as dead letters, and count for ever",
        says: "the number of leases and of dead letters to be (0, 2)",
        kills: [
            "inspect::OPS-3::group_info_counts_dead_letters",
            "inspect::OPS-3::group_info_counts_a_lease_at_any_attempt",
            "inspect::OPS-3::group_info_counts_nothing_after_a_reset",
            "inspect::OPS-3::group_info_counts_what_a_replay_left",
        ],
    },
    faulty! {
        InfoIsOfPartition0: "dead letters are counted in partition 0 alone",
        says: "the number of leases and of dead letters to be (3, 2)",
        kills: [
            "inspect::OPS-3::group_info_counts_over_all_partitions",
            "inspect::OPS-3::group_info_counts_over_twelve_partitions",
        ],
    },
    faulty! {
        InfoKeepsCountsAfterAReset: "a group that was reset is described as before",
        says: "the number of leases and of dead letters to be (0, 0)",
        kills: ["inspect::OPS-3::group_info_counts_nothing_after_a_reset"],
    },
    faulty! {
        InfoTakesClaimsForProgress: "a group's progress is described as if everything were done",
        says: "the progress to be Lag { partitions: [PartitionLag { partition: p0, frontier: #1, high_watermark: #5 }] }",
        kills: ["inspect::OPS-3::group_info_gives_the_progress_that_lag_gives"],
    },
    faulty! {
        InfoGuessesTheProgress: "progress is given although no exact frontier is declared",
        says: "no partition",
        kills: ["inspect::OPS-3::without_an_exact_frontier_group_info_gives_no_progress"],
    },
    faulty! {
        InfoSweeps: "expired leases are given back before they are counted",
        says: "the lease is stale",
        kills: [
            "inspect::OPS-3::group_info_changes_nothing",
            "inspect::OPS-3::group_info_counts_expired_leases_that_nobody_reclaimed",
        ],
    },
    faulty! {
        InfoLooksForTheGroupAlone: "a group on a missing stream is described as missing",
        says: "Err(StreamNotFound)",
        kills: [
            "inspect::ERR-6::group_info_looks_for_the_stream_before_the_group",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
        ],
    },
    faulty! {
        CountsAreOfTheStream: "leases and dead letters are counted over all groups of the stream",
        says: "the number of leases and of dead letters",
        kills: [
            "inspect::OPS-3::group_info_counts_nothing_of_other_groups",
            "inspect::OPS-3::group_info_counts_current_leases",
            "inspect::OPS-3::group_info_counts_dead_letters",
        ],
    },
    faulty! {
        CountsAreOfTheName: "leases and dead letters are counted over all groups of the name",
        says: "the number of leases and of dead letters",
        kills: [
            "inspect::OPS-3::group_info_counts_nothing_of_other_groups",
            "inspect::OPS-3::group_info_counts_any_number_of_leases_and_dead_letters",
        ],
    },
    faulty! {
        ListsOfStreamsAreCutAt100: "lists of streams are cut at 100",
        says: "the streams",
        kills: [
            "inspect::OPS-1::more_than_a_hundred_streams_are_listed",
        ],
    },
    faulty! {
        StreamsAfterIsCutAt250Bytes: "the name that a list goes on from is cut at 250 bytes",
        says: "the streams above",
        kills: [
            "inspect::OPS-1::more_than_a_hundred_streams_are_listed",
        ],
    },
    faulty! {
        ListsOfGroupsAreCutAt100: "lists of groups are cut at 100",
        says: "the groups",
        kills: [
            "inspect::OPS-2::more_than_a_hundred_groups_are_listed",
        ],
    },
    faulty! {
        AGroupsPageIs50ByDefault: "a page of groups is 50 by default",
        says: "the groups by default",
        kills: [
            "inspect::OPS-2::more_than_a_hundred_groups_are_listed",
        ],
    },
];

#[derive(Default)]
struct StreamsAreListedWithoutCase;

#[async_trait]
impl Defect for StreamsAreListedWithoutCase {
    async fn list_streams(
        &self,
        real: &Real,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        let mut streams = real.backend.list_streams(options).await?;
        streams.sort_by_key(|info| info.stream.as_str().to_lowercase());
        Ok(streams)
    }
}

#[derive(Default)]
struct StreamsAreListedByUtf16;

#[async_trait]
impl Defect for StreamsAreListedByUtf16 {
    async fn list_streams(
        &self,
        real: &Real,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        let mut streams = real.backend.list_streams(options).await?;
        streams.sort_by_key(|info| info.stream.as_str().encode_utf16().collect::<Vec<_>>());
        Ok(streams)
    }
}

#[derive(Default)]
struct StreamsHaveOnePartition;

#[async_trait]
impl Defect for StreamsHaveOnePartition {
    async fn list_streams(
        &self,
        real: &Real,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        let mut streams = real.backend.list_streams(options).await?;
        streams
            .iter_mut()
            .for_each(|info| info.partition_count = PartitionCount::default());
        Ok(streams)
    }
}

#[derive(Default)]
struct StreamsAfterIsInclusive;

#[async_trait]
impl Defect for StreamsAfterIsInclusive {
    async fn list_streams(
        &self,
        real: &Real,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        let mut streams = real.backend.list_streams(&all()).await?;
        streams.retain(|info| Some(&info.stream) >= options.after.as_ref());
        streams.truncate(options.limit as usize);
        Ok(streams)
    }
}

#[derive(Default)]
struct StreamsAfterMustExist;

#[async_trait]
impl Defect for StreamsAfterMustExist {
    async fn list_streams(
        &self,
        real: &Real,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        let streams = real.backend.list_streams(&all()).await?;
        let exists = |after: &StreamName| streams.iter().any(|info| info.stream == *after);
        match &options.after {
            Some(after) if !exists(after) => Ok(vec![]),
            _ => real.backend.list_streams(options).await,
        }
    }
}

#[derive(Default)]
struct StreamsLimit0IsNone;

#[async_trait]
impl Defect for StreamsLimit0IsNone {
    async fn list_streams(
        &self,
        real: &Real,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        let mut options = options.clone();
        if options.limit == 0 {
            options.limit = u32::MAX;
        }
        real.backend.list_streams(&options).await
    }
}

#[derive(Default)]
struct StreamsAreListedPerGroup;

#[async_trait]
impl Defect for StreamsAreListedPerGroup {
    async fn list_streams(
        &self,
        real: &Real,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        let mut joined = Vec::new();
        for info in real.backend.list_streams(options).await? {
            let groups = real.backend.list_groups(&info.stream, &all()).await?;
            joined.extend(std::iter::repeat_n(info, groups.len().max(1)));
        }
        Ok(joined)
    }
}

#[derive(Default)]
struct GroupsAreListedWithoutCase;

#[async_trait]
impl Defect for GroupsAreListedWithoutCase {
    async fn list_groups(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        let mut groups = real.backend.list_groups(stream, options).await?;
        groups.sort_by_key(|group| group.as_str().to_lowercase());
        Ok(groups)
    }
}

#[derive(Default)]
struct GroupsAfterIsInclusive;

#[async_trait]
impl Defect for GroupsAfterIsInclusive {
    async fn list_groups(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        let mut groups = real.backend.list_groups(stream, &all()).await?;
        groups.retain(|group| Some(group) >= options.after.as_ref());
        groups.truncate(options.limit as usize);
        Ok(groups)
    }
}

#[derive(Default)]
struct GroupsAfterIsWithoutCase;

#[async_trait]
impl Defect for GroupsAfterIsWithoutCase {
    async fn list_groups(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        let mut groups = real.backend.list_groups(stream, &all()).await?;
        let folded = |group: &GroupName| group.as_str().to_lowercase();
        let after = options.after.as_ref().map(folded);
        groups.retain(|group| Some(folded(group)) > after);
        groups.truncate(options.limit as usize);
        Ok(groups)
    }
}

#[derive(Default)]
struct GroupsLimit0IsNone;

#[async_trait]
impl Defect for GroupsLimit0IsNone {
    async fn list_groups(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        let mut options = options.clone();
        if options.limit == 0 {
            options.limit = u32::MAX;
        }
        real.backend.list_groups(stream, &options).await
    }
}

#[derive(Default)]
struct GroupsAreFoundByPrefix;

#[async_trait]
impl Defect for GroupsAreFoundByPrefix {
    async fn list_groups(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        let mut groups = real.backend.list_groups(stream, options).await?;
        for info in real.backend.list_streams(&all()).await? {
            if info.stream != *stream && info.stream.as_str().starts_with(stream.as_str()) {
                groups.extend(real.backend.list_groups(&info.stream, options).await?);
            }
        }
        Ok(groups)
    }
}

#[derive(Default)]
struct AMissingStreamHasNoGroups;

#[async_trait]
impl Defect for AMissingStreamHasNoGroups {
    async fn list_groups(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        match real.backend.list_groups(stream, options).await {
            Err(Error::StreamNotFound { .. }) => Ok(vec![]),
            result => result,
        }
    }
}

#[derive(Default)]
struct InfoGivesTheDefaultAttempts;

#[async_trait]
impl Defect for InfoGivesTheDefaultAttempts {
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let mut info = real.backend.group_info(stream, group).await?;
        info.max_attempts = MaxAttempts::default();
        Ok(info)
    }
}

#[derive(Default)]
struct InfoCountsWhatWaits {
    waiting: Mutex<HashMap<(StreamName, GroupName), u64>>,
}

#[async_trait]
impl Defect for InfoCountsWhatWaits {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let outcome = real.backend.retry(lease, options).await?;
        if outcome == RetryOutcome::Retrying {
            let key = (lease.event.stream.clone(), lease.group.clone());
            *held(&self.waiting).entry(key).or_default() += 1;
        }
        Ok(outcome)
    }
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let mut info = real.backend.group_info(stream, group).await?;
        let key = (stream.clone(), group.clone());
        info.leased += held(&self.waiting).get(&key).copied().unwrap_or_default();
        Ok(info)
    }
}

#[derive(Default)]
struct InfoForgetsExpiredLeases {
    book: Book,
}

#[async_trait]
impl Defect for InfoForgetsExpiredLeases {
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
        let current = self.book.current(real, stream, group).await;
        let expired = current
            .iter()
            .filter(|lease| lease.expires_at <= real.now());
        info.leased -= expired.count() as u64;
        Ok(info)
    }
}

#[derive(Default)]
struct InfoCountsRejects {
    rejected: Mutex<HashMap<(StreamName, GroupName), u64>>,
}

#[async_trait]
impl Defect for InfoCountsRejects {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(lease, reason).await?;
        let key = (lease.event.stream.clone(), lease.group.clone());
        *held(&self.rejected).entry(key).or_default() += 1;
        Ok(())
    }
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let mut info = real.backend.group_info(stream, group).await?;
        let key = (stream.clone(), group.clone());
        info.dead_letters = held(&self.rejected).get(&key).copied().unwrap_or_default();
        Ok(info)
    }
}

#[derive(Default)]
struct InfoIsOfPartition0;

#[async_trait]
impl Defect for InfoIsOfPartition0 {
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let mut info = real.backend.group_info(stream, group).await?;
        let dead = all_dead(real, stream, group).await?;
        let first = dead
            .iter()
            .filter(|letter| letter.event.partition == Partition::ZERO);
        info.dead_letters = first.count() as u64;
        Ok(info)
    }
}

#[derive(Default)]
struct InfoKeepsCountsAfterAReset {
    kept: Mutex<HashMap<(StreamName, GroupName), u64>>,
}

#[async_trait]
impl Defect for InfoKeepsCountsAfterAReset {
    async fn reset_group(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &ResetOptions,
    ) -> Result<()> {
        let key = (stream.clone(), group.clone());
        let before = real.backend.group_info(stream, group).await?.leased;
        held(&self.kept).insert(key, before);
        real.backend.reset_group(stream, group, options).await
    }
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let mut info = real.backend.group_info(stream, group).await?;
        let key = (stream.clone(), group.clone());
        info.leased += held(&self.kept).get(&key).copied().unwrap_or_default();
        Ok(info)
    }
}

#[derive(Default)]
struct InfoTakesClaimsForProgress;

#[async_trait]
impl Defect for InfoTakesClaimsForProgress {
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let mut info = real.backend.group_info(stream, group).await?;
        for progress in &mut info.lag.partitions {
            progress.frontier = progress.high_watermark;
        }
        Ok(info)
    }
}

#[derive(Default)]
struct InfoGuessesTheProgress;

#[async_trait]
impl Defect for InfoGuessesTheProgress {
    fn capabilities(&self, real: &Real) -> Capabilities {
        without(
            &real.backend.capabilities(),
            &[Guarantee::ContiguousFrontier],
        )
    }
    async fn lag(&self, real: &Real, stream: &StreamName, group: &GroupName) -> Result<Lag> {
        let _ = (real, stream, group);
        Err(Error::Unsupported {
            operation: Operation::Lag,
            missing: Guarantee::ContiguousFrontier.as_str().into(),
        })
    }
}

#[derive(Default)]
struct InfoSweeps {
    book: Book,
}

#[async_trait]
impl Defect for InfoSweeps {
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
        for lease in self.book.current(real, stream, group).await {
            if lease.expires_at <= real.now() {
                real.backend.retry(&lease, &RetryOptions::new()).await?;
            }
        }
        real.backend.group_info(stream, group).await
    }
}

#[derive(Default)]
struct InfoLooksForTheGroupAlone;

#[async_trait]
impl Defect for InfoLooksForTheGroupAlone {
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        match real.backend.group_info(stream, group).await {
            Err(Error::StreamNotFound { .. }) => Err(Error::GroupNotFound {
                stream: stream.clone(),
                group: group.clone(),
            }),
            result => result,
        }
    }
}

/// Every stream, as it is.
fn all<Name>() -> ListOptions<Name> {
    ListOptions::new().with_limit(u32::MAX)
}

/// The counts of a group and of others.
async fn counted_together(
    real: &Real,
    (stream, group): (&StreamName, &GroupName),
    others: Vec<(StreamName, GroupName)>,
) -> Result<GroupInfo> {
    let mut info = real.backend.group_info(stream, group).await?;
    for (stream, group) in others {
        if let Ok(other) = real.backend.group_info(&stream, &group).await {
            info.leased += other.leased;
            info.dead_letters += other.dead_letters;
        }
    }
    Ok(info)
}

#[derive(Default)]
struct CountsAreOfTheStream;

#[async_trait]
impl Defect for CountsAreOfTheStream {
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let all = ListOptions::new().with_limit(u32::MAX);
        let groups = real.backend.list_groups(stream, &all).await?.into_iter();
        let others = groups.filter(|other| other != group);
        let others = others.map(|other| (stream.clone(), other)).collect();
        counted_together(real, (stream, group), others).await
    }
}

#[derive(Default)]
struct CountsAreOfTheName;

#[async_trait]
impl Defect for CountsAreOfTheName {
    async fn group_info(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
    ) -> Result<GroupInfo> {
        let all = ListOptions::new().with_limit(u32::MAX);
        let streams = real.backend.list_streams(&all).await?.into_iter();
        let others = streams.filter(|other| other.stream != *stream);
        let others = others.map(|other| (other.stream, group.clone())).collect();
        counted_together(real, (stream, group), others).await
    }
}

#[derive(Default)]
struct ListsOfStreamsAreCutAt100;

#[async_trait]
impl Defect for ListsOfStreamsAreCutAt100 {
    async fn list_streams(
        &self,
        real: &Real,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        let limit = options.limit.min(100);
        real.backend
            .list_streams(&options.clone().with_limit(limit))
            .await
    }
}

#[derive(Default)]
struct ListsOfGroupsAreCutAt100;

#[async_trait]
impl Defect for ListsOfGroupsAreCutAt100 {
    async fn list_groups(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        let limit = options.limit.min(100);
        real.backend
            .list_groups(stream, &options.clone().with_limit(limit))
            .await
    }
}

#[derive(Default)]
struct StreamsAfterIsCutAt250Bytes;

#[async_trait]
impl Defect for StreamsAfterIsCutAt250Bytes {
    async fn list_streams(
        &self,
        real: &Real,
        options: &ListOptions<StreamName>,
    ) -> Result<Vec<StreamInfo>> {
        let mut options = options.clone();
        options.after = options.after.map(|after| {
            let name = after.as_str();
            StreamName::new(&name[..name.floor_char_boundary(250)]).unwrap_or(after)
        });
        real.backend.list_streams(&options).await
    }
}

#[derive(Default)]
struct AGroupsPageIs50ByDefault;

#[async_trait]
impl Defect for AGroupsPageIs50ByDefault {
    async fn list_groups(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &ListOptions<GroupName>,
    ) -> Result<Vec<GroupName>> {
        let limit = if options.limit == 100 {
            50
        } else {
            options.limit
        };
        real.backend
            .list_groups(stream, &options.clone().with_limit(limit))
            .await
    }
}
