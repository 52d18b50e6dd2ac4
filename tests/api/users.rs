//! Tests of GET /users: the list, the look-up of one user, and the parameter `expand=role`, which replaces the id of a user's role by the
//! role.

use serde_json::{Value, json};

use crate::{
    REV_A,
    fixture::{ANN, BO, GHOST, NAMELESS, STRANGER},
    harness::one,
};

fn user(id: &str) -> crate::client::Answer {
    one().get("/users").query("userId", id).send()
}

#[test]
fn all_users_are_listed_and_the_older_revision_names_the_invited_ones() {
    let mut kim = json!({"id": "seat-kim", "userId": NAMELESS});
    let mut invited = json!({"id": "seat-invited", "roleId": "role-agent"});
    let mut blank = json!({"id": "seat-blank"});
    if REV_A {
        for (user, name) in [(&mut kim, "kim"), (&mut invited, "lee"), (&mut blank, "Invited user")] {
            user["name"] = json!(name);
        }
    }
    let answer = one().get("/users").send();
    answer.is(json!([
        {"id": "seat-ann", "userId": ANN, "name": "Ann Owner", "roleId": "role-owner"},
        {"id": "seat-bo", "userId": BO, "name": "Bo Agent", "roleId": "role-agent"},
        kim,
        invited,
        blank,
    ]));
    assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("x-pagination")), "{}", answer.described());
}

#[test]
fn the_user_id_filter_lists_a_known_user_and_nothing_if_unknown() {
    user(BO).lists(&["seat-bo"]);
    user(&BO.to_uppercase()).lists(&["seat-bo"]);
    user(GHOST).lists(&[]);
    user(STRANGER).lists(&[]);
}

#[test]
fn a_user_id_is_a_uuid() {
    for id in ["bo", "seat-bo", "", "0a000000-0000-4000-8000-00000000000", "0a000000-0000-4000-8000-00000000000g"] {
        user(id).refuses("userId");
    }
}

#[test]
fn expanding_the_role_replaces_the_role_id() {
    let answer = one().get("/users").query("expand", "role").send();
    let mut owner = json!({"id": "seat-ann", "userId": ANN, "name": "Ann Owner", "role": {"id": "role-owner", "name": "Owner"}});
    assert_eq!(answer.row("seat-ann"), owner);
    owner["role"] = json!({"id": "role-agent", "name": "Agent"});
    assert_eq!(answer.row("seat-invited")["role"], owner["role"]);
    assert_eq!(answer.row("seat-kim").get("role"), None::<&Value>);
}
