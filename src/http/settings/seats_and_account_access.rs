//! Operations of the settings API on seats (teammates, and people who were invited to the store), and on which users may work on which
//! channel account.

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::{auth::GrantedRequest, required_grants};
use crate::{
    domain::{
        ids::{SeatId, UserId},
        users_teams_labels::{RoleKind, UserView},
    },
    http::{
        machinery::{
            body::Body,
            error_responses::{ApiError, Failure, SettingsCatalog, SettingsChange, SettingsEdit, SettingsMembership, SettingsRemoval},
            params::{Id, Query, Required, ScalarParam},
            success_responses::{All, One, Reply},
        },
        schemas::value_types::{AddressText, EnumValue, UserIdText, ValueSet},
    },
    service::{
        credentials_account_access_audit::{AccountAccess, RemovedAccess},
        seats::NewUser,
    },
};

/// A seat: of a teammate, or of a person who was invited and has not joined yet.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct Seat {
    /// Identifies the seat, also while the person is only invited. The removal of a user expects this id, not the `userId`.
    id: String,
    /// Identifies the user; absent until the invitation is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<UserIdText>,
    /// The name of the person; absent where none is recorded, as on an incomplete invitation.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The e-mail address recorded for the seat; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<AddressText>,
    /// The name of the user's role.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    /// The kind of the user's role; absent without a role, and for a kind that this server does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    role_kind: Option<EnumValue<RoleKinds>>,
}

/// The kinds of roles, by what they permit in the settings API.
#[derive(Debug, Clone)]
pub struct RoleKinds;

impl ValueSet for RoleKinds {
    const NAME: &'static str = "RoleKind";
    const DESCRIPTION: &'static str =
        "`owner` and `admin`: the user manages settings; some changes are an owner's alone. `agent`: the user does not.";
    const VALUES: &'static [&'static str] = &[RoleKind::Owner.name(), RoleKind::Admin.name(), RoleKind::Agent.name()];
}

impl From<UserView> for Seat {
    fn from(view: UserView) -> Self {
        let user = view.user;
        let role_kind = view.role.as_ref().and_then(|role| role.kind).map(|kind| kind.name().to_owned().into());
        Self {
            id: user.id.into_string(),
            user_id: user.user_id.map(Into::into),
            name: user.name,
            email: user.email.map(AddressText),
            role: view.role.map(|role| role.name),
            role_kind,
        }
    }
}

/// A new user.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserAddition {
    /// The name of the person, not blank.
    #[oai(validator(min_length = 1, max_length = 100))]
    name: String,
    /// The e-mail address of the person, to which links to the settings page are sent. No other user of the store has it.
    email: AddressText,
    /// What the user may do in the settings. If the store has no role of this kind, it gets one.
    role: EnumValue<RoleKinds>,
}

/// The new role of a user.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoleChange {
    /// The seat whose role changes: its `id` in the list of users, not its `userId`.
    #[oai(validator(max_length = 64))]
    id: String,
    /// What the user may do in the settings from now on. If the store has no role of this kind, it gets one.
    role: EnumValue<RoleKinds>,
}

fn role_kind(name: &EnumValue<RoleKinds>) -> Result<RoleKind, ApiError> {
    RoleKind::of(&name.0).ok_or_else(|| ApiError::field("body.role", "is no kind of role"))
}

/// A channel account and the users who may work on it.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct AccountUsers {
    /// The channel account, as in `accountId` of conversations and tickets.
    account_id: String,
    /// The display name of the account.
    name: String,
    /// The channel of the account, such as `line` or `whatsapp`.
    channel: String,
    /// The `userId`s of the users who may work on the account; empty: every user may.
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

/// The users who may work on an account from now on.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccountUsersChange {
    /// The channel account whose list of users is replaced as a whole.
    #[oai(validator(max_length = 64))]
    account_id: String,
    /// The `userId`s of the users who may work on the account. An empty list lets every user work on it.
    #[oai(validator(max_items = 1000))]
    user_ids: Vec<UserIdText>,
}

/// An account after its users were changed, and the effect on its tickets.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct AccountUsersChanged {
    /// The account, with the users who may work on it after the change.
    account: AccountUsers,
    /// The number of tickets that lost their assignee.
    unassigned_tickets: usize,
}

/// The effects of removing a user.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct UserRemoved {
    /// The number of tickets that lost their assignee.
    unassigned_tickets: usize,
}

/// The operations on seats, and on the access of users to channel accounts.
#[derive(Debug)]
pub struct TeamOperations;

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Team")]
impl TeamOperations {
    /// List users
    ///
    /// Lists the store's seats, the oldest first.
    #[oai(path = "/users", method = "get", operation_id = "listSeats")]
    async fn list_seats(&self, managed: GrantedRequest<required_grants::Team>) -> Result<Reply<All<Seat>>, Failure<SettingsCatalog>> {
        let users: Vec<Seat> = managed.state.service.users(managed.store(), None, true).await?.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &users, vec![]))
    }

    /// Add a user
    ///
    /// Adds a user to the store. Users have no password: owners and admins sign in to the settings page with a link. If the server sends
    /// e-mail, the operation `sendLink` sends such a link. Only an owner can add an owner.
    #[oai(path = "/users", method = "post", operation_id = "addUser")]
    async fn add_user(
        &self,
        managed: GrantedRequest<required_grants::All>,
        body: Body<UserAddition>,
    ) -> Result<Reply<One<Seat>>, Failure<SettingsMembership>> {
        let new = body.parse()?;
        let new = NewUser { role: role_kind(&new.role)?, name: new.name, email: new.email.0 };
        let (_, added) = managed.state.service.add_user(&managed.editor, new).await.map_err(ApiError::in_body)?;
        Ok(Reply::of(&managed.context, &Seat::from(added), vec![]))
    }

    /// Set a user's role
    ///
    /// Gives a user another role. The links, sessions and tokens of a user who is no longer an owner or admin end; the user's API keys stay
    /// valid. Only an owner can change the role of an owner or make a user an owner, and the last owner stays an owner. API keys without a
    /// `userId` act for the store's oldest owner, who may be another one after the change.
    #[oai(path = "/users/role", method = "put", operation_id = "setUserRole")]
    async fn set_user_role(
        &self,
        managed: GrantedRequest<required_grants::All>,
        body: Body<RoleChange>,
    ) -> Result<Reply<One<Seat>>, Failure<SettingsChange>> {
        let change = body.parse()?;
        let kind = role_kind(&change.role)?;
        let changed = managed.state.service.set_role(&managed.editor, &change.id.into(), kind).await.map_err(ApiError::in_body)?;
        Ok(Reply::of(&managed.context, &Seat::from(changed), vec![]))
    }

    /// Remove a user
    ///
    /// Removes a seat, at once and permanently. The user's tickets lose their assignee, with one event for each ticket. The user's API keys
    /// act in the name of the store's oldest owner from then on. The user's sessions and tokens end. The last owner cannot be removed, and
    /// an admin cannot remove an owner.
    #[oai(path = "/users", method = "delete", operation_id = "removeUser")]
    async fn remove_user(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        /// The seat to remove: its `id` in the list of users, not its `userId`.
        id: Query<Required<Id<SeatId>>>,
    ) -> Result<Reply<One<UserRemoved>>, Failure<SettingsRemoval>> {
        let RemovedAccess { unassigned } = managed.state.service.remove_user(&managed.editor, &id.0.0.0).await?;
        Ok(Reply::of(&managed.context, &UserRemoved { unassigned_tickets: unassigned }, vec![]))
    }

    /// List accounts with their users
    ///
    /// Lists the store's channel accounts, including disconnected ones, with the users who may work on each.
    #[oai(path = "/accounts", method = "get", operation_id = "listAccountUsers")]
    async fn list_account_users(
        &self,
        managed: GrantedRequest<required_grants::Team>,
    ) -> Result<Reply<All<AccountUsers>>, Failure<SettingsCatalog>> {
        let accounts: Vec<AccountUsers> =
            managed.state.service.account_access(managed.store()).await?.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &accounts, vec![]))
    }

    /// Set an account's users
    ///
    /// Restricts an account to the users in `userIds`, or opens it to every user if that list is empty. Tickets of the account that are
    /// assigned to a user without access lose their assignee, with one event for each ticket.
    #[oai(path = "/accounts/users", method = "put", operation_id = "setAccountUsers")]
    async fn set_account_users(
        &self,
        managed: GrantedRequest<required_grants::Team>,
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
