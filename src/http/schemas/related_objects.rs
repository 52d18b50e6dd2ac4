//! Schemas of related objects. The query parameter `expand` adds such an object to a record that refers to it (contract, section 2.13).

use poem_openapi::Object;
use serde::Serialize;

use super::value_types::{ChannelName, UserIdText};
use crate::domain::{stores_and_accounts::ChannelRef, users_teams_labels::UserRef};

/// An account or a conversation, shown on a record that refers to it.
#[derive(Debug, Object, Serialize)]
pub struct RelatedChannel {
    /// The `accountId` or `conversationId` that this object stands for.
    pub id: String,
    /// The account's name, or the conversation's display name.
    pub name: String,
    /// The channel of this account or conversation.
    pub channel: ChannelName,
}

impl From<ChannelRef> for RelatedChannel {
    fn from(related: ChannelRef) -> Self {
        Self { id: related.id, name: related.name, channel: related.channel.into() }
    }
}

/// A user, shown on a record that refers to the user.
#[derive(Debug, Object, Serialize)]
pub struct RelatedUser {
    /// The `userId` that this object stands for.
    pub id: UserIdText,
    /// The user's name, as in the list of users. A user without a name is not expanded.
    pub name: String,
}

impl From<UserRef> for RelatedUser {
    fn from(user: UserRef) -> Self {
        Self { id: user.user_id.into(), name: user.name }
    }
}

/// The author of a message or an internal comment.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct Author {
    /// The author's `userId`, as in the list of users.
    pub user_id: UserIdText,
    /// The author's name, as in the list of users. An author without a name is not expanded.
    pub name: String,
    /// The author's role in the store; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_id: Option<String>,
}

impl From<UserRef> for Author {
    fn from(user: UserRef) -> Self {
        Self { user_id: user.user_id.into(), name: user.name, role_id: user.role_id.map(|id| id.into_string()) }
    }
}

/// A role, shown on the user that has the role.
#[derive(Debug, Object, Serialize)]
pub struct RelatedRole {
    /// The `roleId` that this object stands for.
    pub id: String,
    /// The name that the store gave the role.
    pub name: String,
}
