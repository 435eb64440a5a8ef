//! What a run that failed says at its end: which rules were not kept, and where to start.

use std::collections::BTreeMap;

use rheo_core::RULES;

use crate::case::is_generated;
use crate::certificate::{CaseResult, Verdict};
use crate::suite::fails;

/// Groups of rules, each before those that build on it: where an append loses its event, hardly a lease
/// comes as it should.
const ORDER: &[&str] = &[
    "LOG", "STR", "DLV", "LSE", "DLQ", "FRN", "RPL", "QRY", "OPS", "ERR", "CAP", "DUR", "DST",
    "CAN", "CST",
];

/// A line per place of a panic and per rule that was not kept, the basic ones first, and last those of
/// which only generated cases tell, since they find whatever else is wrong. `place_of` is where the
/// backend panicked in a case, if it did.
pub(crate) fn broken_rules(
    results: &[CaseResult],
    place_of: impl Fn(&str) -> Option<String>,
) -> String {
    let mut failed: Vec<&CaseResult> = results.iter().filter(|result| fails(result)).collect();
    failed.sort_by_key(|result| (is_generated(&result.group), rank(&result.rule)));
    let mut panics: BTreeMap<String, Vec<&CaseResult>> = BTreeMap::new();
    let mut rules: Vec<Vec<&CaseResult>> = Vec::new();
    for result in failed {
        if let Some(place) = place_of(&result.name) {
            panics.entry(place).or_default().push(result);
            continue;
        }
        match rules.iter_mut().find(|rule| rule[0].rule == result.rule) {
            Some(rule) => rule.push(result),
            None => rules.push(vec![result]),
        }
    }
    let mut lines = Vec::new();
    if !panics.is_empty() {
        lines.push("panics, by their place:".to_owned());
    }
    for (place, failed) in &panics {
        let of = counted(failed.len(), "case");
        lines.push(format!("  {place}  {of} failed, first {}", failed[0].name));
    }
    if !rules.is_empty() {
        lines.push("rules not kept, those first that others build on:".to_owned());
    }
    for failed in &rules {
        let rule = &failed[0].rule;
        let judged = |result: &&CaseResult| result.rule == *rule && was_judged(result);
        let of = counted(results.iter().filter(judged).count(), "case");
        let (number, first) = (failed.len(), &failed[0].name);
        lines.push(format!(
            "  {rule:<6} {number} of {of} failed, first {first}"
        ));
    }
    if panics.len() + rules.len() > 1
        && let Some(first) = panics.values().chain(&rules).next()
    {
        let first = &first[0].name;
        lines.push(format!(
            "start with {first}: much of the rest may follow from it"
        ));
    }
    lines.join("\n")
}

/// Where a rule stands among those that others build on.
fn rank(rule: &str) -> (usize, usize) {
    let group = rule.split('-').next();
    let group = ORDER.iter().position(|known| Some(*known) == group);
    let number = RULES.iter().position(|known| known.id == rule);
    (group.unwrap_or(ORDER.len()), number.unwrap_or(RULES.len()))
}

/// Whether a case came to a verdict about the backend.
pub(crate) fn was_judged(result: &CaseResult) -> bool {
    !matches!(result.verdict, Verdict::NotDeclared | Verdict::NotExercised)
}

/// A number of things, in words.
pub(crate) fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use rheo_core::Level;

    use super::*;

    fn result(name: &str, verdict: Verdict) -> CaseResult {
        let [group, rule, _] = name.split("::").collect::<Vec<_>>()[..] else {
            panic!("{name} is no name of a case");
        };
        CaseResult {
            name: name.to_owned(),
            group: group.to_owned(),
            rule: rule.to_owned(),
            level: Level::Must,
            verdict,
            reason: None,
            duration_micros: 0,
        }
    }

    #[test]
    fn every_group_of_rules_has_its_place() {
        for rule in RULES {
            assert!(rank(rule.id).0 < ORDER.len(), "{}", rule.id);
        }
    }

    #[test]
    fn basic_rules_come_first_however_few_cases_they_fail() {
        let results = [
            result("streams::STR-2::a", Verdict::Fail),
            result("races::DLV-7::a", Verdict::Fail),
            result("batches::LSE-8::b", Verdict::Fail),
            result("batches::LSE-8::c", Verdict::Fail),
            result("log::LOG-10::d", Verdict::Fail),
            result("log::LOG-1::e", Verdict::Pass),
            result("log::LOG-1::f", Verdict::Fail),
            result("log::LOG-1::g", Verdict::NotDeclared),
        ];

        assert_eq!(
            broken_rules(&results, |_| None),
            "rules not kept, those first that others build on:\n  \
             LOG-1  1 of 2 cases failed, first log::LOG-1::f\n  \
             LOG-10 1 of 1 case failed, first log::LOG-10::d\n  \
             STR-2  1 of 1 case failed, first streams::STR-2::a\n  \
             LSE-8  2 of 2 cases failed, first batches::LSE-8::b\n  \
             DLV-7  1 of 1 case failed, first races::DLV-7::a\n\
             start with log::LOG-1::f: much of the rest may follow from it"
        );
    }

    #[test]
    fn a_place_of_a_panic_is_named_once() {
        let results = [
            result("leases::LSE-2::a", Verdict::Fail),
            result("delivery::DLV-1::b", Verdict::Fail),
            result("log::LOG-9::c", Verdict::Fail),
        ];
        let place = |name: &str| (!name.starts_with("log")).then(|| "src/a.rs:1:2".to_owned());

        assert_eq!(
            broken_rules(&results, place),
            "panics, by their place:\n  \
             src/a.rs:1:2  2 cases failed, first delivery::DLV-1::b\n\
             rules not kept, those first that others build on:\n  \
             LOG-9  1 of 1 case failed, first log::LOG-9::c\n\
             start with delivery::DLV-1::b: much of the rest may follow from it"
        );
    }
}
