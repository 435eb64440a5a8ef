//! The steps of a random history: small, so that they shrink well, and resolved only when played.

use proptest::prelude::{Just, any};
use proptest::strategy::{BoxedStrategy, Strategy, Union};

/// One step. Numbers choose among what is there when it is played, modulo how much there is.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Appends events: how many, to which partition or by which key, and whether an id is taken.
    Append {
        stream: u8,
        count: u8,
        place: Place,
        taken_id: bool,
    },
    /// Makes a group, or one more of the same name.
    CreateGroup { stream: u8, name: u8, start: From },
    /// Fetches.
    Fetch {
        group: u8,
        consumer: u8,
        limit: u8,
        briefly: bool,
        partitions: Choice,
    },
    /// Does something with a lease, stale or not, one by one or in a batch.
    Settle { leases: Vec<u8>, how: How },
    /// Reopens what is above a sequence.
    ReplayAfter {
        group: u8,
        after: u8,
        partitions: Choice,
    },
    /// Reopens chosen events.
    ReplayEvents { group: u8, events: Vec<u8> },
    /// Starts again.
    Reset {
        group: u8,
        start: From,
        partitions: Choice,
    },
    /// Lets time pass.
    Pass(Time),
    /// Asks for some events.
    Query {
        stream: u8,
        filter: u8,
        order: u8,
        page: u8,
    },
    /// `ensure_indexes`.
    EnsureIndexes,
    /// The other handle does the next steps, where there is one.
    ChangeHandle,
}

/// Where an event goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Partition(u8),
    Key(u8),
}

/// Which partitions.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Choice {
    All,
    One(u8),
}

/// Where a group starts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum From {
    Beginning,
    After(u8),
    Event(u8),
    End,
}

/// What the holder of a lease does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    Ack,
    Retry,
    RetryLater,
    Reject,
    Renew,
    /// For a brief while.
    RenewBriefly,
}

/// How time passes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Time {
    /// A microsecond.
    Moment,
    /// Half of a brief lease.
    Half,
    /// A brief lease.
    Brief,
    /// An hour.
    Hour,
    /// A brief lease, backwards.
    Back,
}

/// How often which kind of step comes.
#[derive(Debug)]
pub(crate) struct Mix {
    pub(crate) append: u32,
    pub(crate) groups: u32,
    pub(crate) fetch: u32,
    pub(crate) settle: u32,
    pub(crate) replay: u32,
    pub(crate) reset: u32,
    pub(crate) time: u32,
    pub(crate) query: u32,
    pub(crate) handles: u32,
}

impl Mix {
    /// Steps in these proportions.
    pub(crate) fn steps(&self) -> BoxedStrategy<Step> {
        let number = any::<u8>;
        let few = || proptest::collection::vec(any::<u8>(), 1..5);
        let choice = || {
            Union::new_weighted(vec![
                (2, Just(Choice::All).boxed()),
                (1, any::<u8>().prop_map(Choice::One).boxed()),
            ])
        };
        let from = || {
            Union::new(vec![
                Just(From::Beginning).boxed(),
                any::<u8>().prop_map(From::After).boxed(),
                any::<u8>().prop_map(From::Event).boxed(),
                Just(From::End).boxed(),
            ])
        };
        let how = Union::new_weighted(vec![
            (3, Just(How::Ack)),
            (3, Just(How::Retry)),
            (2, Just(How::RetryLater)),
            (2, Just(How::Reject)),
            (2, Just(How::Renew)),
            (2, Just(How::RenewBriefly)),
        ]);
        let place = Union::new(vec![
            any::<u8>().prop_map(Place::Partition).boxed(),
            any::<u8>().prop_map(Place::Key).boxed(),
        ]);
        let time = Union::new_weighted(vec![
            (2, Just(Time::Moment)),
            (2, Just(Time::Half)),
            (4, Just(Time::Brief)),
            (2, Just(Time::Hour)),
            (1, Just(Time::Back)),
        ]);
        let append = (number(), 1..5_u8, place, proptest::bool::weighted(0.1)).prop_map(
            |(stream, count, place, taken_id)| Step::Append {
                stream,
                count,
                place,
                taken_id,
            },
        );
        let group =
            (number(), 0..4_u8, from()).prop_map(|(stream, name, start)| Step::CreateGroup {
                stream,
                name,
                start,
            });
        let fetch = (
            number(),
            0..3_u8,
            0..6_u8,
            proptest::bool::weighted(0.7),
            choice(),
        )
            .prop_map(
                |(group, consumer, limit, briefly, partitions)| Step::Fetch {
                    group,
                    consumer,
                    limit,
                    briefly,
                    partitions,
                },
            );
        let settle = (few(), how).prop_map(|(leases, how)| Step::Settle { leases, how });
        let replay_after = (number(), 0..8_u8, choice()).prop_map(|(group, after, partitions)| {
            Step::ReplayAfter {
                group,
                after,
                partitions,
            }
        });
        let replay_events =
            (number(), few()).prop_map(|(group, events)| Step::ReplayEvents { group, events });
        let reset =
            (number(), from(), choice()).prop_map(|(group, start, partitions)| Step::Reset {
                group,
                start,
                partitions,
            });
        let query =
            (number(), number(), number(), 1..8_u8).prop_map(|(stream, filter, order, page)| {
                Step::Query {
                    stream,
                    filter,
                    order,
                    page,
                }
            });
        let weighted = vec![
            (self.append, append.boxed()),
            (self.groups, group.boxed()),
            (self.fetch, fetch.boxed()),
            (self.settle, settle.boxed()),
            (self.replay, replay_after.boxed()),
            (self.replay, replay_events.boxed()),
            (self.reset, reset.boxed()),
            (self.time, time.prop_map(Step::Pass).boxed()),
            (self.query, query.boxed()),
            (self.handles, Just(Step::ChangeHandle).boxed()),
            (1, Just(Step::EnsureIndexes).boxed()),
        ];
        let weighted = weighted.into_iter().filter(|(weight, _)| *weight > 0);
        Union::new_weighted(weighted.collect()).boxed()
    }
}
