//! Start-up, before any command runs: a signal handler, and the check that the database exists.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::{Cli, Command, Failed, store};

/// Prepares the process for a command. Fails if the command needs a SQLite file that does not exist.
pub(super) fn prepare(cli: &Cli) -> Result<(), Failed> {
    survive_file_size_limits().map_err(|error| Failed(format!("signals cannot be handled: {error}")))?;
    match cli.config.sqlite_path() {
        Some(file) if !may_create_database(&cli.command) && !file.exists() => {
            let makes = "`counterpart store create` or `counterpart serve` creates it; `--database-url` selects another";
            Err(Failed(format!("there is no database `{}`; {makes}", file.display())))
        }
        _ => Ok(()),
    }
}

/// Handles SIGXFSZ, so that a write beyond a file size limit fails instead of ending the process.
fn survive_file_size_limits() -> io::Result<()> {
    // The handler stays installed when the listener is dropped.
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

/// Returns whether the command may create a missing database, or needs no database.
fn may_create_database(command: &Command) -> bool {
    match command {
        Command::Serve(_) | Command::Demo(_) | Command::Openapi(_) | Command::Contract(_) | Command::Restore(_) => true,
        Command::Health(_) | Command::Clock(_) | Command::Copy(_) | Command::Completions(_) | Command::Man(_) => true,
        Command::Migrate(command) => command.is_up(),
        Command::Store(command) => matches!(command, store::StoreCommand::Create { .. }),
        Command::Import(command) => command.only_prints(),
        _ => false,
    }
}
