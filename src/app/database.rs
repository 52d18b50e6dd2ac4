//! Opens the database for a command or a server: migrates its schema, and sets the keys that encrypt stored secrets. Also checks whether
//! the database is a sandbox, which is a test database whose clock can be advanced.

use std::time::Duration;

use crate::{
    config::Config,
    domain::clock::ClocksAndIds,
    store::{self, Db, sandbox_database::ServerLock, settings::encryption_keys::SecretKeys, slow_statements},
    telemetry::metrics::Metrics,
};

/// Opens the database without migrating it.
pub async fn open(config: &Config) -> store::Result<Db> {
    connect(config, None).await
}

async fn connect(config: &Config, metrics: Option<&Metrics>) -> store::Result<Db> {
    slow_statements::log_from(Duration::from_millis(config.slow_statement));
    Db::open(&config.database_url, config.connections.get(), metrics.map(Metrics::on_statement)).await
}

/// Opens the database for a command: migrates its schema, and encrypts secrets that are stored in plain text, if there is a key. If the
/// database is a sandbox, the returned [`ClocksAndIds`] has the clock of the sandbox.
pub async fn open_migrated(config: &Config) -> store::Result<(Db, ClocksAndIds)> {
    let db = connect(config, None).await?;
    db.migrate_up().await?;
    let clocks_and_ids = clocks_of(&db).await?;
    Ok((prepared(config, db).await?, clocks_and_ids))
}

/// The open database of a server.
pub struct ServedDatabase {
    pub db: Db,
    pub clocks_and_ids: ClocksAndIds,
    /// Present for a sandbox: the lock that prevents other servers from serving the same sandbox.
    pub lock: Option<ServerLock>,
}

/// Opens the database for a server: migrates its schema, and encrypts secrets that are stored in plain text, if there is a key. `metrics`
/// counts the statements. With `as_sandbox`, the database must be a sandbox or have no tables yet. Without `as_sandbox`, it must not be a
/// sandbox.
pub async fn open_served(config: &Config, metrics: &Metrics, as_sandbox: bool) -> store::Result<ServedDatabase> {
    let db = connect(config, Some(metrics)).await?;
    if as_sandbox {
        db.migrate_sandbox_up().await?;
    } else {
        db.migrate_up().await?;
        if db.sandbox_ahead().await?.is_some() {
            let reason =
                "it is a sandbox, whose clock is not real time; serve it with `counterpart serve --sandbox`, or name another database";
            return Err(store::Error::Unusable(reason.to_owned()));
        }
    }
    let lock = if as_sandbox { Some(db.lock_for_server().await?) } else { None };
    // The clock is read while this server holds the lock, so no other server can advance it afterwards.
    let clocks_and_ids = clocks_of(&db).await?;
    Ok(ServedDatabase { db: prepared(config, db).await?, clocks_and_ids, lock })
}

/// Returns the clocks of this database: real time, or for a sandbox a clock that is ahead of real time.
async fn clocks_of(db: &Db) -> store::Result<ClocksAndIds> {
    let ahead = db.sandbox_ahead().await?;
    Ok(ahead.map_or_else(ClocksAndIds::real, |ahead| ClocksAndIds::real().in_sandbox(ahead)))
}

/// Prepares an open database. Deletes the former sort positions of rows, which cursors use, if another database server recorded them, as in
/// a database that was restored from a dump. Sets the keys that encrypt stored secrets, if there are any, and encrypts secrets that are
/// stored in plain text.
async fn prepared(config: &Config, db: Db) -> store::Result<Db> {
    db.discard_foreign_positions().await?;
    let db = db.with_secret_keys(secret_keys(config)?);
    let sealed = match db.encrypt_plain().await {
        // A node of the distributed database is unreachable. The server starts nevertheless, and serves the stores of the other nodes.
        Err(error @ store::Error::Unavailable(_)) if db.is_distributed() => {
            tracing::warn!(%error, "secrets that are stored as they are were not looked for");
            0
        }
        outcome => outcome?,
    };
    if sealed > 0 {
        tracing::info!(sealed, "secrets that were stored as they are were encrypted");
    }
    Ok(db)
}

fn secret_keys(config: &Config) -> store::Result<SecretKeys> {
    match (&config.secret_key_file, &config.secret_key, config.own_key_file()) {
        (Some(file), _, _) => SecretKeys::of_file(file),
        (None, Some(text), _) => SecretKeys::of_text(text, "COUNTERPART_SECRET_KEY (--secret-key)"),
        (None, None, Some(file)) => SecretKeys::of_own_file(&file),
        (None, None, None) => Ok(SecretKeys::default()),
    }
}

/// Logs problems with the keys that encrypt stored secrets.
pub async fn report_secrets(db: &Db) -> store::Result<()> {
    let keys = db.secret_keys();
    if keys.current_id().is_none() {
        tracing::warn!(
            "secrets of webhooks and bridges are stored as they are; COUNTERPART_SECRET_KEY_FILE names a file with a key that encrypts them"
        );
    }
    for (key_id, secrets) in db.secrets_by_key().await? {
        if let Some(key_id) = key_id.filter(|id| !keys.knows(id)) {
            tracing::error!(
                key_id,
                secrets,
                "secrets are encrypted with a key that this server does not have; what needs them fails until the key is added to the others"
            );
        }
    }
    Ok(())
}
