//! Seats of the store, and who may work on which channel account.

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::auth::Managed;
use crate::{
    domain::{
        ids::{SeatId, UserId},
        team::UserView,
    },
    http::{
        machinery::{
            body::Body,
            error::{ApiError, Failure, SettingsCatalog, SettingsEdit, SettingsRemoval},
            params::{Id, Query, Required, ScalarParam},
            reply::{All, One, Reply},
        },
        schemas::value_types::{AddressText, UserIdText},
    },
    service::settings::{AccountAccess, RemovedAccess},
};

/// A teammate, or an invited seat.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct Seat {
    /// Identifies the seat, joined or only invited; the removal of a user takes this id and not `userId`.
    id: String,
    /// Absent until the invitation is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<UserIdText>,
    /// The name of the person; absent where none is recorded, as on an incomplete invitation.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The e-mail address recorded for the seat; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<AddressText>,
    /// The role's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
}

impl From<UserView> for Seat {
    fn from(view: UserView) -> Self {
        let user = view.user;
        Self {
            id: user.id.into_string(),
            user_id: user.user_id.map(Into::into),
            name: user.name,
            email: user.email.map(AddressText),
            role: view.role.map(|role| role.name),
        }
    }
}

/// A channel account and who may work on it.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct AccountUsers {
    /// The channel account, as in `accountId` of conversations and tickets.
    account_id: String,
    /// The name of the account for people.
    name: String,
    /// The channel of the account, such as `line` or `whatsapp`.
    channel: String,
    /// The users that it is open to; empty: all of them.
    user_ids: Vec<String>,
}

impl From<AccountAccess> for AccountUsers {
    fn from(access: AccountAccess) -> Self {
        Self {
            account_id: access.account.id.into_string(),
            name: access.account.name,
            channel: access.account.channel.0,
            user_ids: access.users.into_iter().map(|id| id.into_string()).collect(),
        }
    }
}

/// Who may work on an account from now on.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccountUsersChange {
    /// The channel account whose list of users is replaced as a whole.
    account_id: String,
    /// The `userId`s of those who may work on the account. An empty list lets every user work on it.
    #[oai(validator(max_items = 1000))]
    user_ids: Vec<UserIdText>,
}

/// An account after the change, and the effects on its users.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct AccountUsersChanged {
    /// The account with the users that it is open to after the change.
    account: AccountUsers,
    /// Tickets that lost their assignee.
    unassigned_tickets: usize,
}

/// The effects of removing a user.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct UserRemoved {
    /// Tickets that lost their assignee.
    unassigned_tickets: usize,
}

/// Seats and access.
#[derive(Debug)]
pub struct TeamOperations;

#[OpenApi(tag = "crate::http::settings::tags::SettingsTag::Team")]
impl TeamOperations {
    /// List users
    ///
    /// Lists the store's seats, the oldest first.
    #[oai(path = "/users", method = "get", operation_id = "listSeats")]
    async fn list_seats(&self, managed: Managed) -> Result<Reply<All<Seat>>, Failure<SettingsCatalog>> {
        let users: Vec<Seat> = managed.state.service.users(managed.store(), None, true).await?.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &users, vec![]))
    }

    /// Remove a user
    ///
    /// Removes a seat, at once and for good. The user's tickets lose their assignee, with an event each; the user's API keys
    /// act in the name of the store's oldest owner; sessions and tokens end. The last owner cannot be removed, and an admin can
    /// remove no owner.
    #[oai(path = "/users", method = "delete", operation_id = "removeUser")]
    async fn remove_user(
        &self,
        managed: Managed,
        /// The seat: `id` of the user, not `userId`.
        id: Query<Required<Id<SeatId>>>,
    ) -> Result<Reply<One<UserRemoved>>, Failure<SettingsRemoval>> {
        let RemovedAccess { unassigned } = managed.state.service.remove_user(&managed.editor, &id.0.0.0).await?;
        Ok(Reply::of(&managed.context, &UserRemoved { unassigned_tickets: unassigned }, vec![]))
    }

    /// List accounts with their users
    ///
    /// Lists the store's channel accounts, disconnected ones too, with the users that each is open to.
    #[oai(path = "/accounts", method = "get", operation_id = "listAccountUsers")]
    async fn list_account_users(&self, managed: Managed) -> Result<Reply<All<AccountUsers>>, Failure<SettingsCatalog>> {
        let accounts: Vec<AccountUsers> =
            managed.state.service.account_access(managed.store()).await?.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &accounts, vec![]))
    }

    /// Set an account's users
    ///
    /// Opens an account to these users alone, or to everybody where there are none. Tickets on it that are assigned to anybody
    /// else lose their assignee, with an event each.
    #[oai(path = "/accounts/users", method = "put", operation_id = "setAccountUsers")]
    async fn set_account_users(
        &self,
        managed: Managed,
        body: Body<AccountUsersChange>,
    ) -> Result<Reply<One<AccountUsersChanged>>, Failure<SettingsEdit>> {
        let change = body.parse()?;
        let user = |(i, id): (usize, UserIdText)| {
            ScalarParam::parse(&id.0).map_err(|reason| ApiError::field(&format!("body.userIds[{i}]"), reason))
        };
        let users = change.user_ids.into_iter().enumerate().map(user).collect::<Result<Vec<UserId>, _>>()?;
        let (account, taken) = managed.state.service.set_account_users(&managed.editor, &change.account_id.into(), users).await?;
        let changed = AccountUsersChanged { account: account.into(), unassigned_tickets: taken.unassigned };
        Ok(Reply::of(&managed.context, &changed, vec![]))
    }
}
