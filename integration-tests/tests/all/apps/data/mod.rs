//! Collection records that app pages read and write.

mod busy;
mod limits;
mod lists;
mod nodes;
mod records;
mod walls;

use integration_tests::{Answer, AnswerExt, JSON, TestService};
use serde_json::{Map, Value, json};

use super::app;

const PATCH: (&str, &str) = ("content-type", "application/merge-patch+json");

fn etag(answer: &Answer) -> &str {
    answer.header("etag").unwrap_or_default()
}

/// An app with a release.
struct Site<'a> {
    t: &'a TestService,
    alias: &'a str,
}

impl<'a> Site<'a> {
    /// Publishes these collections: `{name: {kind, anonymous, member, schema?}}`.
    async fn publish(t: &'a TestService, alias: &'a str, collections: &Value) -> Self {
        app(t, alias).await;
        let site = Self { t, alias };
        site.release(collections).await;
        site
    }

    /// Publishes another release. Creates missing collections.
    async fn release(&self, collections: &Value) {
        let mut frozen = Map::new();
        for (name, collection) in collections.as_object().unwrap() {
            let capabilities = json!({"anonymous": collection["anonymous"], "member": collection["member"]});
            let schema = collection.get("schema").cloned().unwrap_or_default();
            let path = format!("/api/apps/{}/collections", self.alias);
            let mut request = json!({"name": name, "kind": collection["kind"], "capabilities": capabilities});
            if !schema.is_null() {
                request.as_object_mut().unwrap().insert("schema".to_owned(), schema.clone());
            }
            let made = self.t.post(&path, &request.to_string()).await;
            assert!(matches!(made.status, 201 | 409), "{}", made.text());
            frozen.insert(
                name.clone(),
                json!({"id": self.collection(name).await, "kind": collection["kind"], "capabilities": capabilities, "schema": schema}),
            );
        }
        let alias = self.alias;
        let frozen = Value::Object(frozen).to_string().replace('\'', "''");
        let sql = format!(
            "WITH made AS (INSERT INTO app_releases (id, app_id, workspace_id, number, deployment_id, permission_revision, permissions,
                     bindings, collections, spa, frame_ancestors, wasm, created_at)
                 SELECT gen_random_uuid(), id, workspace_id, (SELECT count(*) + 1 FROM app_releases r WHERE r.app_id = apps.id),
                     gen_random_uuid(), '', '{{\"bindings\":{{}},\"collections\":{{}},\"frame_ancestors\":[],\"wasm\":false}}', '{{}}', '{frozen}', false, '[]', false, now()
                 FROM apps WHERE alias = '{alias}' RETURNING id)
             UPDATE apps SET active_release = made.id FROM made WHERE alias = '{alias}'"
        );
        self.t.execute(&sql).await;
        let active = self.t.scalar(&format!("SELECT active_release FROM apps WHERE alias = '{alias}'")).await;
        // An instance's copy of an app may be a second old.
        integration_tests::until("the release is served", async || {
            let fresh = self.send("GET", "/__service/config", &[], "").await;
            fresh.status != 404 || fresh.text().contains("detail") && !active.is_empty()
        })
        .await;
    }

    /// The id of a collection that is not deleted.
    async fn collection(&self, name: &str) -> String {
        let sql = format!(
            "SELECT c.id FROM app_collections c JOIN apps a ON a.id = c.app_id
             WHERE a.alias = '{}' AND c.name = '{name}' AND c.deleted_at IS NULL",
            self.alias
        );
        self.t.scalar(&sql).await
    }

    fn origin(&self) -> String {
        format!("http://{}.apps.localhost", self.alias)
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let host = format!("{}.apps.localhost", self.alias);
        let origin = self.origin();
        let mut all = vec![("host", host.as_str()), ("origin", origin.as_str())];
        all.extend(headers);
        let mut answer = self.t.raw().await.request(method, path, &all, body).await;
        let has_body = method != "HEAD" && !matches!(answer.status, 204 | 304);
        let body = if has_body { answer.rest().await } else { String::new() };
        Answer { status: answer.status, headers: answer.headers, body: body.into() }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", &format!("/__service/data/{path}"), &[], "").await
    }

    async fn create(&self, collection: &str, data: &Value) -> Answer {
        let body = json!({"data": data}).to_string();
        self.send("POST", &format!("/__service/data/{collection}"), &[JSON], &body).await
    }

    /// Creates a record, and returns its path.
    async fn create_path(&self, collection: &str, data: &Value) -> String {
        format!("{collection}/{}", self.create(collection, data).await.expect(201).member("id"))
    }

    async fn put(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let headers: Vec<_> = headers.iter().copied().chain([JSON]).collect();
        self.send("PUT", &format!("/__service/data/{path}"), &headers, &body.to_string()).await
    }

    async fn patch(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let headers: Vec<_> = headers.iter().copied().chain([PATCH]).collect();
        self.send("PATCH", &format!("/__service/data/{path}"), &headers, &body.to_string()).await
    }

    async fn delete(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("DELETE", &format!("/__service/data/{path}"), headers, "").await
    }
}

/// All verbs for all visitors, on shared records.
fn open() -> Value {
    let all = json!(["read", "create", "update", "delete"]);
    json!({"kind": "shared", "anonymous": all, "member": all})
}
