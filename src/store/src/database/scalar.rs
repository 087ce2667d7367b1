//! Rows with one column.

use chrono::{DateTime, Utc};
use diesel::deserialize::{self, FromSql, QueryableByName};
use diesel::pg::Pg;
use diesel::row::NamedRow;
use diesel::sql_types::{BigInt, Bool, Bytea, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use uuid::Uuid;

/// The value in a row's first column, whatever the column's name.
pub(crate) struct Scalar<T>(pub(crate) T);

/// A Rust type that is read from one SQL type.
pub(crate) trait ScalarValue {
    type SqlType;
}

macro_rules! scalar_values {
    ($($value:ty: $sql_type:ty),+) => {
        $(impl ScalarValue for $value {
            type SqlType = $sql_type;
        })+
    };
}

scalar_values! {
    bool: Bool,
    i32: Integer,
    i64: BigInt,
    String: Text,
    Uuid: SqlUuid,
    Vec<u8>: Bytea,
    DateTime<Utc>: Timestamptz
}

impl<T: ScalarValue> ScalarValue for Option<T> {
    type SqlType = Nullable<T::SqlType>;
}

impl<T> QueryableByName<Pg> for Scalar<T>
where
    T: ScalarValue + FromSql<<T as ScalarValue>::SqlType, Pg>,
{
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        row.get_value::<T::SqlType, T, usize>(0).map(Self)
    }
}
