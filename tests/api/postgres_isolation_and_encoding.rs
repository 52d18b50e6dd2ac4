//! Tests of PostgreSQL databases with unusual settings: writes succeed under every default isolation level, and encodings other than UTF-8
//! are refused.

use serde_json::json;

use crate::{
    fixture::channels,
    harness::{ALL_SCOPES, Database, SIMULATED, Server},
    writes::concurrent_writes::race,
};

/// The number of callers that write to one conversation at the same time.
const CALLERS: usize = 24;

#[test]
fn writes_succeed_at_every_default_isolation_level_of_the_database() {
    for level in ["repeatable read", "serializable"] {
        let database = Database::with(&[("shop", channels())]);
        let Some((_, name)) = database.postgres.clone() else { return };
        database.sql(&format!("ALTER DATABASE {name} SET default_transaction_isolation = '{level}'"));
        let server = Server::start_with(database, SIMULATED);
        let index = server.database.folder().join("second").display().to_string();
        let second = server.beside(&[SIMULATED, &[("COUNTERPART_INDEX_DIR", &index)]].concat());
        let api = server.api("shop", &ALL_SCOPES);
        let beside = crate::client::Api { address: second.address.clone(), ..api.clone() };
        let caller = |n: usize| if n.is_multiple_of(2) { &api } else { &beside };

        let text = |n: usize| json!({"conversationId": "conv-line", "text": format!("text {n}")});
        race(CALLERS, |n| caller(n).post("/messages", text(n)).send()).iter().for_each(|answer| drop(answer.ok()));
        let note = |n: usize| json!({"conversationId": "conv-line", "text": format!("note {n}")});
        race(CALLERS, |n| caller(n).post("/messages/internal-comments", note(n)).send()).iter().for_each(|answer| drop(answer.ok()));
    }
}

#[test]
fn a_database_with_another_encoding_than_utf_8_is_refused_with_a_remedy() {
    let database = Database::fresh();
    let Some((_, name)) = database.postgres.clone() else { return };
    for encoding in ["LATIN1", "SQL_ASCII"] {
        let other = format!("{name}_{}", encoding.to_lowercase());
        database.sql(&format!("CREATE DATABASE {other} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"));
        let url = database.url.replace(&name, &other);
        let complaint = database.fails_with(&[("DATABASE_URL", &url)], &["store", "create", "--id", "s", "--name", "S"]);
        database.sql(&format!("DROP DATABASE {other} WITH (FORCE)"));
        assert!(complaint.contains(&format!("encoding {encoding}")) && complaint.contains("ENCODING 'UTF8'"), "{complaint}");
    }
}
