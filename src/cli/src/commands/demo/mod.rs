//! `callboard demo`: the main use case in one command, with everything embedded.

mod app;
mod practice;
mod training;

use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::Duration;

use client::{Client, ClientError};
use config::{BaseUrl, Config, Source};
use kernel::{Clock, SystemClock};
use serde_json::{Map, Value, json};
use server::Parts;
use wire::{
    AppRecord, CreateVersion, CreateWorkflow, PublishRequest, UpdateChatSettings, UpdateWorkflow,
    WorkflowRecord,
};

use self::practice::Practice;
use super::chat::{Talk, TurnOutcome};
use super::signals::{Interrupts, Signals};
use crate::complaint::Complaint;
use crate::options::ServiceSession;
use crate::output::{CommandError, Output, say};
use crate::terminal::Paint;

/// An example that the demo publishes. The handle's prefix keeps it apart from the user's workflows.
struct Example {
    handle: &'static str,
    name: &'static str,
    description: &'static str,
    graph: &'static str,
    /// The built-in model, which needs neither key nor network.
    model: Option<&'static str>,
    /// Prompts that its page suggests: label and message.
    prompts: &'static [(&'static str, &'static str)],
}

/// The demo chats with the first example.
const EXAMPLES: [Example; 4] = [
    Example {
        handle: "callboard-demo-summary",
        name: "Summary",
        description: "Summarises a text: its pieces at the same time, then the whole.",
        graph: include_str!("../../../../../examples/document-summary.json"),
        model: Some("practice/summarize@60ms"),
        prompts: &[("Summarise the history of a harbour", MESSAGE)],
    },
    Example {
        handle: "callboard-demo-support",
        name: "Support desk",
        description: "Sorts a customer's message, drafts an answer by the rule for it, and reviews the draft.",
        graph: include_str!("../../../../../examples/support-triage.json"),
        model: Some("practice/assistant"),
        prompts: &[
            ("I was charged twice", "I was charged twice for order 7 and want a refund."),
            ("The app crashes", "The app crashes whenever I open my orders. This is urgent!"),
            ("When are you open?", "When are you open on Saturdays?"),
        ],
    },
    Example {
        handle: "callboard-demo-count",
        name: "Slow count",
        description: "Says a number every half second: for testing lost connections, resuming and stopping.",
        graph: include_str!("../../../../../examples/slow-count.json"),
        model: None,
        prompts: &[("Count", "Count, please.")],
    },
    Example {
        handle: "callboard-demo-echo",
        name: "Echo",
        description: "Repeats the message, word by word.",
        graph: include_str!("../../../../../examples/echo.json"),
        model: None,
        prompts: &[("Say hello", "Hello!")],
    },
];
const MESSAGE: &str = "The old harbour of Lund was built in 1873. It served forty ships a week.

After the fire of 1911 the harbour was moved to the north. The old basin was filled with rubble.

Today a park lies there. Every spring the town holds a fair in it. Twenty thousand people come.

In 2019 divers found three anchors under the park. They stand at its gate now.

The town plans to open the basin again. Work may begin in 2027. It would cost nine million.";

/// The data folder for `--practice`, inside the data folder of a demo or a `serve`.
const PRACTICE: &str = "practice";
/// The workspace's member, unless `SERVICE_OWNER_EMAIL` is set.
const MEMBER: &str = "demo@example.com";

pub(crate) fn run(exit: bool, practice: bool) -> Result<(), CommandError> {
    let (source, config) = super::load()?;
    actix_rt::System::new().block_on(Box::pin(async {
        if !practice {
            let config = embedded(&source, config, "demo")?;
            return Box::pin(demo(&source, config, exit, None)).await;
        }
        let practice = Practice::start().await?;
        // Its credentials and workflows use the examples' names, so they must not mix with a user's.
        let folder = config.data.dir.join(PRACTICE);
        let source = source.with("SERVICE_DATA_DIR", folder.display().to_string());
        let config = practice.config(source.clone())?;
        let config = embedded(&source, config, PRACTICE)?;
        Box::pin(demo(&source, config, exit, Some(&practice))).await
    }))
}

/// Uses only embedded parts, separate from those of a `serve` on this machine.
fn embedded(source: &Source, mut config: Config, folder: &str) -> Result<Config, CommandError> {
    config.database.dsn = None;
    // The demo calls itself at its listen address, which the certificate may not cover.
    config.http.tls = None;
    // Sign-in codes are shown here: in the log, or by the simulated mail server.
    config.sign_in.oidc = None;
    if folder != PRACTICE {
        config.mail.smtp_url = None;
    }
    config.sign_in.owner_email.get_or_insert_with(|| MEMBER.to_owned());
    if source.get("SERVICE_DATA_DIR").is_none() {
        config.data.dir = config.data.dir.join(folder);
    }
    if source.get("SERVICE_LOG").is_none() {
        // Fetching a database takes time and is worth a line.
        config.log.filter = "warn,store::embedded::fetch=info".to_owned();
    }
    free_port(&mut config)?;
    server::init_logging(&config);
    Ok(config)
}

/// Takes a free port if another program uses the configured one.
fn free_port(config: &mut Config) -> Result<(), CommandError> {
    match TcpListener::bind((config.http.host.as_str(), config.http.port)) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            say(format_args!("Port {} is taken; using a free one.", config.http.port))?;
            config.http.port = 0;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The address for browsers, where app members sign in. The port is known only after the listener is bound.
fn public_base(source: &Source, config: &Config, listener: &TcpListener) -> Option<BaseUrl> {
    if config.http.public_base_url.is_some() || !config.http.is_loopback() {
        return config.http.public_base_url.clone();
    }
    let port = listener.local_addr().ok()?.port();
    let source = source.clone().with("SERVICE_PUBLIC_BASE_URL", format!("http://localhost:{port}"));
    // Refused if the apps domain has that name; then only the public address is missing.
    Config::load(&source).ok()?.http.public_base_url
}

async fn demo(
    source: &Source,
    mut config: Config,
    exit: bool,
    practice: Option<&Practice>,
) -> Result<(), CommandError> {
    let mut signals = Signals::listen()?;
    let mut steps = Steps::new();
    say(format_args!("Starting Callboard with its own database in {} …", config.data.dir.display()))?;
    let listener = server::bind(&config).map_err(|error| error.to_string())?;
    config.http.public_base_url = public_base(source, &config, &listener);
    let parts = Parts { listener: Some(listener), ..Parts::default() };
    let running = tokio::select! {
        started = server::start(&config, parts) => started.map_err(|error| error.to_string())?,
        () = signals.told() => return Ok(()),
    };
    let shown = tokio::select! {
        shown = async {
            steps.done("The database and the service are up")?;
            let address = format!("http://{}", running.address());
            let base = config.http.public_base_url.as_ref().map_or(address.as_str(), BaseUrl::as_str);
            let signs_in = config.http.public_base_url.is_some() && config.offers_mail_sign_in();
            let member = config.sign_in.owner_email.as_deref().filter(|_| signs_in);
            let addresses = Addresses { address: &address, base, member };
            Box::pin(show(addresses, exit, practice, &mut steps)).await
        } => shown,
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

/// Prints each step with its duration.
struct Steps {
    clock: SystemClock,
    last: Duration,
}

impl Steps {
    fn new() -> Self {
        let clock = SystemClock::new();
        Self { last: clock.monotonic(), clock }
    }

    fn done(&mut self, what: &str) -> Result<(), CommandError> {
        let now = self.clock.monotonic();
        let took = now.saturating_sub(std::mem::replace(&mut self.last, now));
        let (paint, seconds) = (Paint::stdout(), took.as_secs_f64());
        say(format_args!("{} {what} {}", paint.good("✓"), paint.dim(format_args!("({seconds:.2} s)"))))
    }
}

/// The demo's addresses.
#[derive(Clone, Copy)]
struct Addresses<'a> {
    /// The listen address.
    address: &'a str,
    /// The address for browsers.
    base: &'a str,
    /// The member who can sign in to the app, if sign-in is available.
    member: Option<&'a str>,
}

async fn show(
    addresses: Addresses<'_>,
    exit: bool,
    practice: Option<&Practice>,
    steps: &mut Steps,
) -> Result<(), CommandError> {
    let Addresses { address, base, .. } = addresses;
    let client = Client::builder(address).keep_cookies(false).build();
    let client = client.map_err(|error| CommandError::from(Complaint::from_client_error(error, address)))?;
    let session = ServiceSession::anonymous(client, Output::Human);
    let mut published = Vec::new();
    for example in &EXAMPLES {
        published.push(session.received(publish(&session.client, example).await)?);
    }
    steps.done(&format!("Published {} example workflows", published.len()))?;
    let app = Box::pin(app::publish(&session)).await?;
    steps.done(match &app {
        Some(_) => "Published an example app",
        None => "Published no example app: its aliases are taken",
    })?;
    if let Some(practice) = practice {
        let made = practice::ready(&session.client, practice).await?;
        steps.done(&format!("Set up {made} workflows of examples/ with simulated services"))?;
    }
    if let Some(first) = published.first() {
        chat(&session, first, steps).await?;
    }
    let training = training::train(&session, steps).await?;
    if exit {
        return Ok(());
    }
    // Client commands use the default address without an option.
    let address =
        if address == "http://127.0.0.1:8000" { String::new() } else { format!(" --api-url {base}") };
    // Uses the name of the call, because the binary may not be on the PATH.
    let callboard = std::env::args().next().unwrap_or_else(|| "callboard".to_owned());
    if practice.is_some() {
        practice::tell(&session.client, &callboard, &address).await?;
    }
    invite(addresses, &training, &published, app.as_ref())?;
    say(format_args!(
        "\nOr in another terminal:\n\n  {callboard} chat {}{address}\n  {callboard} workflow list{address}\n\n\
         docs/QUICKSTART.md shows how to create your own workflow in ten minutes.\n\nServing until Ctrl-C.",
        EXAMPLES.first().map_or("", |example| example.handle)
    ))
}

/// Creates the workflow or finds an earlier demo's, and saves the graph; an unchanged graph is the same version.
/// Returns its number.
async fn save(client: &Client, wanted: &CreateWorkflow, version: &CreateVersion) -> Result<i32, ClientError> {
    match client.create_workflow(wanted).await {
        Ok(_) => {}
        Err(error) if error.code() == Some("workflow.handle_taken") => {}
        Err(error) => return Err(error),
    }
    let handle = wanted.handle.as_deref().unwrap_or_default();
    Ok(client.save_version(handle, version).await?.0.version.version.unwrap_or_default())
}

/// Saves an example and publishes it.
async fn publish(client: &Client, example: &Example) -> Result<WorkflowRecord, ClientError> {
    let wanted = CreateWorkflow {
        name: example.name.to_owned(),
        handle: Some(example.handle.to_owned()),
        description: Some(example.description.to_owned()),
        tags: vec!["example".to_owned()],
    };
    let graph = serde_json::from_str(example.graph).map_err(|error| ClientError::Usage(error.to_string()))?;
    let config = example.model.map(|model| Map::from_iter([("model".to_owned(), Value::from(model))]));
    let version = CreateVersion { graph, runnable_config: config, metadata: None, notes: None };
    save(client, &wanted, &version).await?;
    let prompts = example.prompts.iter().map(|(label, prompt)| json!({"label": label, "prompt": prompt}));
    let chat = UpdateChatSettings { start_prompts: Some(prompts.collect()), ..UpdateChatSettings::default() };
    // An older demo may have used another name.
    let update = UpdateWorkflow {
        name: Some(example.name.to_owned()),
        description: Some(Some(example.description.to_owned())),
        chat: Some(chat),
        ..UpdateWorkflow::default()
    };
    client.update_workflow(example.handle, &update).await?;
    Ok(client.publish(example.handle, &PublishRequest::default()).await?.workflow)
}

async fn chat(
    session: &ServiceSession,
    workflow: &WorkflowRecord,
    steps: &mut Steps,
) -> Result<(), CommandError> {
    let paint = Paint::stdout();
    let model = "the model is built in and needs no key";
    say(format_args!("\nA chat with \"{}\" ({}); {model}.\n", workflow.name, workflow.handle))?;
    let message = MESSAGE.replace("\n\n", "\n      ");
    say(format_args!("{} {message}\n", paint.name("you ›")))?;
    let mut talk = Talk::new(session, workflow.id.clone(), None, Interrupts::elsewhere());
    match talk.say(MESSAGE).await? {
        TurnOutcome::Done | TurnOutcome::Stopped | TurnOutcome::Asked(_) => {
            say("")?;
            steps.done("Every part of this reply was stored before it was sent")
        }
        TurnOutcome::Failed(complaint) => Err(complaint.into()),
    }
}

/// Prints the addresses to open, one per line. `training` is the path of the training's page.
fn invite(
    Addresses { base, member, .. }: Addresses<'_>,
    training: &str,
    published: &[WorkflowRecord],
    app: Option<&AppRecord>,
) -> Result<(), CommandError> {
    let paint = Paint::stdout();
    say("\nOpen in a browser:\n")?;
    say(format_args!("{base}/"))?;
    for (workflow, example) in published.iter().zip(&EXAMPLES) {
        say(format_args!("\n{}: {}", paint.bold(&workflow.name), paint.dim(example.description)))?;
        say(format_args!("chat {}", workflow.share_url.as_deref().unwrap_or_default()))?;
    }
    say(format_args!(
        "\n{}: {}",
        paint.bold("Message sorting"),
        paint.dim("Its training with the curve, the candidates and the cases.")
    ))?;
    say(format_args!("training {base}/{training}"))?;
    let Some(app) = app else { return Ok(()) };
    say(format_args!("\n{}: {}", paint.bold(&app.name), paint.dim("A hosted app, which calls a workflow.")))?;
    if let Some(member) = member {
        say(paint.dim(format_args!("Sign in to it as {member}; the code appears in this terminal.")))?;
    }
    say(format_args!("app {}", app.url))
}
