//! Architecture tests: read the source files, and check which top-level modules (called rooms here) import which others, and where names
//! such as `sqlx::` or `env::var` may occur.

mod handwritten_sql;
mod module_layers;
mod names_in_comments;
mod plain_words;
mod unique_type_names;

use std::path::{Path, PathBuf};

/// The top-level modules, each with the other top-level modules that it may import from.
const MAY_IMPORT: [(&str, &[&str]); 14] = [
    ("domain", &[]),
    ("config", &["domain"]),
    ("telemetry", &["config", "domain"]),
    ("store", &["domain"]),
    ("supervisor", &["telemetry"]),
    ("search", &["domain", "store", "supervisor"]),
    ("service", &["domain", "store", "search"]),
    ("delivery", &["domain", "store", "service", "supervisor"]),
    ("readiness", &["service", "store", "supervisor"]),
    ("revision", &["domain", "service", "http"]),
    ("http", &["domain", "service", "revision", "telemetry", "config"]),
    ("assistant_tools", &["domain", "service", "http", "revision"]),
    ("cli", &["domain", "service", "store", "search", "delivery", "http", "revision", "config", "telemetry", "assistant_tools", "app"]),
    (
        "app",
        &[
            "domain",
            "service",
            "store",
            "search",
            "delivery",
            "http",
            "revision",
            "config",
            "telemetry",
            "supervisor",
            "readiness",
            "assistant_tools",
        ],
    ),
];

/// A line of a source file. `room` is the top-level module that the file belongs to, `code` the line without comments, and `comment` the
/// rest of the line.
struct Line {
    path: PathBuf,
    number: usize,
    room: String,
    code: String,
    comment: String,
}

impl Line {
    fn at(&self) -> String {
        format!("{}:{}: {}", self.path.display(), self.number, self.code.trim())
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns every line of the Rust files below a folder of the project.
fn lines(folder: &str) -> Vec<Line> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    files(&root.join(folder), &mut paths);
    paths.sort();
    let mut lines = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a source can be read");
        let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
        let room = path.strip_prefix(folder).ok().and_then(|path| path.iter().next()).map(|name| name.to_string_lossy().replace(".rs", ""));
        for (number, line) in (1..).zip(text.lines()) {
            let (code, comment) = line.split_once("//").unwrap_or((line, ""));
            let (code, comment) = (code.to_owned(), comment.to_owned());
            lines.push(Line { path: path.clone(), number, room: room.clone().unwrap_or_default(), code, comment });
        }
    }
    assert!(!lines.is_empty(), "no sources in {folder}");
    lines
}

/// Returns the top-level modules that the line `lines[at]` names after `crate::`.
fn rooms_named(lines: &[Line], at: usize) -> Vec<String> {
    let code = &lines[at].code;
    let mut named = Vec::new();
    for start in code.match_indices("crate::").map(|(start, found)| start + found.len()) {
        let rest = &code[start..];
        if rest.starts_with('{') {
            named.extend(group(lines, at, start));
        } else {
            named.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    named.retain(|name: &String| MAY_IMPORT.iter().any(|(room, _)| room == name));
    named
}

/// Returns the first name of each path inside the braces of `crate::{…}`. The braces begin in `lines[at]` at column `start`, and may span
/// several lines.
fn group(lines: &[Line], at: usize, start: usize) -> Vec<String> {
    let file = &lines[at].path;
    let mut text = lines[at].code[start..].to_owned();
    text.extend(lines[at + 1..].iter().take_while(|line| line.path == *file).take(60).map(|line| format!("{}\n", line.code)));
    let (mut depth, mut names, mut name) = (0, Vec::new(), String::new());
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => names.push(std::mem::take(&mut name)),
            _ if depth == 1 => name.push(c),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names.push(name);
    names.iter().filter_map(|name| name.trim().split([':', ' ']).next()).map(str::to_owned).collect()
}

#[track_caller]
fn none(what: &str, breaches: impl Iterator<Item = String>) {
    let breaches: Vec<_> = breaches.collect();
    assert!(breaches.is_empty(), "{what}:\n  {}", breaches.join("\n  "));
}

#[test]
fn a_top_level_module_imports_only_from_the_modules_below_it() {
    let lines = lines("src");
    let mut breaches = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(room, _)| *room == line.room) else { continue };
        for named in rooms_named(&lines, at) {
            if named != line.room && !allowed.contains(&named.as_str()) {
                breaches.push(format!("{} imports {named}: {}", line.room, line.at()));
            }
        }
    }
    none("rooms import from above or beside", breaches.into_iter());
}

#[test]
fn every_source_file_belongs_to_a_listed_top_level_module() {
    let known = |room: &str| ["main", "lib"].contains(&room) || MAY_IMPORT.iter().any(|(name, _)| *name == room);
    none("unknown rooms", lines("src").iter().filter(|line| line.number == 1 && !known(&line.room)).map(Line::at));
}

#[test]
fn only_the_store_module_uses_database_libraries() {
    let lines = lines("src");
    let names =
        ["sea_orm", "sqlx::", "sea_query", "libsqlite3_sys", "rusqlite", "use tokio_postgres", " tokio_postgres::", "&tokio_postgres::"];
    none("the database outside of the store", lines.iter().filter(|line| line.room != "store" && contains(line, &names)).map(Line::at));
}

#[test]
fn the_domain_module_uses_no_network_files_or_environment() {
    // The domain may use the IP address types of `std::net`, which are plain data, but not its sockets and name look-ups.
    let names =
        ["poem", "tokio", "std::env", "std::fs", "TcpStream", "TcpListener", "UdpSocket", "ToSocketAddrs", "SystemTime::now", "reqwest"];
    none("the domain reaches outside", lines("src").iter().filter(|line| line.room == "domain" && contains(line, &names)).map(Line::at));
}

#[test]
fn the_openapi_diff_crate_uses_no_server_code_network_files_or_environment() {
    let names = ["counterpart", "poem", "tokio", "clap", "std::env", "std::fs", "std::net", "SystemTime::now", "reqwest"];
    none("the comparison reaches outside", lines("openapi-diff/src").iter().filter(|line| contains(line, &names)).map(Line::at));
}

/// The crates poem and poem-openapi depend on an unmaintained YAML crate. No other crate in Cargo.lock may depend on it.
#[test]
fn only_the_poem_crates_depend_on_the_unmaintained_yaml_crate() {
    let lock = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock")).unwrap();
    let dependents =
        lock.split("[[package]]\n").filter(|package| package.contains("\n \"serde_yaml\"") || package.contains("\n \"serde_yml\""));
    let names: Vec<_> = dependents.filter_map(|package| package.lines().next()).collect();
    assert_eq!(names, [r#"name = "poem""#, r#"name = "poem-openapi""#]);
}

#[test]
fn services_and_the_store_use_neither_http_nor_wire_types() {
    let names = ["poem", "revision::", "wire::"];
    let inner = ["service", "store", "search", "delivery"];
    none(
        "HTTP beneath the edge",
        lines("src").iter().filter(|line| inner.contains(&line.room.as_str()) && contains(line, &names)).map(Line::at),
    );
}

#[test]
fn the_http_module_names_no_particular_api_revision() {
    let names = ["revision::a::", "revision::b::", "revision::{a", "revision::{b", "revision::a;", "revision::b;"];
    none("a revision by name", lines("src").iter().filter(|line| line.room == "http" && contains(line, &names)).map(Line::at));
}

#[test]
fn the_revision_is_chosen_in_one_file() {
    let chosen = |line: &&Line| {
        (line.code.contains("cfg(feature") || line.code.contains("cfg!(feature") || line.code.contains("feature ="))
            && line.path != Path::new("src/revision/mod.rs")
    };
    let conditions = lines("src");
    none("a choice of revision elsewhere", conditions.iter().filter(chosen).map(Line::at));
    let migrations = lines("migrations/src");
    none("a choice of revision in the schema", migrations.iter().filter(chosen).map(Line::at));
    let tests = lines("tests/api");
    let chosen: Vec<_> = tests.iter().filter(|line| line.code.contains(concat!("(feature", " = "))).map(Line::at).collect();
    assert_eq!(chosen.len(), 1, "one line of the tests chooses the revision:\n  {}", chosen.join("\n  "));
}

#[test]
fn the_environment_is_read_in_one_file() {
    let names = ["env::var", "env::vars", "env::set_var"];
    // The test fixture is exempt, since it reads settings of the test suite, not of the program.
    let free = |line: &Line| line.room == "config" || line.path == Path::new("src/store/fixture.rs");
    none("the environment", lines("src").iter().filter(|line| !free(line) && contains(line, &names)).map(Line::at));
}

#[test]
fn time_and_ids_come_from_one_file() {
    let names = ["Utc::now", "SystemTime::now", "now_v7", "Uuid::new_v4"];
    let clock = Path::new("src/domain/clock.rs");
    none("time or ids created elsewhere", lines("src").iter().filter(|line| line.path != clock && contains(line, &names)).map(Line::at));
}

#[test]
fn entities_are_never_serialised() {
    let entity = Path::new("src/store/entity");
    none(
        "an entity with a wire form",
        lines("src").iter().filter(|line| line.path.starts_with(entity) && contains(line, &["Serialize", "serde::"])).map(Line::at),
    );
}

#[test]
fn modules_that_only_declare_modules_hold_no_logic() {
    let lines = lines("src");
    // A `mod.rs` may declare modules and types, but must not decide anything, so no line may begin with `if`. `service/mod.rs` is exempt,
    // since it defines the type that the other files of `service` extend. `revision/mod.rs` is exempt, since it selects the revision that
    // the build serves.
    let gathers = |line: &&Line| line.path.ends_with("mod.rs") && !line.path.ends_with("service/mod.rs") && line.room != "revision";
    none("logic in a mod.rs", lines.iter().filter(gathers).filter(|line| line.code.trim_start().starts_with("if ")).map(Line::at));
}

#[test]
fn lint_exemptions_use_expect_instead_of_allow() {
    let lines = lines("src");
    none("a bare #[allow]", lines.iter().filter(|line| contains(line, &["#[allow(", "#![allow("])).map(Line::at));
}

fn contains(line: &Line, names: &[&str]) -> bool {
    names.iter().any(|name| line.code.contains(name))
}
