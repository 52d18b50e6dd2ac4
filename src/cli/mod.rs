//! The command line interface. Most subcommands have a file of their own. `main` calls this module, which calls mainly `app` and `service`.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0 if the command succeeded; 1 if it failed; 2 if its
//! arguments are invalid. `contract` has exit codes of its own.

mod backup_and_restore;
mod channel_bridge;
mod clock;
mod completions_and_man_pages;
mod contract;
mod copy;
mod demo;
mod events;
mod export;
mod health;
mod http_client;
mod import;
mod ineffective_options;
mod key;
mod mcp;
mod message;
mod migrate;
mod openapi;
mod progress;
mod reindex;
mod scale_on_citus;
mod secrets;
mod serve;
mod settings_access;
mod startup_checks;
mod store;
mod thread_count;
mod user;
mod webhook;

pub mod demo_data;

use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::Config;

/// The data API of a customer-support inbox.
#[derive(Debug, Parser)]
#[command(name = "counterpart", version = crate::revision::VERSION, about, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub config: Config,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API
    Serve(serve::Serve),
    /// Serve the API on a fresh embedded database with a demo store in it
    Demo(demo::Demo),
    /// Migrate the database schema up or down, or show its status
    Migrate(migrate::Migrate),
    /// Create stores and change their settings
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Create and list a store's users
    #[command(subcommand)]
    User(user::UserCommand),
    /// Import a store's records from NDJSON, all or nothing
    Import(import::ImportArgs),
    /// Export a store's records as NDJSON, in the format of `import`
    Export(export::ExportArgs),
    /// Keep a copy of a store's records current: in a file, or in a PostgreSQL database
    Copy(copy::CopyArgs),
    /// Copy a SQLite database into a file; a server may run meanwhile
    Backup(backup_and_restore::Backup),
    /// Replace a SQLite database by a back-up, and keep the former database under another name; stop the server first
    Restore(backup_and_restore::Restore),
    /// Receive messages of a channel, list undelivered ones, and send them again
    #[command(subcommand)]
    Message(message::MessageCommand),
    /// Print the events of a store, one payload per line
    Events(events::EventsArgs),
    /// Create, list and change API keys
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Deliver the messages of channel accounts through HTTP endpoints
    #[command(subcommand)]
    Bridge(channel_bridge::BridgeCommand),
    /// Subscribe endpoints to events, and show what was delivered to them
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
    /// Give owners and admins access to a store's settings
    #[command(subcommand)]
    Settings(settings_access::SettingsCommand),
    /// Show the clock of a running server, or advance that of a sandbox
    Clock(clock::ClockCommand),
    /// List or rotate the keys that encrypt the stored secrets of webhooks, bridges and the server
    #[command(subcommand)]
    Secrets(secrets::SecretsCommand),
    /// Spread the stores of a PostgreSQL database over several nodes with Citus
    #[command(subcommand)]
    Scale(scale_on_citus::ScaleCommand),
    /// Rebuild the search index
    Reindex(reindex::Reindex),
    /// Serve the assistant tools (Model Context Protocol) over standard input and output
    Mcp(mcp::Mcp),
    /// Print the OpenAPI document of this build's revision
    Openapi(openapi::Openapi),
    /// Compare OpenAPI documents
    #[command(subcommand)]
    Contract(contract::ContractCommand),
    /// Check whether a server on this machine is ready
    Health(health::Health),
    /// Print the script that completes command lines in a shell
    Completions(completions_and_man_pages::Completions),
    /// Write the manual pages, one for each command, into a folder
    Man(completions_and_man_pages::Man),
}

/// The store that a command is about.
#[derive(Args, Debug)]
pub struct StoreArg {
    /// The id of the store
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID")]
    pub store: String,
}

/// The reason why a command failed, for the terminal.
#[derive(Debug)]
pub struct Failed(pub String);

pub type CliResult = Result<(), Failed>;

impl<E: std::error::Error> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl Cli {
    /// Parses the command line of this process. Fails if an option has no effect on the command.
    pub fn read() -> Result<Self, clap::Error> {
        let matches = Self::command().try_get_matches()?;
        ineffective_options::refuse(&Self::command(), &matches)?;
        Self::from_arg_matches(&matches)
    }

    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        match startup_checks::prepare(&self) {
            Ok(()) => self.command.run(&self.config).await,
            Err(Failed(reason)) => {
                complain(&reason);
                ExitCode::FAILURE
            }
        }
    }
}

impl Command {
    async fn run(self, config: &Config) -> ExitCode {
        let outcome = match self {
            Self::Serve(command) => command.run(config).await,
            Self::Demo(command) => command.run(config).await,
            Self::Migrate(command) => command.run(config).await,
            Self::Store(command) => command.run(config).await,
            Self::User(command) => command.run(config).await,
            Self::Import(command) => command.run(config).await,
            Self::Export(command) => command.run(config).await,
            Self::Copy(command) => command.run().await,
            Self::Backup(command) => command.run(config),
            Self::Restore(command) => command.run(config),
            Self::Message(command) => command.run(config).await,
            Self::Events(command) => command.run(config).await,
            Self::Key(command) => command.run(config).await,
            Self::Bridge(command) => command.run(config).await,
            Self::Webhook(command) => command.run(config).await,
            Self::Settings(command) => command.run(config).await,
            Self::Clock(command) => command.run().await,
            Self::Secrets(command) => command.run(config).await,
            Self::Scale(command) => command.run(config).await,
            Self::Reindex(command) => command.run(config).await,
            Self::Mcp(command) => command.run(config).await,
            Self::Openapi(command) => command.run(),
            Self::Health(command) => command.run().await,
            Self::Completions(command) => command.run(),
            Self::Man(command) => command.run(),
            // `contract` returns an exit code of its own.
            Self::Contract(command) => return command.run().await,
        };
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(Failed(reason)) => {
                complain(&reason);
                ExitCode::FAILURE
            }
        }
    }
}

/// Reports a failure on standard error. If standard error cannot be written, only the exit code reports the failure.
pub fn complain(reason: &str) {
    note(&format!("error: {reason}"));
}

/// Writes a line to standard error. It is no failure if standard error is closed.
pub(crate) fn note(line: &str) {
    use std::io::Write;
    _ = writeln!(std::io::stderr(), "{line}");
}

/// Writes lines to standard output. A closed pipe is no failure.
pub(crate) fn print(text: &str) -> CliResult {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failed(format!("standard output cannot be written: {error}"))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent_and_every_flag_has_an_environment_variable() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        let mut open: Vec<clap::Command> = vec![command];
        while let Some(command) = open.pop() {
            for flag in
                command.get_arguments().filter(|argument| argument.get_long().is_some_and(|name| name != "help" && name != "version"))
            {
                let variable = flag.get_env().and_then(|name| name.to_str()).unwrap_or_default();
                assert!(
                    variable == "DATABASE_URL" || variable.starts_with("COUNTERPART_"),
                    "{} --{} has no variable",
                    command.get_name(),
                    flag.get_long().unwrap_or_default()
                );
            }
            open.extend(command.get_subcommands().filter(|command| command.get_name() != "help").cloned());
        }
    }
}
