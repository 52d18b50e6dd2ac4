//! The inner order of the store: driver, database, statement, noun; and no circle of imports.

use std::path::{Path, PathBuf};

use super::{files, none};

/// The layers of the store, the lowest first, by module. A module imports from its own layer and from those below; what no layer names is a
/// noun, and stands above all of them.
const STORE_LAYERS: [(&str, &[&str]); 4] = [
    ("basics", &["error", "lock", "limits", "last_failure", "sql", "rows", "entity", "slow_statements"]),
    ("drivers", &["sqlite", "postgres"]),
    (
        "database",
        // What the database keeps for nouns knows no noun's file.
        &[
            "db",
            "executor",
            "migrate",
            "transaction",
            "write_health",
            "change_log::own_changes",
            "change_log::message_texts",
            "tickets::broad_conditions",
            "statement::sought",
            "settings::secret_keys",
        ],
    ),
    ("statements", &["statement"]),
];

/// Names that `store/mod.rs` passes on, and the module that each comes from.
const PASSED_ON: [(&str, &str); 5] =
    [("Db", "db"), ("OnStatement", "db"), ("Error", "error"), ("Result", "error"), ("Write", "transaction::write")];

/// The modules of the store with the modules of the store that each imports, tests left out.
fn store_imports() -> Vec<(String, Vec<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
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
        for named in store_paths(&code, &own) {
            let first = named.split("::").next().unwrap_or_default();
            let named = PASSED_ON.iter().find(|(name, _)| *name == first).map_or(named.clone(), |(_, from)| (*from).to_owned());
            // The longest module that the path begins with.
            let within = modules.iter().filter(|module| named == **module || named.starts_with(&format!("{module}::")));
            found.extend(within.max_by_key(|module| module.len()).filter(|module| **module != own && !module.is_empty()).cloned());
        }
        found.sort();
        found.dedup();
        (own, found)
    });
    imports.collect()
}

/// Every path below the store that code names, in `use` trees and elsewhere.
fn store_paths(code: &str, own: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for statement in code.split("use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        expand(statement.trim(), "", &mut paths);
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for start in ["crate::store::", "super::"].iter().flat_map(|prefix| code.match_indices(prefix)).map(|(at, _)| at) {
        paths.push(code[start..].chars().take_while(|c| is_name(*c)).collect());
    }
    let absolute = |path: String| {
        let mut base: Vec<&str> = if own.is_empty() { vec![] } else { own.split("::").collect() };
        let mut rest = path.as_str();
        if let Some(below) = rest.strip_prefix("crate::store::") {
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

/// The paths of a `use` tree.
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

#[test]
fn the_store_imports_one_way_from_nouns_to_drivers() {
    let named: Vec<(usize, &str)> =
        (0..).zip(STORE_LAYERS).flat_map(|(rank, (_, modules))| modules.iter().map(move |module| (rank, *module))).collect();
    let layer = |module: &str| {
        let within = |named: &str| module == named || module.starts_with(&format!("{named}::"));
        let longest = named.iter().filter(|(_, named)| within(named)).max_by_key(|(_, named)| named.len());
        longest.map_or(STORE_LAYERS.len(), |(rank, _)| *rank)
    };
    let imports = store_imports();
    assert!(imports.iter().any(|(_, imported)| imported.iter().any(|module| module == "db")), "no imports were read");
    let upwards = imports.iter().flat_map(|(module, imported)| imported.iter().map(move |other| (module, other)));
    let upwards = upwards.filter(|(module, other)| !module.is_empty() && layer(module) < layer(other));
    none("a module of the store imports from a layer above its own", upwards.map(|(module, other)| format!("{module} imports {other}")));
}

#[test]
fn no_module_of_the_store_imports_itself_through_others() {
    let imports = store_imports();
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
    none("modules of the store import each other in a circle", circles.into_iter());
}
