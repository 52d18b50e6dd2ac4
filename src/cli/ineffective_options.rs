//! Check for options without effect: an option that a command would silently ignore is an error.

use clap::{ArgAction, ArgMatches, Command, error::ErrorKind, parser::ValueSource};

use crate::config::is_switched_on;

/// Options that every command accepts, although some commands do not use them. Each entry is a command, the ids of the options without
/// effect on it, and the reason that an error message gives.
const UNUSED: [(&str, &[&str], &str); 8] = [
    ("demo", &["database_url", "connections", "allow_private_targets", "secret_key_file", "secret_key", "index_dir"], DEMO),
    ("openapi", DATABASE, NO_DATABASE),
    ("contract", DATABASE, NO_DATABASE),
    ("health", DATABASE, NO_DATABASE),
    ("clock", DATABASE, NO_DATABASE),
    ("copy", DATABASE, COPY),
    ("completions", DATABASE, NO_DATABASE),
    ("man", DATABASE, NO_DATABASE),
];
const DATABASE: &[&str] = &[
    "database_url",
    "connections",
    "max_webhooks",
    "max_keys",
    "allow_private_targets",
    "slow_statement",
    "secret_key_file",
    "secret_key",
    "index_dir",
];
const DEMO: &str = "the demo creates a separate database, which `--keep FILE` stores in a file";
const COPY: &str = "the copy is read from a server (`--url`) and written to `--to`";
const NO_DATABASE: &str = "this command uses no database";

/// Refuses an option on the command line that has no effect on the command. Also refuses a switch (boolean option) of another command that
/// an environment variable turns on. Other variables without effect are ignored, since several commands often share an environment.
pub fn refuse(cli: &Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let fail = |reason: String| Err(cli.clone().error(ErrorKind::ArgumentConflict, reason));
    for (command, unused, reason) in UNUSED.into_iter().filter(|(command, ..)| matches.subcommand_matches(command).is_some()) {
        let given = |id: &&&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        if let Some(id) = unused.iter().find(given) {
            return fail(format!("`--{}` does nothing with `{command}`: {reason}", id.replace('_', "-")));
        }
    }
    // The switches (boolean options) of the subcommand that was called, and of the commands that contain it.
    let (mut used, mut names) = (switches(cli), Vec::new());
    let (mut command, mut inner) = (cli, matches);
    while let Some((name, next)) = inner.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        used.extend(switches(found));
        names.push(name);
        (command, inner) = (found, next);
    }
    // A health check runs in the environment of the server that it checks, so the switches of `serve` may be on.
    if names == ["health"] {
        return Ok(());
    }
    match every_switch(cli).into_iter().find(|variable| !used.contains(variable) && is_switched_on(variable)) {
        Some(variable) => fail(format!("the variable {variable} does nothing with `{}`; unset it", names.join(" "))),
        None => Ok(()),
    }
}

/// Returns the environment variables of a command's switches (boolean options).
fn switches(command: &Command) -> Vec<String> {
    let switches = command.get_arguments().filter(|argument| matches!(argument.get_action(), ArgAction::SetTrue));
    switches.filter_map(|switch| Some(switch.get_env()?.to_str()?.to_owned())).collect()
}

fn every_switch(command: &Command) -> Vec<String> {
    let mut all = switches(command);
    command.get_subcommands().for_each(|inner| all.extend(every_switch(inner)));
    all
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn options_without_a_use_are_refused() {
        let refused = |arguments: &[&str]| {
            let matches = Cli::command().try_get_matches_from([&["counterpart"], arguments].concat()).unwrap();
            refuse(&Cli::command(), &matches).err().map(|error| error.to_string())
        };
        for (arguments, reason) in [
            (&["demo", "--database-url", "sqlite://x.db"][..], "`--database-url` does nothing with `demo`"),
            (&["--database-url", "sqlite://x.db", "demo"], "`--database-url` does nothing with `demo`"),
            (&["openapi", "--max-keys", "5"], "`--max-keys` does nothing with `openapi`: this command uses no database"),
            (&["contract", "diff", "a", "b", "--index-dir", "x"], "`--index-dir` does nothing with `contract`"),
        ] {
            assert!(refused(arguments).is_some_and(|said| said.contains(reason)), "{arguments:?}");
        }
        for arguments in [&["serve", "--database-url", "sqlite://x.db"][..], &["demo", "--threads", "2"], &["openapi", "--log", "info"]] {
            assert_eq!(refused(arguments), None, "{arguments:?}");
        }
    }

    #[test]
    fn the_table_of_unused_options_names_existing_commands_and_options() {
        let cli = Cli::command();
        for (command, ids, _) in UNUSED {
            assert!(cli.find_subcommand(command).is_some(), "{command}");
            for id in ids {
                assert!(cli.get_arguments().any(|argument| argument.get_id() == id), "{id}");
            }
        }
        assert!(every_switch(&cli).contains(&"COUNTERPART_DRY_RUN".to_owned()));
    }
}
