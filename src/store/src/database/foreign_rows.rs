//! Rows from statements that cannot be part of another one: `EXPLAIN`, `SHOW`, `CALL`, and a `WITH` that
//! changes data.

use kernel::json::{self, JsonError, Numbers};
use serde_json::{Number, Value};
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Row, Statement};
use uuid::Uuid;

/// Supported column types. A statement must cast other types to text.
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

/// The first column with an unsupported type, and that type.
pub(crate) fn unread(statement: &Statement) -> Option<(&str, &str)> {
    let unread = statement.columns().iter().find(|column| !TYPES.contains(column.type_()));
    unread.map(|column| (column.name(), column.type_().name()))
}

/// Converts a row to an object, and returns its bytes.
pub(crate) fn object(row: &Row) -> Result<(Value, usize), tokio_postgres::Error> {
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
pub(crate) fn json(raw: &[u8]) -> Result<Value, JsonError> {
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
