//! `postgres_query`: executes one statement in a database that the graph names.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::credentials::fill_fields;
use crate::execute::ports::DatabaseQuery;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::{list, list_field};
use crate::outbound;

/// Default and maximum time limit per attempt.
const TIMEOUT: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(600);
/// Maximum rows that a graph may request.
const MOST_ROWS: u32 = 10_000;
/// Maximum bytes of all rows.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Maximum statement bytes.
const MOST_SQL: usize = 64 * 1024;
/// Maximum parameters per statement.
const MOST_PARAMETERS: usize = 1_000;
const MODES: [&str; 2] = ["read", "write"];

pub(crate) const TYPE: NodeType = NodeType {
    name: "postgres_query",
    group: "data",
    summary: "Executes one SQL statement in a PostgreSQL database, with parameters. `[[name]]` in dsn is a secret of the vault.",
    effect: Effect::Outbound,
    secrets: &["dsn"],
    schema,
    result: "`{rows, count}`: an object for each row, as PostgreSQL's `to_json` returns it, and the number of rows; for \
             a statement without rows, the number of changed rows.",
    members: &["rows", "count"],
    example: || {
        json!({"name": "orders", "type": "postgres_query", "dsn": "[[orders database]]",
               "query": "SELECT id, total FROM orders WHERE customer = $1 ORDER BY id DESC",
               "parameters": ["{{ inputs.customer }}"], "max_rows": 20})
    },
    build,
};

struct PostgresQuery {
    dsn: Value,
    sql: String,
    parameters: Option<Value>,
    writes: bool,
    rows: usize,
    time: Duration,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["dsn", "query"], "properties": {
        "dsn": {"type": "string",
                "description": "`postgres://user:password@host:port/database` of a public host, such as `[[orders database]]`; a \
                                template. The server's certificate is verified unless `sslmode` (as in libpq) says otherwise."},
        "query": {"type": "string", "maxLength": MOST_SQL,
                  "description": "One statement; not a template. Pass values as the parameters `$1`, `$2`, …."},
        "parameters": {"type": ["array", "string"],
                       "description": "Values of the parameters, or a template of a list; they are bound, never inserted into the statement."},
        "mode": {"enum": MODES, "default": "read",
                 "description": "`read`: in a read-only transaction. `write`: changes are committed."},
        "max_rows": {"type": "integer", "minimum": 1, "maximum": MOST_ROWS, "default": 1_000,
                     "description": "Maximum number of rows; more rows, or more than 4 MiB, fail the node."}}})
}

fn build(fields: &mut Fields<'_>, spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let dsn = outbound::text(fields, "dsn", check);
    let sql = fields.text("query", &mut check.problems).map(str::to_owned);
    if let Some(long) = sql.as_ref().filter(|sql| sql.len() > MOST_SQL) {
        let message = format!("has {} bytes; at most {MOST_SQL}", long.len());
        check.note(FieldError::new(fields.at("query"), "range", message).suggest("a shorter statement"));
    }
    let parameters = fields.value("parameters").is_some().then(|| list_field(fields, "parameters", check));
    let writes = fields.word("mode", &MODES, &mut check.problems) == Some("write");
    let rows = fields.whole("max_rows", 1..=MOST_ROWS, &mut check.problems).unwrap_or(1_000);
    let time = spec.common.timeout.unwrap_or(TIMEOUT);
    if time > LONGEST {
        let message = format!("the maximum for a statement is {} s", LONGEST.as_secs());
        let problem = FieldError::new(format!("{}/timeout_seconds", spec.pointer), "range", message);
        check.note(problem.suggest(format!("\"timeout_seconds\": {}", LONGEST.as_secs())));
    }
    let rows = usize::try_from(rows).unwrap_or(1);
    let parameters = match parameters {
        Some(parameters) => Some(parameters?),
        None => None,
    };
    Some(Box::new(PostgresQuery { dsn: dsn?, sql: sql?, parameters, writes, rows, time }))
}

#[async_trait]
impl Node for PostgresQuery {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let sql = Value::String(self.sql.clone());
        let mut input = fill_fields([("dsn", Some(&self.dsn))], scope)?;
        if let Some(members) = input.as_object_mut() {
            members.insert("query".to_owned(), sql);
            let parameters =
                self.parameters.as_ref().map(|list| crate::template::fill(list, scope)).transpose()?;
            members.insert("parameters".to_owned(), parameters.unwrap_or_else(|| json!([])));
        }
        Ok(input)
    }

    async fn run(&self, mut input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let parameters = list(input.get_mut("parameters").map(Value::take).unwrap_or_default())?;
        if parameters.len() > MOST_PARAMETERS {
            let message = format!("{} parameters; at most {MOST_PARAMETERS}", parameters.len());
            return Err(NodeError::failed(message).into());
        }
        let fields = outbound::reveal(input, call).await?;
        let dsn = kernel::Secret::from(fields.text("dsn").unwrap_or_default().to_owned());
        let databases = call.databases();
        if let Some(password) = databases.password(&dsn) {
            call.redactor().learn(&password);
        }
        let query = DatabaseQuery {
            sql: self.sql.clone(),
            parameters,
            writes: self.writes,
            time: self.time,
            rows: self.rows,
            bytes: MOST_BYTES,
        };
        let answer = databases.query(&dsn, query).await?;
        Ok(json!({"rows": answer.rows, "count": answer.count}))
    }

    fn is_idempotent(&self) -> bool {
        self.only_reads()
    }

    fn only_reads(&self) -> bool {
        !self.writes
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    /// A statement that may have changed something is not cut off silently.
    fn keeps_time(&self) -> bool {
        true
    }
}
