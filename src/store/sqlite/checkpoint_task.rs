//! Checkpoint task: copies a long write-ahead log (WAL) into the SQLite file concurrently with the writer. The task retries until the WAL
//! is copied. After the disk has refused a sync, the task copies nothing more, and only warns that the WAL grows.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::store::{
    Error, Result,
    sqlite::{
        checkpoint::{self, CheckpointOutcome},
        connection::log,
        file_identity::FileIdentity,
        group_commit::{Writer, WriterState},
    },
};

/// The pause between two checks of the length of a WAL that is no longer copied.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(10);

impl Writer {
    /// Starts a checkpoint, which copies the WAL into the file, if the WAL is long. To be called after a commit.
    pub fn checkpoint_if_due(&self, writer_state: &mut WriterState) {
        if writer_state.connection.as_ref().is_some_and(|connection| writer_state.copying.is_due(connection)) {
            writer_state.copying.underway = true;
            let (writer, file) = (self.clone(), writer_state.file.clone());
            tokio::spawn(async move { writer.copy(file).await });
        }
    }

    async fn copy(&self, file: Arc<FileIdentity>) {
        let mut pause = checkpoint::PAUSE;
        loop {
            match self.copy_once(file.clone()).await {
                Ok(CheckpointOutcome::Done) => return,
                Ok(CheckpointOutcome::SyncFailed) => {
                    self.refused_copies.fetch_add(1, Ordering::Relaxed);
                    return self.warn_of_log(&file).await;
                }
                // The copy is tried again: an import has the writer lock, or a reader still needs an old snapshot.
                Ok(CheckpointOutcome::Incomplete) | Err(Error::Busy) => {}
                Err(_) if self.lock_writer().await.is_ok_and(|writer_state| writer_state.closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "the log of the database could not be copied into it, and becomes longer");
                    pause = checkpoint::LONG_PAUSE;
                }
            }
            tokio::time::sleep(pause).await;
            pause = checkpoint::LONG_PAUSE.min(2 * pause);
        }
    }

    /// Logs an error each time a WAL that is no longer copied has doubled in size, until the writer is closed.
    async fn warn_of_log(&self, file: &FileIdentity) {
        let mut warned = 0;
        while !self.lock_writer().await.is_ok_and(|writer_state| writer_state.closed) {
            let bytes = file.log_length();
            if bytes >= 2 * warned {
                warned = bytes.max(1);
                let log_mib = bytes >> 20;
                tracing::error!(log_mib, "the disk refused to sync the database file after a checkpoint; the log grows until a restart");
            }
            tokio::time::sleep(BETWEEN_WARNINGS).await;
        }
    }

    async fn copy_once(&self, file: Arc<FileIdentity>) -> Result<CheckpointOutcome> {
        let broke_off = |error: tokio::task::JoinError| Error::Unavailable(error.to_string());
        if !tokio::task::spawn_blocking(move || checkpoint::rounds(&file, checkpoint::sync)).await.map_err(broke_off)?? {
            return Ok(CheckpointOutcome::SyncFailed);
        }
        let sole = self.sole().await?;
        let last = move || {
            sole.with(|writer_state| {
                let left = match &writer_state.connection {
                    Some(connection) => log(connection, "PASSIVE")?.is_left(writer_state.copying.pages),
                    // A failed commit has closed the connection, so nothing was copied. The checkpoint is tried again, unless the writer
                    // was closed for good.
                    None => !writer_state.closed,
                };
                writer_state.copying.underway = left;
                Ok(if left { CheckpointOutcome::Incomplete } else { CheckpointOutcome::Done })
            })
        };
        tokio::task::spawn_blocking(last).await.map_err(broke_off)?
    }
}
