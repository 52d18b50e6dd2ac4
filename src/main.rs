//! Starts the process: reads the command line, sets the log up, runs the command.

use std::process::ExitCode;

use clap::Parser;
use counterpart::cli::Cli;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = match EnvFilter::try_new(&cli.config.log) {
        Ok(filter) => filter,
        Err(error) => {
            eprintln!("error: --log `{}` is not a filter: {error}", cli.config.log);
            return ExitCode::from(2);
        }
    };
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(cli.run()),
        Err(error) => {
            eprintln!("error: the runtime cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}
