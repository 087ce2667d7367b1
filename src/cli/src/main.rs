//! `callboard`: stores and runs workflows and publishes them as chats.

mod commands;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(
    version,
    about = "Stores and runs LLM workflows and publishes them as chats.",
    after_help = "`callboard demo` shows it all at once; `callboard config show` describes every variable.",
    propagate_version = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service; it is configured by the environment and a .env file.
    Serve,
    /// Show it all on this machine: a database of its own, a published workflow, one streamed chat; then keep serving.
    Demo {
        /// Leave after the chat, with status 0.
        #[arg(long)]
        exit: bool,
    },
    /// Look at all that a service stands on, without changing anything, and say what to do. Status 1 at a problem.
    Doctor(commands::doctor::Asked),
    /// Look at the configuration.
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Look at the types of nodes that a workflow may be made of. Needs no service.
    Node {
        #[command(subcommand)]
        command: NodeCommand,
    },
}

#[derive(Subcommand)]
enum NodeCommand {
    /// List every type with its group and what it does.
    List {
        /// Print JSON: a list of what `GET /api/nodes/{type}` answers.
        #[arg(long)]
        json: bool,
    },
    /// Describe one type: its fields, its result, an example.
    Show {
        /// The type, such as `llm`.
        #[arg(value_name = "TYPE")]
        name: String,
        /// Print JSON, as `GET /api/nodes/{type}` answers it.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print every variable with its meaning, where its value comes from, and the value.
    Show {
        /// How to print it.
        #[arg(long, value_enum, default_value_t)]
        output: commands::config::Output,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve => commands::serve::run(),
        Command::Demo { exit } => commands::demo::run(exit),
        Command::Doctor(asked) => commands::doctor::run(&asked),
        Command::Config { command: ConfigCommand::Show { output } } => commands::config::show(output),
        Command::Node { command: NodeCommand::List { json } } => commands::node::list(json),
        Command::Node { command: NodeCommand::Show { name, json } } => commands::node::show(&name, json),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
