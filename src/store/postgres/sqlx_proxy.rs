//! Relay for sqlx: a local proxy. sqlx connects to a Unix socket of this process, which forwards the connection to PostgreSQL.
//!
//! A relay is created when the database is opened, for two kinds of servers:
//! - A server whose certificate is of X.509 version 1. sqlx's TLS library refuses such a certificate, even if the `sslmode` requires no
//!   verified certificate (`prefer` or `require`). Such certificates are common: the instructions in PostgreSQL's manual create such a
//!   certificate.
//! - A server with several hosts. sqlx always connects to the same host; the relay connects to the host that accepts writes.

use std::{fs::Permissions, io, os::unix::fs::PermissionsExt, sync::Arc, time::Duration};

use futures_util::future::Either;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpStream, UnixListener, UnixStream},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_postgres::{
    config::SslMode,
    tls::{MakeTlsConnect, TlsConnect},
};

use crate::store::{Error, Result, postgres::connect_to_primary::Server, wait_limit::WAIT_LIMIT};

/// The message that asks a server for TLS: its length and its code, as the protocol defines them.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// The pause after the relay failed to accept a connection.
const REFUSED: Duration = Duration::from_millis(100);

/// A running relay. Dropping it closes its socket.
pub(in crate::store) struct Relay {
    folder: TempDir,
    accepting: JoinHandle<()>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Relay {
    pub fn to(server: Arc<Server>, port: u16) -> Result<Self> {
        let unusable = |error: io::Error| {
            let folder = std::env::temp_dir();
            Error::Unavailable(format!(
                "the connections to PostgreSQL need a socket in the folder for temporary files, `{}` (TMPDIR), which cannot be made: {error}",
                folder.display()
            ))
        };
        // Only the owner of this process may use the folder, whatever the umask is.
        let private = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("counterpart-").permissions(private).tempdir().map_err(unusable)?;
        let listener = UnixListener::bind(folder.path().join(format!(".s.PGSQL.{port}"))).map_err(unusable)?;
        let accepting = tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((client, _)) => _ = tokio::spawn(relay(client, server.clone())),
                    Err(error) => {
                        tracing::error!(%error, "a connection to PostgreSQL cannot be relayed");
                        sleep(REFUSED).await;
                    }
                }
            }
        });
        Ok(Self { folder, accepting })
    }

    /// Returns connection options that reach the same server through the relay.
    pub fn through(&self, options: PgConnectOptions) -> PgConnectOptions {
        options.socket(self.folder.path()).ssl_mode(PgSslMode::Disable)
    }
}

async fn relay(mut client: UnixStream, server: Arc<Server>) {
    let connecting = async {
        let primary = server.primary().await.map_err(io::Error::other)?;
        let (host, port) = primary.ok_or_else(|| io::Error::other("the server is not reached by TCP"))?;
        let mut stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        let mode = server.tls_mode();
        if mode == SslMode::Disable {
            return Ok(Either::Left(stream));
        }
        stream.write_all(&SSL_REQUEST).await?;
        match stream.read_u8().await? {
            b'S' => {}
            b'N' if mode == SslMode::Prefer => return Ok(Either::Left(stream)),
            b'N' => return Err(io::Error::other("the server has no TLS any more")),
            _ => return Err(io::Error::other("the server refused the connection")),
        }
        let mut connector = server.connector().map_err(io::Error::other)?;
        let connect = MakeTlsConnect::<TcpStream>::make_tls_connect(&mut connector, host).map_err(io::Error::other)?;
        Ok(Either::Right(connect.connect(stream).await?))
    };
    let connected = timeout(WAIT_LIMIT, connecting).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let copied = match connected {
        Ok(Either::Left(mut plain)) => copy_bidirectional(&mut client, &mut plain).await,
        Ok(Either::Right(mut encrypted)) => copy_bidirectional(&mut client, &mut encrypted).await,
        Err(error) => {
            tracing::warn!(%error, "a connection to PostgreSQL cannot be relayed");
            return;
        }
    };
    if let Err(error) = copied {
        tracing::debug!(%error, "a relayed connection to PostgreSQL ended");
    }
}
