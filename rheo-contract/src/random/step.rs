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
    /// Does something with a lease, stale or not, one by one or in a batch. Where it lies, another attempt
    /// is handed in, which plays no part.
    Settle {
        leases: Vec<u8>,
        how: How,
        lies: bool,
    },
    /// Reopens what is above a sequence.
    ReplayAfter {
        group: u8,
        after: u8,
        partitions: Choice,
    },
    /// Reopens what is above a sequence of each partition's own, in the order of the partitions; of those
    /// without one, nothing.
    ReplayAfterEach { group: u8, after: Vec<Option<u8>> },
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
        fields: u8,
        order: u8,
        page: u8,
    },
    /// Reads on behind a sequence.
    Read {
        stream: u8,
        partition: u8,
        after: u8,
        limit: u8,
    },
    /// Pages through dead letters.
    DeadLetters { group: u8, page: u8, behind: Behind },
    /// Asks whether there is work, and waits for none.
    Ask { group: u8 },
    /// `ensure_indexes`.
    EnsureIndexes,
    /// The other handle does the next steps, where there is one.
    ChangeHandle,
    /// The handle is closed, and another one opened in its place, where the store outlives its handles.
    Reopen,
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
    /// After a sequence of each partition's own; one with a high number is not named.
    AfterEach([u8; 3]),
    Event(u8),
    End,
}

impl From {
    /// From this number on a partition is not named.
    pub(crate) const UNNAMED: u8 = 5;
    /// Below this all numbers are.
    const NUMBERS: u8 = 9;
}

/// Behind what a page of dead letters begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behind {
    /// Nothing.
    Nothing,
    /// A dead letter.
    Dead(u8),
    /// An event that was a dead letter and is none any more, or any where there is no such one.
    Once(u8),
}

/// What the holder of a lease does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    Ack,
    Retry { delay: Option<Span>, reason: u8 },
    Reject { reason: u8 },
    Renew(Option<Span>),
}

/// How long a delay or a renewed lease lasts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Span {
    /// A microsecond.
    Moment,
    /// Half of a brief lease.
    Half,
    /// As long as a brief lease.
    Brief,
    /// An hour.
    Hour,
}

/// How time passes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Time {
    On(Span),
    Back(Span),
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
    pub(crate) read: u32,
    pub(crate) dead_letters: u32,
    pub(crate) handles: u32,
    pub(crate) reopen: u32,
}

impl Mix {
    /// Steps in these proportions.
    pub(crate) fn steps(&self) -> BoxedStrategy<Step> {
        let number = any::<u8>;
        let few = || proptest::collection::vec(any::<u8>(), 1..5);
        let mostly_few = Union::new_weighted(vec![
            (9, few().boxed()),
            (1, proptest::collection::vec(any::<u8>(), 5..20).boxed()),
        ]);
        let mostly_small = |few: std::ops::Range<u8>, many: std::ops::RangeInclusive<u8>| {
            Union::new_weighted(vec![(15, few.boxed()), (1, many.boxed())])
        };
        let choice = || {
            Union::new_weighted(vec![
                (2, Just(Choice::All).boxed()),
                (1, any::<u8>().prop_map(Choice::One).boxed()),
            ])
        };
        let from = || {
            let each = proptest::array::uniform3(0..From::NUMBERS);
            Union::new_weighted(vec![
                (1, Just(From::Beginning).boxed()),
                (1, any::<u8>().prop_map(From::After).boxed()),
                (2, each.prop_map(From::AfterEach).boxed()),
                (1, any::<u8>().prop_map(From::Event).boxed()),
                (1, Just(From::End).boxed()),
            ])
        };
        let span = || {
            Union::new_weighted(vec![
                (1, Just(Span::Moment)),
                (1, Just(Span::Half)),
                (4, Just(Span::Brief)),
                (1, Just(Span::Hour)),
            ])
        };
        let how = Union::new_weighted(vec![
            (3, Just(How::Ack).boxed()),
            (
                5,
                (proptest::option::weighted(0.4, span()), number())
                    .prop_map(|(delay, reason)| How::Retry { delay, reason })
                    .boxed(),
            ),
            (
                2,
                number().prop_map(|reason| How::Reject { reason }).boxed(),
            ),
            (
                4,
                proptest::option::weighted(0.6, span())
                    .prop_map(How::Renew)
                    .boxed(),
            ),
        ]);
        let place = Union::new(vec![
            any::<u8>().prop_map(Place::Partition).boxed(),
            any::<u8>().prop_map(Place::Key).boxed(),
        ]);
        let time = Union::new_weighted(vec![
            (
                10,
                Union::new_weighted(vec![
                    (2, Just(Span::Moment)),
                    (2, Just(Span::Half)),
                    (4, Just(Span::Brief)),
                    (2, Just(Span::Hour)),
                ])
                .prop_map(Time::On)
                .boxed(),
            ),
            (1, span().prop_map(Time::Back).boxed()),
        ]);
        let append = (
            number(),
            mostly_small(1..5, 5..=40),
            place,
            proptest::bool::weighted(0.1),
        )
            .prop_map(|(stream, count, place, taken_id)| Step::Append {
                stream,
                count,
                place,
                taken_id,
            });
        let group =
            (number(), 0..4_u8, from()).prop_map(|(stream, name, start)| Step::CreateGroup {
                stream,
                name,
                start,
            });
        let fetch = (
            number(),
            0..3_u8,
            mostly_small(0..6, 6..=40),
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
        let settle = (mostly_few, how, proptest::bool::weighted(0.1))
            .prop_map(|(leases, how, lies)| Step::Settle { leases, how, lies });
        // What is above a low sequence has mostly been claimed.
        let low = || Union::new_weighted(vec![(3, (0..3_u8).boxed()), (1, (3..8_u8).boxed())]);
        let replay_after =
            (number(), low(), choice()).prop_map(|(group, after, partitions)| Step::ReplayAfter {
                group,
                after,
                partitions,
            });
        let replay_after_each = (
            number(),
            proptest::collection::vec(proptest::option::weighted(0.8, low()), 1..=3),
        )
            .prop_map(|(group, after)| Step::ReplayAfterEach { group, after });
        let replay_events =
            (number(), few()).prop_map(|(group, events)| Step::ReplayEvents { group, events });
        let reset =
            (number(), from(), choice()).prop_map(|(group, start, partitions)| Step::Reset {
                group,
                start,
                partitions,
            });
        let query = (number(), number(), number(), number(), 1..8_u8).prop_map(
            |(stream, filter, fields, order, page)| Step::Query {
                stream,
                filter,
                fields,
                order,
                page,
            },
        );
        let read = (number(), number(), 0..12_u8, 0..6_u8).prop_map(
            |(stream, partition, after, limit)| Step::Read {
                stream,
                partition,
                after,
                limit,
            },
        );
        let behind = Union::new_weighted(vec![
            (2, Just(Behind::Nothing).boxed()),
            (2, number().prop_map(Behind::Dead).boxed()),
            (3, number().prop_map(Behind::Once).boxed()),
        ]);
        let dead_letters =
            (number(), 0..5_u8, behind).prop_map(|(group, page, behind)| Step::DeadLetters {
                group,
                page,
                behind,
            });
        let weighted = vec![
            (self.append, append.boxed()),
            (self.groups, group.boxed()),
            (self.fetch, fetch.boxed()),
            (self.settle, settle.boxed()),
            (self.replay, replay_after.boxed()),
            (self.replay, replay_after_each.boxed()),
            (self.replay, replay_events.boxed()),
            (self.reset, reset.boxed()),
            (self.time, time.prop_map(Step::Pass).boxed()),
            (self.query, query.boxed()),
            (self.read, read.boxed()),
            (self.dead_letters, dead_letters.boxed()),
            (self.handles, Just(Step::ChangeHandle).boxed()),
            (self.reopen, Just(Step::Reopen).boxed()),
            (1, Just(Step::EnsureIndexes).boxed()),
            (1, number().prop_map(|group| Step::Ask { group }).boxed()),
        ];
        let weighted = weighted.into_iter().filter(|(weight, _)| *weight > 0);
        Union::new_weighted(weighted.collect()).boxed()
    }
}
