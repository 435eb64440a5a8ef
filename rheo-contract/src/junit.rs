//! A certificate as JUnit XML, for the tools that read it.

use std::io;
use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use rheo_core::Level;

use crate::certificate::{CaseResult, Certificate, Verdict};

pub(crate) fn to_xml(certificate: &Certificate) -> io::Result<Vec<u8>> {
    let mut report =
        quick_junit::Report::new(format!("Rheo contract: {}", certificate.backend.name));
    let mut groups: Vec<&str> = certificate.cases.iter().map(|case| &*case.group).collect();
    groups.dedup();
    for group in groups {
        let mut suite = TestSuite::new(format!("{}::{group}", certificate.backend.name));
        suite.add_property(("backend.version", &*certificate.backend.version));
        suite.add_property(("suite.version", &*certificate.suite.version));
        suite.add_property(("seed", &*certificate.seed.to_string()));
        if let Some(server) = &certificate.server {
            suite.add_property(("server", &*format!("{} {}", server.product, server.version)));
        }
        for result in certificate.cases.iter().filter(|case| case.group == group) {
            suite.add_test_case(test_case(result));
        }
        report.add_test_suite(suite);
    }
    let mut xml = Vec::new();
    report.serialize(&mut xml).map_err(io::Error::other)?;
    Ok(xml)
}

fn test_case(result: &CaseResult) -> TestCase {
    let reason = result.reason.clone().unwrap_or_default();
    let (mut status, kind) = match (result.verdict, result.level) {
        (Verdict::Pass, _) => (TestCaseStatus::success(), ""),
        (Verdict::NotExercised, _) => (TestCaseStatus::skipped(), "not exercised"),
        (Verdict::NotDeclared, _) => (TestCaseStatus::skipped(), "not declared"),
        (Verdict::Fail, Level::Should) => (TestCaseStatus::skipped(), "SHOULD rule not kept"),
        (Verdict::Fail, Level::Must) => (
            TestCaseStatus::non_success(NonSuccessKind::Failure),
            "rule broken",
        ),
        (Verdict::Unknown, _) => (
            TestCaseStatus::non_success(NonSuccessKind::Error),
            "unknown",
        ),
    };
    if result.verdict != Verdict::Pass {
        status
            .set_type(kind)
            .set_message(kind)
            .set_description(reason);
    }
    let mut case = TestCase::new(&*result.name, status);
    case.set_classname(&*result.rule);
    case.set_time(Duration::from_micros(result.duration_micros));
    case
}
