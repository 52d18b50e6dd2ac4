//! `counterpart health`: a health check for containers, which asks a server on this machine whether it is ready.

use std::time::Duration;

use clap::Args;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{CliResult, Failed, print, serve::Listen};

/// The time-out of the request. It is shorter than the usual time-out of a container's health check, so that this command prints the reason
/// of a failure before the container's runtime ends the command.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(4);

/// The maximum number of bytes of the response that are read.
const MAX_HEALTH_BYTES: u64 = 64 * 1024;

#[derive(Args, Debug)]
pub struct Health {
    #[command(flatten)]
    listen: Listen,
}

impl Health {
    pub async fn run(self) -> CliResult {
        let address = reachable(&self.listen.listen);
        let answer = timeout(HEALTH_TIMEOUT, ask(&address)).await;
        let answer = answer.map_err(|_| Failed(format!("{address} did not answer within {} seconds", HEALTH_TIMEOUT.as_secs())))?;
        let answer = answer.map_err(|error| Failed(format!("{address} cannot be asked: {error}")))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        if head.split(' ').nth(1) == Some("200") {
            print(body)
        } else {
            Err(Failed(format!("{address} is not ready: {}", if body.is_empty() { head } else { body })))
        }
    }
}

/// Returns the address at which this machine reaches a server: a server that listens on every address is reached at a loopback address.
fn reachable(listen: &str) -> String {
    match listen.rsplit_once(':') {
        Some(("0.0.0.0", port)) => format!("127.0.0.1:{port}"),
        Some(("[::]", port)) => format!("[::1]:{port}"),
        _ => listen.to_owned(),
    }
}

async fn ask(address: &str) -> std::io::Result<String> {
    let mut server = TcpStream::connect(address).await?;
    server.write_all(format!("GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    server.take(MAX_HEALTH_BYTES).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
