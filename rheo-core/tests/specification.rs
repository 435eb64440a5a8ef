//! `docs/specification.md` and the code agree, both ways.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rheo_core::{
    Capabilities, ConsumerId, DeadLetter, Error, ErrorKind, Event, EventId, EventKey, EventType,
    Gate, GroupInfo, GroupName, Guarantee, JsonObject, Lag, Lease, LeaseDuration, LeaseId,
    MAX_JSON_BYTES, MaxAttempts, Mechanism, Operation, OptionalOperation, PARTITION_TEST_VECTORS,
    Partition, PartitionCount, PartitionLag, RULES, Reason, RetryDelay, Rule, Sequence, StreamInfo,
    StreamName, Timestamp, rule_set_hash,
};
use serde_json::{Value, json};
use twox_hash::XxHash64;

#[test]
fn the_document_and_the_table_have_the_same_rules() {
    let written = written_rules(&specification());
    for (written, rule) in written.iter().zip(RULES) {
        assert_eq!(
            *written,
            Written::from(rule),
            "left is the document, right is RULES"
        );
    }
    let written: Vec<&str> = written.iter().map(|rule| rule.id.as_str()).collect();
    let table: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(written, table, "left is the document, right is RULES");
}

#[test]
fn nothing_but_a_rule_is_a_list_item() {
    let document = specification();
    let items = document
        .lines()
        .filter(|line| line.trim_start().starts_with("- "));
    assert_eq!(items.count(), RULES.len());
}

#[test]
fn ids_are_unique_and_numbered_without_a_gap() {
    let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), RULES.len());
    let mut before = ("", 0);
    for rule in RULES {
        let (family, number) = rule.id.split_once('-').expect("FAMILY-NUMBER");
        let number: u32 = number.parse().expect("a number");
        let expected = if family == before.0 { before.1 + 1 } else { 1 };
        assert_eq!(number, expected, "{}", rule.id);
        assert_eq!(Rule::find(rule.id), Some(rule));
        before = (family, number);
    }
    assert_eq!(Rule::find("LSE-0"), None);
}

#[test]
fn no_guarantee_has_the_name_of_an_operation() {
    let guarantees = Guarantee::ALL.iter().copied().map(Gate::Guarantee);
    let operations = OptionalOperation::ALL.iter().copied().map(Gate::Operation);
    let names: Vec<&str> = guarantees.chain(operations).map(Gate::as_str).collect();
    let different: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(
        different.len(),
        names.len(),
        "a gate's name means one thing"
    );
}

#[test]
fn the_hash_follows_from_the_document() {
    let mut lines = String::new();
    for rule in written_rules(&specification()) {
        let gate = rule.gate.as_deref().unwrap_or("-");
        lines += &[&rule.id, &rule.level, &rule.text, gate].join("\t");
        lines.push('\n');
    }
    let hash = format!("{:016x}", XxHash64::oneshot(0, lines.as_bytes()));
    assert_eq!(rule_set_hash(), hash);
}

#[test]
fn every_error_guarantee_mechanism_and_operation_is_named_and_no_other() {
    let document = specification();
    for (heading, all) in [
        ("error", names(ErrorKind::ALL)),
        ("guarantee", names(Guarantee::ALL)),
        ("mechanism", names(Mechanism::ALL)),
        ("operation", names(OptionalOperation::ALL)),
    ] {
        let rows = table(&document, heading);
        let written: Vec<String> = rows.iter().flat_map(|row| code(&row[0])).collect();
        assert_eq!(written, all, "in the table of each {heading}");
    }

    let rows = table(&document, "group");
    let mut operations: Vec<String> = rows.iter().flat_map(|row| code(&row[1])).collect();
    assert_eq!(operations.remove(0), "capabilities");
    assert_eq!(operations, names(Operation::ALL));
}

#[test]
fn what_is_always_declared_is_what_every_declaration_has() {
    let written: Vec<String> = table(&specification(), "guarantee")
        .iter()
        .filter(|row| row[2] == "always declared")
        .flat_map(|row| code(&row[0]))
        .collect();
    let least = Capabilities::builder().build().expect("valid");
    let declared: Vec<Guarantee> = Guarantee::ALL
        .iter()
        .copied()
        .filter(|guarantee| least.guarantees(*guarantee))
        .collect();
    assert_eq!(written, names(&declared));
}

#[test]
fn the_partition_test_vectors_are_those_of_the_code() {
    let written: Vec<(String, u32, u32, u32)> = table(&specification(), "key")
        .iter()
        .map(|row| {
            let key = serde_json::from_str(&code(&row[0])[0]).expect("a JSON string");
            let number = |cell: usize| row[cell].parse().expect("a number");
            (key, number(1), number(2), number(3))
        })
        .collect();
    let vectors: Vec<(String, u32, u32, u32)> = PARTITION_TEST_VECTORS
        .iter()
        .map(|(key, of_3, of_16, of_1024)| ((*key).to_owned(), *of_3, *of_16, *of_1024))
        .collect();
    assert_eq!(written, vectors);
}

#[test]
fn the_bounds_are_those_that_the_values_check() {
    let long = "x".repeat(2_000);
    let huge = json!({ "a": "x".repeat(MAX_JSON_BYTES) });
    let refused = [
        StreamName::new(&long).map(drop),
        GroupName::new(&long).map(drop),
        ConsumerId::new(&long).map(drop),
        EventType::new(&long).map(drop),
        EventKey::new(&long).map(drop),
        "no id".parse::<EventId>().map(drop),
        JsonObject::payload(huge.clone()).map(drop),
        JsonObject::metadata(huge).map(drop),
        PartitionCount::new(0).map(drop),
        Sequence::new(u64::MAX).map(drop),
        Timestamp::from_micros(i64::MAX).map(drop),
        LeaseDuration::new(Duration::ZERO).map(drop),
        RetryDelay::new(Duration::MAX).map(drop),
        MaxAttempts::new(0).map(drop),
    ];
    let checked: Vec<Vec<String>> = refused
        .into_iter()
        .map(|result| match result {
            Err(Error::Invalid(invalid)) => {
                vec![format!("`{}`", invalid.argument), invalid.allowed]
            }
            other => panic!("not refused: {other:?}"),
        })
        .collect();
    assert_eq!(table(&specification(), "argument"), checked);
}

#[test]
fn the_fields_are_those_of_the_values() {
    let stream = StreamName::new("s").expect("allowed");
    let group = GroupName::new("g").expect("allowed");
    let event = Event {
        id: EventId::generate(Timestamp::UNIX_EPOCH),
        stream: stream.clone(),
        partition: Partition::ZERO,
        sequence: Sequence::ZERO.next(),
        event_type: EventType::new("t").expect("allowed"),
        key: None,
        payload: JsonObject::default(),
        metadata: JsonObject::default(),
        timestamp: Timestamp::UNIX_EPOCH,
    };
    let lease = Lease {
        event: event.clone(),
        group: group.clone(),
        consumer: ConsumerId::new("c").expect("allowed"),
        lease_id: LeaseId::generate(),
        receipt: None,
        attempt: 1,
        leased_at: Timestamp::UNIX_EPOCH,
        expires_at: Timestamp::UNIX_EPOCH,
    };
    let dead_letter = DeadLetter {
        event: event.clone(),
        group: group.clone(),
        attempt: 1,
        reason: Reason::max_attempts(),
        dead_at: Timestamp::UNIX_EPOCH,
    };
    let stream_info = StreamInfo {
        stream: stream.clone(),
        partition_count: PartitionCount::default(),
    };
    let group_info = GroupInfo {
        stream,
        group,
        max_attempts: MaxAttempts::default(),
        leased: 0,
        dead_letters: 0,
        lag: Lag::default(),
    };
    let partition_lag = PartitionLag {
        partition: Partition::ZERO,
        frontier: Sequence::ZERO,
        high_watermark: Sequence::ZERO,
    };

    let values = [
        ("event", json!(event)),
        ("lease", json!(lease)),
        ("dead letter", json!(dead_letter)),
        ("stream info", json!(stream_info)),
        ("group info", json!(group_info)),
        ("partition lag", json!(partition_lag)),
    ];
    let rows = table(&specification(), "value");
    assert_eq!(rows.len(), values.len());
    for (row, (name, value)) in rows.iter().zip(values) {
        assert_eq!(row[0], name);
        let Value::Object(fields) = value else {
            panic!("{name} is no object")
        };
        let written: BTreeSet<String> = code(&row[1]).into_iter().collect();
        let fields: BTreeSet<String> = fields.into_iter().map(|(field, _)| field).collect();
        assert_eq!(written, fields, "{name}");
    }
}

#[test]
fn the_reasons_that_rheo_gives_are_quoted() {
    for (id, reason) in [
        ("DLQ-2", Reason::max_attempts()),
        ("DLQ-3", Reason::lease_expired()),
    ] {
        let text = Rule::find(id).expect("there").text;
        assert!(text.contains(&format!("\"{reason}\"")), "{id}: {reason}");
    }
}

#[test]
fn every_rule_that_is_mentioned_exists() {
    let mut files = files_under(&manifest_dir().join("src"), "rs");
    files.extend(files_under(&manifest_dir().join("../docs"), "md"));
    let mut mentioned = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("readable");
        for id in rule_ids(&text) {
            assert!(
                Rule::find(&id).is_some(),
                "{} mentions {id}, which is no rule",
                file.display()
            );
            mentioned.insert(id);
        }
    }
    assert_eq!(
        mentioned.len(),
        RULES.len(),
        "all were found in the document"
    );
}

#[test]
fn mentions_are_found_wherever_they_stand() {
    let text = "(LSE-2), `DLV-10`; RPL-1 to RPL-7 in UTF-8, XLSE-2, LSE-x, LSE- and lse-2";
    assert_eq!(rule_ids(text), ["LSE-2", "DLV-10", "RPL-1", "RPL-7"]);
}

/// A rule as the document has it.
#[derive(Debug, PartialEq)]
struct Written {
    id: String,
    level: String,
    text: String,
    gate: Option<String>,
    untested: Option<String>,
}

impl Written {
    fn parse(item: &str) -> Self {
        let (id, mut rest) = item
            .split_once("** ")
            .unwrap_or_else(|| panic!("`- **ID** text` was expected, not {item}"));
        let mut level = "MUST";
        if let Some(text) = rest.strip_prefix("(SHOULD) ") {
            (level, rest) = ("SHOULD", text);
        }
        let (rest, untested) = without_tag(rest, "untested");
        let (text, gate) = without_tag(rest, "gate");
        Self {
            id: id.to_owned(),
            level: level.to_owned(),
            text: text.to_owned(),
            gate: gate.map(str::to_owned),
            untested: untested.map(str::to_owned),
        }
    }
}

impl From<&Rule> for Written {
    fn from(rule: &Rule) -> Self {
        Self {
            id: rule.id.to_owned(),
            level: rule.level.to_string(),
            text: rule.text.to_owned(),
            gate: rule.gate.map(|gate| gate.as_str().to_owned()),
            untested: rule.untested.map(str::to_owned),
        }
    }
}

/// Takes ` [name: value]` off the end.
fn without_tag<'a>(text: &'a str, name: &str) -> (&'a str, Option<&'a str>) {
    text.strip_suffix(']')
        .and_then(|inner| inner.rsplit_once(&format!(" [{name}: ")))
        .map_or((text, None), |(before, value)| (before, Some(value)))
}

fn written_rules(document: &str) -> Vec<Written> {
    let mut items: Vec<Vec<&str>> = Vec::new();
    let mut in_item = false;
    for line in document.lines() {
        if let Some(item) = line.strip_prefix("- **") {
            items.push(item.split_whitespace().collect());
            in_item = true;
        } else if in_item && line.starts_with("  ") {
            let item = items.last_mut().expect("an item was begun");
            item.extend(line.split_whitespace());
        } else {
            in_item = false;
        }
    }
    items
        .iter()
        .map(|words| Written::parse(&words.join(" ")))
        .collect()
}

/// The cells of the table whose first column has this heading.
fn table(document: &str, first_column: &str) -> Vec<Vec<String>> {
    let heading = format!("| {first_column} |");
    let rows: Vec<Vec<String>> = document
        .lines()
        .skip_while(|line| !line.starts_with(&heading))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells = line[1..].trim_end_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect();
    assert!(!rows.is_empty(), "no table {heading}");
    rows
}

/// What stands in backticks, in order.
fn code(text: &str) -> Vec<String> {
    let pieces = text.split('`');
    pieces.skip(1).step_by(2).map(str::to_owned).collect()
}

fn names<T: ToString>(all: &[T]) -> Vec<String> {
    all.iter().map(T::to_string).collect()
}

/// Words of three capitals, a hyphen and a number, but for the name of the encoding.
fn rule_ids(text: &str) -> Vec<String> {
    let is_id = |word: &&str| {
        word.split_once('-').is_some_and(|(family, number)| {
            family.len() == 3
                && family.chars().all(|c| c.is_ascii_uppercase())
                && !number.is_empty()
                && number.chars().all(|c| c.is_ascii_digit())
        })
    };
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .filter(is_id)
        .filter(|word| *word != "UTF-8")
        .map(str::to_owned)
        .collect()
}

fn manifest_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn specification() -> String {
    std::fs::read_to_string(manifest_dir().join("../docs/specification.md")).expect("readable")
}

fn files_under(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(files_under(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files
}
