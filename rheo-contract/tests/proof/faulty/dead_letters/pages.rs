//! Pages of dead letters with too much, too little, or in another order.

use std::collections::HashSet;
use std::sync::Mutex;

use rheo_core::{
    DeadLetter, DeadLetterOptions, Error, Event, EventId, FetchOptions, GroupName, JsonObject,
    Lease, Reason, Result, RetryOptions, RetryOutcome, StreamName, Timestamp, async_trait,
};

use crate::book::{Book, all_dead, held, log_of};
use crate::defect::{Defect, Real};
use crate::faulty::Faulty;

pub(in crate::faulty) const FAULTY: &[Faulty] = &[
    faulty! {
        DeadLettersCountRetries: "the attempt of a dead letter is the number of retries before it",
        says: "the dead letter to be equal",
        kills: [
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
            "settling::DLQ-2::the_reason_of_the_last_retry_is_kept",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
        ],
    },
    faulty! {
        DeadLettersHaveMilliseconds: "the time of death is in milliseconds",
        says: "dead_at to be",
        kills: [
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
        ],
    },
    faulty! {
        DeadLettersDieWhenClaimed: "the time of death is the time of the claim",
        says: "dead_at to be",
        kills: [
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
        ],
    },
    faulty! {
        DeadLettersLoseTheirEvent: "a dead letter has the event's id and place and nothing else",
        says: "the dead letter to be equal",
        kills: [
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "fidelity::LOG-5::a_dead_letter_holds_the_same_event",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
        ],
    },
    faulty! {
        RetriesToDeathHaveNoReason: "the reason of a retry at the last attempt is not kept",
        says: "the dead letter to be equal",
        kills: [
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
            "settling::DLQ-2::the_reason_of_the_last_retry_is_kept",
        ],
    },
    faulty! {
        ExpiriesHaveNoReason: "what died of an expired lease has no reason",
        says: "the dead letter to be equal",
        kills: [
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
        ],
    },
    faulty! {
        ReasonsAreCutAt255Bytes: "a reason has at most 255 bytes",
        says: "the reasons to be equal",
        kills: [
            "dead_letters::DLQ-5::a_reason_of_1_kib_is_kept",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
        ],
    },
    faulty! {
        ReasonsAreTrimmed: "blanks around a reason are removed",
        says: "the reasons to be equal",
        kills: [
            "dead_letters::DLQ-5::a_reason_is_kept_character_by_character",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
        ],
    },
    faulty! {
        DeadLettersAreInOrderOfDeath: "dead letters are listed in the order in which they died",
        says: "the dead letters' sequences to be [1, 2, 5, 8, 10, 11]",
        kills: [
            "dead_letters::DLQ-5::dead_letters_are_in_order_of_sequence",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream",
            "dead_letters::DLQ-5::dead_letters_are_in_order_of_partition_first",
            "dead_letters::DLQ-5::pages_of_dead_letters_join_up",
            "distribution::DST-1::dead_letters_are_the_same_on_both",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
        ],
    },
    faulty! {
        DeadSequencesAreText: "dead letters are ordered by their sequences as text",
        says: "the dead letters' sequences to be [1, 2, 5, 8, 10, 11]",
        kills: [
            "dead_letters::DLQ-5::dead_letters_are_in_order_of_sequence",
            "dead_letters::DLQ-5::a_reason_is_kept_character_by_character",
            "dead_letters::DLQ-5::more_than_a_hundred_dead_letters_are_given_where_asked_for",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
        ],
    },
    faulty! {
        DeadLettersAreBySequenceFirst: "dead letters are ordered by sequence, then partition",
        says: "the dead letters' places to be [(0, 1), (0, 2), (1, 1), (1, 2)]",
        kills: [
            "dead_letters::DLQ-5::dead_letters_are_in_order_of_partition_first",
            "dead_letters::DLQ-5::dead_letters_of_twelve_partitions_are_in_order",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
            "dead_letters::DLQ-5::pages_of_dead_letters_join_up_across_partitions",
        ],
    },
    faulty! {
        DeadLettersAfterIsInclusive: "a page of dead letters begins with the one given as after",
        says: "the page of dead letters to be [(0, 4), (0, 5)]",
        kills: [
            "dead_letters::DLQ-5::pages_of_dead_letters_join_up",
            "batches::LSE-8::a_batch_of_last_retries_makes_whole_dead_letters",
            "batches::LSE-8::a_batch_of_rejects_keeps_the_reason_of_each",
            "batches::LSE-8::a_batch_of_rejects_makes_whole_dead_letters",
            "dead_letters::DLQ-4::one_event_can_be_dead_in_two_groups",
            "dead_letters::DLQ-5::a_dead_letter_has_the_attempt_of_the_claim",
            "dead_letters::DLQ-5::a_dead_letter_keeps_event_attempt_reason_and_time",
            "dead_letters::DLQ-5::a_death_follows_the_clock_back",
            "dead_letters::DLQ-5::a_late_or_renewed_lease_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::a_reason_is_kept_character_by_character",
            "dead_letters::DLQ-5::a_reason_of_1_kib_is_kept",
            "dead_letters::DLQ-5::a_retry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream",
            "dead_letters::DLQ-5::an_after_that_was_replayed_is_cursor_not_found",
            "dead_letters::DLQ-5::an_expiry_at_the_last_attempt_makes_a_whole_dead_letter",
            "dead_letters::DLQ-5::dead_letters_are_in_order_of_partition_first",
            "dead_letters::DLQ-5::dead_letters_are_in_order_of_sequence",
            "dead_letters::DLQ-5::dead_letters_of_twelve_partitions_are_in_order",
            "dead_letters::DLQ-5::listing_dead_letters_takes_none_away",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
            "dead_letters::DLQ-5::pages_of_dead_letters_join_up_across_partitions",
            "dead_letters::DLQ-5::what_was_lost_long_ago_dies_when_it_is_reclaimed",
            "distribution::DST-1::dead_letters_are_the_same_on_both",
            "durability::DUR-1::dead_letters_survive",
            "fidelity::LOG-5::a_dead_letter_holds_the_same_event",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "log::LOG-4::a_dead_letter_stays_in_the_log",
            "replay::RPL-1::a_replayed_dead_letter_that_dies_again_is_one_dead_letter",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-2::a_bad_reason_keeps_nothing_from_being_settled",
            "settling::DLQ-2::a_last_retry_without_a_reason_says_so_itself",
            "settling::DLQ-2::the_reason_of_the_last_retry_is_kept",
            "settling::DLQ-3::a_lease_lost_at_the_last_attempt_becomes_a_dead_letter",
            "settling::DLQ-3::all_used_up_events_become_dead_letters_whatever_the_limit",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up",
            "settling::DLQ-3::an_empty_fetch_leaves_nothing_used_up_in_any_partition",
            "streams::STR-4::dead_letters_are_isolated",
        ],
    },
    faulty! {
        DeadLettersAfterIsASequence: "a page of dead letters holds the sequences above that of after, in any partition",
        says: "the page of dead letters to be [(0, 3), (1, 1)]",
        kills: [
            "dead_letters::DLQ-5::pages_of_dead_letters_join_up_across_partitions",
            "dead_letters::DLQ-5::dead_letters_of_twelve_partitions_are_in_order",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
        ],
    },
    faulty! {
        DeadLettersLimit0IsNone: "a limit of 0 gives all dead letters",
        says: "a page of 0 to be []",
        kills: ["dead_letters::DLQ-5::a_limit_bounds_a_page_of_dead_letters"],
    },
    faulty! {
        DeadLettersLimitIsSigned: "a limit above the largest signed number gives no dead letters",
        says: "a page of 4294967295 to be [1, 2, 3]",
        kills: ["dead_letters::DLQ-5::a_limit_bounds_a_page_of_dead_letters"],
    },
    faulty! {
        DeadLettersEndAtAHundred: "a page never holds more than a hundred dead letters",
        says: "a page of 101 to be equal",
        kills: [
            "dead_letters::DLQ-5::more_than_a_hundred_dead_letters_are_given_where_asked_for",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
        ],
    },
    faulty! {
        UnknownAfterIsFromTheBeginning: "an unknown after gives the first page",
        says: "Err(CursorNotFound)",
        kills: [
            "dead_letters::DLQ-5::an_unknown_after_is_cursor_not_found",
            "dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream",
            "dead_letters::DLQ-5::an_after_of_a_namesake_is_cursor_not_found",
            "dead_letters::DLQ-5::an_after_that_is_no_dead_letter_is_cursor_not_found",
            "dead_letters::DLQ-5::an_after_that_is_not_dead_is_found_in_no_partition",
            "dead_letters::DLQ-5::an_after_that_was_replayed_is_cursor_not_found",
            "input::ERR-10::a_cursor_that_is_not_found_is_named",
            "input::ERR-6::listing_nothing_excuses_no_missing_group",
        ],
    },
    faulty! {
        AfterMayBeAnyEvent: "the event given as after need not be dead",
        says: "Err(CursorNotFound)",
        kills: [
            "dead_letters::DLQ-5::an_after_that_is_no_dead_letter_is_cursor_not_found",
            "dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream",
            "dead_letters::DLQ-5::an_after_that_is_not_dead_is_found_in_no_partition",
            "dead_letters::DLQ-5::an_after_that_was_replayed_is_cursor_not_found",
            "input::ERR-10::a_cursor_that_is_not_found_is_named",
        ],
    },
    faulty! {
        AfterMayHaveBeenDead: "the event given as after was a dead letter once",
        says: "Err(CursorNotFound)",
        kills: [
            "dead_letters::DLQ-5::an_after_that_was_replayed_is_cursor_not_found",
            "dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream",
            "dead_letters::DLQ-5::an_after_of_a_namesake_is_cursor_not_found",
            "dead_letters::DLQ-5::an_after_that_is_no_dead_letter_is_cursor_not_found",
        ],
    },
    faulty! {
        EverythingOpenIsDead: "leased events are listed as dead letters too",
        says: "the dead letters to be [4]",
        kills: [
            "dead_letters::DLQ-5::what_is_not_dead_is_no_dead_letter",
            "dead_letters::DLQ-5::dead_letters_are_in_order_of_sequence",
            "durability::DUR-1::dead_letters_survive",
            "leases::LSE-2::a_stale_lease_makes_no_dead_letter",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "receipts::LSE-3::a_mismatch_makes_no_dead_letter",
            "replay::RPL-4::chosen_events_below_the_start_are_settled_as_any_other",
            "replay::RPL-4::chosen_events_below_the_start_expire_as_any_other",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
            "settling::DLQ-3::a_clock_that_goes_back_keeps_the_last_lease",
            "settling::DLQ-3::a_last_lease_that_was_acked_late_is_no_dead_letter",
        ],
    },
    faulty! {
        DeadLettersAreTaken: "a dead letter is listed once",
        says: "the same list again to be equal",
        kills: [
            "dead_letters::DLQ-5::listing_dead_letters_takes_none_away",
            "dead_letters::DLQ-5::a_limit_bounds_a_page_of_dead_letters",
            "dead_letters::DLQ-5::an_after_is_looked_up_in_its_own_stream",
            "dead_letters::DLQ-5::dead_letters_of_twelve_partitions_are_in_order",
            "dead_letters::DLQ-5::more_than_a_hundred_dead_letters_are_given_where_asked_for",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up",
            "dead_letters::DLQ-5::more_than_a_thousand_dead_letters_join_up_across_partitions",
            "lifecycle::STR-5::making_indexes_again_touches_no_state",
            "replay::RPL-1::dead_letters_above_are_gone_and_those_below_stay",
            "replay::RPL-6::replay_of_chosen_events_touches_no_state_elsewhere",
            "replay::RPL-6::replay_of_one_partition_touches_no_state_elsewhere",
            "replay::RPL-6::replay_touches_no_state_of_other_groups",
            "reset::RPL-6::reset_of_one_partition_touches_no_state_elsewhere",
            "reset::RPL-6::reset_touches_no_state_of_other_groups",
        ],
    },
    faulty! {
        NoGroupHasNoDeadLetters: "a missing group or stream has an empty list of dead letters",
        says: "Err(StreamNotFound)",
        kills: [
            "dead_letters::ERR-6::dead_letters_look_for_the_stream_before_the_group",
            "input::ERR-10::a_missing_group_is_named_with_its_stream",
            "input::ERR-10::a_missing_stream_is_named_as_it_was_given",
            "input::ERR-6::a_missing_group_is_named",
            "input::ERR-6::listing_nothing_excuses_no_missing_group",
            "input::ERR-6::the_stream_is_looked_up_before_the_group",
        ],
    },
    faulty! {
        DeadPartitionsAreText: "the partitions of dead letters are ordered as text",
        says: "the dead letters' places",
        kills: [
            "dead_letters::DLQ-5::dead_letters_of_twelve_partitions_are_in_order",
        ],
    },
];

#[derive(Default)]
struct DeadLettersCountRetries;

#[async_trait]
impl Defect for DeadLettersCountRetries {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        for letter in &mut dead {
            letter.attempt -= 1;
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct DeadLettersHaveMilliseconds;

#[async_trait]
impl Defect for DeadLettersHaveMilliseconds {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        for letter in &mut dead {
            letter.dead_at = Timestamp::from_micros(letter.dead_at.as_micros() / 1_000 * 1_000)?;
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct DeadLettersDieWhenClaimed {
    book: Book,
}

#[async_trait]
impl Defect for DeadLettersDieWhenClaimed {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        for letter in &mut dead {
            let all = self.book.all(stream, group);
            let last = all
                .iter()
                .rev()
                .find(|lease| lease.event.id == letter.event.id);
            letter.dead_at = last.map_or(letter.dead_at, |lease| lease.leased_at);
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct DeadLettersLoseTheirEvent;

#[async_trait]
impl Defect for DeadLettersLoseTheirEvent {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        for letter in &mut dead {
            letter.event.payload = JsonObject::default();
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct RetriesToDeathHaveNoReason;

#[async_trait]
impl Defect for RetriesToDeathHaveNoReason {
    async fn retry(
        &self,
        real: &Real,
        lease: &Lease,
        options: &RetryOptions,
    ) -> Result<RetryOutcome> {
        let mut options = options.clone();
        options.reason = None;
        real.backend.retry(lease, &options).await
    }
}

#[derive(Default)]
struct ExpiriesHaveNoReason;

#[async_trait]
impl Defect for ExpiriesHaveNoReason {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        for letter in &mut dead {
            if letter.reason == Reason::lease_expired() {
                letter.reason = Reason::new("");
            }
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct ReasonsAreCutAt255Bytes;

#[async_trait]
impl Defect for ReasonsAreCutAt255Bytes {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        let text = reason.as_str();
        let cut = &text[..text.floor_char_boundary(255)];
        real.backend.reject(lease, &Reason::new(cut)).await
    }
}

#[derive(Default)]
struct ReasonsAreTrimmed;

#[async_trait]
impl Defect for ReasonsAreTrimmed {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend
            .reject(lease, &Reason::new(reason.as_str().trim()))
            .await
    }
}

#[derive(Default)]
struct DeadLettersAreInOrderOfDeath {
    deaths: Mutex<Vec<EventId>>,
}

#[async_trait]
impl Defect for DeadLettersAreInOrderOfDeath {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(lease, reason).await?;
        held(&self.deaths).push(lease.event.id);
        Ok(())
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let deaths = held(&self.deaths).clone();
        let death = |letter: &DeadLetter| deaths.iter().position(|id| *id == letter.event.id);
        page_in_order(real, stream, group, options, death).await
    }
}

#[derive(Default)]
struct DeadSequencesAreText;

#[async_trait]
impl Defect for DeadSequencesAreText {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let as_text =
            |letter: &DeadLetter| (letter.event.partition, letter.event.sequence.to_string());
        page_in_order(real, stream, group, options, as_text).await
    }
}

#[derive(Default)]
struct DeadLettersAreBySequenceFirst;

#[async_trait]
impl Defect for DeadLettersAreBySequenceFirst {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let by_sequence = |letter: &DeadLetter| (letter.event.sequence, letter.event.partition);
        page_in_order(real, stream, group, options, by_sequence).await
    }
}

#[derive(Default)]
struct DeadLettersAfterIsInclusive;

#[async_trait]
impl Defect for DeadLettersAfterIsInclusive {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut page = real.backend.dead_letters(stream, group, options).await?;
        if let Some(after) = options.after {
            let dead = all_dead(real, stream, group).await?;
            let first = dead.into_iter().find(|letter| letter.event.id == after);
            page.splice(0..0, first);
            page.truncate(options.limit as usize);
        }
        Ok(page)
    }
}

#[derive(Default)]
struct DeadLettersAfterIsASequence;

#[async_trait]
impl Defect for DeadLettersAfterIsASequence {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        real.backend.dead_letters(stream, group, options).await?;
        let mut dead = all_dead(real, stream, group).await?;
        if let Some(after) = options.after {
            let bound = dead.iter().find(|letter| letter.event.id == after);
            let bound = bound.map(|letter| letter.event.sequence);
            dead.retain(|letter| Some(letter.event.sequence) > bound);
        }
        dead.truncate(options.limit as usize);
        Ok(dead)
    }
}

#[derive(Default)]
struct DeadLettersLimit0IsNone;

#[async_trait]
impl Defect for DeadLettersLimit0IsNone {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut options = options.clone();
        if options.limit == 0 {
            options.limit = u32::MAX;
        }
        real.backend.dead_letters(stream, group, &options).await
    }
}

#[derive(Default)]
struct DeadLettersLimitIsSigned;

#[async_trait]
impl Defect for DeadLettersLimitIsSigned {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut options = options.clone();
        options.limit = i32::try_from(options.limit).map_or(0, i32::unsigned_abs);
        real.backend.dead_letters(stream, group, &options).await
    }
}

#[derive(Default)]
struct DeadLettersEndAtAHundred;

#[async_trait]
impl Defect for DeadLettersEndAtAHundred {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut page = real.backend.dead_letters(stream, group, options).await?;
        page.truncate(100);
        Ok(page)
    }
}

#[derive(Default)]
struct UnknownAfterIsFromTheBeginning;

#[async_trait]
impl Defect for UnknownAfterIsFromTheBeginning {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        match real.backend.dead_letters(stream, group, options).await {
            Err(Error::CursorNotFound { .. }) => {
                let first = DeadLetterOptions::new().with_limit(options.limit);
                real.backend.dead_letters(stream, group, &first).await
            }
            result => result,
        }
    }
}

#[derive(Default)]
struct AfterMayBeAnyEvent;

#[async_trait]
impl Defect for AfterMayBeAnyEvent {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let result = real.backend.dead_letters(stream, group, options).await;
        let Err(Error::CursorNotFound { after }) = result else {
            return result;
        };
        let place = |event: &Event| (event.partition, event.sequence);
        let log = log_of(real, stream).await;
        let Some(bound) = log.iter().find(|event| event.id == after).map(place) else {
            return Err(Error::CursorNotFound { after });
        };
        let mut dead = all_dead(real, stream, group).await?;
        dead.retain(|letter| place(&letter.event) > bound);
        dead.truncate(options.limit as usize);
        Ok(dead)
    }
}

#[derive(Default)]
struct AfterMayHaveBeenDead {
    ever: Mutex<HashSet<EventId>>,
}

#[async_trait]
impl Defect for AfterMayHaveBeenDead {
    async fn reject(&self, real: &Real, lease: &Lease, reason: &Reason) -> Result<()> {
        real.backend.reject(lease, reason).await?;
        held(&self.ever).insert(lease.event.id);
        Ok(())
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        match real.backend.dead_letters(stream, group, options).await {
            Err(Error::CursorNotFound { after }) if held(&self.ever).contains(&after) => Ok(vec![]),
            result => result,
        }
    }
}

#[derive(Default)]
struct EverythingOpenIsDead {
    book: Book,
}

#[async_trait]
impl Defect for EverythingOpenIsDead {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        self.book.fetch(real, stream, group, options).await
    }
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        if options.after.is_none() {
            let current = self.book.current(real, stream, group).await;
            dead.extend(current.into_iter().map(|lease| DeadLetter {
                event: lease.event,
                group: lease.group,
                attempt: lease.attempt,
                reason: Reason::new(""),
                dead_at: lease.leased_at,
            }));
        }
        Ok(dead)
    }
}

#[derive(Default)]
struct DeadLettersAreTaken {
    taken: Mutex<HashSet<(EventId, GroupName)>>,
}

#[async_trait]
impl Defect for DeadLettersAreTaken {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        let mut dead = real.backend.dead_letters(stream, group, options).await?;
        dead.retain(|letter| held(&self.taken).insert((letter.event.id, letter.group.clone())));
        Ok(dead)
    }
}

#[derive(Default)]
struct NoGroupHasNoDeadLetters;

#[async_trait]
impl Defect for NoGroupHasNoDeadLetters {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        match real.backend.dead_letters(stream, group, options).await {
            Err(Error::GroupNotFound { .. } | Error::StreamNotFound { .. }) => Ok(vec![]),
            result => result,
        }
    }
}

/// A page of all dead letters in an order of the defect's own.
async fn page_in_order<K: Ord>(
    real: &Real,
    stream: &StreamName,
    group: &GroupName,
    options: &DeadLetterOptions,
    key: impl Fn(&DeadLetter) -> K,
) -> Result<Vec<DeadLetter>> {
    real.backend.dead_letters(stream, group, options).await?;
    let mut dead = all_dead(real, stream, group).await?;
    dead.sort_by_key(key);
    if let Some(after) = options.after {
        let at = dead.iter().position(|letter| letter.event.id == after);
        dead.drain(..=at.unwrap_or_default());
    }
    dead.truncate(options.limit as usize);
    Ok(dead)
}

#[derive(Default)]
struct DeadPartitionsAreText;

#[async_trait]
impl Defect for DeadPartitionsAreText {
    async fn dead_letters(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &DeadLetterOptions,
    ) -> Result<Vec<DeadLetter>> {
        page_in_order(real, stream, group, options, |dead| {
            (dead.event.partition.to_string(), dead.event.sequence)
        })
        .await
    }
}
