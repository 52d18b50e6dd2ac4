//! Entry point of the program: sets up the memory allocator, parses the command line, starts the log, runs the command.

use std::process::ExitCode;

use counterpart::{
    cli::{Cli, complain},
    telemetry,
};

#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Settings of the memory allocator jemalloc. Freed memory returns to the system within a tenth of a second, so that an idle server does
/// not keep the memory that a large response needed. Each thread caches free blocks of up to 128 KB, so that the thread can use them again
/// at once: SQLite allocates a block of almost that size for each write (`SAVEPOINT_BYTES` in `store::sqlite::sqlite_ffi`). The environment
/// variable `MALLOC_CONF` overrides these settings.
#[cfg(not(any(target_env = "msvc", target_env = "musl")))]
const SETTINGS: &[u8] = b"narenas:2,background_thread:true,dirty_decay_ms:100,muzzy_decay_ms:0,tcache_max:131072\0";

/// In a build with musl, jemalloc has no background thread. Free memory then returns to the system during later allocations.
#[cfg(target_env = "musl")]
const SETTINGS: &[u8] = b"narenas:2,dirty_decay_ms:100,muzzy_decay_ms:0,tcache_max:131072\0";

#[cfg(not(target_env = "msvc"))]
// SAFETY: jemalloc looks for this symbol, and expects a thin pointer to a text that ends with NUL.
#[unsafe(export_name = "malloc_conf")]
static ALLOCATOR_SETTINGS: &[u8; SETTINGS.len()] = match SETTINGS.first_chunk() {
    Some(settings) => settings,
    None => panic!("the array has the length of `SETTINGS`"),
};

fn main() -> ExitCode {
    // Only the user who runs this process can access the files that it creates: database, write-ahead log, index, key file, exports,
    // temporary files.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let cli = Cli::read().unwrap_or_else(|error| error.exit());
    // `_log` writes the remaining log lines when it is dropped. That happens at the end of `main`, after the command.
    let _log = match telemetry::start_log(&cli.config.log, cli.config.log_format) {
        Ok(guard) => guard,
        Err(error) => {
            complain(&format!("--log `{}` is not a filter: {error}", cli.config.log));
            return ExitCode::from(2);
        }
    };
    match tokio::runtime::Builder::new_multi_thread().worker_threads(cli.threads()).enable_all().build() {
        Ok(runtime) => runtime.block_on(cli.run()),
        Err(error) => {
            complain(&format!("the runtime cannot be started: {error}"));
            ExitCode::FAILURE
        }
    }
}
