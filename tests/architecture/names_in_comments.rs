//! Test that the modules, items and migrations that comments name exist, so that a renamed file leaves no stale name behind.

use std::collections::{HashMap, HashSet};

use super::{lines, none};

/// For each module name, the words in the code of all modules with this name. The code of a module `a` is the file `a.rs`, or the file
/// `mod.rs`, `lib.rs` or `main.rs` in a folder `a`.
struct WordsOfModules(HashMap<String, HashSet<String>>);

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

impl WordsOfModules {
    /// Checks a path such as `store::tickets::counters`: each name must occur in the code of the module that is named directly before it.
    /// Returns the first name that does not. The check stops at a name that is not the name of a module file, such as a type or a crate.
    fn first_unknown<'a>(&self, path: &'a str) -> Option<&'a str> {
        let names: Vec<&str> = path.split("::").filter(|name| !["crate", "super", "self"].contains(name)).collect();
        let known = names.windows(2).map_while(|pair| Some((self.0.get(pair[0])?, pair[1])));
        known.into_iter().find(|(words, name)| !words.contains(*name)).map(|(_, name)| name)
    }
}

/// Returns what a comment quotes in backticks.
fn quoted(comment: &str) -> impl Iterator<Item = &str> {
    comment.split('`').skip(1).step_by(2)
}

fn is_migration(name: &str) -> bool {
    name.strip_prefix('m')
        .and_then(|name| name.split_once('_'))
        .is_some_and(|(number, _)| number.len() == 4 && number.parse::<u16>().is_ok())
}

#[test]
fn names_of_modules_in_comments_exist() {
    let lines: Vec<_> = ["src", "tests", "openapi-diff/src", "migrations/src"].into_iter().flat_map(lines).collect();
    let mut modules = WordsOfModules(HashMap::new());
    for line in &lines {
        let stem = |path: &std::path::Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = stem(&line.path).filter(|name| !["mod", "lib", "main"].contains(&name.as_str()));
        let name = name.or_else(|| stem(line.path.parent()?)).unwrap_or_default();
        modules.0.entry(name).or_default().extend(words(&line.code).map(str::to_owned));
    }
    let breaches = lines.iter().flat_map(|line| {
        let unknown = |name: &&str| {
            let is_path = name.contains("::") && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
            (is_path && modules.first_unknown(name).is_some()) || (is_migration(name) && !modules.0.contains_key(*name))
        };
        quoted(&line.comment).filter(unknown).map(|name| format!("{}:{}: `{name}`", line.path.display(), line.number))
    });
    none("a comment names a module or an item that does not exist", breaches);
}
