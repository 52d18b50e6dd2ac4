//! `counterpart openapi`: prints the OpenAPI documents of the API revision (A or B) that this build serves.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{CliResult, Failed, print};
use crate::{
    config::switch,
    http::{events, openapi::contract_document, settings},
};

#[derive(Args, Debug)]
pub struct Openapi {
    /// The form of the output
    #[arg(long, env = "COUNTERPART_FORMAT", value_enum, default_value_t = DocumentFormat::Json)]
    format: DocumentFormat,

    /// Print the document of the settings API, which is the same in every build, instead of the contract's
    #[arg(long, env = "COUNTERPART_SETTINGS", value_parser = switch())]
    settings: bool,

    /// Print the document of the webhook events, in OpenAPI 3.1, instead of the contract's
    #[arg(long, env = "COUNTERPART_EVENTS_DOCUMENT", conflicts_with = "settings", value_parser = switch())]
    events: bool,

    /// Print the contract's document in OpenAPI 3.1, with the webhook events
    #[arg(long = "3.1", env = "COUNTERPART_OPENAPI_3_1", conflicts_with_all = ["settings", "events"], value_parser = switch())]
    with_events: bool,

    /// The output file, instead of standard output
    #[arg(long, env = "COUNTERPART_OUTPUT", value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DocumentFormat {
    Json,
    Yaml,
    /// One operation per line: method, path, operation id, scope
    Routes,
}

impl Openapi {
    pub fn run(self) -> CliResult {
        let document = match (self.settings, self.events, self.with_events) {
            (true, ..) => settings::document(),
            (_, true, _) => events::openapi_document::document(),
            (.., true) => events::openapi_document::with_operations(),
            _ => contract_document::document(),
        };
        let text = match self.format {
            DocumentFormat::Json => contract_document::json(&document),
            DocumentFormat::Yaml => contract_document::yaml(&document),
            DocumentFormat::Routes => contract_document::routes_page(&document),
        };
        match self.output {
            Some(file) => std::fs::write(&file, text).map_err(|error| Failed(format!("{} cannot be written: {error}", file.display()))),
            None => print(text.trim_end()),
        }
    }
}
