//! `counterpart mcp`: serves the assistant tools (Model Context Protocol) over standard input and output, for a client that starts this
//! program.

use std::time::Duration;

use clap::Args;
use reqwest::redirect::Policy;
use rmcp::{ServerHandler, ServiceExt};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::watch,
    time::timeout,
};

use super::{CliResult, Failed, http_client::client, serve::public_url};
use crate::{
    app::{App, ClientSettings, open_migrated},
    assistant_tools::{CallerLimits, RemoteTools, ToolPermissions, named_tools},
    config::{Config, api_key, switch},
    delivery::channel_connector::Connectors,
    telemetry::metrics::Metrics,
};

#[derive(Args, Debug)]
pub struct Mcp {
    /// Also offer the tools that change records. Messages become drafts that a person releases
    #[arg(long, env = "COUNTERPART_MCP_WRITE", value_parser = switch())]
    write: bool,

    /// Let the assistant send messages to contacts; implies --write. A client that can ask its user shows each message first
    #[arg(long, env = "COUNTERPART_MCP_ALLOW_SEND", value_parser = switch())]
    allow_send: bool,

    /// The base URL of a server that runs with `serve --mcp`, such as https://api.example.com [default: use the database directly]
    #[arg(long, env = "COUNTERPART_MCP_URL", value_name = "URL", value_parser = public_url)]
    url: Option<String>,

    /// Offer only these tools, separated by commas [default: all]
    #[arg(long, env = "COUNTERPART_MCP_TOOLS", value_name = "LIST", value_parser = tool_names)]
    tools: Option<ToolNames>,
}

/// The value of the option `--tools`: names of existing tools.
#[derive(Clone, Debug)]
struct ToolNames(Vec<String>);

fn tool_names(text: &str) -> Result<ToolNames, String> {
    named_tools(text).map(ToolNames)
}

impl Mcp {
    pub async fn run(self, config: &Config) -> CliResult {
        let key = api_key().ok_or_else(|| {
            Failed(
                "there is no API key; set COUNTERPART_API_KEY to one of the store's keys, which `counterpart key create` prints".to_owned(),
            )
        })?;
        let permits = ToolPermissions { send: self.allow_send };
        let narrowing = CallerLimits {
            read_only: !self.write && !self.allow_send,
            drafts_only: !self.allow_send,
            tools: self.tools.map(|ToolNames(names)| names),
        };
        if let Some(url) = &self.url {
            let relay = RemoteTools::connect(client(Policy::none()).map_err(Failed)?, url, key, narrowing).await.map_err(Failed)?;
            return serve(relay).await;
        }
        let (db, clocks_and_ids) = open_migrated(config).await?;
        if clocks_and_ids.sandbox.is_some() {
            let reason = "the database is a sandbox, whose clock is its server's; name that server with `--url`, and start it with `--mcp`";
            return Err(Failed(reason.to_owned()));
        }
        let callers =
            ClientSettings { bounds: config.bounds(), connections: config.connections.get() as usize, ..ClientSettings::default() };
        let app =
            App::new(db, clocks_and_ids, Metrics::default(), callers, Connectors::none(), config.targets(), config.index_folder()).await?;
        if !app.knows_key(&key).await? {
            return Err(Failed("the key in COUNTERPART_API_KEY is not valid: it is unknown, inactive, expired or deleted".to_owned()));
        }
        let (stop, stopped) = watch::channel(());
        let searching = app.follow_changes(&stopped);
        let served = serve(app.tools_of_key(key, permits, narrowing)).await;
        drop(stop);
        searching.await?;
        app.close().await?;
        served
    }
}

/// Serves the assistant tools until standard input ends.
async fn serve(server: impl ServerHandler) -> CliResult {
    let (mut early, input) = tokio::io::duplex(STDIN_BUFFER_BYTES);
    let reading = tokio::spawn(async move { forward_input(tokio::io::stdin(), &mut early).await });
    match server.serve((input, tokio::io::stdout())).await {
        Ok(running) => {
            running.waiting().await?;
            reading.abort();
            Ok(())
        }
        Err(error) => {
            tracing::debug!(%error, "the client did not begin");
            // After an error of `forward_input`, its task ends at once. Otherwise the task may still wait for input.
            match timeout(Duration::from_secs(1), reading).await {
                Ok(Ok(Err(error))) => Err(Failed(format!("standard input: {error}"))),
                _ => Err(Failed("the client ended before its first request".to_owned())),
            }
        }
    }
}

/// The size of the buffer between standard input and rmcp (the protocol library), in bytes.
const STDIN_BUFFER_BYTES: usize = 64 * 1024;

/// Passes the lines of standard input to rmcp, the protocol library. At first, this function drops lines that are not requests, such as the
/// cancellation of a request that was already answered: rmcp would stop serving at such a line. From the first request other than
/// `server/discover` on, everything is passed.
async fn forward_input(input: impl AsyncRead + Unpin, output: &mut (impl AsyncWrite + Unpin)) -> std::io::Result<()> {
    let (mut input, mut line, mut has_begun) = (BufReader::new(input), Vec::new(), false);
    while !has_begun {
        line.clear();
        let read = (&mut input).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await?;
        if read == 0 {
            return Ok(());
        }
        if read as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") {
            return Err(std::io::Error::other("a line up to the first request has more than 4 MiB, the limit"));
        }
        let message: serde_json::Value = serde_json::from_slice(&line).unwrap_or_default();
        if message["method"].is_string() && !message["id"].is_null() {
            has_begun = message["method"] != "server/discover";
            output.write_all(&line).await?;
        }
    }
    tokio::io::copy(&mut input, output).await.map(drop)
}

/// The longest line that [`forward_input`] accepts up to the first request, in bytes.
const MAX_LINE_BYTES: u64 = 4 * 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_before_the_first_request_are_dropped_and_overlong_ones_are_errors() {
        let request = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n";
        let forwarded = async |lines: &str| {
            let mut output = Vec::new();
            forward_input(lines.as_bytes(), &mut output).await.map(|()| String::from_utf8(output).unwrap())
        };
        assert_eq!(forwarded(&format!("no JSON\n{request}any text\n")).await.unwrap(), format!("{request}any text\n"));
        let long = "a".repeat(MAX_LINE_BYTES as usize);
        assert!(forwarded(&format!("{long}{request}")).await.unwrap_err().to_string().contains("4 MiB"));
    }
}
