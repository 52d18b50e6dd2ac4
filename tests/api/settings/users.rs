//! Tests of the users of a store: adding and removing users, changing their roles, and changing which users have access to an account. The
//! tickets of users who are removed or lose access become unassigned.

use std::thread;

use serde_json::{Value, json};

use super::{DEE, SettingsFixture, grant, text};
use crate::{
    REV_A,
    fixture::{ANN, BO, CAT, GHOST},
};

fn set(fixture: &SettingsFixture, account: &str, users: &[&str]) -> crate::client::Answer {
    fixture.call("PUT", "/accounts/users").json(json!({"accountId": account, "userIds": users})).send()
}

fn assignee(fixture: &SettingsFixture, ticket: &str) -> Option<String> {
    fixture.shop.ticket(ticket).get("assigneeUserId").and_then(Value::as_str).map(str::to_owned)
}

fn add(fixture: &SettingsFixture, token: &str, email: &str, role: &str) -> crate::client::Answer {
    fixture.call_as(token, "POST", "/users").json(json!({"name": " Noi ", "email": email, "role": role})).send()
}

fn set_role(fixture: &SettingsFixture, token: &str, id: &str, role: &str) -> crate::client::Answer {
    fixture.call_as(token, "PUT", "/users/role").json(json!({"id": id, "role": role})).send()
}

#[test]
fn an_added_user_can_sign_in_and_is_listed_by_the_api() {
    let fixture = SettingsFixture::open();
    let before = fixture.changes();
    let seat = add(&fixture, &fixture.token, "noi@shop.example", "admin").ok();
    let (id, user) = (text(&seat["id"]), text(&seat["userId"]));
    assert_eq!((&seat["name"], &seat["email"], &seat["roleKind"]), (&json!("Noi"), &json!("noi@shop.example"), &json!("admin")));
    assert_eq!(fixture.get("/users").send().row(&id), seat);
    let shown = fixture.shop.api.get("/users").send().row(&id);
    assert_eq!((&shown["userId"], &shown["name"]), (&json!(user), &json!("Noi")));
    let theirs = grant(&fixture.shop, "token", &user);
    assert_eq!(fixture.call_as(&theirs, "GET", "/session").send().ok()["role"], "admin");
    // Both added admins have the same role record: the server does not create another one.
    let second = add(&fixture, &fixture.token, "fon@shop.example", "admin").ok();
    assert_eq!(second["role"], seat["role"]);
    // A user who is no longer an admin loses the token. The token stays invalid even if the user then becomes an owner.
    for role in ["agent", "owner"] {
        let seat = set_role(&fixture, &fixture.token, &id, role).ok();
        assert_eq!((&seat["id"], &seat["roleKind"]), (&json!(id), &json!(role)));
        assert_eq!(fixture.get("/users").send().row(&id), seat);
        fixture.call_as(&theirs, "GET", "/users").send().fails(401);
    }
    // Setting the role that the user already has changes nothing.
    assert_eq!(set_role(&fixture, &fixture.token, &id, "owner").ok()["roleKind"], "owner");
    let user_change = |action: &str, id: &str| (action.to_owned(), "user".to_owned(), id.to_owned());
    let got: Vec<_> = fixture.changes_since(before).into_iter().filter(|(_, kind, _)| kind == "user").collect();
    let second = text(&second["id"]);
    let role_set = user_change("user.role_set", &id);
    assert_eq!(got, [user_change("user.added", &id), user_change("user.added", &second), role_set.clone(), role_set]);
}

#[test]
fn a_user_who_cannot_be_added_is_refused_with_the_reason() {
    let fixture = SettingsFixture::open();
    let (owner, dee) = (fixture.token.clone(), grant(&fixture.shop, "token", DEE));
    add(&fixture, &owner, "noi@shop.example", "agent").ok();
    let before = (fixture.get("/users").send().ids(), fixture.changes());
    let taken = add(&fixture, &owner, "NOI@shop.example", "agent").fails(409);
    assert!(taken.starts_with("`body.email`") && taken.contains("another user"), "{taken}");
    add(&fixture, &owner, "not an address", "agent").refuses("body.email");
    add(&fixture, &owner, "boss@shop.example", "boss").refuses("body.role");
    for name in ["", "  ", "a\nb", &"x".repeat(101)] {
        fixture.post("/users", json!({"name": name, "email": "x@shop.example", "role": "agent"})).refuses("body.name");
    }
    for missing in ["name", "email", "role"] {
        let mut body = json!({"name": "x", "email": "x@shop.example", "role": "agent"});
        body.as_object_mut().map(|body| body.remove(missing));
        fixture.post("/users", body).refuses(&format!("body.{missing}"));
    }
    // Only an owner can make an owner, or change the role of an owner.
    assert!(add(&fixture, &dee, "x@shop.example", "owner").fails(403).starts_with("`body.role`"));
    assert!(set_role(&fixture, &dee, "seat-bo", "owner").fails(403).starts_with("`body.role`"));
    assert!(set_role(&fixture, &dee, "seat-cat", "agent").fails(403).starts_with("`body.id` names an owner"));
    set_role(&fixture, &owner, "seat-nobody", "agent").fails(404);
    assert_eq!((fixture.get("/users").send().ids(), fixture.changes()), before);
}

#[test]
fn simultaneous_additions_of_the_same_user_add_it_only_once() {
    let fixture = SettingsFixture::open();
    let statuses = thread::scope(|scope| {
        let adding: Vec<_> = (0..8).map(|_| scope.spawn(|| add(&fixture, &fixture.token, "noi@shop.example", "admin").status)).collect();
        adding.into_iter().map(|one| one.join().unwrap_or_default()).collect::<Vec<_>>()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 409].contains(status)), "{statuses:?}");
}

#[test]
fn two_owners_that_demote_each_other_leave_one_owner() {
    for _ in 0..3 {
        let fixture = SettingsFixture::open();
        let cat = grant(&fixture.shop, "token", CAT);
        let demote =
            |token: &str, id: &str| fixture.call_as(token, "PUT", "/users/role").json(json!({"id": id, "role": "agent"})).exchange().status;
        let statuses = thread::scope(|scope| {
            let one = scope.spawn(|| demote(&fixture.token, "seat-cat"));
            let other = scope.spawn(|| demote(&cat, "seat-ann"));
            [one.join().unwrap_or_default(), other.join().unwrap_or_default()]
        });
        assert!(statuses.contains(&200) && statuses.iter().any(|status| [401, 403, 409].contains(status)), "{statuses:?}");
        let owners = fixture.shop.server.database.ask("SELECT id FROM users WHERE store_id = 'desk' AND role_id = 'role-owner'");
        assert_eq!(owners.len(), 1);
    }
}

#[test]
fn removing_a_user_unassigns_tickets_revokes_tokens_and_keeps_api_keys() {
    let fixture = SettingsFixture::open();
    let shop = &fixture.shop;
    shop.server
        .database
        .sql(&format!("update tickets set assignee_user_id = '{BO}' where id in ('t-shut', 't-free') and store_id = 'desk'"));
    let token = grant(shop, "token", BO);
    let made = fixture.post("/keys", json!({"name": "Bo's", "scopes": ["messages:write"], "userId": BO})).ok();
    let before = fixture.changes();
    let removed = fixture.call("DELETE", "/users").query("id", "seat-bo").send().ok();
    assert_eq!(removed, json!({"unassignedTickets": 3}));
    for ticket in ["t-free", "t-set", "t-shut"] {
        assert_eq!(assignee(&fixture, ticket), None);
    }
    let events = shop.events();
    let got: Vec<_> = events.iter().map(|event| (event["type"].as_str(), event["data"]["ticket"]["id"].as_str())).collect();
    assert_eq!(
        got,
        [
            (Some("ticket.unassigned"), Some("t-free")),
            (Some("ticket.unassigned"), Some("t-set")),
            (Some("ticket.unassigned"), Some("t-shut"))
        ]
    );
    assert!(
        events.iter().all(|event| event["data"]["previousAssigneeUserId"] == BO && event["actor"] == json!({"type": "user", "id": ANN}))
    );
    assert!(!fixture.get("/users").send().ids().contains(&"seat-bo".to_owned()));
    fixture.call_as(&token, "GET", "/session").send().fails(401);
    // The API key of the removed user stays valid. It now acts for the oldest owner.
    let key = made["key"]["id"].as_str().unwrap_or_default();
    assert_eq!(fixture.get("/keys").send().row(key).get("userId"), None);
    let api = shop.api.with_key(made["secret"].as_str().unwrap_or_default());
    api.post("/messages/internal-comments", json!({"conversationId": "conv-free", "text": "still here"})).send().ok();
    assert_eq!(fixture.changes_since(before), [("user.removed".into(), "user".into(), "seat-bo".into())]);
    fixture.call("DELETE", "/users").query("id", "seat-bo").send().fails(404);
    fixture.call("DELETE", "/users").query("id", "seat-invited").send().is(json!({"unassignedTickets": 0}));
    fixture.call("DELETE", "/users").send().refuses("id");
}

#[test]
fn the_last_owner_cannot_be_removed() {
    let fixture = SettingsFixture::open();
    fixture.call("DELETE", "/users").query("id", "seat-cat").send().ok();
    let dee = grant(&fixture.shop, "token", DEE);
    let message = fixture.call("DELETE", "/users").query("id", "seat-ann").send().fails(409);
    assert!(message.contains("last owner"), "{message}");
    // A user who removes herself from the store loses access immediately.
    fixture.call_as(&dee, "DELETE", "/users").query("id", "seat-dee").send().ok();
    fixture.call_as(&dee, "GET", "/users").send().fails(401);
}

#[test]
fn two_owners_that_remove_each_other_leave_one_owner() {
    for _ in 0..3 {
        let fixture = SettingsFixture::open();
        let cat = grant(&fixture.shop, "token", CAT);
        let statuses = thread::scope(|scope| {
            let one = scope.spawn(|| fixture.call("DELETE", "/users").query("id", "seat-cat").exchange().status);
            let other = scope.spawn(|| fixture.call_as(&cat, "DELETE", "/users").query("id", "seat-ann").exchange().status);
            [one.join().unwrap_or_default(), other.join().unwrap_or_default()]
        });
        // One of the two requests succeeds. The other request is refused: with 401 or 403 if its caller was already removed, or with 409
        // because it would remove the last owner.
        assert!(statuses.contains(&200) && statuses.iter().any(|status| [401, 403, 409].contains(status)), "{statuses:?}");
        let owners = fixture.shop.server.database.ask("SELECT id FROM users WHERE store_id = 'desk' AND role_id = 'role-owner'");
        assert_eq!(owners.len(), 1);
    }
}

#[test]
fn users_who_lose_access_to_an_account_lose_its_tickets() {
    let fixture = SettingsFixture::open();
    let listed = fixture.get("/accounts").send().ok();
    let users = |account: &str| {
        let all = fixture.get("/accounts").send().ok();
        all.as_array().into_iter().flatten().find(|one| one["accountId"] == account).map(|one| one["userIds"].clone()).unwrap_or_default()
    };
    assert_eq!(listed.as_array().map(Vec::len), Some(3));
    assert_eq!((users("acc-line"), users("acc-ann")), (json!([]), json!([ANN])));
    let changed = set(&fixture, "acc-line", &[BO, CAT]).ok();
    assert_eq!(changed["unassignedTickets"], 0);
    assert_eq!(users("acc-line"), json!([BO, CAT]));
    assert_eq!(assignee(&fixture, "t-set").as_deref(), Some(BO));
    assert_eq!(fixture.shop.events().len(), 0);
    let changed = set(&fixture, "acc-line", &[CAT]).ok();
    assert_eq!((&changed["unassignedTickets"], &changed["account"]["userIds"]), (&json!(1), &json!([CAT])));
    assert_eq!(assignee(&fixture, "t-set"), None);
    assert_eq!(fixture.shop.kinds(), ["ticket.unassigned"]);
    if !REV_A {
        fixture.shop.assign(&[("t-set", BO)]).refuses("body[0].assigneeUserId");
        fixture.shop.assign(&[("t-set", CAT)]).ok();
    }
    set(&fixture, "acc-line", &[]).ok();
    assert_eq!(users("acc-line"), json!([]));
    fixture.shop.assert_unchanged(|| {
        set(&fixture, "nope", &[ANN]).fails(404);
        set(&fixture, "acc-line", &[ANN, GHOST]).refuses("body.userIds[1]");
        set(&fixture, "acc-line", &[ANN, "bo"]).refuses("body.userIds[1]");
        set(&fixture, "acc-line", &[ANN, BO, ANN]).refuses("body.userIds[2]");
        set(&fixture, "acc-line", &vec![ANN; 1001]).refuses("body.userIds");
        fixture.call("PUT", "/accounts/users").json(json!({"accountId": "acc-line"})).send().refuses("body.userIds");
        fixture.call("PUT", "/accounts/users").json(json!({"accountId": "acc-line", "userIds": null})).send().refuses("body.userIds");
    });
}

/// A ticket never stays with a user who was removed or lost access, even if it is assigned to this user at the same moment.
#[test]
fn no_ticket_stays_assigned_to_a_user_removed_during_the_assignment() {
    if REV_A {
        return;
    }
    for round in 0..4 {
        let fixture = SettingsFixture::open();
        let tickets = ["t-free", "t-set", "t-ahead", "t-asleep"];
        thread::scope(|scope| {
            for ticket in tickets {
                let fixture = &fixture;
                scope.spawn(move || {
                    for user in [CAT, BO, CAT, BO] {
                        let body = json!([{"ticketId": ticket, "assigneeUserId": user}]);
                        let status = fixture.shop.post("/tickets/assign", body).exchange().status;
                        assert!([200, 400].contains(&status), "{status}");
                    }
                });
            }
            scope.spawn(|| {
                let gone = match round % 2 {
                    0 => fixture.call("DELETE", "/users").query("id", "seat-bo").exchange(),
                    _ => fixture.call("PUT", "/accounts/users").json(json!({"accountId": "acc-line", "userIds": [CAT]})).exchange(),
                };
                assert_eq!(gone.status, 200, "{}", gone.described());
            });
        });
        for ticket in tickets {
            assert_ne!(assignee(&fixture, ticket).as_deref(), Some(BO), "{ticket}");
        }
        let unassigned: Vec<_> = fixture.shop.events().into_iter().filter(|event| event["type"] == "ticket.unassigned").collect();
        assert!(unassigned.iter().all(|event| event["data"]["previousAssigneeUserId"] == BO), "{unassigned:#?}");
    }
}

#[test]
fn removing_a_user_unassigns_many_tickets_at_once() {
    let fixture = SettingsFixture::open();
    fixture.shop.server.database.sql(&format!(
        "INSERT INTO conversations (store_id, id, channel, account_id, contact_id, display_name, reference_id, label_ids, label_marks, is_spam, \
         unread_count, message_count, sort_at, created_at, updated_at) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) \
         SELECT 'desk', 'many-' || i, 'line', 'acc-line', 'con-mia', 'x', 'many-' || i, '[]', 0, FALSE, 0, 0, 0, 0, 0 FROM n; \
         INSERT INTO tickets (store_id, id, ticket_number, is_open, is_spam, is_follow_up, channel, contact_id, account_id, conversation_id, \
         opened_at, assignee_user_id, ticket_fields, label_marks, field_marks, text_marks, sort_at, created_at, updated_at) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) \
         SELECT 'desk', 'many-' || i, 'many-' || i, TRUE, FALSE, FALSE, 'line', 'con-mia', 'acc-line', 'many-' || i, 0, '{BO}', '{{}}', 0, 0, 0, 0, 0, 0 FROM n"
    ));
    fixture.call("DELETE", "/users").query("id", "seat-bo").send().is(json!({"unassignedTickets": 1201}));
    assert_eq!(fixture.shop.kinds().len(), 1201);
    let left = fixture.shop.server.database.ask(&format!("SELECT id FROM tickets WHERE assignee_user_id = '{BO}' AND store_id = 'desk'"));
    assert_eq!(left, Vec::<String>::new());
}
