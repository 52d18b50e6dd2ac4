//! Starts the process: reads the command line, sets the log up, runs the command.

use std::process::ExitCode;

use clap::Parser;
use counterpart::{cli::Cli, telemetry};

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Err(error) = telemetry::start_log(&cli.config.log) {
        eprintln!("error: --log `{}` is not a filter: {error}", cli.config.log);
        return ExitCode::from(2);
    }
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(cli.run()),
        Err(error) => {
            eprintln!("error: the runtime cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}
