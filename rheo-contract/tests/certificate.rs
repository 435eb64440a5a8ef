//! A certificate that was tampered with, or is of another suite, certifies nothing.

use std::sync::Arc;

use rheo_contract::{
    Certificate, ClockControl, Harness, Namespace, Opened, Server, Settings, Suite, Verdict,
};
use rheo_core::{Capabilities, Clock, Level, async_trait};
use rheo_ets_like::MemoryBackend;

struct Memory;

#[async_trait]
impl Harness for Memory {
    fn name(&self) -> &str {
        "memory/with: odd name"
    }

    fn version(&self) -> &str {
        "0"
    }

    async fn open(&self, _: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        Ok(Arc::new(MemoryBackend::new(clock)))
    }
}

fn genuine() -> Certificate {
    let suite = Suite::new(Memory, Settings::default()).expect("starts");
    let certificate = suite.certify(|_| true).expect("opens");
    assert_eq!(certificate.verify(), Vec::<String>::new());
    certificate
}

#[test]
fn tampering_is_found() {
    let genuine = genuine();
    let found = |tamper: &dyn Fn(&mut Certificate)| {
        let mut certificate = genuine.clone();
        tamper(&mut certificate);
        certificate.verify().join("; ")
    };
    let not_declared = |c: &Certificate| {
        c.cases
            .iter()
            .position(|case| case.verdict == Verdict::NotDeclared)
            .expect("one")
    };
    let fail = |c: &mut Certificate, level| {
        let case = c
            .cases
            .iter()
            .position(|case| case.level == level)
            .expect("one");
        c.cases[case].verdict = Verdict::Fail;
        (c.summary.pass, c.summary.fail) = (c.summary.pass - 1, 1);
    };

    assert!(found(&|c| c.schema = "rheo-certificate/2".into()).contains("schema"));
    assert!(found(&|c| c.suite.rule_set = "0".into()).contains("rules 0"));
    assert!(found(&|c| c.suite.version = "9".into()).contains("suite 9"));
    assert!(found(&|c| c.cases.truncate(1)).contains("required cases are missing, e.g. "));
    assert!(found(&|c| c.cases.push(c.cases[0].clone())).contains("several times"));
    assert!(found(&|c| c.cases[0].name.push('x')).contains("is none of this suite"));
    assert!(found(&|c| c.cases[0].level = Level::Should).contains("level"));
    assert!(found(&|c| c.summary.pass += 1).contains("summary"));
    assert!(found(&|c| c.cases[0].verdict = Verdict::NotDeclared).contains("marked not_declared"));
    let judged = |c: &mut Certificate| {
        let at = not_declared(c);
        c.cases[at].verdict = Verdict::Pass;
    };
    assert!(found(&judged).contains("is judged"));
    assert!(found(&|c| c.cases[0].verdict = Verdict::Unknown).contains("could not be judged"));
    let no_try = |c: &mut Certificate| c.cases[0].verdict = Verdict::NotExercised;
    assert!(found(&no_try).contains("marked not_exercised"));
    assert!(found(&|c| c.clock = ClockControl::Store).contains("cases set the clock"));
    assert!(found(&|c| c.certified = false) == "`certified` is false, but should be true");
    assert!(found(&|c| fail(c, Level::Must)).contains("failed"));
    assert_eq!(
        found(&|c| fail(c, Level::Should)),
        "",
        "a SHOULD rule fails nothing"
    );
    assert!(found(&|c| c.backend.name = " ".into()).contains("backend.name is empty"));
    assert!(found(&|c| c.backend.version.clear()).contains("backend.version is empty"));
    assert!(found(&|c| c.seed = rheo_contract::MAX_SEED + 1).contains("the seed is"));
    let nameless = |product: &str, version: &str| Server {
        product: product.into(),
        version: version.into(),
    };
    assert!(found(&|c| c.server = Some(nameless("", "1"))).contains("server.product is empty"));
    assert!(found(&|c| c.server = Some(nameless("x", ""))).contains("server.version is empty"));
    let modest = Capabilities::builder().build().expect("valid");
    assert!(found(&|c| c.capabilities = modest.clone()).contains("cases are judged"));
}

/// A run of a part of the suite misses hundreds of cases: one line, not hundreds.
#[test]
fn what_is_wrong_alike_is_one_line() {
    let mut partial = genuine();
    partial.cases.truncate(1);
    partial.summary = rheo_contract::Summary::of(&partial.cases);
    let found = partial.verify();
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[1] == "`certified` is true, but should be false");

    let mut all_not_declared = genuine();
    for case in &mut all_not_declared.cases {
        case.verdict = Verdict::NotDeclared;
    }
    all_not_declared.summary = rheo_contract::Summary::of(&all_not_declared.cases);
    let found = all_not_declared.verify();
    assert_eq!(found.len(), 3, "{found:#?}");
}

#[test]
fn two_names_are_two_files() {
    let of = |name| Certificate::path_in(std::path::Path::new("c"), name);
    assert_eq!(
        of("rheo-memory_2"),
        std::path::Path::new("c/rheo-memory_2.json")
    );
    assert_eq!(of("a/b"), std::path::Path::new("c/a%2Fb.json"));
    let names = ["a/b", "a_b", "a%2Fb", "a.b", "a b", "..", "é", "e\u{301}"];
    let files: std::collections::BTreeSet<_> = names.map(of).into();
    assert_eq!(files.len(), names.len());
}

#[test]
fn it_survives_being_written_and_read() {
    let genuine = genuine();
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("certificate");
    let path = genuine.write(&folder).expect("writes");
    assert_eq!(
        path.file_name().and_then(|n| n.to_str()),
        Some("memory%2Fwith%3A%20odd%20name.json")
    );
    assert_eq!(Certificate::read(&path).expect("reads"), genuine);
}

#[test]
fn what_is_no_certificate_is_refused() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, text) in [("empty", ""), ("array", "[]"), ("other", "{\"schema\": 1}")] {
        let path = folder.join(format!("{name}.json"));
        std::fs::write(&path, text).expect("writes");
        assert!(Certificate::read(&path).is_err());
    }
    assert!(Certificate::read(&folder.join("not-there.json")).is_err());
}
