//! `callboard`: stores and runs workflows and publishes them as chats.

mod commands;
mod complaint;
mod options;
mod output;
mod parts;
mod profile;
mod sign_in;
mod table;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use commands::{
    answer, app, audit, chat, checkpoint, completions, config, credential, dataset, demo, dev_tls, index,
    login, logout, node, rerun, run, runs, serve, thread, token, trainings, trigger, visitor, whoami,
    workflow, workspace,
};
use options::{ClientOptions, Form, with_renewing_session, with_session};
use output::{CommandError, Output};

#[global_allocator]
static ALLOCATOR: sandbox::Limiter<mimalloc::MiMalloc> = sandbox::Limiter::new(mimalloc::MiMalloc);

#[derive(Parser)]
#[command(
    version,
    about = "Stores and runs LLM workflows and publishes them as chats.",
    after_help = "`callboard demo` runs a complete example; `callboard config show` describes every variable.\n\
                  Exit status: 0 success, 1 failure, 2 wrong usage, 3 authentication or permission refused, 4 service not reachable.",
    propagate_version = true
)]
struct Arguments {
    #[command(flatten)]
    options: ClientOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service, configured by the environment and a .env file
    Serve,
    /// Run a demo with its own database, published workflows and a streamed chat, then keep serving
    Demo {
        /// Exit after the chat, with status 0
        #[arg(long)]
        exit: bool,
        /// Set up the workflows of examples/ too, with sample data and simulated services: a shop, Slack, a deployer and a mail
        /// server. Needs no key, makes no external calls, and uses its own data folder.
        #[arg(long)]
        practice: bool,
    },
    /// Check the dependencies of `serve` without changing anything; exits with status 1 if there is a problem
    Doctor(commands::doctor::DoctorOptions),
    /// Create, version and publish workflows
    Workflow {
        #[command(subcommand)]
        command: workflow::WorkflowCommand,
    },
    /// Chat with a published workflow in the terminal
    Chat(chat::Chat),
    /// List, show and change the threads of a chat
    Thread {
        #[command(subcommand)]
        command: thread::ThreadCommand,
    },
    /// Export and erase the data of a chat's visitors
    Visitor {
        #[command(subcommand)]
        command: visitor::VisitorCommand,
    },
    /// Run a workflow and print its result
    Run(run::Run),
    /// List, show, trace, watch and cancel runs
    Runs {
        #[command(subcommand)]
        command: runs::RunsCommand,
    },
    /// Answer a run that waits for a person
    Answer(answer::AnswerRun),
    /// Repeat a run from one of its steps and print its result
    Rerun(rerun::Rerun),
    /// Train the prompts of a workflow with the cases of a dataset
    Train(Box<trainings::Train>),
    /// Evaluate a workflow with the cases of a dataset
    Evaluate(Box<trainings::Evaluate>),
    /// Print the report of a training or an evaluation
    Report(trainings::Report),
    /// Import, list, show and export the cases of trainings and evaluations
    Dataset {
        #[command(subcommand)]
        command: dataset::DatasetCommand,
    },
    /// List, show, compare and use the checkpoints of trainings
    Checkpoint {
        #[command(subcommand)]
        command: checkpoint::CheckpointCommand,
    },
    /// Sign in by email, or store a service token, in the profile file
    Login(login::Login),
    /// Sign out and remove the tokens from the profile file
    Logout(logout::Logout),
    /// Show the current identity and its scopes
    Whoami(whoami::Whoami),
    /// Create, list, rotate and revoke service tokens
    Token {
        #[command(subcommand)]
        command: token::TokenCommand,
    },
    /// Manage workspaces, their members and invitations
    Workspace {
        #[command(subcommand)]
        command: workspace::WorkspaceCommand,
    },
    /// Start runs of a workflow on a schedule or by a webhook
    Trigger {
        #[command(subcommand)]
        command: trigger::TriggerCommand,
    },
    /// Manage the secrets that workflows use
    Credential {
        #[command(subcommand)]
        command: credential::CredentialCommand,
    },
    /// List and delete search indexes
    Index {
        #[command(subcommand)]
        command: index::IndexCommand,
    },
    /// Create hosted apps and check their bundles
    App {
        #[command(subcommand)]
        command: app::AppCommand,
    },
    /// Rotate the key that encrypts secrets
    Vault {
        #[command(subcommand)]
        command: credential::VaultCommand,
    },
    /// Print the audit trail, newest first
    Audit(audit::Audit),
    /// Show the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// List and describe node types, without a service
    Node {
        #[command(subcommand)]
        command: NodeCommand,
    },
    /// Make a certificate for this machine, so that the service speaks TLS for development
    DevTls(dev_tls::DevTls),
    /// Print the completion script of a shell
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

#[derive(Subcommand)]
enum NodeCommand {
    /// List every type with its group and summary.
    List {
        #[command(flatten)]
        form: Form,
    },
    /// Describe a type: its fields, its result and an example.
    Show {
        /// The type, such as `llm`.
        #[arg(value_name = "TYPE")]
        name: String,
        #[command(flatten)]
        form: Form,
    },
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print every variable with its meaning, its value and the source of the value.
    Show {
        #[command(flatten)]
        form: Form,
    },
}

fn main() -> ExitCode {
    // A worker for user code starts here, before anything else is set up.
    if std::env::args_os().nth(1).is_some_and(|first| first == sandbox::WORKER_ARGUMENT) {
        return sandbox::work();
    }
    let Arguments { options, command } = Arguments::parse();
    let (output, outcome) = perform(command, options);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(output),
    }
}

/// Runs a command; returns the outcome, and the output format for errors.
fn perform(command: Command, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    let human = |outcome| (Output::Human, outcome);
    match command {
        Command::Serve => human(outer.without_output("serve").and_then(|()| serve::run())),
        Command::Demo { exit, practice } => {
            human(outer.without_output("demo").and_then(|()| demo::run(exit, practice)))
        }
        Command::Doctor(asked) => {
            let output = asked.form.or(&outer);
            human(outer.without_service("doctor").and_then(|()| commands::doctor::run(&asked, output)))
        }
        Command::Workflow { command } => workflow::run(command, outer),
        Command::Chat(command) => command.run(outer),
        Command::Thread { command } => thread::run(command, outer),
        Command::Visitor { command } => visitor::run(command, outer),
        Command::Run(command) => with_renewing_session!(command, command.options, outer),
        Command::Runs { command } => runs::run(command, outer),
        Command::Answer(command) => with_session!(command, outer),
        Command::Rerun(command) => with_session!(command, outer),
        Command::Train(command) => with_renewing_session!(command, command.options, outer),
        Command::Evaluate(command) => with_renewing_session!(command, command.options, outer),
        Command::Report(command) => with_session!(command, outer),
        Command::Dataset { command } => dataset::run(command, outer),
        Command::Checkpoint { command } => checkpoint::run(command, outer),
        Command::Login(command) => command.run(outer),
        Command::Logout(command) => command.run(outer),
        Command::Whoami(command) => with_session!(command, outer),
        Command::Token { command } => token::run(command, outer),
        Command::Workspace { command } => workspace::run(command, outer),
        Command::Trigger { command } => trigger::run(command, outer),
        Command::Credential { command } => credential::run(command, outer),
        Command::Index { command } => index::run(command, outer),
        Command::App { command } => app::run(command, outer),
        Command::Vault { command } => credential::run_vault(command, outer),
        Command::Audit(command) => with_session!(command, outer),
        Command::Config { command: ConfigCommand::Show { form } } => {
            let output = form.or(&outer);
            human(outer.without_service("config").and_then(|()| config::show(output)))
        }
        Command::Node { command } => human(outer.without_service("node").and_then(|()| match command {
            NodeCommand::List { form } => node::list(form.or(&outer) == Output::Json),
            NodeCommand::Show { name, form } => node::show(&name, form.or(&outer) == Output::Json),
        })),
        Command::DevTls(asked) => {
            let output = asked.form.or(&outer);
            (output, outer.without_service("dev-tls").and_then(|()| dev_tls::run(asked, output)))
        }
        Command::Completions { shell } => human(
            outer.without_output("completions").and_then(|()| completions::run(shell, Arguments::command())),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::HELP_HEADING;

    #[test]
    fn every_command_has_a_json_option_or_only_one_output_format() {
        let mut commands = vec![(Arguments::command(), true)];
        let mut without = Vec::new();
        while let Some((command, is_root)) = commands.pop() {
            let has_json = command.get_arguments().any(|argument| argument.get_id() == "json");
            if !command.has_subcommands() && !has_json {
                without.push(command.get_name().to_owned());
            }
            assert!(!is_root || has_json, "the option is accepted before every command");
            commands.extend(command.get_subcommands().cloned().map(|command| (command, false)));
        }
        without.sort();
        assert_eq!(without, ["completions", "demo", "serve"]);
        for command in ["completions bash", "demo", "serve"] {
            for option in ["--json", "--output=json"] {
                let line = format!("callboard {option} {command}");
                let parsed = Arguments::try_parse_from(line.split(' ')).unwrap();
                let (_, outcome) = perform(parsed.command, parsed.options);
                let Err(CommandError::Told(complaint)) = outcome else { panic!("{line} ran") };
                let name = option.split('=').next().unwrap();
                let text = complaint.for_people();
                assert!(text.contains(&format!("{name} has no effect on `callboard ")), "{line}: {text}");
            }
        }
    }

    #[test]
    fn only_shared_options_have_the_shared_heading() {
        let mut commands = vec![Arguments::command()];
        let mut seen = 0;
        while let Some(command) = commands.pop() {
            for argument in command.get_arguments().filter(|one| one.get_help_heading() == Some(HELP_HEADING))
            {
                let shared = ["profile", "api_url", "service_token", "output", "json", "workspace"];
                assert!(shared.contains(&argument.get_id().as_str()), "{}: {argument}", command.get_name());
                seen += 1;
            }
            commands.extend(command.get_subcommands().cloned());
        }
        assert!(seen > 100, "{seen}");
    }
}
