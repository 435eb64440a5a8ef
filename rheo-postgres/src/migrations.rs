//! The schema: versioned SQL, applied once each, by whoever comes first.

use rheo_core::Result;

use crate::config::check_schema;

/// The versions in order. One that was released is never changed: a change is a new version.
const MIGRATIONS: [(u32, &str); 8] = [
    (1, include_str!("../sql/1_tables.sql")),
    (2, include_str!("../sql/2_streams.sql")),
    (3, include_str!("../sql/3_append.sql")),
    (4, include_str!("../sql/4_fetch.sql")),
    (5, include_str!("../sql/5_settle.sql")),
    (6, include_str!("../sql/6_progress.sql")),
    (7, include_str!("../sql/7_inspect.sql")),
    (8, include_str!("../sql/8_plans.sql")),
];

/// The SQL that makes a schema, or brings it up to date: for those who run migrations themselves.
///
/// It can be run again and again, and by several at once. Run all of it in one transaction, as
/// `psql --single-transaction` does.
///
/// ```
/// let sql = rheo_postgres::schema_sql("rheo")?;
/// assert!(sql.contains("CREATE TABLE \"rheo\".events"));
/// # Ok::<(), rheo_core::Error>(())
/// ```
///
/// # Errors
///
/// `Invalid` for `schema` when [`Settings::with_schema`](crate::Settings::with_schema) does not
/// allow it.
pub fn schema_sql(schema: &str) -> Result<String> {
    check_schema(schema)?;
    Ok(script(schema))
}

/// As [`schema_sql`], of a schema that was checked.
///
/// One statement: a simple query runs as one transaction, and a future that is dropped leaves
/// nothing half done.
pub(crate) fn script(schema: &str) -> String {
    let mut script = String::from(START);
    for (version, sql) in MIGRATIONS {
        script.push_str(&format!(
            "IF v_version < {version} THEN\n{sql}\
             INSERT INTO {{schema}}.migrations (version) VALUES ({version});\nEND IF;\n"
        ));
    }
    script.push_str(END);
    in_schema(&script, schema)
}

/// A statement with the schema's name in the places that wait for it.
pub(crate) fn in_schema(sql: &str, schema: &str) -> String {
    sql.replace("{schema}", &format!("\"{schema}\""))
}

const START: &str = r#"DO $migrations$
DECLARE
    v_version integer;
BEGIN
IF current_setting('server_encoding') <> 'UTF8' THEN
    RAISE EXCEPTION 'encoding' USING ERRCODE = 'RH011';
END IF;
-- The tests run every function; to have the server parse each as it is made takes half the time.
PERFORM set_config('check_function_bodies', 'off', true);
PERFORM pg_advisory_xact_lock(hashtextextended('rheo migrations of {schema}', 0));
IF to_regnamespace('{schema}') IS NULL THEN
    CREATE SCHEMA {schema};
END IF;
IF to_regclass('{schema}.migrations') IS NULL THEN
    CREATE TABLE {schema}.migrations (
        version integer PRIMARY KEY,
        applied_at timestamptz NOT NULL DEFAULT now()
    );
END IF;
SELECT coalesce(max(version), 0) INTO v_version FROM {schema}.migrations;
"#;

const END: &str = "END $migrations$;\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_ascend() {
        assert!(MIGRATIONS.is_sorted_by(|(a, _), (b, _)| a < b));
    }

    #[test]
    fn every_place_gets_the_schema() {
        let script = script("x");
        assert!(!script.contains("{schema}"));
        assert!(script.contains("\"x\".claims"));
    }

    #[test]
    fn a_schema_that_could_be_code_is_refused() {
        assert!(schema_sql("x; DROP TABLE y").is_err());
    }
}
