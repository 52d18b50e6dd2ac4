//! Tests of GET /teams: the order of the list, the filter by user, and the parameter `expand=users`, which replaces the ids of members by
//! users.

use serde_json::json;

use crate::{
    REV_A,
    fixture::{ANN, BO, GHOST, NAMELESS, STRANGER},
    harness::one,
};

#[test]
fn teams_come_oldest_first_with_their_members() {
    let answer = one().get("/teams").send();
    answer.lists(&["team-sales", "team-a", "team-b", "team-kim"]);
    assert_eq!(answer.row("team-sales"), json!({"id": "team-sales", "name": "Sales", "description": "Sells", "users": [BO, GHOST, ANN]}));
    assert_eq!(answer.row("team-b")["users"], json!([]));
    assert_eq!(answer.header("x-pagination-page-size"), Some("20"));
}

#[test]
fn the_user_filter_lists_only_teams_that_contain_the_user() {
    let of = |user: &str| one().get("/teams").query("userId", user).send();
    of(BO).lists(&["team-sales"]);
    of(GHOST).lists(&["team-sales"]);
    of(NAMELESS).lists(&["team-kim"]);
    of(STRANGER).lists(&[]);
    for malformed in ["bo", "", "seat-bo"] {
        of(malformed).refuses("userId");
    }
}

#[test]
fn known_team_members_are_expanded_in_place_and_unknown_ids_stay() {
    let answer = one().get("/teams").query("expand", "users").send();
    assert_eq!(answer.row("team-sales")["users"], json!([{"id": BO, "name": "Bo Agent"}, GHOST, {"id": ANN, "name": "Ann Owner"}]));
    let kim = if REV_A { json!([{"id": NAMELESS, "name": "kim"}]) } else { json!([NAMELESS]) };
    assert_eq!(answer.row("team-kim")["users"], kim);
}
