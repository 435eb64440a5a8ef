//! The suite as a program: arguments, settings, exit codes and what it writes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rheo_contract::{Certificate, EXIT_NOT_STARTED, EXIT_NOTHING_RAN, Suite};

/// The example `memory`, which Cargo builds beside the tests.
fn program() -> Command {
    let tests = std::env::current_exe().expect("has a path");
    let target = tests
        .parent()
        .and_then(Path::parent)
        .expect("lies in target/PROFILE/deps");
    let mut command = Command::new(target.join("examples/memory"));
    for name in [
        "RHEO_SEED",
        "RHEO_AUDIT",
        "RHEO_DEADLINE",
        "RHEO_CERTIFICATES",
    ] {
        command.env_remove(name);
    }
    command
}

fn run(command: &mut Command) -> (Option<i32>, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("starts");
    let text = [stdout, stderr].concat();
    (status.code(), String::from_utf8(text).expect("is text"))
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn a_filter_and_a_seed_work() {
    let (code, text) = run(program().args(["a_replaced_lease"]).env("RHEO_SEED", "7"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("RHEO_SEED=7"), "{text}");
    assert!(
        text.contains("test leases::LSE-2::a_replaced_lease_settles_nothing"),
        "{text}"
    );
    assert!(!text.contains("test streams::"), "{text}");
}

#[test]
fn nothing_ran_has_an_exit_code_of_its_own() {
    let (code, text) = run(program().arg("no_case_is_called_this"));
    assert_eq!(code, Some(EXIT_NOTHING_RAN.into()), "{text}");
    assert!(text.contains("nothing ran"), "{text}");
}

#[test]
fn a_wrong_setting_says_what_is_allowed() {
    for (name, value) in [
        ("RHEO_SEED", "x"),
        ("RHEO_SEED", "9007199254740992"),
        ("RHEO_AUDIT", "2"),
        ("RHEO_DEADLINE", "0"),
    ] {
        let (code, text) = run(program().env(name, value));
        assert_eq!(code, Some(EXIT_NOT_STARTED.into()), "{text}");
        assert!(text.contains(name) && text.contains("allowed is"), "{text}");
    }
}

#[test]
fn listing_names_the_cases_and_marks_what_is_not_declared() {
    let (code, text) = run(program().args(["--list", "--format", "terse"]));
    assert_eq!(code, Some(0), "{text}");
    let listed = text.lines().filter(|line| line.ends_with(": test")).count();
    let (_, ignored) = run(program().args(["--list", "--format", "terse", "--ignored"]));
    assert!(listed > 0 && listed <= Suite::cases().len(), "{text}");
    assert!(
        ignored.lines().any(|line| line.starts_with("durability::")),
        "{ignored}"
    );
    assert!(
        !ignored.lines().any(|line| line.starts_with("leases::")),
        "{ignored}"
    );
}

#[test]
fn a_full_run_writes_a_certificate_and_junit() {
    let folder = folder("full-run");
    let (code, text) = run(program().env("RHEO_CERTIFICATES", &folder));
    assert_eq!(code, Some(0), "{text}");
    let certificate = Certificate::read(&folder.join("memory.json")).expect("is one");
    assert_eq!(certificate.verify(), Vec::<String>::new());
    assert!(certificate.certified);
    let xml = std::fs::read_to_string(folder.join("memory.xml")).expect("is there");
    assert!(
        xml.contains("leases::LSE-2::a_replaced_lease_settles_nothing"),
        "{xml}"
    );
    let skipped = certificate.summary.not_declared + certificate.summary.not_exercised;
    assert!(text.contains("durable is not declared"), "{text}");
    assert_eq!(xml.matches("<skipped").count(), skipped);
}

#[test]
fn a_part_of_the_suite_certifies_nothing() {
    let folder = folder("partial-run");
    let (code, _) = run(program().arg("leases").env("RHEO_CERTIFICATES", &folder));
    assert_eq!(code, Some(0));
    let certificate = Certificate::read(&folder.join("memory.json")).expect("is one");
    assert!(!certificate.certified);
    assert!(
        certificate
            .shortcomings()
            .iter()
            .any(|why| why.contains("required cases are missing"))
    );
}

#[test]
fn an_audit_says_what_could_be_declared() {
    let (code, text) = run(program().arg("durability").env("RHEO_AUDIT", "1"));
    assert_eq!(code, Some(EXIT_NOTHING_RAN.into()), "{text}");
    assert!(text.contains(" cases, 0 would pass"), "{text}");
    assert!(text.contains("declare it to see why those fail"), "{text}");
}
