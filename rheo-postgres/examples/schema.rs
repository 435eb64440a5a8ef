//! Prints the SQL of a schema, for those who run migrations themselves.

fn main() -> Result<(), rheo_core::Error> {
    let schema = std::env::args().nth(1).unwrap_or_else(|| "rheo".to_owned());
    print!("{}", rheo_postgres::schema_sql(&schema)?);
    Ok(())
}
