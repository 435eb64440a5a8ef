//! Dead letters: what they keep, how they page, whose they are.

mod cursors;
mod deaths;
mod many;

use std::time::Duration;

use rheo_core::{
    Backend, DeadLetter, DeadLetterOptions, ErrorKind, EventId, Gate, GroupName, Guarantee, Lease,
    OptionalOperation, Partition, Reason, RetryOptions, RetryOutcome, StreamName,
};

use self::cursors::*;
pub(super) use self::deaths::expect_letters;
use self::deaths::*;
use self::many::*;
use crate::case::{Case, case};
use crate::expect::{Outcome, expect, expect_empty, expect_eq, expect_error};
use crate::fixture::Fixture;
use crate::scene::{Group, P0, P1};

const PARTITIONS: Gate = Gate::Guarantee(Guarantee::Partitions);
const FRONTIER: Gate = Gate::Guarantee(Guarantee::ContiguousFrontier);
const REPLAY: Gate = Gate::Guarantee(Guarantee::Replay);
const DEAD_LETTERS: Gate = Gate::Operation(OptionalOperation::DeadLetters);

pub(crate) const CASES: &[Case] = &[
    case!(
        "DLQ-4" => reject_is_for_that_group_alone,
        "the event itself is marked as dead, not its delivery to the group"
    ),
    case!(
        "DLQ-4" => reject_leaves_the_log_alone,
        "the event is moved into a table of dead letters"
    ),
    case!(
        "DLQ-4" => one_event_can_be_dead_in_two_groups,
        "dead letters are kept by event, without the group"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "DLQ-5" => a_dead_letter_keeps_event_attempt_reason_and_time,
        "attempts count retries instead of claims, or the time is the claim's or in milliseconds"
    ),
    case!(
        "DLQ-5" => a_retry_at_the_last_attempt_makes_a_whole_dead_letter,
        "only reject fills in all fields of a dead letter"
    ),
    case!(
        "DLQ-5" => an_expiry_at_the_last_attempt_makes_a_whole_dead_letter,
        "only reject fills in all fields of a dead letter"
    ),
    case!(
        "DLQ-5" => a_late_or_renewed_lease_makes_a_whole_dead_letter,
        "a lease that has expired or was renewed is settled by a statement of its own"
    ),
    case!(
        "DLQ-5" => a_dead_letter_has_the_attempt_of_the_claim,
        "the attempt is taken from the lease that is given, which may have been rebuilt"
    ),
    case!(
        "DLQ-5" => what_was_lost_long_ago_dies_when_it_is_reclaimed,
        "the expiry of the last lease is taken for the time of death"
    ),
    case!(
        "DLQ-5" => a_death_follows_the_clock_back,
        "the time of death is the latest time that was seen, or never before the claim"
    )
    .sets_the_clock(),
    case!(
        "DLQ-5" => a_reason_of_1_kib_is_kept,
        "the column for the reason is shorter, or its length is counted in bytes where it cuts"
    ),
    case!(
        "DLQ-5" => a_reason_is_kept_character_by_character,
        "the reason is trimmed, escaped, or replaced where it is empty"
    ),
    case!(
        "DLQ-5" => dead_letters_are_in_order_of_sequence,
        "dead letters are ordered by time of death, or sequences are compared as text"
    ),
    case!(
        "DLQ-5" => dead_letters_are_in_order_of_partition_first,
        "dead letters are ordered by sequence, then partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DLQ-5" => dead_letters_of_twelve_partitions_are_in_order,
        "the numbers of partitions are kept or compared as text"
    )
    .needs(&[Gate::Guarantee(Guarantee::Partitions)]),
    case!(
        "DLQ-5" => pages_of_dead_letters_join_up,
        "the bound `after` is inclusive, or is applied after the limit"
    ),
    case!(
        "DLQ-5" => pages_of_dead_letters_join_up_across_partitions,
        "the bound `after` compares sequences alone, without the partition"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DLQ-5" => a_limit_bounds_a_page_of_dead_letters,
        "a limit of 0 is taken for none, or a large one overflows"
    ),
    case!(
        "DLQ-5" => more_than_a_hundred_dead_letters_are_given_where_asked_for,
        "the default limit is the largest one"
    ),
    case!(
        "DLQ-5" => more_than_a_thousand_dead_letters_join_up,
        "a page is cut at a number of the backend's own, or `after` is looked for in its first page"
    ),
    case!(
        "DLQ-5" => more_than_a_thousand_dead_letters_join_up_across_partitions,
        "each partition gives a page of its own, which is cut or full before the limit is reached"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DLQ-5" => an_unknown_after_is_cursor_not_found,
        "an id that is not found becomes a bound that is missing or above everything"
    ),
    case!(
        "DLQ-5" => an_after_that_is_no_dead_letter_is_cursor_not_found,
        "the bound is looked up among the events instead of the group's dead letters"
    ),
    case!(
        "DLQ-5" => an_after_that_was_replayed_is_cursor_not_found,
        "the bound is looked up among the dead letters that ever were"
    )
    .needs(&[REPLAY]),
    case!(
        "DLQ-5" => an_after_of_a_namesake_is_cursor_not_found,
        "the bound is looked up by group and event id, without the stream"
    ),
    case!(
        "DLQ-5" => an_after_that_is_not_dead_is_found_in_no_partition,
        "in later partitions any event, or any place, goes for a bound"
    )
    .needs(&[PARTITIONS]),
    case!(
        "DLQ-5" => an_after_is_looked_up_in_its_own_stream,
        "the place of the bound is looked up by event id alone, which another stream may have too"
    ),
    case!(
        "DLQ-5" => what_is_not_dead_is_no_dead_letter,
        "deliveries are listed whatever their state"
    ),
    case!(
        "DLQ-5" => listing_dead_letters_takes_none_away,
        "dead letters are popped from a queue"
    ),
    case!(
        "ERR-6" => dead_letters_look_for_the_stream_before_the_group,
        "no rows are taken for no dead letters"
    )
    .needs(&[DEAD_LETTERS]),
    case!(
        "DLQ-6" => a_dead_letter_is_not_delivered_again,
        "reject, or the retry or expiry of the last attempt, only ends the lease"
    ),
    case!(
        "DLQ-6" => a_dead_letter_lets_the_frontier_pass,
        "only acked events count as done"
    )
    .needs(&[FRONTIER]),
];

/// Rejects all events that are claimable; gives the leases.
async fn reject_all(group: &Group) -> Outcome<Vec<Lease>> {
    let leases = group.fetch_all("a").await?;
    for lease in &leases {
        group.reject(lease, "broken").await?;
    }
    Ok(leases)
}

fn places(dead: &[DeadLetter]) -> Vec<(u32, u64)> {
    let place = |letter: &DeadLetter| {
        let event = &letter.event;
        (event.partition.number(), event.sequence.get())
    };
    dead.iter().map(place).collect()
}

fn sequences(dead: &[DeadLetter]) -> Vec<u64> {
    places(dead)
        .into_iter()
        .map(|(_, sequence)| sequence)
        .collect()
}

/// What billing cannot digest may well be fine for the others.
async fn reject_is_for_that_group_alone(t: Fixture) -> Outcome {
    let billing = t.group_with_events(3).await?;
    let audit = billing.stream.group("audit").await?;
    let held = audit.fetch_one("b").await?;

    for lease in billing.fetch_exactly("a", 3).await? {
        billing.reject(&lease, "broken").await?;
    }

    audit.expect_current(&held).await?;
    audit.expect_claimable("b", &[2, 3]).await?;
    let late = billing.stream.group("late").await?;
    late.expect_claimable("c", &[1, 2, 3]).await?;
    Ok(())
}

/// Giving up on an event does not make it undone.
async fn reject_leaves_the_log_alone(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    let before = group.stream.read(P0).await?;

    reject_all(&group).await?;

    expect_eq("the log", group.stream.read(P0).await?, before)
}

/// Two teams, two opinions on the same event.
async fn one_event_can_be_dead_in_two_groups(t: Fixture) -> Outcome {
    let billing = t.group_with_events(1).await?;
    let audit = billing.stream.group("audit").await?;
    billing
        .reject(&billing.fetch_one("a").await?, "no price")
        .await?;
    expect_empty("dead letter of audit", &audit.dead_letters().await?)?;
    audit
        .reject(&audit.fetch_one("b").await?, "no signature")
        .await?;

    for (group, reason) in [(&billing, "no price"), (&audit, "no signature")] {
        let dead = group.dead_letters().await?;
        let seen: Vec<_> = dead
            .iter()
            .map(|d| (d.group.as_str(), d.reason.as_str()))
            .collect();
        expect_eq(
            "group and reason",
            seen,
            vec![(group.name.as_str(), reason)],
        )?;
    }
    Ok(())
}

/// The one dead letter of a group, which must be this one and have died now.
async fn expect_letter(group: &Group, lease: &Lease, reason: &Reason) -> Outcome {
    let dead = group.dead_letters().await?;
    expect(dead.len() == 1, "one dead letter", format!("{dead:?}"))?;
    let expected = DeadLetter {
        event: lease.event.clone(),
        group: group.name.clone(),
        attempt: lease.attempt,
        reason: reason.clone(),
        dead_at: dead[0].dead_at,
    };
    group.stream.t.expect_now("dead_at", dead[0].dead_at)?;
    expect_eq("the dead letter", &dead[0], &expected)
}

/// Whoever looks into it later needs the whole story, to the microsecond.
async fn a_dead_letter_keeps_event_attempt_reason_and_time(t: Fixture) -> Outcome {
    let group = t.group_with_events(1).await?;
    for _ in 0..2 {
        let lease = group.fetch_one("a").await?;
        t.backend.retry(&lease, &RetryOptions::new()).await?;
    }
    t.pass(Duration::from_micros(1_501)).await;
    let lease = group.fetch_one("a").await?;
    expect_eq("the attempt", lease.attempt, 3)?;
    t.pass(Duration::from_micros(1_501)).await;

    group.reject(&lease, "no such customer").await?;

    expect_letter(&group, &lease, &Reason::new("no such customer")).await
}

/// With a reason or without one.
async fn a_retry_at_the_last_attempt_makes_a_whole_dead_letter(t: Fixture) -> Outcome {
    for given in [Some(Reason::new("timeout")), None] {
        let group = t.stream(1).await?.group_of_attempts("billing", 2).await?;
        group.stream.append(1).await?;
        t.backend
            .retry(&group.fetch_one("a").await?, &RetryOptions::new())
            .await?;
        let lease = group.fetch_one("a").await?;
        t.pass(Duration::from_micros(1_501)).await;

        let mut options = RetryOptions::new();
        options.reason = given.clone();
        let outcome = t.backend.retry(&lease, &options).await?;

        expect_eq("the outcome", outcome, RetryOutcome::DeadLettered)?;
        let reason = given.unwrap_or_else(Reason::max_attempts);
        expect_letter(&group, &lease, &reason).await?;
    }
    Ok(())
}

/// Nobody was there to say what happened, so the backend does.
async fn an_expiry_at_the_last_attempt_makes_a_whole_dead_letter(t: Fixture) -> Outcome {
    let group = t.stream(1).await?.group_of_attempts("billing", 1).await?;
    group.stream.append(1).await?;
    let lease = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&lease).await;

    group.expect_nothing("b").await?;

    expect_letter(&group, &lease, &Reason::lease_expired()).await
}

/// Rejects one event for each reason and demands that the reasons are kept.
async fn expect_reasons_kept(t: &Fixture, reasons: &[String]) -> Outcome {
    let group = t.group_with_events(reasons.len()).await?;
    for (lease, reason) in group
        .fetch_exactly("a", reasons.len())
        .await?
        .iter()
        .zip(reasons)
    {
        group.reject(lease, reason).await?;
    }
    let dead = group.dead_letters().await?;
    let seen: Vec<Reason> = dead.into_iter().map(|letter| letter.reason).collect();
    let expected: Vec<Reason> = reasons.iter().map(Reason::new).collect();
    expect_eq("the reasons", seen, expected)
}

/// A stack trace fills it.
async fn a_reason_of_1_kib_is_kept(t: Fixture) -> Outcome {
    let reasons = [
        "x".repeat(1_024),
        "ü".repeat(512),
        "漢".repeat(341),
        "🦀".repeat(256),
    ];

    expect_reasons_kept(&t, &reasons).await
}

/// Reasons are error messages of other software: anything may be in them, or nothing.
async fn a_reason_is_kept_character_by_character(t: Fixture) -> Outcome {
    let reasons = [
        "",
        " ",
        " blank at both ends ",
        "two\r\nlines\n",
        "\ttab and \u{7} bell",
        "'; DROP TABLE dead_letters; --",
        "100 % of \"$where\" {\"a\": [1]} \\u0041 \\",
        "nul \0 within",
        "ü and u\u{308} and 🦀",
        "null",
    ];

    expect_reasons_kept(&t, &reasons.map(str::to_owned)).await
}

/// Whoever pages needs an order that later deaths do not upset.
async fn dead_letters_are_in_order_of_sequence(t: Fixture) -> Outcome {
    let group = t.group_with_events(11).await?;
    let leases = group.fetch_exactly("a", 11).await?;

    for at in [4, 9, 0, 10, 1, 7] {
        group.reject(&leases[at], "broken").await?;
    }

    let seen = sequences(&group.dead_letters().await?);
    expect_eq(
        "the dead letters' sequences",
        seen,
        vec![1, 2, 5, 8, 10, 11],
    )
}

/// Partition first, whatever order they died in.
async fn dead_letters_are_in_order_of_partition_first(t: Fixture) -> Outcome {
    let group = t.stream(2).await?.group("billing").await?;
    group.stream.append_to(P1, 2).await?;
    group.stream.append_to(P0, 2).await?;
    let mut leases = group.fetch_exactly("a", 4).await?;
    leases.sort_by_key(|lease| (lease.event.sequence, lease.event.partition));

    for lease in leases.iter().rev() {
        group.reject(lease, "broken").await?;
    }

    let seen = places(&group.dead_letters().await?);
    expect_eq(
        "the dead letters' places",
        seen,
        vec![(0, 1), (0, 2), (1, 1), (1, 2)],
    )
}

/// Pages of `limit`, by the id of the last one, until a page is empty.
async fn expect_pages(group: &Group, limit: u32, expected: &[&[(u32, u64)]]) -> Outcome {
    let mut options = DeadLetterOptions::new().with_limit(limit);
    for page in expected {
        let dead = group.dead_letters_with(&options).await?;
        expect_eq("the page of dead letters", places(&dead), page.to_vec())?;
        options.after = dead.last().map(|letter| letter.event.id);
    }
    Ok(())
}

/// Neither a gap nor a repeat where one page ends and the next begins.
async fn pages_of_dead_letters_join_up(t: Fixture) -> Outcome {
    let group = t.group_with_events(6).await?;
    let leases = group.fetch_exactly("a", 6).await?;
    group.ack(&leases[2..3]).await?;
    for at in [5, 0, 4, 1, 3] {
        group.reject(&leases[at], "broken").await?;
    }

    let pages: &[&[(u32, u64)]] = &[&[(0, 1), (0, 2)], &[(0, 4), (0, 5)], &[(0, 6)], &[]];
    expect_pages(&group, 2, pages).await
}

/// Sequences begin again at 1 in the next partition.
async fn pages_of_dead_letters_join_up_across_partitions(t: Fixture) -> Outcome {
    let group = t.stream(3).await?.group("billing").await?;
    group.stream.append_to(P0, 3).await?;
    group.stream.append_to(P1, 1).await?;
    group.stream.append_to(Partition::new(2), 2).await?;
    reject_all(&group).await?;

    let pages: &[&[(u32, u64)]] = &[&[(0, 1), (0, 2)], &[(0, 3), (1, 1)], &[(2, 1), (2, 2)], &[]];
    expect_pages(&group, 2, pages).await
}

/// From none to all.
async fn a_limit_bounds_a_page_of_dead_letters(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    reject_all(&group).await?;

    for (limit, expected) in [
        (0, vec![]),
        (1, vec![1]),
        (2, vec![1, 2]),
        (3, vec![1, 2, 3]),
        (u32::MAX, vec![1, 2, 3]),
    ] {
        let options = DeadLetterOptions::new().with_limit(limit);
        let dead = group.dead_letters_with(&options).await?;
        expect_eq(&format!("a page of {limit}"), sequences(&dead), expected)?;
    }
    Ok(())
}

/// A hundred is the default, not the bound.
async fn more_than_a_hundred_dead_letters_are_given_where_asked_for(t: Fixture) -> Outcome {
    let group = t.group_with_events(102).await?;
    reject_all(&group).await?;

    let default = group.dead_letters_with(&DeadLetterOptions::new()).await?;
    expect_eq(
        "a page of the default limit",
        sequences(&default),
        (1..=100).collect(),
    )?;
    let options = DeadLetterOptions::new().with_limit(101);
    let longer = group.dead_letters_with(&options).await?;
    expect_eq("a page of 101", sequences(&longer), (1..=101).collect())
}

/// Demands that the id is refused as a bound, whatever the limit.
async fn expect_no_cursor(group: &Group, after: EventId) -> Outcome {
    for limit in [100, 0] {
        let options = DeadLetterOptions::new().with_after(after).with_limit(limit);
        let result = group
            .backend
            .dead_letters(&group.stream.name, &group.name, &options);
        expect_error(result.await, ErrorKind::CursorNotFound)?;
    }
    Ok(())
}

/// Neither all nor none of them: both would look like a page.
async fn an_unknown_after_is_cursor_not_found(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    expect_no_cursor(&group, t.unknown_id()).await?;
    reject_all(&group).await?;

    expect_no_cursor(&group, t.unknown_id()).await
}

/// The event is there, but it is not dead, or not in this group.
async fn an_after_that_is_no_dead_letter_is_cursor_not_found(t: Fixture) -> Outcome {
    let group = t.group().await?;
    let leases = group.bring_into_every_state().await?;
    let never_claimed = group.stream.append_event(t.new_event()).await?;
    let audit = group.stream.group("audit").await?;

    for lease in &leases[..3] {
        expect_no_cursor(&group, lease.event.id).await?;
    }
    expect_no_cursor(&group, never_claimed.id).await?;
    expect_no_cursor(&audit, leases[3].event.id).await
}

/// It was a dead letter once.
async fn an_after_that_was_replayed_is_cursor_not_found(t: Fixture) -> Outcome {
    let group = t.group_with_events(2).await?;
    let leases = reject_all(&group).await?;

    group.replay_after(1).await?;

    expect_no_cursor(&group, leases[1].event.id).await?;
    let options = DeadLetterOptions::new().with_after(leases[0].event.id);
    expect_empty("dead letter", &group.dead_letters_with(&options).await?)
}

/// Nothing but the dead, and none where there are none.
async fn what_is_not_dead_is_no_dead_letter(t: Fixture) -> Outcome {
    let group = t.group().await?;
    expect_empty("dead letter", &group.first_dead_letters().await?)?;

    group.bring_into_every_state().await?;

    expect_eq(
        "the dead letters",
        sequences(&group.first_dead_letters().await?),
        vec![4],
    )
}

/// Looking is not taking.
async fn listing_dead_letters_takes_none_away(t: Fixture) -> Outcome {
    let group = t.group_with_events(3).await?;
    reject_all(&group).await?;

    let first = group.dead_letters().await?;
    let second = group.dead_letters().await?;

    expect_eq("how many there are", first.len(), 3)?;
    expect_eq("the same list again", second, first)
}

/// An empty list would say that all is well with a group that does not exist.
async fn dead_letters_look_for_the_stream_before_the_group(t: Fixture) -> Outcome {
    let stream = t.stream(1).await?.name;
    let missing = StreamName::new("missing")?;
    let group = GroupName::new("missing")?;

    for limit in [100, 0] {
        let options = DeadLetterOptions::new().with_limit(limit);
        let result = t.backend.dead_letters(&missing, &group, &options).await;
        expect_error(result, ErrorKind::StreamNotFound)?;
        let result = t.backend.dead_letters(&stream, &group, &options).await;
        expect_error(result, ErrorKind::GroupNotFound)?;
    }
    Ok(())
}

/// Kills three events: by reject, by retry and by expiry.
async fn three_deaths(t: &Fixture) -> Outcome<Group> {
    let group = t.stream(1).await?.group_of_attempts("billing", 1).await?;
    group.stream.append(3).await?;
    let leases = group.fetch_exactly("a", 2).await?;
    group.reject(&leases[0], "broken").await?;
    t.backend.retry(&leases[1], &RetryOptions::new()).await?;
    let expiring = group.fetch_one_briefly("a").await?;
    t.let_lease_expire(&expiring).await;
    group.expect_nothing("a").await?;
    Ok(group)
}

/// However it died, it does not come back by itself.
async fn a_dead_letter_is_not_delivered_again(t: Fixture) -> Outcome {
    let group = three_deaths(&t).await?;

    t.pass(t.brief() * 2).await;
    group.stream.append(1).await?;

    group.expect_claimable("b", &[4]).await?;
    group.expect_nothing("b").await
}

/// One bad event must not make a group look stuck for ever.
async fn a_dead_letter_lets_the_frontier_pass(t: Fixture) -> Outcome {
    let group = three_deaths(&t).await?;
    group.expect_frontier(3).await?;

    group.stream.append(3).await?;
    let leases = group.fetch_exactly("a", 3).await?;
    group.reject(&leases[1], "broken").await?;
    group.expect_frontier(3).await?;
    group.ack(&leases[..1]).await?;
    group.expect_frontier(5).await
}

/// Partition 10 comes after 9, and after 2: they are numbers.
async fn dead_letters_of_twelve_partitions_are_in_order(t: Fixture) -> Outcome {
    let group = t.stream(12).await?.group("billing").await?;
    for partition in (0..12).map(Partition::new) {
        group.stream.append_to(partition, 2).await?;
    }
    reject_all(&group).await?;

    let expected: Vec<(u32, u64)> = (0..12).flat_map(|p| [(p, 1), (p, 2)]).collect();
    let all = group.dead_letters().await?;
    expect_eq("the dead letters' places", places(&all), expected.clone())?;
    let mut pages: Vec<&[(u32, u64)]> = expected.chunks(5).collect();
    pages.push(&[]);
    expect_pages(&group, 5, &pages).await
}
