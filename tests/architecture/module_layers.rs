//! Tests of the layers inside the two top-level modules with many files, `store` and `http`: a module imports only from its own layer and
//! from lower layers, and there are no circular imports.

use std::path::{Path, PathBuf};

use super::{files, none};

/// A top-level module of the sources whose modules are divided into layers.
struct Room {
    name: &'static str,
    /// The layers, lowest first. Each layer is a list of module names. Modules that no layer lists are above all layers.
    layers: &'static [&'static [&'static str]],
    /// The names that the `mod.rs` of the top-level module re-exports, each with the module that defines it.
    passed_on: &'static [(&'static str, &'static str)],
}

/// The layers of the module `store`, lowest first: basics, database drivers, modules that serve all record types (such as `transaction`),
/// and SQL statements. The modules of record types (tickets, messages, …) are in no list, so they are above all layers.
const STORE: Room = Room {
    name: "store",
    layers: &[
        &[
            "error",
            "mutex",
            "wait_limit",
            "last_failure",
            "parameterised_sql",
            "row_decoding",
            "stored_values",
            "entity",
            "sql_from_entities",
            "slow_statements",
        ],
        &["sqlite", "postgres"],
        &[
            "database_address",
            "db",
            "read_executor",
            "migrate",
            "transaction",
            "database_health",
            "change_log::own_change_queue",
            "change_log::searchable_message",
            "tickets::broad_condition_cache",
            "statement::key_lookup_types",
            "settings::encryption_keys",
        ],
        &["statement"],
    ],
    passed_on: &[("Db", "db"), ("OnStatement", "db"), ("Error", "error"), ("Result", "error"), ("Write", "transaction::store_transaction")],
};

const HTTP: Room = Room {
    name: "http",
    layers: &[
        &["machinery"],
        &["schemas"],
        &["openapi::openapi_tags"],
        &["operations"],
        &["openapi"],
        &["events"],
        &["settings"],
        &["pages"],
    ],
    passed_on: &[],
};

/// Returns the modules inside a top-level module, each with the modules that it imports from the same top-level module. Test modules are
/// left out.
fn imports_within(room: &Room) -> Vec<(String, Vec<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room.name);
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let module = |path: &Path| {
        let path = path.strip_prefix(&root).unwrap_or(path).with_extension("");
        path.iter().map(|part| part.to_string_lossy()).filter(|part| part != "mod").collect::<Vec<_>>().join("::")
    };
    let is_test = |path: &PathBuf| {
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        name == "tests" || name.ends_with("_tests") || ["fixture", "visits"].contains(&name.as_str())
    };
    paths.retain(|path| !is_test(path));
    let modules: Vec<String> = paths.iter().map(|path| module(path)).collect();
    let imports = paths.iter().map(|path| {
        let text = std::fs::read_to_string(path).expect("a source can be read");
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let code: String = code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
        let own = module(path);
        let mut found: Vec<String> = Vec::new();
        for named in paths_within(room, &code, &own) {
            let first = named.split("::").next().unwrap_or_default();
            let named = room.passed_on.iter().find(|(name, _)| *name == first).map_or(named.clone(), |(_, from)| (*from).to_owned());
            // The path may end with a type or a function. The imported module is the longest module name with which the path begins.
            let within = modules.iter().filter(|module| named == **module || named.starts_with(&format!("{module}::")));
            found.extend(within.max_by_key(|module| module.len()).filter(|module| **module != own && !module.is_empty()).cloned());
        }
        found.sort();
        found.dedup();
        (own, found)
    });
    imports.collect()
}

/// Returns the paths in `code` to something inside the top-level module `room`: those in `use` declarations and those elsewhere. `code` is
/// the source of the module `own`, which is inside `room`. The returned paths begin after the name of `room`.
fn paths_within(room: &Room, code: &str, own: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let from_root = format!("crate::{}::", room.name);
    for statement in code.split("use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        expand(statement.trim(), "", &mut paths);
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for start in [from_root.as_str(), "super::"].iter().flat_map(|prefix| code.match_indices(prefix)).map(|(at, _)| at) {
        paths.push(code[start..].chars().take_while(|c| is_name(*c)).collect());
    }
    let absolute = |path: String| {
        let mut base: Vec<&str> = if own.is_empty() { vec![] } else { own.split("::").collect() };
        let mut rest = path.as_str();
        if let Some(below) = rest.strip_prefix(&from_root) {
            return Some(below.to_owned());
        }
        if !rest.starts_with("super::") && !rest.starts_with("self::") {
            return None;
        }
        while let Some(above) = rest.strip_prefix("super::") {
            base.pop()?;
            rest = above;
        }
        base.push(rest.trim_start_matches("self::"));
        Some(base.join("::"))
    };
    paths.into_iter().filter_map(absolute).collect()
}

/// Adds the single paths of a `use` tree such as `a::{b, c::d}` to `paths`.
fn expand(tree: &str, prefix: &str, paths: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        paths.push(if path == "self" { prefix.trim_end_matches("::").to_owned() } else { format!("{prefix}{path}") });
        return;
    };
    let prefix = format!("{prefix}{}", head.trim());
    let (mut depth, mut part) = (0, String::new());
    for c in rest.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => expand(std::mem::take(&mut part).trim(), &prefix, paths),
            _ => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                part.push(c);
            }
        }
    }
    if !part.trim().is_empty() {
        expand(part.trim(), &prefix, paths);
    }
}

/// Returns the violations of the layers: each import from a layer above that of the importing module.
fn layer_violations(room: &Room) -> Vec<String> {
    let named: Vec<(usize, &str)> =
        (0..).zip(room.layers).flat_map(|(rank, modules)| modules.iter().map(move |module| (rank, *module))).collect();
    let layer = |module: &str| {
        let within = |named: &str| module == named || module.starts_with(&format!("{named}::"));
        let longest = named.iter().filter(|(_, named)| within(named)).max_by_key(|(_, named)| named.len());
        longest.map_or(room.layers.len(), |(rank, _)| *rank)
    };
    let imports = imports_within(room);
    let exists = |named: &str| imports.iter().any(|(module, _)| module == named || module.starts_with(&format!("{named}::")));
    let missing: Vec<&str> = named.iter().map(|(_, named)| *named).filter(|named| !exists(named)).collect();
    assert!(missing.is_empty(), "the layers of {} name modules that do not exist: {missing:?}", room.name);
    let inner = imports.iter().filter(|(module, _)| !module.is_empty());
    let pairs = inner.flat_map(|(module, imported)| imported.iter().map(move |other| (module, other)));
    pairs.filter(|(module, other)| layer(module) < layer(other)).map(|(module, other)| format!("{module} imports {other}")).collect()
}

/// Returns the modules that import themselves through other modules.
fn import_cycles(room: &Room) -> Vec<String> {
    let imports = imports_within(room);
    assert!(imports.iter().map(|(_, imported)| imported.len()).sum::<usize>() > 50, "the imports of {} were not read", room.name);
    let imported = |module: &str| imports.iter().find(|(name, _)| name == module).map_or(&[][..], |(_, imported)| imported);
    let mut circles = Vec::new();
    for (module, _) in imports.iter().filter(|(module, _)| !module.is_empty()) {
        let (mut reached, mut next): (Vec<&str>, Vec<&str>) = (Vec::new(), vec![module]);
        while let Some(name) = next.pop() {
            for other in imported(name).iter().filter(|other| !other.is_empty()) {
                if !reached.contains(&other.as_str()) {
                    reached.push(other);
                    next.push(other);
                }
            }
        }
        if reached.contains(&module.as_str()) {
            circles.push(module.clone());
        }
    }
    circles
}

#[test]
fn store_modules_import_only_from_their_own_or_lower_layers() {
    none("a module of the store imports from a layer above its own", layer_violations(&STORE).into_iter());
}

#[test]
fn http_modules_import_only_from_their_own_or_lower_layers() {
    none("a module of http imports from a layer above its own", layer_violations(&HTTP).into_iter());
}

#[test]
fn store_and_http_modules_have_no_circular_imports() {
    none("modules of the store import each other in a circle", import_cycles(&STORE).into_iter());
    none("modules of http import each other in a circle", import_cycles(&HTTP).into_iter());
}
