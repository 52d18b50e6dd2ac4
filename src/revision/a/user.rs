//! A user in revision A.

use poem_openapi::Object;
use serde::Serialize;

use crate::{
    domain::team::UserView,
    http::schemas::{related_objects::RelatedRole, value_types::UserIdText},
    revision::RULES,
};

/// A teammate, or an invited seat.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// The seat.
    pub id: String,
    /// The person; what assignees and authors refer to. Absent until an invitation is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserIdText>,
    /// The name. An invited seat without one shows the local part of its e-mail address, or `Invited user`.
    pub name: String,
    /// The role; omitted with `expand=role`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_id: Option<String>,
    /// The role; with `expand=role`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<RelatedRole>,
}

impl From<UserView> for User {
    fn from(view: UserView) -> Self {
        let name = view.user.shown_name(RULES.user_name_fallback).map(str::to_owned);
        Self {
            id: view.user.id.into_string(),
            user_id: view.user.user_id.map(UserIdText::from),
            name: name.unwrap_or_default(),
            role_id: view.user.role_id.filter(|_| view.role.is_none()).map(|id| id.into_string()),
            role: view.role.map(|role| RelatedRole { id: role.id.into_string(), name: role.name }),
        }
    }
}
