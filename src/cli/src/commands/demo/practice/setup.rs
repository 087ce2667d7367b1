//! Publishes the workflows of `examples/` and explains how to try each.

use client::{Client, ClientError, Part, RunOptions};
use serde_json::{Map, Value, json};
use wire::{
    CreateCredential, CreateRun, CreateVersion, CreateWorkflow, PublishRequest, RunState, SetWebhook,
    UpdateChatSettings, UpdateCredential, UpdateWorkflow,
};

use super::Practice;
use crate::output::{CommandError, say};
use crate::terminal::Paint;

/// The simulated CI's `X-Token` header.
const CI_TOKEN: &str = "practice-ci-0123456789";
const INVOICE: &str = include_str!("../../../../../../examples/invoice-extraction/sample.txt");

/// A workflow from `examples/`.
struct Example {
    handle: &'static str,
    graph: &'static str,
    /// `practice.json`: the upload's `--config`.
    config: &'static str,
    /// Prompts that its page suggests; empty if it has no chat.
    prompts: &'static [(&'static str, &'static str)],
}

const NO_CONFIG: &str = "{}";
const EXAMPLES: [Example; 7] = [
    Example {
        handle: "support-desk-refund",
        graph: include_str!("../../../../../../examples/support-desk/refund.json"),
        config: include_str!("../../../../../../examples/support-desk/practice.json"),
        prompts: &[],
    },
    Example {
        handle: "support-desk",
        graph: include_str!("../../../../../../examples/support-desk/workflow.json"),
        config: include_str!("../../../../../../examples/support-desk/practice.json"),
        prompts: &[
            ("A refund", "I want a refund for order 10017. My mail is ana@example.com"),
            ("Too late for a refund", "I want a refund for order 10018. My mail is ana@example.com"),
            ("A colleague", "I want to talk to a human."),
        ],
    },
    Example {
        handle: "learn",
        graph: include_str!("../../../../../../examples/ask-documents/learn.json"),
        config: include_str!("../../../../../../examples/ask-documents/practice.json"),
        prompts: &[],
    },
    Example {
        handle: "ask",
        graph: include_str!("../../../../../../examples/ask-documents/ask.json"),
        config: include_str!("../../../../../../examples/ask-documents/practice.json"),
        prompts: &[("Days of leave", "How many days of leave are there?")],
    },
    Example {
        handle: "deploy",
        graph: include_str!("../../../../../../examples/deploy-approval/workflow.json"),
        config: NO_CONFIG,
        prompts: &[],
    },
    Example {
        handle: "nightly-report",
        graph: include_str!("../../../../../../examples/nightly-report/workflow.json"),
        config: r#"{"model": "practice/summarize", "to": ["owner@example.com"]}"#,
        prompts: &[],
    },
    Example {
        handle: "invoice",
        graph: include_str!("../../../../../../examples/invoice-extraction/workflow.json"),
        config: include_str!("../../../../../../examples/invoice-extraction/practice.json"),
        prompts: &[],
    },
];

/// Creates credentials, workflows and the webhook, and runs `learn` on the handbook; returns the number of workflows.
pub(in super::super) async fn ready(client: &Client, practice: &Practice) -> Result<usize, CommandError> {
    let base = &practice.services;
    let secrets = [
        ("shop", "token-of-the-shop".to_owned()),
        ("support channel", format!("{base}/slack/support")),
        ("release channel", format!("{base}/slack/releases")),
        ("deployer", "shared-with-the-deployer".to_owned()),
    ];
    let told = |error: ClientError| {
        CommandError::from(crate::complaint::Complaint::from_client_error(error, client.base()))
    };
    for (name, secret) in secrets {
        keep(client, name, secret).await.map_err(told)?;
    }
    for example in &EXAMPLES {
        publish(client, example, base).await.map_err(told)?;
    }
    let webhook = SetWebhook {
        shared_secret_header: Some("X-Token".to_owned()),
        shared_secret: Some(CI_TOKEN.to_owned()),
        ..SetWebhook::default()
    };
    client.set_webhook("deploy", &webhook).await.map_err(told)?;
    let document = json!({"url": format!("{base}/handbook.md"), "title": "The handbook"});
    let learning = CreateRun { inputs: Some(document), ..CreateRun::default() };
    let wait = RunOptions { wait: Some(std::time::Duration::from_secs(60)), idempotency_key: None };
    let learned = client.begin_run("learn", &learning, &wait).await.map_err(told)?.run;
    if learned.status != RunState::Succeeded {
        let why = learned.error.map(|error| error.message).unwrap_or_default();
        return Err(format!(
            "The handbook was not learned: run {} {}. {why}",
            learned.id,
            learned.status.as_str()
        )
        .into());
    }
    Ok(EXAMPLES.len())
}

async fn keep(client: &Client, name: &str, secret: String) -> Result<(), ClientError> {
    let known = client
        .credentials(&Part { limit: Some(200), cursor: None })
        .await?
        .data
        .into_iter()
        .find(|known| known.name == name);
    match known {
        Some(known) => {
            let update = UpdateCredential { secret: Some(secret), ..UpdateCredential::default() };
            client.change_credential(&known.id, &update).await.map(drop)
        }
        None => {
            let new = CreateCredential { name: name.to_owned(), secret, provider: None, description: None };
            client.create_credential(&new).await.map(drop)
        }
    }
}

async fn publish(client: &Client, example: &Example, base: &str) -> Result<(), ClientError> {
    let usage = |error: serde_json::Error| ClientError::Usage(error.to_string());
    let wanted = CreateWorkflow {
        name: example.handle.to_owned(),
        handle: Some(example.handle.to_owned()),
        description: None,
        tags: vec!["example".to_owned()],
    };
    match client.create_workflow(&wanted).await {
        Ok(_) => {}
        Err(error) if error.code() == Some("workflow.handle_taken") => {}
        Err(error) => return Err(error),
    }
    let graph = serde_json::from_str(example.graph).map_err(usage)?;
    let mut config: Map<String, Value> = serde_json::from_str(example.config).map_err(usage)?;
    for (name, path) in [("shop", ""), ("analytics", ""), ("deployer", "/releases")] {
        config.insert(name.to_owned(), Value::String(format!("{base}{path}")));
    }
    let version = CreateVersion { graph, runnable_config: Some(config), metadata: None, notes: None };
    client.save_version(example.handle, &version).await?;
    if !example.prompts.is_empty() {
        let prompts = example.prompts.iter().map(|(label, prompt)| json!({"label": label, "prompt": prompt}));
        let chat =
            UpdateChatSettings { start_prompts: Some(prompts.collect()), ..UpdateChatSettings::default() };
        let update = UpdateWorkflow { chat: Some(chat), ..UpdateWorkflow::default() };
        client.update_workflow(example.handle, &update).await?;
        client.publish(example.handle, &PublishRequest::default()).await?;
    }
    Ok(())
}

/// Explains how to try each. `address` is the option that selects the service, if it is needed.
pub(in super::super) async fn tell(
    client: &Client,
    callboard: &str,
    address: &str,
) -> Result<(), CommandError> {
    let paint = Paint::stdout();
    let base = client.base().trim_end_matches('/');
    say("\nThe examples of examples/, with simulated services; what reaches those is shown here:\n")?;
    for (handle, about) in [
        ("support-desk", "Support desk with tools"),
        ("ask", "Ask your documents (has learned the handbook)"),
    ] {
        let shared = client.workflow(handle).await.ok().and_then(|workflow| workflow.share_url);
        say(format_args!("{}\n  {}", paint.bold(about), shared.unwrap_or_default()))?;
    }
    let invoice = INVOICE.trim_end().replace('\'', "'\\''");
    say(format_args!(
        "{}\n  curl -H 'X-Token: {CI_TOKEN}' -H 'Content-Type: application/json' -d '{{\"service\": \"shop\", \"version\": \"1.8.2\", \"by\": \"Ana\"}}' {base}/api/workflows/deploy/triggers/webhook\n\
         {}\n  {callboard} run nightly-report{address}\n\
         {}\n  {callboard} run invoice{address} --input text='{invoice}'",
        paint.bold("Deployment approval: from a webhook to Slack"),
        paint.bold("Nightly report"),
        paint.bold("Invoice extraction"),
    ))
}
