//! Tests of authentication by API key: which keys are refused, and that a change of a key takes effect immediately in a running server.

use crate::{
    client::Api,
    harness::{ALL_SCOPES, Key, Server, one, world},
};

/// Sends a request with this API key. Asserts the status of the response.
#[track_caller]
fn answers(api: &Api, secret: &str, status: u16) {
    let answer = api.with_key(secret).get("/labels").send();
    assert_eq!(answer.status, status, "{}", answer.described());
}

fn manage(server: &Server, action: &str, key: &Key, more: &[&str]) -> String {
    let arguments = [&["key", action, "--store", &key.store, "--id", &key.id], more].concat();
    server.database.run(&arguments)
}

/// Creates an API key on the shared server, for a test that changes the key. Returns the server, the key and an API client that uses the
/// key.
fn fresh() -> (&'static Server, Key, Api) {
    let server = &world().server;
    let key = server.database.key("one", &["labels:read"]);
    let api = server.api_of(&key);
    answers(&api, &key.secret, 200);
    (server, key, api)
}

#[test]
fn a_missing_or_unknown_key_is_refused() {
    let anonymous = one().anonymous();
    anonymous.get("/labels").send().fails(401);
    for unknown in ["", "cp_", "nonsense", &"x".repeat(5000), "cp_0000000000000000000000000000000000000000", "nai\u{308}ve"] {
        answers(&anonymous, unknown, 401);
    }
}

#[test]
fn key_create_prints_only_the_key_in_its_documented_format() {
    let printed = world().server.database.run(&["key", "create", "--store", "one", "--name", "Plain", "--scopes", "labels:read"]);
    assert!(printed.starts_with("cp_") && printed.len() == 43 && !printed.contains(char::is_whitespace), "{printed}");
    answers(one(), &printed, 200);
}

#[test]
fn an_authorization_header_is_ignored() {
    let secret = one().key.clone().unwrap_or_default();
    let anonymous = one().anonymous();
    anonymous.get("/labels").header("authorization", &format!("Bearer {secret}")).send().fails(401);
    anonymous.get("/labels").header("authorization", &secret).send().fails(401);
    anonymous.get("/labels").query("x-api-key", &secret).send().fails(401);
    one().get("/labels").header("authorization", "Bearer nonsense").send().ok();
}

#[test]
fn two_key_headers_must_agree() {
    let secret = one().key.clone().unwrap_or_default();
    let other = world().two.key.clone().unwrap_or_default();
    one().get("/labels").header("x-api-key", &secret).send().ok();
    one().get("/labels").header("x-api-key", &other).send().fails(401);
    one().get("/labels").header("X-Api-Key", "nonsense").send().fails(401);
    one().with_key("nonsense").get("/labels").header("x-api-key", &secret).send().fails(401);
}

#[test]
fn a_deleted_key_is_refused_at_once() {
    let (server, key, api) = fresh();
    manage(server, "delete", &key, &[]);
    answers(&api, &key.secret, 401);
}

#[test]
fn an_inactive_key_is_refused_until_it_is_active_again() {
    let (server, key, api) = fresh();
    manage(server, "deactivate", &key, &[]);
    answers(&api, &key.secret, 401);
    manage(server, "activate", &key, &[]);
    answers(&api, &key.secret, 200);
}

#[test]
fn a_rotated_key_has_two_secrets_for_two_hours() {
    let (server, key, api) = fresh();
    let secret = manage(server, "rotate", &key, &[]);
    assert_ne!(secret, key.secret);
    answers(&api, &secret, 200);
    answers(&api, &key.secret, 200);
    let remaining = format!(
        "update api_key_secrets set expires_at = expires_at - 7200001 where store_id = 'one' and key_id = '{}' \
         and created_at = (select min(created_at) from api_key_secrets s where s.key_id = api_key_secrets.key_id)",
        key.id
    );
    server.database.sql(&remaining);
    answers(&api, &key.secret, 401);
    answers(&api, &secret, 200);
}

#[test]
fn deletion_ends_every_secret_of_a_key() {
    let (server, key, api) = fresh();
    let secret = manage(server, "rotate", &key, &[]);
    manage(server, "delete", &key, &[]);
    answers(&api, &key.secret, 401);
    answers(&api, &secret, 401);
}

#[test]
fn an_expired_key_is_refused() {
    let (server, key, api) = fresh();
    server.database.sql(&format!("update api_keys set expires_at = 1 where store_id = 'one' and id = '{}'", key.id));
    answers(&api, &key.secret, 401);
}

#[test]
fn a_removed_scope_is_missing_on_the_next_request() {
    let (server, key, api) = fresh();
    manage(server, "edit", &key, &["--scopes", "teams:read"]);
    answers(&api, &key.secret, 403);
    manage(server, "edit", &key, &["--scopes", "teams:read,labels:read"]);
    answers(&api, &key.secret, 200);
}

#[test]
fn a_write_scope_includes_the_read_scope() {
    let server = &world().server;
    for (scope, path) in
        [("labels:write", "/labels"), ("teams:write", "/teams"), ("users:write", "/users"), ("tickets:write", "/tickets/fields")]
    {
        server.api("one", &[scope]).get(path).send().ok();
    }
}

#[test]
fn a_key_gives_access_to_its_own_store_only() {
    let key = world().server.database.key("two", &ALL_SCOPES);
    let answer = world().server.api_of(&key).get("/labels").send();
    answer.lists(&["lab-vip", "lab-two"]);
}
