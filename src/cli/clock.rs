//! `counterpart clock`: shows the clock of a running server, or advances the clock of a sandbox. A sandbox is a database for tests, whose
//! clock can be moved forward.

use std::time::Duration;

use clap::{Args, Subcommand};
use reqwest::{Method, redirect::Policy};
use serde_json::{Value, json};

use super::{
    CliResult, Failed,
    http_client::{client, explained},
    print,
    serve::public_url,
};
use crate::{
    config::{settings_token, switch},
    domain::time::Timestamp,
    http::machinery::routing::SETTINGS_PREFIX,
};

/// The time-out of a request to advance the clock. It is longer than the ten minutes after which the server ends an advance.
const ADVANCE_TIMEOUT: Duration = Duration::from_secs(660);

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ClockCommand {
    #[command(subcommand)]
    action: Option<ClockAction>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum ClockAction {
    /// Show the server's clock (the default)
    Show {
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Advance the clock of a sandbox; ends once everything that fell due has run
    Advance {
        /// The instant to which the clock is advanced, such as 2026-12-01T09:00:00Z
        #[arg(long, env = "COUNTERPART_TO", value_name = "TIME", value_parser = instant)]
        to: Timestamp,
        #[command(flatten)]
        server: ServerArgs,
    },
}

#[derive(Args, Debug)]
struct ServerArgs {
    /// The base URL of the server. COUNTERPART_TOKEN holds a token, which `counterpart settings token` prints
    #[arg(long, env = "COUNTERPART_URL", value_name = "URL", value_parser = public_url, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Print the server's answer as one JSON object
    #[arg(long, env = "COUNTERPART_JSON", value_parser = switch())]
    json: bool,
}

fn instant(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "must be an instant with a time zone, such as 2026-12-01T09:00:00Z".to_owned())
}

impl ClockCommand {
    pub async fn run(self) -> CliResult {
        match self.action {
            None => show(&self.server).await,
            Some(ClockAction::Show { server }) => show(&server).await,
            Some(ClockAction::Advance { to, server }) => {
                let advanced = server.ask(Method::POST, "/clock/advance", Some(json!({ "to": to }))).await?;
                if server.json {
                    return print(&advanced.to_string());
                }
                let count = |name: &str| advanced[name].as_i64().unwrap_or_default();
                print(&format!(
                    "the clock shows {}; since {}: {} attempts to send messages, {} attempts to deliver events, {} webhooks disabled, {} \
                     tickets woken, {} drafts expired, {} keys expired",
                    advanced["now"].as_str().unwrap_or_default(),
                    advanced["from"].as_str().unwrap_or_default(),
                    count("messageAttempts"),
                    count("webhookAttempts"),
                    count("webhooksDisabled"),
                    count("ticketsWoken"),
                    count("draftsExpired"),
                    count("keysExpired"),
                ))
            }
        }
    }
}

async fn show(server: &ServerArgs) -> CliResult {
    let clock = server.ask(Method::GET, "/clock", None).await?;
    if server.json {
        return print(&clock.to_string());
    }
    let now = clock["now"].as_str().unwrap_or_default();
    let kind = if clock["sandbox"] == true { "of a sandbox" } else { "real time" };
    let advancing = clock["advancingTo"].as_str().map(|to| format!("; it is being advanced to {to}")).unwrap_or_default();
    print(&format!("{now} ({kind}){advancing}"))
}

impl ServerArgs {
    /// Sends a request to the settings API of the server. Returns the property `data` of the response.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, Failed> {
        let token = settings_token().ok_or_else(|| {
            Failed("there is no token; set COUNTERPART_TOKEN to one, which `counterpart settings token` prints".to_owned())
        })?;
        let url = format!("{}{SETTINGS_PREFIX}{path}", self.url.trim_end_matches('/'));
        let unreachable = |error: reqwest::Error| Failed(format!("{url} cannot be asked: {}", explained(&error)));
        let mut request = client(Policy::none()).map_err(Failed)?.request(method, &url).bearer_auth(token).timeout(ADVANCE_TIMEOUT);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let text = response.text().await.map_err(unreachable)?;
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        if status.is_success() && answer["data"].is_object() {
            return Ok(answer["data"].clone());
        }
        let reason = answer["error"]["message"].as_str().unwrap_or("the answer is not one of this program's settings");
        Err(Failed(format!("{url} answered {}: {reason}", status.as_u16())))
    }
}
