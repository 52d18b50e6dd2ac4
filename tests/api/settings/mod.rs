//! Tests of the settings API (`/settings/v1`), with which owners and admins manage a store: its authentication, and all of its operations.
//! Each test has a separate server, usually a [`SettingsFixture`]. Responses, and requests that succeed, are checked against the OpenAPI
//! document of the settings API.

mod audit;
mod authentication;
mod channel_bridges;
mod common_http_behaviour;
mod drafts;
mod event_and_change_feeds;
mod inbound_messages;
mod keys;
mod realistic_inbound_messages;
mod sandbox_databases;
mod sign_in;
mod signed_inbound_messages;
mod token_grants;
mod unassign_snooze_handover;
mod undelivered_messages;
mod users;
mod webhooks;

use serde_json::{Value, json};

use crate::{
    client::{Answer, Api, Call},
    fixture::{ANN, line, two, write_store},
    harness::Settings,
    writes::WriteFixture,
};

/// The ids of the operations that need no credential, since their callers have no session yet.
pub const WITHOUT_CREDENTIAL: [&str; 2] = ["openSession", "sendLink"];

/// The user id of an admin.
pub const DEE: &str = "0a000000-0000-4000-8000-000000000005";

/// A server with the stores `desk` and `two`, and a settings API token of an owner of `desk`.
pub struct SettingsFixture {
    pub shop: WriteFixture,
    pub token: String,
    /// An API client that sends no credential.
    pub api: Api,
}

impl SettingsFixture {
    pub fn open() -> Self {
        Self::with(&[])
    }

    pub fn with(settings: Settings<'_>) -> Self {
        let mut lines = write_store();
        lines.extend([
            line("role", json!({"id": "role-admin", "name": "Admin", "kind": "admin"})),
            line(
                "user",
                json!({"id": "seat-dee", "userId": DEE, "name": "Dee", "roleId": "role-admin", "createdAt": "2025-01-05T00:00:00.000Z"}),
            ),
            line("user", json!({"id": "seat-invited", "email": "new@example.com", "createdAt": "2025-01-06T00:00:00.000Z"})),
        ]);
        let shop = WriteFixture::with_settings(&[("desk", lines), ("two", two())], settings);
        let token = grant(&shop, "token", ANN);
        let api = shop.api.anonymous();
        Self { shop, token, api }
    }

    /// Returns a request to the settings API with the given token.
    pub fn call_as(&self, token: &str, method: &str, path: &str) -> Call {
        self.api.raw(method, &format!("/settings/v1{path}")).header("authorization", &format!("Bearer {token}"))
    }

    pub fn call(&self, method: &str, path: &str) -> Call {
        self.call_as(&self.token, method, path)
    }

    pub fn get(&self, path: &str) -> Call {
        self.call("GET", path)
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path).json(body).send()
    }

    /// Sends a POST request to the settings API of another server process, with the owner's token.
    #[track_caller]
    pub fn at(&self, address: &str, path: &str, body: Value) -> Answer {
        let api = Api { address: address.to_owned(), ..self.api.clone() };
        api.raw("POST", &format!("/settings/v1{path}")).header("authorization", &format!("Bearer {}", self.token)).json(body).send()
    }

    /// Returns the entries of the audit log without the `count` oldest ones, oldest first. An entry is the action, and the kind and the id
    /// of the changed record.
    #[track_caller]
    pub fn changes_since(&self, count: usize) -> Vec<(String, String, String)> {
        let entries = self.get("/audit").query("limit", 500).send().ok();
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let all: Vec<_> = entries
            .as_array()
            .into_iter()
            .flatten()
            .rev()
            .map(|entry| (text(entry, "action"), text(entry, "subjectType"), text(entry, "subjectId")))
            .collect();
        all[count..].to_vec()
    }

    #[track_caller]
    pub fn changes(&self) -> usize {
        self.changes_since(0).len()
    }

    /// Creates an API key through the settings API; returns its id and its secret.
    #[track_caller]
    pub fn key(&self, scopes: &[&str]) -> (String, String) {
        let made = self.post("/keys", json!({"name": "Sync", "scopes": scopes})).ok();
        (text(&made["key"]["id"]), text(&made["secret"]))
    }
}

/// Creates a sign-in link or a token for a user of the store, with the command `settings link` or `settings token`. Returns the output.
#[track_caller]
pub fn grant(shop: &WriteFixture, kind: &str, user: &str) -> String {
    shop.server.database.run(&["settings", kind, "--store", "desk", "--user", user])
}

/// Creates a sign-in link for a user. Returns the secret in the link.
#[track_caller]
pub fn link(shop: &WriteFixture, user: &str) -> String {
    let printed = grant(shop, "link", user);
    printed.strip_prefix("http://127.0.0.1:8080/settings#link=").unwrap_or_else(|| panic!("not a link: {printed}")).to_owned()
}

#[track_caller]
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}
