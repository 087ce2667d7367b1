//! Statements identified by their text, which each connection prepares once. `diesel::sql_query` prepares its
//! text for each call: an extra round trip and a new plan.

use diesel::expression::AsExpression;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{SingleValue, SqlType, Untyped};

/// A statement and its values.
pub(crate) struct Prepared<'a> {
    text: &'static str,
    values: Vec<Box<dyn QueryFragment<Pg> + Send + 'a>>,
}

/// A statement with placeholders `$1`, `$2`, … up to `$99`. The text is a constant, because each connection
/// caches each text.
pub(crate) fn prepared<'a>(text: &'static str) -> Prepared<'a> {
    Prepared { text, values: Vec::new() }
}

impl<'a> Prepared<'a> {
    /// Adds the value for the next placeholder.
    pub(crate) fn bind<T, V>(mut self, value: V) -> Self
    where
        T: SqlType + SingleValue,
        V: AsExpression<T>,
        V::Expression: QueryFragment<Pg> + Send + 'a,
    {
        self.values.push(Box::new(value.as_expression()));
        self
    }
}

impl QueryId for Prepared<'_> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Prepared<'_> {
    /// Rows are read by column name.
    type SqlType = Untyped;
}

impl QueryFragment<Pg> for Prepared<'_> {
    /// diesel numbers values as they are pushed: the first use of a placeholder pushes its value, and further
    /// uses repeat the number.
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        let mut pushed: Vec<usize> = Vec::with_capacity(self.values.len());
        let mut parts = self.text.split('$');
        out.push_sql(parts.next().unwrap_or_default());
        for part in parts {
            let digits = part.bytes().take(2).take_while(u8::is_ascii_digit).count();
            let (place, rest) = part.split_at(digits);
            let place: usize = place.parse().map_err(|_| unplaced(self.text))?;
            match pushed.iter().position(|one| *one == place) {
                Some(index) => out.push_sql(&format!("${}", index.saturating_add(1))),
                None => {
                    let value = place.checked_sub(1).and_then(|index| self.values.get(index));
                    value.ok_or_else(|| unplaced(self.text))?.walk_ast(out.reborrow())?;
                    pushed.push(place);
                }
            }
            out.push_sql(rest);
        }
        Ok(())
    }
}

fn unplaced(text: &str) -> diesel::result::Error {
    diesel::result::Error::QueryBuilderError(format!("a placeholder without a value in {text:?}").into())
}

#[cfg(test)]
mod tests {
    use diesel::debug_query;
    use diesel::sql_types::{Bool, Integer, Text};

    use super::*;

    #[test]
    fn placeholders_are_numbered_by_first_use() {
        let query = prepared("SELECT $2, $1 WHERE $2 = 'a' AND $3 OR $1 > 0")
            .bind::<Integer, _>(7)
            .bind::<Text, _>("a")
            .bind::<Bool, _>(true);
        let text = debug_query::<Pg, _>(&query).to_string();
        assert_eq!(text, "SELECT $1, $2 WHERE $1 = 'a' AND $3 OR $2 > 0 -- binds: [\"a\", 7, true]");
        assert!(query.is_safe_to_cache_prepared(&Pg).unwrap());
    }

    #[test]
    fn a_placeholder_without_a_value_is_an_error() {
        let query = prepared("SELECT $2").bind::<Integer, _>(7);
        assert!(query.to_sql(&mut diesel::pg::PgQueryBuilder::new(), &Pg).is_err());
    }
}
