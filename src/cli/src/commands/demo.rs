//! `callboard demo`: the main job in one command, with everything embedded.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use client::{ChatOptions, Client, ClientError};
use config::Config;
use server::Parts;
use wire::chat::{ChatEvent, ChatOperation, ChatRequest, ThreadItem, UserMessageInput};
use wire::{CreateVersion, CreateWorkflow, PublishRequest, WorkflowRecord};

use super::signals::Signals;
use crate::output::{Failure, piece, say};

/// The published workflow: says back what it is told, word by word.
const ECHO: &str = include_str!("../../../../examples/echo.json");
/// A name that nobody else gives: what a user has made in the same database is left alone.
const HANDLE: &str = "callboard-demo-echo";
const MESSAGE: &str = "Hello Callboard! Every word of this reply was stored before it was sent.";

pub(crate) fn run(exit: bool) -> Result<(), Failure> {
    let (source, mut config) = super::load()?;
    // Everything embedded, apart from what a `serve` on this machine uses.
    config.database.dsn = None;
    if source.get("SERVICE_DATA_DIR").is_none() {
        config.data.dir = config.data.dir.join("demo");
    }
    if source.get("SERVICE_LOG").is_none() {
        // Fetching a database takes its time and is worth a line.
        config.log.filter = "warn,store::embedded::fetch=info".to_owned();
    }
    free_port(&mut config)?;
    server::init_logging(&config);
    actix_rt::System::new().block_on(demo(config, exit))
}

/// A port that somebody else has is no reason not to show a demo.
fn free_port(config: &mut Config) -> Result<(), Failure> {
    match TcpListener::bind((config.http.host.as_str(), config.http.port)) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            say(format_args!("Port {} is taken; using a free one.", config.http.port))?;
            config.http.port = 0;
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn demo(config: Config, exit: bool) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    say(format_args!("Starting Callboard with a database of its own in {} …", config.data.dir.display()))?;
    let running = tokio::select! {
        started = server::start(&config, Parts::default()) => started.map_err(|error| error.to_string())?,
        () = signals.told() => return Ok(()),
    };
    let shown = tokio::select! {
        shown = show(running.address(), exit) => shown,
        () = signals.told() => {
            running.stop().await;
            return Ok(());
        }
    };
    if exit || shown.is_err() {
        running.stop().await;
        return shown;
    }
    super::serve::serve_until_told(running, &mut signals).await?;
    say("\nStopped.")
}

async fn show(address: SocketAddr, exit: bool) -> Result<(), Failure> {
    let failed = |error: ClientError| format!("the demo did not work: {error}");
    let base = format!("http://{address}");
    let client = Client::builder(&base).build().map_err(failed)?;
    let workflow = publish(&client).await.map_err(failed)?;
    say(format_args!("Published the workflow \"{}\" ({}).\n", workflow.name, workflow.handle))?;
    say(format_args!("you        {MESSAGE}"))?;
    chat(&client, &workflow.id).await?;
    if exit {
        return Ok(());
    }
    say(format_args!(
        "\nThe service is at {base}. Try it yourself:\n\n  \
         curl -N {base}/api/chat -H 'Content-Type: application/json' -d '{}'\n\nServing until Ctrl-C.",
        serde_json::json!({
            "type": "threads.create",
            "workflow_id": workflow.id,
            "params": {"input": {"content": [{"type": "input_text", "text": "Hello!"}]}},
        })
    ))
}

/// Makes the workflow, or finds the one of an earlier demo; the same graph again is the same version.
async fn publish(client: &Client) -> Result<WorkflowRecord, ClientError> {
    let wanted = CreateWorkflow {
        name: "Callboard demo: echo".to_owned(),
        handle: Some(HANDLE.to_owned()),
        description: Some("Says back what it is told, word by word.".to_owned()),
        tags: vec!["example".to_owned()],
    };
    match client.create_workflow(&wanted).await {
        Ok(_) => {}
        Err(error) if error.code() == Some("workflow.handle_taken") => {}
        Err(error) => return Err(error),
    }
    let graph = serde_json::from_str(ECHO).map_err(|error| ClientError::Usage(error.to_string()))?;
    let version = CreateVersion { graph, runnable_config: None, metadata: None, notes: None };
    client.save_version(HANDLE, &version).await?;
    Ok(client.publish(HANDLE, &PublishRequest::default()).await?.workflow)
}

async fn chat(client: &Client, workflow: &str) -> Result<(), Failure> {
    let failed = |error: ClientError| format!("the demo did not work: {error}");
    let operation = ChatOperation::CreateThread { input: UserMessageInput::text(MESSAGE) };
    let request = ChatRequest { operation, metadata: serde_json::Map::new() };
    let mut stream = client.chat(workflow, &request, &ChatOptions::default()).await.map_err(failed)?;
    piece("callboard  ")?;
    while let Some(event) = stream.next().await.map_err(failed)? {
        match event.event {
            ChatEvent::ItemUpdated { update, .. } => piece(update.appended_text().unwrap_or_default())?,
            ChatEvent::ItemDone { item: ThreadItem::AssistantMessage { .. } } => say("")?,
            ChatEvent::Error { message, .. } => {
                let text = message.unwrap_or_else(|| "the turn failed".to_owned());
                return Err(format!("the demo did not work: {text}").into());
            }
            _ => {}
        }
    }
    Ok(())
}
