//! Configuration: the options that every command accepts, parsed once at start-up from the command line and the environment. Apart from the
//! `env` attributes in `cli`, and apart from tests, only this file reads the environment.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
};

use clap::{
    Args, ValueEnum,
    builder::{StringValueParser, TypedValueParser},
};

use percent_encoding::percent_decode_str;

use crate::domain::{settings_access::StoreLimits, ssrf_policy::Targets};

/// Parses the value of the environment variable of a switch (boolean option): a common spelling of true or false, in any case. An empty
/// value is false.
pub fn switch() -> impl TypedValueParser<Value = bool> {
    StringValueParser::new().try_map(|text| match text.trim().to_lowercase().as_str() {
        "true" | "yes" | "on" | "1" | "y" | "t" => Ok(true),
        "" | "false" | "no" | "off" | "0" | "n" | "f" => Ok(false),
        _ => Err("must be true or false"),
    })
}

/// Returns whether an environment variable turns its switch (boolean option) on.
#[expect(clippy::disallowed_methods, reason = "this file reads the environment")]
pub fn is_switched_on(variable: &str) -> bool {
    let value = std::env::var(variable).unwrap_or_default();
    switch().parse_ref(&clap::Command::new(""), None, value.as_ref()).unwrap_or(false)
}

/// Returns the API key for the command `mcp`, from the environment. There is no option for the key, since other users of the machine can
/// see the arguments of a process.
#[expect(clippy::disallowed_methods, reason = "this file reads the environment")]
pub fn api_key() -> Option<String> {
    std::env::var("COUNTERPART_API_KEY").ok().map(|key| key.trim().to_owned()).filter(|key| !key.is_empty())
}

/// Returns the token for the settings API of a running server, from the environment. There is no option for the token, since other users of
/// the machine can see the arguments of a process.
#[expect(clippy::disallowed_methods, reason = "this file reads the environment")]
pub fn settings_token() -> Option<String> {
    std::env::var("COUNTERPART_TOKEN").ok().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty())
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Plain lines for people, in colour if standard error is a terminal
    Text,
    /// One JSON object per line
    Json,
}

/// The options that every command accepts. The options of a single command are in `cli`.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of every command")]
pub struct Config {
    /// The database: `sqlite://PATH`, or `postgres://USER:PASSWORD@HOST/NAME`, where HOST may be several, separated by commas.
    #[arg(
        long,
        env = "DATABASE_URL",
        hide_env_values = true,
        default_value = "sqlite://counterpart.db",
        value_name = "URL",
        global = true
    )]
    pub database_url: String,

    /// Maximum number of database connections for reads. PostgreSQL gets as many again for writes (24 in total by default), and single ones
    /// for other work, such as an export. Each connection is opened when it is needed.
    #[arg(long, env = "COUNTERPART_CONNECTIONS", default_value = "12", value_name = "N", global = true)]
    pub connections: NonZeroU32,

    /// Number of worker threads [default: one per processor; with SQLite one more; with PostgreSQL on this machine half as many]
    #[arg(long, env = "COUNTERPART_THREADS", value_name = "N", global = true)]
    pub threads: Option<NonZeroUsize>,

    /// Maximum number of webhooks per store. Existing webhooks above the limit stay.
    #[arg(long, env = "COUNTERPART_MAX_WEBHOOKS", default_value = "100", value_name = "N", global = true)]
    pub max_webhooks: u32,

    /// Maximum number of API keys per store. Existing keys above the limit stay.
    #[arg(long, env = "COUNTERPART_MAX_KEYS", default_value = "100", value_name = "N", global = true)]
    pub max_keys: u32,

    /// Also accept webhooks and bridges at private addresses, and deliver to them; for development and tests
    #[arg(long, env = "COUNTERPART_ALLOW_PRIVATE_TARGETS", global = true, value_parser = switch())]
    pub allow_private_targets: bool,

    /// Filter of the log on standard error, such as `warn`, `info` (with one line per request) or `warn,counterpart=debug`.
    #[arg(long, env = "COUNTERPART_LOG", default_value = "warn", value_name = "FILTER", global = true)]
    pub log: String,

    /// The format of log lines
    #[arg(long, env = "COUNTERPART_LOG_FORMAT", default_value = "text", value_name = "FORMAT", global = true)]
    pub log_format: LogFormat,

    /// Log database statements that take this many milliseconds or more, as warnings, without their values
    #[arg(long, env = "COUNTERPART_SLOW_STATEMENT", default_value = "500", value_name = "MS", global = true)]
    pub slow_statement: u64,

    /// A file with the keys that encrypt the stored secrets of webhooks, bridges and the server: the first key encrypts, all keys decrypt
    /// [default: `FILE.key` beside the SQLite file, created if missing; on PostgreSQL none: secrets are stored unencrypted]
    #[arg(long, env = "COUNTERPART_SECRET_KEY_FILE", value_name = "FILE", conflicts_with = "secret_key", global = true)]
    pub secret_key_file: Option<PathBuf>,

    /// The encryption keys themselves, instead of a file: each 32 bytes in base64, separated by spaces
    #[arg(long, env = "COUNTERPART_SECRET_KEY", hide_env_values = true, value_name = "KEYS", global = true)]
    pub secret_key: Option<String>,

    /// The folder of the search index [default: `FILE.index` beside the SQLite file; on PostgreSQL `counterpart.index`]
    #[arg(long, env = "COUNTERPART_INDEX_DIR", value_name = "FOLDER", global = true)]
    pub index_dir: Option<PathBuf>,
}

impl Config {
    pub fn bounds(&self) -> StoreLimits {
        StoreLimits { webhooks: self.max_webhooks, keys: self.max_keys }
    }

    pub fn targets(&self) -> Targets {
        if self.allow_private_targets { Targets::Any } else { Targets::Public }
    }

    /// Returns the folder of the search index: the value of `--index-dir`, or its default.
    pub fn index_folder(&self) -> PathBuf {
        match (&self.index_dir, self.sqlite_file()) {
            (Some(folder), _) => folder.clone(),
            (None, Some(file)) => PathBuf::from(format!("{file}.index")),
            (None, None) => PathBuf::from("counterpart.index"),
        }
    }

    /// Returns the path of the key file that the program creates and manages itself. There is one only for a SQLite database, and only if
    /// no option names the keys.
    pub fn own_key_file(&self) -> Option<PathBuf> {
        let named = self.secret_key_file.is_some() || self.secret_key.is_some();
        self.sqlite_file().filter(|_| !named).map(|file| PathBuf::from(format!("{file}.key")))
    }

    /// Returns the paths of all files and folders that contain records or secrets. They need not exist.
    pub fn private_files(&self) -> Vec<PathBuf> {
        let database =
            self.sqlite_file().into_iter().flat_map(|file| ["", "-wal", "-shm"].map(|suffix| PathBuf::from(format!("{file}{suffix}"))));
        let keys = self.secret_key_file.clone().or_else(|| self.own_key_file());
        database.chain(keys).chain([self.index_folder()]).collect()
    }

    /// Returns the path of the SQLite file, percent-decoded in the same way as by sqlx, the database driver.
    pub fn sqlite_path(&self) -> Option<PathBuf> {
        self.sqlite_file().map(|file| PathBuf::from(&*percent_decode_str(file).decode_utf8_lossy()))
    }

    /// Returns the path of the SQLite file as the URL spells it; `None` for another database.
    pub fn sqlite_file(&self) -> Option<&str> {
        let file = self.database_url.strip_prefix("sqlite:")?;
        let file = file.strip_prefix("//").unwrap_or(file);
        Some(file.split_once('?').map_or(file, |(path, _)| path))
    }
}
