//! Starts the process: reads the command line, sets the log up, runs the command.

use std::process::ExitCode;

use counterpart::{
    cli::{Cli, complain},
    telemetry,
};

#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What jemalloc reads at its start. Free memory goes back to the system within a tenth of a second, since a page of long texts takes some
/// 200 MB for a moment, and a server is idle for most of the day. Each thread caches free pieces of up to 128 KB: each write to SQLite takes
/// one of that size for what its savepoint would put back (`store::sqlite::group_commit`). `MALLOC_CONF` in the environment wins.
#[cfg(not(any(target_env = "msvc", target_env = "musl")))]
const SETTINGS: &[u8] = b"narenas:2,background_thread:true,dirty_decay_ms:100,muzzy_decay_ms:0,tcache_max:131072\0";

/// The same for musl, where jemalloc has no thread of its own: free memory goes back with the next requests.
#[cfg(target_env = "musl")]
const SETTINGS: &[u8] = b"narenas:2,dirty_decay_ms:100,muzzy_decay_ms:0,tcache_max:131072\0";

#[cfg(not(target_env = "msvc"))]
// SAFETY: the name that jemalloc looks for, and a text that ends with NUL, behind a thin pointer as there.
#[unsafe(export_name = "malloc_conf")]
static ALLOCATOR_SETTINGS: &[u8; SETTINGS.len()] = match SETTINGS.first_chunk() {
    Some(settings) => settings,
    None => panic!("it is as long as itself"),
};

fn main() -> ExitCode {
    // Whatever this process makes is for its owner alone: database, log, index, key file, exports, temporary files.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let cli = Cli::read().unwrap_or_else(|error| error.exit());
    // Dropped last, so that every line is written.
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
