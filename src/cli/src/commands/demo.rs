//! `callboard demo`: the main job in one command, with everything embedded.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};

use client::{ChatOptions, Client, ClientError};
use config::{Config, Source};
use server::Parts;
use wire::chat::{ChatEvent, ChatOperation, ChatRequest, ThreadItem, UserMessageInput};
use wire::{CreateVersion, CreateWorkflow, PublishRequest, WorkflowRecord};

/// The published workflow: says back what it is told, word by word.
const ECHO: &str = include_str!("../../../../examples/echo.json");
const MESSAGE: &str = "Hello Callboard! Every word of this reply was stored before it was sent.";

pub(crate) fn run(exit: bool) -> Result<(), String> {
    let source = Source::from_env();
    let mut config = Config::load(&source).map_err(|problems| problems.to_string())?;
    // Everything embedded, apart from what a `serve` on this machine uses.
    config.database.dsn = None;
    if source.get("SERVICE_DATA_DIR").is_none() {
        config.data.dir = config.data.dir.join("demo");
    }
    if source.get("SERVICE_LOG").is_none() {
        config.log.filter = "warn".to_owned();
    }
    free_port(&mut config);
    server::init_logging(&config);
    actix_rt::System::new().block_on(demo(config, exit))
}

/// A port that somebody else has is no reason not to show a demo.
fn free_port(config: &mut Config) {
    let taken = TcpListener::bind((config.http.host.as_str(), config.http.port)).is_err();
    if taken {
        println!("Port {} is taken; using a free one.", config.http.port);
        config.http.port = 0;
    }
}

async fn demo(config: Config, exit: bool) -> Result<(), String> {
    println!("Starting Callboard with a database of its own in {} …", config.data.dir.display());
    let running = server::start(&config, Parts::default()).await.map_err(|error| error.to_string())?;
    let address = running.address();
    let shown = show(address).await;
    if let Err(error) = shown {
        running.stop().await;
        return Err(format!("the demo did not work: {error}"));
    }
    if exit {
        running.stop().await;
        return Ok(());
    }
    println!("\nServing until Ctrl-C.");
    super::serve::serve_until_told(running).await
}

async fn show(address: SocketAddr) -> Result<(), ClientError> {
    let base = format!("http://{address}");
    let client = Client::builder(&base).build()?;
    let workflow = publish(&client).await?;
    println!("Published the workflow \"{}\" ({}).\n", workflow.name, workflow.handle);
    println!("you        {MESSAGE}");
    chat(&client, &workflow.id).await?;
    println!("\nThe service is at {base}. Try it yourself:\n");
    println!(
        "  curl -N {base}/api/chat -H 'Content-Type: application/json' -d '{}'",
        serde_json::json!({
            "type": "threads.create",
            "workflow_id": workflow.id,
            "params": {"input": {"content": [{"type": "input_text", "text": "Hello!"}]}},
        })
    );
    Ok(())
}

/// Makes the workflow, or finds the one of an earlier demo; the same graph again is the same version.
async fn publish(client: &Client) -> Result<WorkflowRecord, ClientError> {
    let wanted = CreateWorkflow {
        name: "Echo".to_owned(),
        handle: Some("echo".to_owned()),
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
    client.save_version("echo", &version).await?;
    Ok(client.publish("echo", &PublishRequest::default()).await?.workflow)
}

async fn chat(client: &Client, workflow: &str) -> Result<(), ClientError> {
    let operation = ChatOperation::CreateThread { input: UserMessageInput::text(MESSAGE) };
    let request = ChatRequest { operation, metadata: serde_json::Map::new() };
    let mut stream = client.chat(workflow, &request, &ChatOptions::default()).await?;
    print!("callboard  ");
    while let Some(event) = stream.next().await? {
        match event.event {
            ChatEvent::ItemUpdated { update, .. } => {
                print!("{}", update.appended_text().unwrap_or_default());
                // A terminal that has gone is no reason to fail.
                let _ = std::io::stdout().flush();
            }
            ChatEvent::ItemDone { item: ThreadItem::AssistantMessage { .. } } => println!(),
            ChatEvent::Error { message, .. } => {
                let text = message.unwrap_or_else(|| "the turn failed".to_owned());
                return Err(ClientError::Usage(text));
            }
            _ => {}
        }
    }
    Ok(())
}
