//! Rows from foreign databases, as JSON: from an enclosing statement if the server accepts it, otherwise column
//! by column.

use kernel::json::{self, JsonError, Numbers};
use serde_json::{Number, Value};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Error, Row, Statement};
use uuid::Uuid;

/// The alias for a statement's rows in the enclosing statement.
const ROW: &str = "callboard_row_7f3a";

/// Column types supported without an enclosing statement. A statement must cast other types to text.
const TYPES: [Type; 15] = [
    Type::BOOL,
    Type::INT2,
    Type::INT4,
    Type::INT8,
    Type::OID,
    Type::FLOAT4,
    Type::FLOAT8,
    Type::TEXT,
    Type::VARCHAR,
    Type::BPCHAR,
    Type::NAME,
    Type::UNKNOWN,
    Type::JSON,
    Type::JSONB,
    Type::UUID,
];

/// Prepares an enclosing statement that returns each row as JSON, since the server knows its types best.
/// Returns `None` if this statement cannot be part of another one: `EXPLAIN`, `SHOW`, `CALL`, or a `WITH` that
/// changes data.
pub(crate) async fn as_json(
    client: &Client,
    sql: &str,
    types: &[Type],
    most: usize,
) -> Result<Option<Statement>, Error> {
    const NOT_A_PART: [SqlState; 2] = [SqlState::SYNTAX_ERROR, SqlState::FEATURE_NOT_SUPPORTED];
    let sql = trimmed(sql);
    // The alias must differ from every column: a column would take precedence over the row.
    let around = format!("WITH {ROW} AS ({sql}\n) SELECT to_json({ROW}) FROM {ROW} LIMIT {most}");
    match client.prepare_typed(&around, types).await {
        Ok(around) => Ok(Some(around)),
        // The statement itself has been prepared, so the error is about the enclosing one.
        Err(error) if error.code().is_some_and(|code| NOT_A_PART.contains(code)) => {
            client.batch_execute("ROLLBACK TO SAVEPOINT begun").await?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Removes trailing semicolons, which a nested statement must not have.
fn trimmed(sql: &str) -> &str {
    sql.trim_end().trim_end_matches(|letter: char| letter == ';' || letter.is_whitespace())
}

/// The value of a row from [`as_json`], and its bytes.
pub(crate) fn nested(row: &Row) -> Result<(Value, usize), Error> {
    row.try_get(0).map(|Json(value, length)| (value, length))
}

/// A `json` value, whose members keep their order, and its bytes.
struct Json(Value, usize);

impl<'a> FromSql<'a> for Json {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(json(raw)?, raw.len()))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::JSON
    }
}

/// The first column with an unsupported type, and that type.
pub(crate) fn unread(statement: &Statement) -> Option<(&str, &str)> {
    let unread = statement.columns().iter().find(|column| !TYPES.contains(column.type_()));
    unread.map(|column| (column.name(), column.type_().name()))
}

/// Converts a row to an object, and returns its bytes.
pub(crate) fn object(row: &Row) -> Result<(Value, usize), Error> {
    let mut bytes = 0_usize;
    let mut members = serde_json::Map::new();
    for (index, column) in row.columns().iter().enumerate() {
        let Cell(value, length) = row.try_get(index)?;
        bytes = bytes.saturating_add(length).saturating_add(column.name().len());
        members.insert(column.name().to_owned(), value);
    }
    Ok((Value::Object(members), bytes))
}

/// A value in PostgreSQL's binary format, and its bytes.
struct Cell(Value, usize);

impl<'a> FromSql<'a> for Cell {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        let value = match *kind {
            Type::BOOL => Value::Bool(raw.first() == Some(&1)),
            Type::INT2 => i16::from_be_bytes(raw.try_into()?).into(),
            Type::INT4 => i32::from_be_bytes(raw.try_into()?).into(),
            Type::INT8 => i64::from_be_bytes(raw.try_into()?).into(),
            Type::OID => u32::from_be_bytes(raw.try_into()?).into(),
            // Uses the shortest text: 0.1 stays 0.1.
            Type::FLOAT4 => number(f32::from_be_bytes(raw.try_into()?).to_string().parse()?),
            Type::FLOAT8 => number(f64::from_be_bytes(raw.try_into()?)),
            Type::JSON => json(raw)?,
            // The first byte is the format version.
            Type::JSONB => json(raw.get(1..).unwrap_or_default())?,
            Type::UUID => Uuid::from_slice(raw)?.to_string().into(),
            _ => std::str::from_utf8(raw)?.into(),
        };
        Ok(Self(value, raw.len()))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(Value::Null, 4))
    }

    fn accepts(kind: &Type) -> bool {
        TYPES.contains(kind)
    }
}

/// Parses JSON from the server; a number that would be rounded, such as a long `numeric`, is an error.
fn json(raw: &[u8]) -> Result<Value, JsonError> {
    json::read(std::str::from_utf8(raw).unwrap_or_default(), Numbers::Decimals)
}

/// Converts a float as `to_json` does: to a text if JSON has no such number.
fn number(float: f64) -> Value {
    let special = || match float {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    };
    Number::from_f64(float).map_or_else(|| special().into(), Value::Number)
}
