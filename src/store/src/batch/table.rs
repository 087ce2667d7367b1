//! Declares the tables that lanes write.

use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryId};
use diesel::result::QueryResult;
use diesel::serialize::ToSql;
use diesel::sql_types::{Array, HasSqlType};

/// The rows for one table as values in the statement: several as `unnest` over arrays, a single one as plain
/// values, which costs the server less.
pub(super) struct Values<'o, 'a, 'b> {
    out: &'o mut AstPass<'a, 'b, Pg>,
    single: bool,
    first: bool,
}

impl<'o, 'a, 'b> Values<'o, 'a, 'b> {
    pub(super) fn start(out: &'o mut AstPass<'a, 'b, Pg>, rows: usize) -> Self {
        let single = rows == 1;
        out.push_sql(if single { "(SELECT " } else { "unnest(" });
        Self { out, single, first: true }
    }

    /// Writes the values for one column.
    pub(super) fn column<ST, T>(&mut self, values: &'b Vec<T>) -> QueryResult<()>
    where
        Pg: HasSqlType<ST>,
        T: ToSql<ST, Pg>,
        Vec<T>: ToSql<Array<ST>, Pg>,
        ST: QueryId + 'static,
        Array<ST>: QueryId,
    {
        if !std::mem::replace(&mut self.first, false) {
            self.out.push_sql(",");
        }
        match values.first() {
            Some(value) if self.single => self.out.push_bind_param::<ST, T>(value),
            _ => self.out.push_bind_param::<Array<ST>, Vec<T>>(values),
        }
    }
}

/// Declares a table's columns once:
/// `Name: "table" from Source as pattern => { column: Type [SqlType] = value, … }`,
/// and after `and` the columns with the same SQL for every row. Borrowed values have the lifetime `'a`.
macro_rules! lane_table {
    (
        $(#[$doc:meta])*
        $name:ident: $table:literal from $source:ty as $row:pat_param => {
            $first:ident: $first_type:ty [$first_sql:ty] = $first_value:expr,
            $($column:ident: $type:ty [$sql:ty] = $value:expr,)*
        } $(and { $($constant:literal = $constant_sql:literal),+ })?
    ) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(in crate::batch) struct $name<'a> {
            $first: Vec<$first_type>,
            $($column: Vec<$type>,)*
            rows: std::marker::PhantomData<&'a ()>,
        }

        #[allow(dead_code, reason = "some tables have a separate statement")]
        impl<'a> $name<'a> {
            /// The columns, in the order of [`Self::values`].
            pub(in crate::batch) const NAMES: &'static str =
                concat!(stringify!($first) $(, ", ", stringify!($column))*);

            pub(in crate::batch) fn push(&mut self, $row: $source) {
                self.$first.push($first_value);
                $(self.$column.push($value);)*
            }

            pub(in crate::batch) fn len(&self) -> usize {
                self.$first.len()
            }

            pub(in crate::batch) fn is_empty(&self) -> bool {
                self.$first.is_empty()
            }

            /// Writes the rows as `(SELECT …)` or `unnest(…)`.
            pub(in crate::batch) fn values<'b>(
                &'b self,
                out: &mut diesel::query_builder::AstPass<'_, 'b, diesel::pg::Pg>,
            ) -> diesel::result::QueryResult<()> {
                let mut values = $crate::batch::table::Values::start(out, self.len());
                values.column::<$first_sql, _>(&self.$first)?;
                $(values.column::<$sql, _>(&self.$column)?;)*
                out.push_sql(")");
                Ok(())
            }

            /// Writes `, put_Name AS (INSERT INTO table (columns) SELECT t.* FROM fence, … AS t …)` if there
            /// are rows. `into`: a partition instead of the table.
            pub(in crate::batch) fn insert<'b>(
                &'b self,
                out: &mut diesel::query_builder::AstPass<'_, 'b, diesel::pg::Pg>,
                into: Option<&str>,
                conflict: Option<&str>,
                returning: &str,
            ) -> diesel::result::QueryResult<()> {
                if self.is_empty() {
                    return Ok(());
                }
                out.push_sql(concat!(", put_", stringify!($name), " AS (INSERT INTO "));
                out.push_sql(into.unwrap_or($table));
                out.push_sql(" (");
                out.push_sql(Self::NAMES);
                out.push_sql(concat!(
                    $($(", ", $constant,)+)? ") SELECT t.*", $($(", ", $constant_sql,)+)? " FROM fence, "
                ));
                self.values(out)?;
                out.push_sql(" AS t");
                if let Some(conflict) = conflict {
                    out.push_sql(" ON CONFLICT ");
                    out.push_sql(conflict);
                }
                out.push_sql(returning);
                out.push_sql(")");
                Ok(())
            }
        }
    };
}
