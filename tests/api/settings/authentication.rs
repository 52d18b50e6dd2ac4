//! Tests of authentication in the settings API: sign-in links, sessions and tokens, and protection from requests that other sites forge
//! (CSRF).

use serde_json::{Value, json};

use super::{DEE, SettingsFixture, WITHOUT_CREDENTIAL, grant, link, text};
use crate::{
    client::{Answer, Api, Call},
    contract,
    fixture::{ANN, BO, CAT, GHOST},
};

/// Returns every operation of the settings API that needs a credential.
fn operations(fixture: &SettingsFixture) -> Vec<(String, String)> {
    let all = contract::settings(&fixture.api).operations();
    assert!(all.len() >= 31, "{}", all.len());
    all.into_iter().filter(|one| !WITHOUT_CREDENTIAL.contains(&one.id.as_str())).map(|one| (one.method, one.path)).collect()
}

/// Creates a sign-in link for a user and opens a session with it. Returns the session cookie as `NAME=VALUE`.
#[track_caller]
fn session(fixture: &SettingsFixture, user: &str) -> String {
    let opened = open(fixture, &link(&fixture.shop, user));
    opened.ok();
    cookie(&opened)
}

#[track_caller]
fn cookie(opened: &Answer) -> String {
    let header = opened.header("set-cookie").unwrap_or_else(|| panic!("no cookie\n{}", opened.described()));
    header.split(';').next().unwrap_or_default().to_owned()
}

#[track_caller]
fn open(fixture: &SettingsFixture, link: &str) -> Answer {
    fixture.api.raw("POST", "/settings/v1/session").json(json!({"link": link})).send()
}

fn with_cookie(fixture: &SettingsFixture, cookie: &str, method: &str, path: &str) -> Call {
    fixture.api.raw(method, &format!("/settings/v1{path}")).header("cookie", cookie)
}

#[test]
fn every_operation_refuses_requests_without_a_valid_credential() {
    let fixture = SettingsFixture::open();
    let session = session(&fixture, ANN);
    let token_as_cookie = format!("counterpart_session={}", fixture.token);
    let session_as_token = format!("Bearer {}", session.split('=').nth(1).unwrap_or_default());
    for (method, path) in operations(&fixture) {
        let call = || fixture.api.raw(&method, &format!("/settings/v1{path}"));
        call().send().fails(401);
        call().header("x-api-key", &fixture.shop.key.secret).send().fails(401);
        call().header("authorization", "Bearer ").send().fails(401);
        call().header("authorization", "Basic YTpi").send().fails(401);
        call().header("authorization", "Bearer cps_0000000000000000000000000000000000000000").send().fails(401);
        call().header("authorization", &format!("Bearer {}", fixture.shop.key.secret)).send().fails(401);
        call().header("authorization", &format!("Bearer {}", link(&fixture.shop, ANN))).send().fails(401);
        call().header("authorization", &session_as_token).send().fails(401);
        call().header("cookie", &token_as_cookie).send().fails(401);
        call().header("cookie", "counterpart_session=; other=1").send().fails(401);
    }
    // The operations under `/v1` do not accept a token of the settings API.
    fixture.shop.api.with_key(&fixture.token).get("/labels").send().fails(401);
}

#[test]
fn only_owners_and_admins_have_access() {
    let fixture = SettingsFixture::open();
    let agent = grant(&fixture.shop, "token", BO);
    let before = fixture.changes();
    for (method, path) in operations(&fixture) {
        let message = fixture.call_as(&agent, &method, &path).send().fails(403);
        assert!(message.contains("owners and admins"), "{message}");
    }
    let refused = open(&fixture, &link(&fixture.shop, BO));
    refused.fails(403);
    assert_eq!(refused.header("set-cookie"), None);
    // The audit log has only one new entry, for the creation of the agent's link.
    assert_eq!(fixture.changes() - before, 1);
    for user in [ANN, CAT, DEE] {
        fixture.call_as(&grant(&fixture.shop, "token", user), "GET", "/keys").send().ok();
        with_cookie(&fixture, &session(&fixture, user), "GET", "/keys").send().ok();
    }
    let complaint = fixture.shop.server.database.fails(&["settings", "token", "--store", "desk", "--user", GHOST]);
    assert!(complaint.contains(GHOST), "{complaint}");
    fixture.shop.server.database.fails(&["settings", "link", "--store", "nope", "--user", ANN]);
    fixture.shop.server.database.fails(&["settings", "link", "--store", "desk", "--user", "ann"]);
}

#[test]
fn a_lost_role_takes_effect_on_the_next_request() {
    let fixture = SettingsFixture::open();
    let token = grant(&fixture.shop, "token", DEE);
    let session = session(&fixture, DEE);
    fixture.call_as(&token, "GET", "/keys").send().ok();
    fixture.shop.server.database.sql("update users set role_id = 'role-agent' where id = 'seat-dee' and store_id = 'desk'");
    fixture.call_as(&token, "GET", "/keys").send().fails(403);
    with_cookie(&fixture, &session, "GET", "/keys").send().fails(403);
    fixture.shop.server.database.sql("update users set role_id = null where id = 'seat-dee' and store_id = 'desk'");
    fixture.call_as(&token, "GET", "/keys").send().fails(403);
    fixture.shop.server.database.sql("update users set role_id = 'role-admin' where id = 'seat-dee' and store_id = 'desk'");
    fixture.call_as(&token, "GET", "/keys").send().ok();
}

#[test]
fn a_link_opens_one_session() {
    let fixture = SettingsFixture::open();
    let link = link(&fixture.shop, ANN);
    let opened = open(&fixture, &link);
    let data = opened.ok();
    assert_eq!((&data["storeId"], &data["userId"], &data["role"]), (&json!("desk"), &json!(ANN), &json!("owner")));
    let header = opened.header("set-cookie").unwrap_or_default();
    for attribute in ["; HttpOnly", "; SameSite=Strict", "; Path=/settings", "; Max-Age=43200"] {
        assert!(header.contains(attribute), "{header}");
    }
    assert!(!header.contains("Secure"), "{header}");
    let session = cookie(&opened);
    with_cookie(&fixture, &session, "GET", "/session").send().is(data);
    with_cookie(&fixture, &format!("a=b; {session}; c=d"), "GET", "/session").send().ok();
    // The server also finds the session if the request has a second cookie with the same name, which another host of the same site may
    // have set, or an `authorization` header of another scheme, which a proxy may have added.
    with_cookie(&fixture, &format!("counterpart_session=junk; {session}"), "GET", "/session").send().ok();
    with_cookie(&fixture, &session, "GET", "/session").header("authorization", "Basic YTpi").send().ok();
    assert_eq!(opened.header("cache-control"), Some("no-store"));
    for used in [link.as_str(), "", "cps_", "x"] {
        let refused = open(&fixture, used);
        refused.fails(401);
        assert_eq!(refused.header("set-cookie"), None);
    }
    fixture.api.raw("POST", "/settings/v1/session").json(json!({})).send().refuses("body.link");
    fixture.api.raw("POST", "/settings/v1/session").json(json!({"link": 5})).send().refuses("body.link");
    // A token is not accepted in place of a link. It stays valid as a token.
    open(&fixture, &fixture.token).fails(401);
    fixture.get("/session").send().ok();
}

#[test]
fn a_link_used_many_times_at_once_opens_one_session() {
    let fixture = SettingsFixture::open();
    let link = link(&fixture.shop, ANN);
    let entered: usize = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..12).map(|_| scope.spawn(|| usize::from(open(&fixture, &link).status == 200))).collect();
        tries.into_iter().map(|entering| entering.join().unwrap_or_default()).sum()
    });
    assert_eq!(entered, 1);
}

#[test]
fn links_sessions_and_tokens_expire() {
    let fixture = SettingsFixture::open();
    let (link, session) = (link(&fixture.shop, ANN), session(&fixture, ANN));
    let later = |kind: &str, millis: i64| {
        fixture.shop.server.database.sql(&format!("update grants set expires_at = expires_at - {millis} where kind = '{kind}'"));
    };
    later("link", 14 * 60_000);
    later("session", 11 * 60 * 60_000);
    later("token", 89 * 24 * 60 * 60_000);
    with_cookie(&fixture, &session, "GET", "/session").send().ok();
    fixture.get("/session").send().ok();
    later("link", 60_000);
    later("session", 60 * 60_000);
    open(&fixture, &link).fails(401);
    with_cookie(&fixture, &session, "GET", "/session").send().fails(401);
    later("token", 24 * 60 * 60_000);
    fixture.get("/session").send().fails(401);
}

#[test]
fn sessions_and_tokens_can_be_ended_and_revoked() {
    let fixture = SettingsFixture::open();
    let (session, other) = (session(&fixture, ANN), session(&fixture, ANN));
    let ended = with_cookie(&fixture, &session, "DELETE", "/session").header("sec-fetch-site", "same-origin").send();
    ended.ok();
    assert!(ended.header("set-cookie").is_some_and(|cookie| cookie.contains("Max-Age=0")), "{}", ended.described());
    with_cookie(&fixture, &session, "GET", "/session").send().fails(401);
    with_cookie(&fixture, &other, "GET", "/session").send().ok();
    fixture.call("DELETE", "/session").send().ok();
    fixture.get("/session").send().fails(401);
    let token = grant(&fixture.shop, "token", ANN);
    assert_eq!(fixture.shop.server.database.run(&["settings", "revoke", "--store", "desk", "--user", ANN]), "2");
    fixture.call_as(&token, "GET", "/session").send().fails(401);
    with_cookie(&fixture, &other, "GET", "/session").send().fails(401);
}

#[test]
fn another_site_cannot_change_anything_with_a_session_cookie() {
    let fixture = SettingsFixture::open();
    let session = session(&fixture, ANN);
    let host = fixture.api.address.clone();
    let before = fixture.changes();
    let make = || with_cookie(&fixture, &session, "POST", "/keys").json(json!({"name": "Forged", "scopes": ["labels:read"]}));
    make().send().fails(403);
    for site in ["cross-site", "same-site", "none", ""] {
        make().header("sec-fetch-site", site).send().fails(403);
        make().header("sec-fetch-site", site).header("origin", &format!("http://{host}")).send().fails(403);
    }
    make().header("origin", &format!("https://{host}")).send().fails(403);
    make().header("origin", &format!("http://{host}")).header("x-forwarded-proto", "https").send().fails(403);
    for origin in ["null", "http://evil.example", &format!("http://evil.example:{host}"), &format!("http://{host}.evil.example"), "http://"]
    {
        make().header("origin", origin).send().fails(403);
    }
    // Browsers post forms in these three media types to other sites without a preflight request. So the server itself must refuse them.
    for media in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let form = with_cookie(&fixture, &session, "POST", "/keys").header("content-type", media).header("origin", "http://evil.example");
        form.bytes("{\"name\":\"Forged\",\"scopes\":[\"labels:read\"]}").send().fails(403);
    }
    for (method, path) in operations(&fixture).iter().filter(|(method, _)| method != "GET") {
        with_cookie(&fixture, &session, method, path).header("sec-fetch-site", "cross-site").send().fails(403);
    }
    let link = link(&fixture.shop, ANN);
    let login = || fixture.api.raw("POST", "/settings/v1/session").json(json!({"link": link}));
    login().header("sec-fetch-site", "cross-site").send().fails(403);
    login().header("origin", "http://evil.example").send().fails(403);
    assert_eq!(fixture.changes() - before, 1, "the link alone");
    make().header("sec-fetch-site", "same-origin").send().ok();
    make().header("origin", &format!("http://{host}")).send().ok();
    make().header("origin", &format!("https://{host}")).header("x-forwarded-proto", "https").send().ok();
    let secure = login().header("origin", &format!("https://{host}")).header("x-forwarded-proto", "https").send();
    assert!(secure.header("set-cookie").is_some_and(|cookie| cookie.ends_with("; Secure")), "{}", secure.described());
}

#[test]
fn a_token_gives_no_access_to_another_store() {
    let fixture = SettingsFixture::open();
    let (key, _) = fixture.key(&["labels:read"]);
    let hook = fixture.post("/webhooks", json!({"url": "https://example.com/"})).ok()["webhook"]["id"].clone();
    let stranger = fixture.shop.server.database.ask(
        "SELECT u.user_id FROM users u JOIN roles r ON r.store_id = u.store_id AND r.id = u.role_id \
         WHERE u.store_id = 'two' AND r.kind = 'owner' AND u.user_id IS NOT NULL",
    );
    let stranger = stranger.first().expect("store two has an owner");
    let token = fixture.shop.server.database.run(&["settings", "token", "--store", "two", "--user", stranger]);
    let mut two = fixture.api.clone();
    two.store = "two".to_owned();
    let call =
        |method: &str, path: &str| two.raw(method, &format!("/settings/v1{path}")).header("authorization", &format!("Bearer {token}"));
    assert_eq!(call("GET", "/keys").send().ok(), json!([]));
    assert_eq!(call("GET", "/webhooks").send().ok(), json!([]));
    call("DELETE", "/keys").query("keyId", &key).send().fails(404);
    for path in ["/keys/rotate", "/keys/activate", "/keys/deactivate"] {
        call("POST", path).json(json!({"keyId": key})).send().fails(404);
    }
    call("PATCH", "/keys").json(json!({"keyId": key, "name": "Mine"})).send().fails(404);
    for path in ["/webhooks/rotate", "/webhooks/enable", "/webhooks/disable", "/webhooks/test", "/webhooks/replay"] {
        call("POST", path).json(json!({"webhookId": hook})).send().fails(404);
    }
    call("GET", "/webhooks/attempts").query("webhookId", hook.as_str().unwrap_or_default()).send().fails(404);
    call("PATCH", "/webhooks").json(json!({"webhookId": hook, "url": "https://evil.example/"})).send().fails(404);
    call("DELETE", "/webhooks").query("webhookId", hook.as_str().unwrap_or_default()).send().fails(404);
    call("DELETE", "/users").query("id", "seat-bo").send().fails(404);
    call("POST", "/tickets/unassign").json(json!({"ticketId": "t-set"})).send().fails(404);
    call("POST", "/conversations/escalate").json(json!({"conversationId": "conv-free"})).send().fails(404);
    call("PUT", "/accounts/users").json(json!({"accountId": "acc-ann", "userIds": []})).send().fails(404);
}

#[test]
fn credentials_are_listed_without_their_secrets_and_ended_one_by_one() {
    let fixture = SettingsFixture::open();
    let session = session(&fixture, DEE);
    let narrow = fixture.shop.server.database.run(&["settings", "token", "--store", "desk", "--user", DEE, "--can", "events"]);
    let unused = link(&fixture.shop, BO);
    let listed = fixture.get("/credentials").send().ok();
    let all = listed.as_array().expect("a list");
    let shown = |one: &Value| (one["kind"].clone(), one["userId"].clone(), one["can"].clone(), one["isCurrent"].clone());
    let mut found: Vec<_> = all.iter().map(shown).collect();
    found.sort_by_key(|one| format!("{one:?}"));
    let everything = json!(["all"]);
    let mut expected = vec![
        (json!("link"), json!(BO), everything.clone(), json!(false)),
        (json!("session"), json!(DEE), everything.clone(), json!(false)),
        (json!("token"), json!(ANN), everything, json!(true)),
        (json!("token"), json!(DEE), json!(["events"]), json!(false)),
    ];
    expected.sort_by_key(|one| format!("{one:?}"));
    assert_eq!(found, expected);
    for secret in [&fixture.token, &narrow, &unused, &session] {
        assert!(!listed.to_string().contains(secret.as_str()), "{listed}");
    }
    let id = |user: &str, kind: &str| {
        let one = all.iter().find(|one| one["userId"] == user && one["kind"] == kind);
        text(&one.unwrap_or_else(|| panic!("no {kind} of {user}: {listed}"))["credentialId"])
    };

    // An admin cannot end the token of an owner.
    let end = |call: Call, id: &str| call.query("credentialId", id).send();
    let admin = |method: &str| with_cookie(&fixture, &session, method, "/credentials").header("sec-fetch-site", "same-origin");
    assert!(end(admin("DELETE"), &id(ANN, "token")).fails(403).contains("only an owner"));
    fixture.get("/session").send().ok();
    end(admin("DELETE"), &id(DEE, "token")).ok();
    fixture.call_as(&narrow, "GET", "/events").send().fails(401);
    end(fixture.call("DELETE", "/credentials"), &id(BO, "link")).ok();
    open(&fixture, &unused).fails(401);
    end(fixture.call("DELETE", "/credentials"), &id(DEE, "session")).ok();
    admin("GET").send().fails(401);
    let message = end(fixture.call("DELETE", "/credentials"), &id(DEE, "session")).fails(404);
    assert!(message.contains("credentialId"), "{message}");
    let logged = fixture.changes();
    let last = fixture.changes_since(logged - 3);
    assert!(last.iter().all(|(action, _, _)| action == "session.revoked"), "{last:?}");
    // A token of another store is not found, so it cannot be ended.
    let foreign = fixture.shop.server.database.run(&["settings", "token", "--store", "two", "--user", ANN]);
    let two = Api { store: "two".to_owned(), ..fixture.api.clone() };
    let others = two.raw("GET", "/settings/v1/credentials").header("authorization", &format!("Bearer {foreign}")).send().ok();
    let theirs = text(&others[0]["credentialId"]);
    end(fixture.call("DELETE", "/credentials"), &theirs).fails(404);
}

#[test]
fn an_admin_cannot_act_for_an_owner() {
    let fixture = SettingsFixture::open();
    let dee = grant(&fixture.shop, "token", DEE);
    let as_admin = |method: &str, path: &str| fixture.call_as(&dee, method, path);
    let before = fixture.changes();
    let message = as_admin("DELETE", "/users").query("id", "seat-cat").send().fails(403);
    assert!(message.starts_with("`id` names an owner"), "{message}");
    let key = |user: Value| {
        let mut body = json!({"name": "x", "scopes": ["messages:write"]});
        if !user.is_null() {
            body["userId"] = user;
        }
        as_admin("POST", "/keys").json(body).send()
    };
    let message = key(json!(ANN)).fails(403);
    assert!(message.starts_with("`body.userId` names an owner"), "{message}");
    assert_eq!(fixture.changes(), before);
    assert_eq!(key(json!(BO)).ok()["key"]["userId"], BO);
    // A key without a user acts for the oldest owner, but an admin must not be able to act for an owner. So a key that an admin creates
    // without a user gets the admin as its user.
    let own = key(Value::Null).ok();
    assert_eq!(own["key"]["userId"], DEE);
    let api = fixture.shop.api.with_key(own["secret"].as_str().unwrap_or_default());
    api.post("/messages/internal-comments", json!({"conversationId": "conv-free", "text": "mine"})).send().ok();
    assert_eq!(fixture.shop.comments("conv-free")[0]["noteData"]["createdBy"], DEE);
    as_admin("DELETE", "/users").query("id", "seat-bo").send().ok();
    fixture.call("DELETE", "/users").query("id", "seat-cat").send().ok();
}
