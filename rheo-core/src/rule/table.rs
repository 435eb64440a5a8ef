//! Every rule, word for word as `docs/specification.md` has it; a test keeps the two equal.

use super::{Gate, Rule, must, should};
use crate::Guarantee::{ContiguousFrontier, Distributed, Durable, OrderedRangeScan, Replay};
use crate::OptionalOperation::{DeadLetters, GroupInfo, ListGroups, ListStreams, WaitForWork};

/// All rules, in the order of the specification.
pub const RULES: &[Rule] = &[
    // Capabilities
    must(
        "CAP-1",
        "A declaration is validated when it is built and when it is read: `at_least_once` and \
        `lease_fencing` are always true, and declaring either false is an error; so are a \
        guarantee that is declared both true and false, `secondary_indexes` without \
        `ordered_range_scan`, and a limit below its least value or above the common bound.",
    )
    .untested("enforced by the type `Capabilities`, with unit tests in `rheo-core`"),
    must(
        "CAP-2",
        "The declaration is constant for a handle, also after `close`, and the same for all handles \
        on one store that are opened alike.",
    ),
    must(
        "CAP-3",
        "Guarantees and optional operations gate cases; mechanisms never excuse a case: they may \
        only add some.",
    )
    .untested("about the suite itself, proved by the suite's own tests"),
    must(
        "CAP-4",
        "Correctness cases always run. A case that does not run is listed with the guarantee or \
        operation that is not declared, or with what the harness lacks (a part, or a clock that \
        the suite sets), never silently dropped.",
    )
    .untested("about the suite itself, proved by the suite's own tests"),
    must(
        "CAP-5",
        "`distributed` means that handles in several processes may fetch one group at once.",
    )
    .gated_by(Gate::Guarantee(Distributed))
    .untested(
        "a definition; the suite itself treats the declaration so, proved by the suite's own \
        tests",
    ),
    must(
        "CAP-6",
        "Whatever needs a guarantee or an optional operation that is not declared gives \
        `Unsupported`, whose fields are exactly the operation that was called and the name that \
        is not declared, and changes nothing.",
    ),
    // Errors
    must(
        "ERR-1",
        "Every error but `Ambiguous` means: no effect at all. In particular `Failed`, `Invalid` \
        and `BackendUnavailable` promise it.",
    ),
    must(
        "ERR-2",
        "When the outcome of a write is not known it is `Ambiguous`, never `Failed`, never Ok. It \
        may happen later, too, and at most once: when it was repeated by then, an append with ids, \
        a settle or a creation changes nothing more.",
    ),
    must(
        "ERR-3",
        "`is_lost()` is true for `StaleLease` and `ReceiptMismatch` alone: the holder no longer \
        owns the lease. `is_retryable()` is true for `BackendUnavailable`, `Failed` and \
        `AlreadyDraining` alone: the very same call may be made again. Operations that only read \
        (`ping`, `read`, `query`, `lag`, the optional ones) and `close` are never `Ambiguous`; \
        `fetch` is a write.",
    ),
    must(
        "ERR-4",
        "Every operation ends: with an unreachable, frozen or half-open store it returns within \
        the configured operation timeout (default 5 s). A write that was never sent, because the \
        store cannot be reached, is `BackendUnavailable`, not `Ambiguous`. `wait_for_work` has \
        its own timeout in addition, and a batch form of delivery has the operation timeout for \
        each of its leases.",
    ),
    must(
        "ERR-5",
        "When the store comes back, the same handle works again.",
    ),
    must(
        "ERR-6",
        "When several errors apply, the first of these is given: `BackendUnavailable` and \
        `Unsupported` in either order, `StreamNotFound`, `GroupNotFound`, any other; between \
        `Invalid` and `AlreadyExists` the order is free. A limit of 0, an empty batch of events, \
        an empty selection of partitions and a replay of nothing excuse no error. Values that are \
        invalid whatever the store holds, limits, and partitions that a stream known to the handle \
        does not have, may be refused as `Invalid` before all else.",
    ),
    must(
        "ERR-7",
        "After `close`, every call on that handle gives `BackendUnavailable`, each result of a \
        batch form too; what is not declared may give `Unsupported` instead. Closing again is \
        Ok. Other handles on the same store go on.",
    ),
    must(
        "ERR-8",
        "Bad input is `Invalid`, which names the argument, what was given and what is allowed. A \
        partition out of range is bad input in every operation: for `partition` in an event to \
        append, a read and a query, for `partitions` in a fetch, a replay and a reset, for \
        `start` in the start of a group or reset.",
    ),
    must(
        "ERR-9",
        "`ping` is Ok while the store answers, and `BackendUnavailable` when it does not.",
    ),
    must(
        "ERR-10",
        "The fields of an error are those of the call, byte for byte: `stream` and `group` as it \
        named them, `after` as it gave it, and in `AlreadyExists` the stream or the group that was \
        to be made, or the id of one of its events that exists or is in the batch twice; of \
        several such ids any.",
    ),
    must(
        "ERR-11",
        "No text of an error, its own, that of a source or that for programmers, shows a credential \
        or the connection string that the backend was opened with.",
    ),
    // Streams and names
    must(
        "STR-1",
        "`create_stream` makes `partition_count` partitions, numbered from 0 and fixed for ever \
        (default 1; 0 or over 1,024 is `Invalid`). A duplicate is `AlreadyExists`, whatever its \
        options, and changes nothing. Of concurrent creators exactly one wins; the others get \
        `AlreadyExists`.",
    ),
    must(
        "STR-2",
        "Names of streams, groups, consumers and event types are 1 to 255 bytes of UTF-8 without \
        control characters, keys 1 to 1,024 bytes of UTF-8 without U+0000; else `Invalid`. Any \
        such name works, comes back byte for byte, and never collides with another: `a.b`, \
        `a:b`, `A` and `a`, `ü` in two normal forms, quotes, `%`, `$`, blanks at the end, a \
        leading `system.`, and pairs like (`a`, `b:c`) and (`a:b`, `c`) are all distinct.",
    ),
    must(
        "STR-3",
        "Names, field names and values are data: no text is ever run as SQL, as a query operator \
        or as a script.",
    ),
    must(
        "STR-4",
        "Streams are isolated from each other: nothing that is done to one changes what another \
        gives. Groups of one name on two streams are two groups, and one event id may be in both \
        streams. Calls at once, over one handle or several, are answered each for itself: what \
        another one asks for, does or is refused plays no part in an answer beyond what it changes in \
        the stream or group that both are about.",
    ),
    must(
        "STR-5",
        "`ensure_indexes` may run at any time, again and again, from several processes at once, \
        and loses nothing.",
    ),
    // Event log
    must(
        "LOG-1",
        "Sequences in a partition are 1, 2, 3 … without gap or repeat, whatever appends fail, are \
        cancelled or race.",
    ),
    must(
        "LOG-2",
        "Prefix visibility: when an event is visible to any reader or group, all lower sequences \
        of its partition are too. So no group can ever pass an event that shows up later.",
    ),
    must(
        "LOG-3",
        "`append_batch` returns events in input order; within each partition they are contiguous \
        and in input order. A batch is all or nothing within each partition, and an error other \
        than `Ambiguous` means that nothing of it was written. An empty batch is Ok and empty.",
    ),
    must(
        "LOG-4",
        "Events are immutable: nothing (ack, retry, reject, replay, reset, restart) changes or \
        removes one.",
    ),
    must(
        "LOG-5",
        "What append returned is what read, query, fetch and dead letters return, field for \
        field. Its timestamp is the time of the append, also when the clock has gone back.",
    ),
    must(
        "LOG-6",
        "Routing: an explicit partition, else XXH64 (seed 0) of the key's UTF-8 modulo the number \
        of partitions, the same in every process, backend and version, else partition 0. An \
        explicit partition out of range is `Invalid` and nothing of the batch is written.",
    ),
    must(
        "LOG-7",
        "Event ids are UUIDs, nil and max included, and unique within a stream, over all its \
        partitions. The caller may give one; giving one that exists, or one twice in a batch, is \
        `AlreadyExists` and writes nothing of the batch. So an append to one partition can be \
        repeated safely after `Ambiguous`; a batch over several partitions may have been written \
        in some of them, and is repeated partition by partition. Generated ids are UUIDs of \
        version 7 that hold the millisecond of the append, so that they sort by it.",
    ),
    must(
        "LOG-8",
        "Payload and metadata are JSON objects: every i64 and u64, finite doubles (integers and \
        doubles stay distinct; the sign of a zero may be lost), any Unicode string without \
        U+0000, any key without U+0000 (also empty, with dots, or with a leading `$`), arrays and \
        objects nested to 64 with the outermost counted, each object at most 1,048,576 bytes of \
        compact JSON. They come back equal; the order of keys does not matter. Outside that: \
        `Invalid`, the same on every backend, and nothing is written. A backend with a smaller \
        bound declares it in its limits, and input beyond them is `Invalid` for `payload`, \
        `metadata` or `events`; where `batch_events` is not declared, a batch of 1,000 small \
        events fits, or of as many as `batch_bytes` allows; where `batch_bytes` is not declared, a \
        batch of 20,971,520 bytes of payload and metadata fits, or of as many events as \
        `batch_events` allows. Text that merely looks like an escape (a backslash, a u, four \
        digits) is innocent and stays as it is.",
    ),
    must(
        "LOG-9",
        "`read` takes a partition (default 0), an exclusive `after` (default 0) and a limit \
        (default 100), and gives as many events as there are above `after`, up to the limit, \
        ascending; a limit of 0 gives none. A missing stream is `StreamNotFound`, never an empty \
        Ok.",
    ),
    must(
        "LOG-10",
        "Once append returned Ok, every later read, query, fetch and lag on any handle sees the \
        event, whatever other transactions are open in the store. Internal collisions (two \
        writers after the same sequence) are resolved inside and never surface as \
        `AlreadyExists`.",
    ),
    // Queries
    must(
        "QRY-1",
        "Equality filters on type, key, partition, and top-level payload and metadata fields (any \
        JSON value, compared as JSON: 1 and \"1\" differ, numbers by their exact value so that 1 \
        and 1.0 match, object keys in any order, null is not absent), all of them anded; time \
        range `from` and `until` inclusive at both ends; `after_sequence` exclusive, \
        `until_sequence` inclusive; limit (default 100; 0 gives an empty page with no `next`); \
        order by sequence or timestamp, either way. Bounds that leave nothing give an empty \
        page. Filters on type, key, payload and metadata need `secondary_indexes`.",
    )
    .gated_by(Gate::Guarantee(OrderedRangeScan)),
    must(
        "QRY-2",
        "The order is total: by sequence, then partition; or by timestamp, then sequence, then \
        partition. Descending is the exact reverse of ascending.",
    )
    .gated_by(Gate::Guarantee(OrderedRangeScan)),
    must(
        "QRY-3",
        "A page holds as many matching events as there are, up to the limit. Paging with the \
        returned cursor over any number of partitions gives every event that was there when \
        paging began exactly once, and events appended meanwhile at most once, also when pages \
        end inside a run of equal timestamps or sequences. `next` is absent only when nothing \
        followed; its presence promises nothing. The cursor is opaque, serializable, and valid on \
        every handle, any number of times, for as long as the stream lives. One with a character \
        cut, removed, replaced or added, or one of a query with another order, is `Invalid` for \
        `cursor`; with other filters it continues from its position.",
    )
    .gated_by(Gate::Guarantee(OrderedRangeScan)),
    must("QRY-4", "Queries never change group state.").gated_by(Gate::Guarantee(OrderedRangeScan)),
    // Groups and delivery
    must(
        "DLV-1",
        "Groups are independent: each gets every event after its start.",
    ),
    must(
        "DLV-2",
        "`create_group` takes a start: the beginning (default), after a sequence (one for all \
        partitions, or one per partition, where a partition that is not named starts at its \
        beginning), at a time (just before the lowest sequence whose timestamp is at or after \
        it; at the end where there is none), or the end. A start beyond the high watermark of \
        any partition it is for is `Invalid` for `start`. A duplicate group is `AlreadyExists` \
        and changes nothing. Of concurrent creators exactly one wins; the others get \
        `AlreadyExists`.",
    ),
    must(
        "DLV-3",
        "`fetch` returns at most `limit` leases; 0 gives none; none when nothing is claimable. \
        `partitions` restricts it. When something is claimable in the selected partitions and \
        nothing else fetches, a limit of at least 1 gives at least one lease; it may give fewer \
        than there are. The exception is a bound of the backend on how many events of a partition \
        a group has open at once (leased, or waiting for their retry), which is 10,000 or more: \
        while that many are open, none is claimed for the first time, and what was claimed before \
        still comes again.",
    ),
    must(
        "DLV-4",
        "Within a partition the lowest claimable sequences come first, ascending. The order \
        between partitions is free. A fetch need not wait for a settle: while something is settled \
        in a partition, it may leave out what was claimed there before.",
    ),
    should(
        "DLV-5",
        "With n selected partitions that all hold claimable events, 2·n consecutive fetches with \
        limit ≥ 1 serve every one of them: no partition starves.",
    ),
    must(
        "DLV-6",
        "At least once: an event after the group's start stays claimable, or leased, or waiting \
        for its retry, until that group made it terminal; nothing (a crash between any two steps \
        of a backend, a cancelled future, an expired lease, a concurrent append) makes a group \
        miss one.",
    ),
    must(
        "DLV-7",
        "Mutual exclusion: at any time at most one unexpired lease per group and event. While no \
        lease expires and nothing is retried, replayed or reset, no event is delivered twice to \
        a group.",
    ),
    must(
        "DLV-8",
        "A lease holds the whole event, the group, the consumer, `attempt` and times; `leased_at` \
        is the time of the claim and `expires_at` = `leased_at` + lease duration (default 30 s; \
        below 1 µs or above 365 days is `Invalid`), but never above the highest timestamp.",
    ),
    // Leases and fencing
    must(
        "LSE-1",
        "`lease_id` is new for every claim and unguessable: any two differ in at least 8 \
        characters between their common beginning and their common end.",
    ),
    must(
        "LSE-2",
        "`renew`, `ack`, `retry` and `reject` succeed only while the lease id is the current claim \
        of the event that group, stream, partition and sequence name; else `StaleLease` and no \
        effect. The settled, the replaced, the replayed and the reset lease are all stale, and so \
        is one of another group, stream, partition or sequence, one of a stream or group that \
        does not exist, and a made-up one, whatever its text. The other fields of a lease, the \
        event's id and the attempt too, are not compared and not used: the attempt that counts is \
        that of the claim.",
    ),
    must(
        "LSE-3",
        "With a current lease id and another receipt, also one where the claim has none or none \
        where the claim has one (an empty receipt is not none): `ReceiptMismatch` and no effect. \
        With a stale lease id it is `StaleLease`, whatever the receipt.",
    ),
    must(
        "LSE-4",
        "A lease is reclaimable from `expires_at` on (`now >= expires_at`), not before. Expiry \
        makes it reclaimable, not void: until somebody reclaims it, its holder may still settle \
        or renew it. A fetch reclaims in the partitions it selects alone, and nothing with a \
        limit of 0.",
    ),
    must(
        "LSE-5",
        "Reclaiming gives a new lease id and an attempt that is one higher. Every claim counts as \
        an attempt, also one whose answer never reached the consumer.",
    ),
    must(
        "LSE-6",
        "`renew` sets `expires_at` to now + duration, also to an earlier time, and returns the \
        lease; id, receipt, attempt and `leased_at` stay, so that a copy from before settles as \
        well. Fields that LSE-2 does not compare may be returned as they were given.",
    ),
    must(
        "LSE-7",
        "Of concurrent settles of one lease exactly one wins; the others get `StaleLease`.",
    ),
    must(
        "LSE-8",
        "The batch forms of renew, ack, retry and reject give one result per lease, in order, \
        each as the single form would; a bad lease neither blocks nor carries the others. Of a \
        lease that is given twice the first comes first: settled again it is `StaleLease`. An \
        empty batch gives no results.",
    ),
    // Retry, reject, dead letters
    must(
        "DLQ-1",
        "`retry` makes the event claimable again at once, even if the clock then goes back, or, \
        with a delay, from now + delay on, not before; the attempt goes up at the next claim. \
        That moment is never above the highest timestamp: a longer delay ends then.",
    ),
    must(
        "DLQ-2",
        "At `attempt >= max_attempts` (a group option, default 5, at least 1) retry dead-letters \
        instead, says so in its answer, and keeps the retry's reason or, without one, \"retried \
        at the last attempt\".",
    ),
    must(
        "DLQ-3",
        "A lease that expired with `attempt >= max_attempts` is dead-lettered at reclaim rather \
        than handed out again, with the reason \"lease expired at the last attempt\": an event \
        that kills its consumer cannot loop for ever. Until then it is like any expired lease. A \
        fetch with a limit of at least 1 that gives no lease leaves no such lease in the \
        selected partitions; one that gives leases may stop at its limit.",
    ),
    must(
        "DLQ-4",
        "`reject` dead-letters for that group alone; other groups and the log are untouched.",
    ),
    must(
        "DLQ-5",
        "A dead letter keeps the event, attempt, reason (a text of at most 1,024 bytes, cut at a \
        character boundary, U+0000 replaced by U+FFFD: a bad reason never keeps an event from \
        being settled) and the time at which it became one. `dead_letters` pages in (partition, \
        sequence) order and gives as many as there are above an exclusive `after`, up to a limit \
        (default 100; 0 gives none); an `after` that is not among the group's dead letters now is \
        `CursorNotFound`, even when the event exists.",
    )
    .gated_by(Gate::Operation(DeadLetters)),
    must(
        "DLQ-6",
        "A dead letter is terminal: it is not delivered again unless it is replayed or reset, and \
        it lets the frontier pass.",
    ),
    // Replay and reset
    must(
        "RPL-1",
        "Replay after a sequence (exclusive; one for the selected partitions, or one per \
        partition) reopens every delivered event above it: claimable at once, attempt from 1, \
        dead letters above it gone, waits for a retry ended, live leases above it stale. Where \
        the sequence is below the group's start, the start moves back to it. Partitions that are \
        not selected or named stay as they are.",
    )
    .gated_by(Gate::Guarantee(Replay)),
    must(
        "RPL-2",
        "The frontier becomes the lower of itself and the sequence replayed after.",
    )
    .gated_by(Gate::Guarantee(Replay)),
    must(
        "RPL-3",
        "Replay never moves forward: after a sequence at or beyond both the group's start and \
        what it has claimed in that partition, it changes nothing and skips nothing.",
    )
    .gated_by(Gate::Guarantee(Replay)),
    must(
        "RPL-4",
        "Replay of chosen events reopens just those, whether terminal, leased, waiting or at or \
        below the group's start, as in RPL-1, and the frontier falls to below the lowest of \
        them; one that was never claimed and is above the start stays as it is. An id that is \
        not in the stream is `Invalid` for `events`, and nothing is reopened. An id given twice \
        counts once, and no ids change nothing.",
    )
    .gated_by(Gate::Guarantee(Replay)),
    must(
        "RPL-5",
        "`reset_group` drops the group's delivery state in the selected partitions, dead letters \
        and attempts too, and starts again from a start position as in DLV-2 (default the \
        beginning), which may be ahead; the frontier is that start, and `max_attempts` stays. A \
        start that names a partition which is not selected is `Invalid` for `start`. The facade \
        needs confirmation; without it the call is `ConfirmRequired` and nothing happens.",
    )
    .gated_by(Gate::Guarantee(Replay)),
    must(
        "RPL-6",
        "Other groups, partitions that are not selected, and the log are untouched.",
    )
    .gated_by(Gate::Guarantee(Replay)),
    must(
        "RPL-7",
        "Replay and reset are atomic against concurrent fetch and settle: no lease from before \
        settles anything after.",
    )
    .gated_by(Gate::Guarantee(Replay)),
    // Frontier and lag
    must(
        "FRN-1",
        "The frontier follows its definition exactly: a hole holds it, filling the hole moves it \
        past everything that is done.",
    )
    .gated_by(Gate::Guarantee(ContiguousFrontier)),
    must("FRN-2", "It starts at the group's start.").gated_by(Gate::Guarantee(ContiguousFrontier)),
    must("FRN-3", "It never moves back except by replay or reset.")
        .gated_by(Gate::Guarantee(ContiguousFrontier)),
    must(
        "FRN-4",
        "`lag` gives frontier, high watermark and lag for every partition, ascending by \
        partition, and the sum; it is exact when nothing is concurrent, and never claims \
        progress that was not made.",
    )
    .gated_by(Gate::Guarantee(ContiguousFrontier)),
    // Optional operations
    must(
        "OPS-1",
        "`list_streams` gives the streams with their number of partitions, ordered by the UTF-8 \
        bytes of their names: as many as there are above an exclusive `after` that need not \
        exist, up to a limit (default 100; 0 gives none).",
    )
    .gated_by(Gate::Operation(ListStreams)),
    must(
        "OPS-2",
        "`list_groups` gives the names of a stream's groups, ordered and paged likewise.",
    )
    .gated_by(Gate::Operation(ListGroups)),
    must(
        "OPS-3",
        "`group_info` gives `max_attempts`, the number of events with a current lease (expired \
        ones that nobody reclaimed included), the number of dead letters, and the progress as \
        `lag` gives it; a backend without `contiguous_frontier` gives a progress without \
        partitions.",
    )
    .gated_by(Gate::Operation(GroupInfo)),
    must(
        "OPS-4",
        "`wait_for_work` returns when something might be claimable for the group or when its \
        timeout, in real time, has passed, and not before, however long the timeout is. With work \
        that was there before the call, whatever made it claimable, or is appended during it, it \
        gives `MaybeWork`. It is a hint that is never needed for \
        correctness: it may come for nothing, it claims nothing and changes nothing.",
    )
    .gated_by(Gate::Operation(WaitForWork)),
    // Durable, distributed, cancelled
    must(
        "DUR-1",
        "What was confirmed survives closing the handle, killing the process with SIGKILL and \
        restarting the store: events, groups, leases (still fenced), attempts, dead letters, \
        frontiers. The backend sets what it needs itself (write and read concern, primary reads, \
        synchronous commit, a UTC session) and does not depend on what a connection string or a \
        server default says.",
    )
    .gated_by(Gate::Guarantee(Durable)),
    must(
        "DST-1",
        "All rules hold for any number of handles, in one process or several. Where their clocks \
        differ, a lease may be reclaimed early or late by the skew, but fencing, no loss and one \
        winner per settle hold all the same.",
    )
    .gated_by(Gate::Guarantee(Distributed)),
    must(
        "DST-2",
        "A consumer that dies holds its events for no longer than its lease.",
    )
    .gated_by(Gate::Guarantee(Distributed)),
    must(
        "CAN-1",
        "Every future may be dropped at any await point: no lock, transaction or pool slot stays \
        behind, no rule breaks; the effect is either whole or none, in each partition and for each \
        lease of a batch. Other calls go on, on the same handle too: none of them hangs or fails for \
        it.",
    ),
    // Cost
    should(
        "CST-1",
        "Delivery state is proportional to what is open (leased, waiting for retry, dead, or \
        needed to remember acks above a hole), not to history: after everything is acked, a \
        group costs the same whether the log holds ten events or ten million.",
    )
    .untested("measured by benchmarks, since the suite cannot see how much a store holds"),
    should(
        "CST-2",
        "The time of append, fetch, ack and lag does not grow with the length of the log nor with \
        the number of acked events.",
    )
    .untested("measured by benchmarks, since a timed test is not an assertion"),
];
