//! Settings of the process, read once. Beside the `env` attributes of `cli`, the only place that reads the environment.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
};

use clap::{
    Args, ValueEnum,
    builder::{StringValueParser, TypedValueParser},
};

use percent_encoding::percent_decode_str;

use crate::domain::{settings::Bounds, targets::Targets};

/// What the variable of a switch may say: true or false as people write them; empty is false.
pub fn switch() -> impl TypedValueParser<Value = bool> {
    StringValueParser::new().try_map(|text| match text.trim().to_lowercase().as_str() {
        "true" | "yes" | "on" | "1" | "y" | "t" => Ok(true),
        "" | "false" | "no" | "off" | "0" | "n" | "f" => Ok(false),
        _ => Err("must be true or false"),
    })
}

/// Whether the environment turns a switch on.
#[expect(clippy::disallowed_methods, reason = "this file reads the environment")]
pub fn is_switched_on(variable: &str) -> bool {
    let value = std::env::var(variable).unwrap_or_default();
    switch().parse_ref(&clap::Command::new(""), None, value.as_ref()).unwrap_or(false)
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people; in colour on a terminal alone
    Text,
    /// One JSON object per line
    Json,
}

/// What every subcommand takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of every command")]
pub struct Config {
    /// The database: `sqlite://PATH` or `postgres://USER:PASSWORD@HOST/NAME`.
    #[arg(
        long,
        env = "DATABASE_URL",
        hide_env_values = true,
        default_value = "sqlite://counterpart.db",
        value_name = "URL",
        global = true
    )]
    pub database_url: String,

    /// Database connections for reads and, on PostgreSQL, as many again for writes and three beside: 27 of the server's unless set
    /// otherwise. Each is made when it is needed.
    #[arg(long, env = "COUNTERPART_CONNECTIONS", default_value = "12", value_name = "N", global = true)]
    pub connections: NonZeroU32,

    /// Threads that work at a time [default: one a processor; on SQLite one more; beside a PostgreSQL on this machine half as many]
    #[arg(long, env = "COUNTERPART_THREADS", value_name = "N", global = true)]
    pub threads: Option<NonZeroUsize>,

    /// The most webhooks that a store may have. Those that it has already stay.
    #[arg(long, env = "COUNTERPART_MAX_WEBHOOKS", default_value = "100", value_name = "N", global = true)]
    pub max_webhooks: u32,

    /// The most API keys that a store may have. Those that it has already stay.
    #[arg(long, env = "COUNTERPART_MAX_KEYS", default_value = "100", value_name = "N", global = true)]
    pub max_keys: u32,

    /// Take and deliver to webhooks and bridges at private addresses too; for development and tests
    #[arg(long, env = "COUNTERPART_ALLOW_PRIVATE_TARGETS", global = true, value_parser = switch())]
    pub allow_private_targets: bool,

    /// What is logged on standard error: `warn`, `info` (with a line for each request), `warn,counterpart=debug`.
    #[arg(long, env = "COUNTERPART_LOG", default_value = "warn", value_name = "FILTER", global = true)]
    pub log: String,

    /// How log lines are written
    #[arg(long, env = "COUNTERPART_LOG_FORMAT", default_value = "text", value_name = "FORMAT", global = true)]
    pub log_format: LogFormat,

    /// Log database statements that take this many milliseconds or more, as warnings, without their values
    #[arg(long, env = "COUNTERPART_SLOW_STATEMENT", default_value = "500", value_name = "MS", global = true)]
    pub slow_statement: u64,

    /// A file with the keys that secrets of webhooks, bridges and the server are encrypted with: the first one encrypts, all decrypt
    /// [default: beside the SQLite file, as `FILE.key`, made where it is missing; on PostgreSQL none, secrets are stored as they are]
    #[arg(long, env = "COUNTERPART_SECRET_KEY_FILE", value_name = "FILE", conflicts_with = "secret_key", global = true)]
    pub secret_key_file: Option<PathBuf>,

    /// The same keys themselves, each 32 bytes in base64, with spaces between them
    #[arg(long, env = "COUNTERPART_SECRET_KEY", hide_env_values = true, value_name = "KEYS", global = true)]
    pub secret_key: Option<String>,

    /// Where the search index is kept [default: beside the SQLite file, as `FILE.index`; on PostgreSQL `counterpart.index`]
    #[arg(long, env = "COUNTERPART_INDEX_DIR", value_name = "FOLDER", global = true)]
    pub index_dir: Option<PathBuf>,
}

impl Config {
    pub fn bounds(&self) -> Bounds {
        Bounds { webhooks: self.max_webhooks, keys: self.max_keys }
    }

    pub fn targets(&self) -> Targets {
        if self.allow_private_targets { Targets::Any } else { Targets::Public }
    }

    /// The folder of the search index, chosen or not.
    pub fn index_folder(&self) -> PathBuf {
        match (&self.index_dir, self.sqlite_file()) {
            (Some(folder), _) => folder.clone(),
            (None, Some(file)) => PathBuf::from(format!("{file}.index")),
            (None, None) => PathBuf::from("counterpart.index"),
        }
    }

    /// The key file that the program makes by itself: on SQLite, where no keys are named.
    pub fn own_key_file(&self) -> Option<PathBuf> {
        let named = self.secret_key_file.is_some() || self.secret_key.is_some();
        self.sqlite_file().filter(|_| !named).map(|file| PathBuf::from(format!("{file}.key")))
    }

    /// Files and folders with records or secrets in them, whether or not they are there.
    pub fn private_files(&self) -> Vec<PathBuf> {
        let database =
            self.sqlite_file().into_iter().flat_map(|file| ["", "-wal", "-shm"].map(|suffix| PathBuf::from(format!("{file}{suffix}"))));
        let keys = self.secret_key_file.clone().or_else(|| self.own_key_file());
        database.chain(keys).chain([self.index_folder()]).collect()
    }

    /// The path of the SQLite file, as the driver reads the URL.
    pub fn sqlite_path(&self) -> Option<PathBuf> {
        self.sqlite_file().map(|file| PathBuf::from(&*percent_decode_str(file).decode_utf8_lossy()))
    }

    /// The SQLite file, if the database is one.
    pub fn sqlite_file(&self) -> Option<&str> {
        let file = self.database_url.strip_prefix("sqlite:")?;
        let file = file.strip_prefix("//").unwrap_or(file);
        Some(file.split_once('?').map_or(file, |(path, _)| path))
    }
}
