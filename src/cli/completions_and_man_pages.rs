//! `counterpart completions` and `counterpart man`: shell completions and manual pages, which packages install with the program.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, CliResult, Failed};

#[derive(Args, Debug)]
pub struct Completions {
    /// The shell to print completions for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Args, Debug)]
pub struct Man {
    /// The folder to write to; it must exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

impl Completions {
    pub fn run(self) -> CliResult {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "counterpart", &mut script);
        super::print(String::from_utf8_lossy(&script).trim_end())
    }
}

impl Man {
    pub fn run(self) -> CliResult {
        let written = clap_mangen::generate_to(Cli::command(), &self.folder);
        written.map_err(|error| Failed(format!("the pages cannot be written to `{}`: {error}", self.folder.display())))
    }
}
