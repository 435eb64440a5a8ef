//! Certificates side by side: a row per group of guarantees, a column per backend.

use rheo_contract::{Certificate, Verdict};
use rheo_core::Level;

/// The table as text; empty if there is no certificate.
pub(crate) fn of(certificates: &[Certificate]) -> String {
    let mut groups: Vec<&str> = Vec::new();
    for case in rheo_contract::Suite::cases() {
        if !groups.contains(&case.group()) {
            groups.push(case.group());
        }
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut header = vec![String::new()];
    header.extend(
        certificates
            .iter()
            .map(|c| format!("{} {}", c.backend.name, c.backend.version)),
    );
    rows.push(header);
    for group in groups {
        let mut row = vec![group.to_owned()];
        row.extend(
            certificates
                .iter()
                .map(|certificate| cell(certificate, group)),
        );
        rows.push(row);
    }
    let mut total = vec!["verdict".to_owned()];
    total.extend(certificates.iter().map(|c| verdict(c).to_owned()));
    rows.push(total);
    lay_out(&rows)
}

/// The verdict of a run in which nothing failed, and not everything ran.
pub(crate) const PARTIAL: &str = "partial run";

/// How a whole certificate ends.
pub(crate) fn verdict(certificate: &Certificate) -> &'static str {
    let summary = certificate.summary;
    if certificate.certified {
        "CERTIFIED"
    } else if summary.fail + summary.unknown > 0 {
        "FAILED"
    } else {
        PARTIAL
    }
}

/// How many cases were not exercised, and the parts of the harness that are missing.
pub(crate) fn not_exercised(certificate: &Certificate) -> String {
    let number = certificate.summary.not_exercised;
    match &certificate.not_exercised[..] {
        [] => format!("{number} not exercised"),
        missing => format!("{number} not exercised for lack of {}", missing.join("; ")),
    }
}

fn cell(certificate: &Certificate, group: &str) -> String {
    let cases: Vec<_> = certificate
        .cases
        .iter()
        .filter(|case| case.group == group)
        .collect();
    let count = |verdict| cases.iter().filter(|case| case.verdict == verdict).count();
    let should = cases
        .iter()
        .filter(|case| case.verdict == Verdict::Fail && case.level == Level::Should)
        .count();
    let (pass, fail) = (count(Verdict::Pass), count(Verdict::Fail) - should);
    let mut parts = Vec::new();
    let mut part = |number: usize, what: &str| {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    };
    part(pass, "ok");
    part(fail, "FAILED");
    part(should, "SHOULD not kept");
    part(count(Verdict::Unknown), "UNKNOWN");
    part(count(Verdict::NotDeclared), "not declared");
    part(count(Verdict::NotExercised), "not exercised");
    if parts.is_empty() {
        "–".to_owned()
    } else {
        parts.join(", ")
    }
}

fn lay_out(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
