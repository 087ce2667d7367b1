//! App runs: started by pages, read by handle, limited, and followed by state.

mod client;
mod configuration;
mod keys;
mod limits;
mod reads;
mod refusals;
mod states;

use integration_tests::{Answer, AnswerExt, JSON, RawAnswer, TestService, graphs, until};
use serde_json::{Map, Value, json};

use super::app;

/// An app whose release was inserted directly.
pub(crate) struct Published<'a> {
    pub(crate) t: &'a TestService,
    pub(crate) id: String,
    pub(crate) host: String,
}

/// A binding as frozen in a release; `changes` replace its members.
pub(crate) async fn frozen(t: &TestService, graph: Value, changes: Value) -> Value {
    let workflow = t.workflow().graph(graph).create().await;
    let version =
        t.scalar(&format!("SELECT id FROM workflow_versions WHERE workflow_id = '{}'", workflow.id)).await;
    let mut binding = json!({
        "workflow_id": workflow.id, "workflow_handle": workflow.handle, "version": 1, "version_id": version,
        "digest": "0".repeat(64), "runnable_config": null, "includes": [], "access_mode": "anonymous",
        "input_schema": null, "output_projection": {"fields": ["answer"]}, "visitor_can_read_output": true, "limits": {},
    });
    if let Value::Object(changes) = changes {
        changes.into_iter().for_each(|(name, value)| binding[name.as_str()] = value);
    }
    binding
}

/// Replies with the text of its input.
pub(crate) fn answers() -> Value {
    let node = json!({"name": "secret_node", "type": "template", "template": "hello {{ inputs.text }}"});
    graphs::chain(&[node], Some(json!({"answer": "{{ results.secret_node.text }}", "inner": "inner"})))
}

/// Stays busy for `seconds`.
pub(crate) fn slow(seconds: f64) -> Value {
    graphs::chain(&[graphs::busy("wait", seconds)], Some(json!({"answer": "late"})))
}

/// The statements that publish an app release.
pub(crate) fn release(
    app: &str,
    id: u128,
    number: u32,
    bindings: &Map<String, Value>,
    collections: &Value,
) -> String {
    let id = uuid::Uuid::from_u128(id);
    let bindings = Value::Object(bindings.clone()).to_string().replace('\'', "''");
    format!(
        "INSERT INTO app_releases SELECT '{id}', a.id, a.workspace_id, {number}, '{id}', NULL, 'revision', '{{\"bindings\":{{}},\"collections\":{{}},\"frame_ancestors\":[],\"wasm\":false}}', '{bindings}', \
             '{collections}', false, '[]', false, NULL, now() FROM apps a WHERE a.id = '{app}'; \
         UPDATE apps SET active_release = '{id}' WHERE id = '{app}'"
    )
}

impl<'a> Published<'a> {
    /// Publishes an app with these bindings.
    pub(crate) async fn new(t: &'a TestService, alias: &str, bindings: &[(&str, Value)]) -> Published<'a> {
        let made = app(t, alias).await;
        let id = made["id"].as_str().unwrap().to_owned();
        t.execute(&format!("UPDATE apps SET access = 'public' WHERE id = '{id}'")).await;
        let app = Self::existing(t, alias, id);
        app.release(1, bindings).await;
        app
    }

    /// An app that was published earlier.
    pub(crate) fn existing(t: &'a TestService, alias: &str, id: String) -> Published<'a> {
        let host = format!("{alias}.apps.localhost:{}", t.address().port());
        Self { t, id, host }
    }

    /// Publishes a release, and waits until it is served.
    pub(crate) async fn release(&self, number: u32, bindings: &[(&str, Value)]) {
        let bindings = bindings.iter().map(|(name, binding)| ((*name).to_owned(), binding.clone())).collect();
        let id = uuid::Uuid::parse_str(&self.id).unwrap().as_u128().wrapping_add(u128::from(number));
        self.t.execute(&release(&self.id, id, number, &bindings, &json!({}))).await;
        // Reading the configuration refreshes the instance's copy.
        assert_eq!(self.get("/__service/config").await.status, 200);
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.host)
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut all = vec![("host", self.host.as_str())];
        all.extend_from_slice(headers);
        self.t.open(method, path, &all, body).await.whole().await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    /// Starts a run like a page does, with additional headers.
    pub(crate) async fn start_with(
        &self,
        binding: &str,
        key: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let origin = self.origin();
        let mut all = vec![JSON, ("origin", origin.as_str()), ("idempotency-key", key)];
        all.extend_from_slice(headers);
        self.send("POST", &runs(binding), &all, body).await
    }

    pub(crate) async fn start(&self, binding: &str, key: &str, input: &Value) -> Answer {
        self.start_with(binding, key, &[], &input.to_string()).await
    }

    /// Starts a run and returns its handle.
    pub(crate) async fn handle(&self, binding: &str, key: &str, input: &Value) -> String {
        handle(&self.start(binding, key, input).await)
    }

    pub(crate) async fn read(&self, handle: &str) -> Value {
        self.get(&format!("/__service/runs/{handle}")).await.expect(200).value()
    }

    /// Waits until the run has ended, and returns it.
    pub(crate) async fn ended(&self, handle: &str) -> Value {
        let ended = async || !matches!(self.read(handle).await["state"].as_str(), Some("queued" | "running"));
        until("the run has ended", ended).await;
        self.read(handle).await
    }

    /// Waits until a run executes.
    pub(crate) async fn running(&self, handle: &str) {
        until("the run executes", async || self.read(handle).await["state"] == "running").await;
    }

    /// The run's state stream, read piece by piece.
    pub(crate) async fn open_states(&self, handle: &str, headers: &[(&str, &str)]) -> RawAnswer {
        let mut all = vec![("host", self.host.as_str())];
        all.extend_from_slice(headers);
        self.t.open("GET", &format!("/__service/runs/{handle}/events"), &all, "").await
    }

    /// Number of runs of the app.
    pub(crate) async fn count(&self) -> String {
        self.t.scalar(&format!("SELECT count(*) FROM app_runs WHERE app_id = '{}'", self.id)).await
    }
}

pub(crate) fn runs(binding: &str) -> String {
    format!("/__service/workflows/{binding}/runs")
}

/// The handle in the response to a start.
pub(crate) fn handle(answer: &Answer) -> String {
    assert_eq!(answer.status, 202, "{}", answer.text());
    answer.value()["handle"].as_str().unwrap().to_owned()
}

/// The cookie from a response, as clients send it back.
pub(crate) fn cookie(answer: &Answer) -> Option<String> {
    let set = answer.header("set-cookie")?;
    Some(set.split(';').next().unwrap().to_owned())
}
