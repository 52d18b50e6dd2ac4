//! `counterpart openapi`: prints the OpenAPI documents of this build's revision.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Failed, Outcome, print};
use crate::{
    config::switch,
    http::{document::contract, events, settings},
};

#[derive(Args, Debug)]
pub struct Openapi {
    #[arg(long, env = "COUNTERPART_FORMAT", value_enum, default_value_t = Format::Json)]
    format: Format,

    /// The document of the settings API, the same in every build, instead of the contract's
    #[arg(long, env = "COUNTERPART_SETTINGS", value_parser = switch())]
    settings: bool,

    /// The document of the webhook events, in OpenAPI 3.1, instead of the contract's
    #[arg(long, env = "COUNTERPART_EVENTS_DOCUMENT", conflicts_with = "settings", value_parser = switch())]
    events: bool,

    /// The output file, instead of standard output
    #[arg(long, env = "COUNTERPART_OUTPUT", value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Json,
    Yaml,
    /// One operation per line: method, path, operation id, scope
    Routes,
}

impl Openapi {
    pub fn run(self) -> Outcome {
        let document = match (self.settings, self.events) {
            (true, _) => settings::document(),
            (_, true) => events::document::document(),
            _ => contract::document(),
        };
        let text = match self.format {
            Format::Json => contract::json(&document),
            Format::Yaml => contract::yaml(&document),
            Format::Routes => contract::routes_page(&document),
        };
        match self.output {
            Some(file) => std::fs::write(&file, text).map_err(|error| Failed(format!("{} cannot be written: {error}", file.display()))),
            None => print(text.trim_end()),
        }
    }
}
