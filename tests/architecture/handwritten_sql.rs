//! Test that statements are built from entities, except in the listed files, each of which has a reason to contain statements that are
//! written by hand. Conditions that are appended to a statement are not checked.

use std::path::Path;

use super::{Line, lines, none};

/// The files and folders of `src/store` that contain SQL written by hand, each with the reason.
const BY_HAND: [(&str, &str); 21] = [
    ("sqlite", "settings and transactions of a connection"),
    ("postgres", "settings of a server and of a connection, locks"),
    ("distributed", "the catalogue and the functions of Citus"),
    ("backup_and_restore.rs", "checks a file that is not open as a database of the server"),
    ("database_health.rs", "PostgreSQL's catalogue"),
    ("migrate.rs", "the catalogues of both databases"),
    ("sandbox_database.rs", "an advisory lock"),
    ("import", "batches of rows as arrays, and temporary tables"),
    ("import.rs", "temporary tables, and row locks on whole tables"),
    ("statement/pages.rs", "statements to which callers append conditions"),
    ("statement/as_of.rs", "statements to which callers append conditions"),
    ("statement/key_lookup.rs", "an SQL function that keeps PostgreSQL from reading a whole store"),
    ("tickets", "conditions of filters, with hints for the query planners"),
    ("transaction/store_transaction.rs", "an advisory lock"),
    ("change_feed.rs", "an SQL function, and PostgreSQL's catalogue"),
    ("change_log/reader.rs", "functions of PostgreSQL's snapshots"),
    ("change_log/retention.rs", "functions of PostgreSQL's snapshots"),
    ("former_position_retention.rs", "functions of PostgreSQL's snapshots"),
    ("queues/backlog_metrics.rs", "the size of the database, and one statement with several counts"),
    ("searchable_records.rs", "the sum of two counts"),
    ("api_key_auth.rs", "the query that finds the caller of each request, which joins three tables"),
];

fn is_listed(line: &Line) -> bool {
    let path = line.path.strip_prefix("src/store").unwrap_or(&line.path);
    BY_HAND.iter().any(|(listed, _)| path.starts_with(Path::new(listed)))
}

fn is_sql(line: &Line) -> bool {
    ["SELECT ", "INSERT INTO ", "UPDATE ", "DELETE FROM ", "WITH "].iter().any(|verb| line.code.contains(&format!("\"{verb}")))
}

/// Returns the lines of the store without its tests.
fn store_without_tests() -> Vec<Line> {
    let of_tests = |line: &Line| {
        let name = line.path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with("tests.rs")
            || ["fixture.rs", "query_cost_for_tests.rs"].contains(&name.as_ref())
            || line.path.iter().any(|part| part == "tests")
    };
    let mut in_tests = None;
    let without_unit_tests = lines("src/store").into_iter().filter(|line| {
        // The module of unit tests is the last item of a file.
        if line.code.starts_with("mod tests {") {
            in_tests = Some(line.path.clone());
        }
        in_tests.as_ref() != Some(&line.path)
    });
    without_unit_tests.filter(|line| !of_tests(line)).collect()
}

#[test]
fn sql_is_written_by_hand_only_where_a_reason_is_given() {
    let sql: Vec<Line> = store_without_tests().into_iter().filter(is_sql).collect();
    none(
        "SQL written by hand; build it from entities, or list the file with a reason",
        sql.iter().filter(|line| !is_listed(line)).map(Line::at),
    );
    let unused = BY_HAND.iter().filter(|(listed, _)| {
        !sql.iter().any(|line| line.path.strip_prefix("src/store").is_ok_and(|path| path.starts_with(Path::new(listed))))
    });
    none("a listed file or folder has no SQL written by hand", unused.map(|(listed, _)| (*listed).to_owned()));
}
