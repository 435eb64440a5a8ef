//! Rules and cases name each other: no rule without a case or a reason, no case without a rule.

use rheo_contract::Suite;
use rheo_core::{RULES, Rule};

#[test]
fn every_case_has_a_rule() {
    for case in Suite::cases() {
        let rule = Rule::find(case.rule_id());
        assert!(
            rule.is_some(),
            "{} names no rule of the specification",
            case.full_name()
        );
    }
}

#[test]
fn every_rule_has_a_case_or_a_reason() {
    for rule in RULES {
        let cases = Suite::cases()
            .iter()
            .filter(|case| case.rule_id() == rule.id)
            .count();
        match rule.untested {
            None => assert!(cases > 0, "{} has no case and no reason for it", rule.id),
            Some(reason) => assert_eq!(cases, 0, "{} is marked untested ({reason})", rule.id),
        }
    }
}

#[test]
fn a_case_says_what_usually_causes_its_failure() {
    for case in Suite::cases() {
        let words = case.usual_cause().split_whitespace().count();
        assert!(words >= 4, "{}: {:?}", case.full_name(), case.usual_cause());
    }
}
