//! Creates workflows.

use client::{Answer, Client};
use serde_json::{Map, Value};
use wire::{CreateVersion, CreateWorkflow, PublishRequest};

use crate::{AnswerExt, JSON, TestService, graphs};

/// A created workflow.
#[derive(Debug, Clone)]
pub struct Workflow {
    /// The workflow's id.
    pub id: String,
    /// The workflow's handle.
    pub handle: String,
}

impl Workflow {
    /// A path of the API below the workflow.
    #[must_use]
    pub fn path(&self, rest: &str) -> String {
        format!("/api/workflows/{}{rest}", self.id)
    }
}

impl TestService {
    /// Changes a workflow's settings without cookies.
    pub async fn configure(&self, workflow: &Workflow, settings: &Value) -> Answer {
        self.json("PUT", &workflow.path(""), settings).await
    }
}

/// Builds a workflow; by default private, with one version that echoes.
pub struct WorkflowBuilder {
    client: Client,
    name: String,
    graph: Option<Value>,
    config: Option<Map<String, Value>>,
    published: bool,
    require_login: bool,
    settings: Option<Value>,
}

impl WorkflowBuilder {
    /// Starts building a workflow that this client creates.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let graph = Some(graphs::reply("You said: {{ inputs.message }}"));
        let name = "A workflow".to_owned();
        Self { client, name, graph, config: None, published: false, require_login: false, settings: None }
    }

    /// Sets the client that creates it.
    #[must_use]
    pub fn by(mut self, client: Client) -> Self {
        self.client = client;
        self
    }

    /// Sets the name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Makes it say `You said: …`, in one piece.
    #[must_use]
    pub fn echo(self) -> Self {
        self.graph(graphs::reply("You said: {{ inputs.message }}"))
    }

    /// Sets the graph.
    #[must_use]
    pub fn graph(mut self, graph: Value) -> Self {
        self.graph = Some(graph);
        self
    }

    /// Creates no version.
    #[must_use]
    pub fn without_version(mut self) -> Self {
        self.graph = None;
        self
    }

    /// Sets the version's runnable config.
    #[must_use]
    pub fn config(mut self, config: Value) -> Self {
        self.config = config.as_object().cloned();
        self
    }

    /// Publishes the workflow.
    #[must_use]
    pub fn published(mut self) -> Self {
        self.published = true;
        self
    }

    /// Requires a login for the published chat.
    #[must_use]
    pub fn require_login(mut self) -> Self {
        self.require_login = true;
        self
    }

    /// Changes the settings of the created workflow.
    #[must_use]
    pub fn settings(mut self, settings: Value) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Creates the workflow.
    ///
    /// # Panics
    /// When the service refuses.
    pub async fn create(self) -> Workflow {
        let wanted = CreateWorkflow { name: self.name, handle: None, description: None, tags: Vec::new() };
        let made = self.client.create_workflow(&wanted).await.expect("a workflow");
        if let Some(graph) = self.graph {
            let version = CreateVersion { graph, runnable_config: self.config, metadata: None, notes: None };
            self.client.save_version(&made.id, &version).await.expect("a version");
        }
        if self.published {
            let publish = PublishRequest { require_login: Some(self.require_login) };
            self.client.publish(&made.id, &publish).await.expect("published");
        }
        let workflow = Workflow { id: made.id, handle: made.handle };
        if let Some(settings) = self.settings {
            let path = workflow.path("");
            let sent = self.client.send("PUT", &path, &[JSON], settings.to_string()).await;
            sent.expect("an answer").expect(200);
        }
        workflow
    }
}
