//! Users, roles, teams and labels of a store (tenant): API contract, section 2.10.

use super::{
    ids::{LabelId, RoleId, SeatId, TeamId, UserId},
    time::Timestamp,
};

/// A user of a store: a teammate, or a person who has not accepted the invitation yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: SeatId,
    /// Absent until the invitation is accepted.
    pub user_id: Option<UserId>,
    pub name: Option<String>,
    pub email: Option<String>,
    pub role_id: Option<RoleId>,
    pub created_at: Timestamp,
}

impl User {
    /// Returns the displayed name. `fallback` is set for an API revision that requires a name: a user without a name is then displayed with
    /// the local part of the e-mail address, or as `Invited user` if there is no address.
    pub fn shown_name(&self, fallback: bool) -> Option<&str> {
        match (&self.name, &self.email) {
            (Some(name), _) => Some(name),
            (None, _) if !fallback => None,
            (None, Some(email)) => Some(email.split('@').next().filter(|local| !local.is_empty()).unwrap_or(INVITED)),
            (None, None) => Some(INVITED),
        }
    }
}

const INVITED: &str = "Invited user";

/// A role of users, such as owner or agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub id: RoleId,
    pub name: String,
    /// Absent: this version of the server does not know the kind.
    pub kind: Option<RoleKind>,
}

/// The kinds of roles. A kind determines what users with the role may do in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleKind {
    Owner,
    Admin,
    Agent,
}

impl RoleKind {
    pub const ALL: [Self; 3] = [Self::Owner, Self::Admin, Self::Agent];

    /// Returns the name of the kind, which is the value of a role's property `kind`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Admin => "admin",
            Self::Agent => "agent",
        }
    }

    /// Returns the name of a role that the server creates for this kind.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Owner => "Owner",
            Self::Admin => "Admin",
            Self::Agent => "Agent",
        }
    }

    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A user, with the user's role if the role was requested and exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserView {
    pub user: User,
    pub role: Option<Role>,
}

/// A reference to a user. `name` is the displayed name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRef {
    pub user_id: UserId,
    pub name: String,
    pub role_id: Option<RoleId>,
}

/// A team: a group of users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Team {
    pub id: TeamId,
    pub name: String,
    pub description: Option<String>,
    pub created_at: Timestamp,
}

/// A team with its members. A member is a [`UserRef`] if the request asks for the users of the team and the user exists. Otherwise the
/// member is only the user's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamView {
    pub team: Team,
    pub members: Vec<Member>,
}

/// One member of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    Id(UserId),
    User(UserRef),
}

/// A label, which can be added to conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub id: LabelId,
    pub label: String,
    pub color: String,
    pub updated_at: Timestamp,
}
