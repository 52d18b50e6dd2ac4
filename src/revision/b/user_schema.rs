//! The schema of a user in revision B.

use poem_openapi::Object;
use serde::Serialize;

use crate::{
    domain::users_teams_labels::UserView,
    http::schemas::{related_objects::RelatedRole, value_types::UserIdText},
    revision::RULES,
};

/// A seat of the store: a teammate, or an invitation that is not yet accepted.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// Identifies the seat. Other records refer to the person by `userId`.
    pub id: String,
    /// Identifies the person, as assignee or author for example. Absent until the invitation is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserIdText>,
    /// The display name; absent if the seat has none, such as an incomplete invitation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The id of the role; omitted with `expand=role`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_id: Option<String>,
    /// The role; only with `expand=role`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<RelatedRole>,
}

impl From<UserView> for User {
    fn from(view: UserView) -> Self {
        let name = view.user.shown_name(RULES.user_name_fallback).map(str::to_owned);
        Self {
            id: view.user.id.into_string(),
            user_id: view.user.user_id.map(UserIdText::from),
            name,
            role_id: view.user.role_id.filter(|_| view.role.is_none()).map(|id| id.into_string()),
            role: view.role.map(|role| RelatedRole { id: role.id.into_string(), name: role.name }),
        }
    }
}
