//! Access to the settings of a store (tenant), and their audit log: the credentials of users (login link, session, token), the author of a
//! change ([`Editor`]), and the entries of the log (API contract, section 5).

use serde_json::Value;

use super::{
    api_keys::Secret,
    events::Actor,
    ids::{CredentialId, StoreId, UserId},
    time::Timestamp,
    token_grants::GrantSet,
};

/// The maximum numbers of webhooks and of API keys that a store may have.
#[derive(Clone, Copy, Debug)]
pub struct StoreLimits {
    pub webhooks: u32,
    pub keys: u32,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self { webhooks: 100, keys: 100 }
    }
}

/// The kinds of credentials of a store's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// A login link, which can be used once to open a session.
    Link,
    /// The login of a browser.
    Session,
    /// A bearer token for a program.
    Token,
}

/// The prefix of the secret of every credential of the settings API.
pub const CREDENTIAL_PREFIX: &str = "cps_";

/// Returns the URL of the settings page with the secret of a login link. The secret is in the fragment (after `#`), which browsers do not
/// send to servers.
pub fn link_url(public_url: &str, secret: &Secret) -> String {
    format!("{}/settings#link={}", public_url.trim_end_matches('/'), secret.reveal())
}

/// A credential to be created.
#[derive(Debug)]
pub struct NewCredential<'a> {
    pub user: &'a UserId,
    pub kind: CredentialKind,
    pub can: GrantSet,
    /// The e-mail address to which a link is sent. The link is valid only while the user has this address.
    pub sent_to: Option<&'a str>,
}

/// A link, session or token as it is shown to users who manage the store.
#[derive(Clone, Debug)]
pub struct ListedCredential {
    pub id: CredentialId,
    pub user_id: UserId,
    pub kind: CredentialKind,
    pub can: GrantSet,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// The e-mail address that a link was sent to. Absent: the credential was not sent by e-mail.
    pub sent_to: Option<String>,
    /// Whether the user of the credential is an owner of the store.
    pub is_owners: bool,
}

/// A user of one of the stores, found by e-mail address.
#[derive(Clone, Debug)]
pub struct EmailLoginUser {
    pub store_id: StoreId,
    pub store_name: String,
    pub user_id: UserId,
    /// The e-mail address as it is stored. The address that was searched for may have other upper and lower case.
    pub email: String,
    /// Absent: the user has no role.
    pub role: Option<String>,
}

/// What happens to the former secrets when a secret is rotated (replaced by a new one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormerSecrets {
    /// The former secrets stay valid for a limited time, in which receivers or clients switch to the new secret.
    Overlap,
    /// The former secrets become invalid immediately, for example after a leak.
    End,
}

impl FormerSecrets {
    pub const fn of(end_at_once: bool) -> Self {
        if end_at_once { Self::End } else { Self::Overlap }
    }

    /// Returns `entry`, the audit log entry of a rotation. If the former secrets became invalid immediately, the entry gets a note that
    /// says so.
    pub fn noted(self, mut entry: Entry) -> Entry {
        if self == Self::End {
            entry.detail["formerSecretsEnded"] = true.into();
        }
        entry
    }

    /// Returns the time at which the former secrets become invalid, unless they expire before it.
    pub fn end(self, now: Timestamp, overlap_millis: i64) -> Timestamp {
        match self {
            Self::Overlap => now.plus_millis(overlap_millis),
            Self::End => now,
        }
    }
}

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

impl CredentialKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Session => "session",
            Self::Token => "token",
        }
    }

    pub const ALL: [Self; 3] = [Self::Link, Self::Session, Self::Token];

    /// Returns the lifetime of a credential of this kind, in milliseconds.
    pub const fn lifetime(self) -> i64 {
        match self {
            Self::Link => 15 * MINUTE,
            Self::Session => 12 * HOUR,
            Self::Token => 90 * DAY,
        }
    }
}

/// The user of a valid credential (link, session or token) for the settings of a store. Only owners and admins may manage the settings
/// ([`Self::may_manage`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    pub store_id: StoreId,
    pub user_id: UserId,
    /// Absent: the user has no role.
    pub role: Option<String>,
    pub expires_at: Timestamp,
    /// What the credential permits. Links and sessions permit everything.
    pub can: GrantSet,
}

pub const OWNER: &str = "owner";

/// The roles that may change settings.
pub const MANAGING_ROLES: [&str; 2] = [OWNER, "admin"];

/// Whether a role may change settings.
pub fn manages(role: Option<&str>) -> bool {
    role.is_some_and(|role| MANAGING_ROLES.contains(&role))
}

impl Manager {
    pub fn is_owner(&self) -> bool {
        self.role.as_deref() == Some(OWNER)
    }

    pub fn may_manage(&self) -> bool {
        manages(self.role.as_deref())
    }
}

/// The means by which a change was made: a user's session or token, the command line, or the server itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Session,
    Token,
    CommandLine,
    System,
}

impl Via {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Token => "token",
            Self::CommandLine => "command_line",
            Self::System => "system",
        }
    }
}

/// The author of a settings change.
#[derive(Clone, Debug)]
pub struct Editor {
    pub store_id: StoreId,
    /// The user who made the change. Absent: the change was made on the command line or by the server.
    pub user_id: Option<UserId>,
    pub via: Via,
    /// Whether the author may also make changes that only an owner may make.
    pub is_owner: bool,
    pub request_id: Option<String>,
}

impl Editor {
    pub fn command_line(store_id: StoreId) -> Self {
        Self { store_id, user_id: None, via: Via::CommandLine, is_owner: true, request_id: None }
    }

    /// Returns the editor of changes that the server itself makes.
    pub fn system(store_id: StoreId) -> Self {
        Self { store_id, user_id: None, via: Via::System, is_owner: true, request_id: None }
    }

    /// Returns the editor as the actor of events.
    pub fn actor(&self) -> Actor {
        self.user_id.clone().map_or(Actor::System, Actor::User)
    }
}

/// The kinds of records that an audit log entry can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Account,
    Clock,
    Conversation,
    Draft,
    Key,
    Message,
    Session,
    Ticket,
    User,
    Webhook,
}

impl Subject {
    pub const ALL: [Self; 10] = [
        Self::Account,
        Self::Clock,
        Self::Conversation,
        Self::Draft,
        Self::Key,
        Self::Message,
        Self::Session,
        Self::Ticket,
        Self::User,
        Self::Webhook,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Clock => "clock",
            Self::Conversation => "conversation",
            Self::Draft => "draft",
            Self::Key => "key",
            Self::Message => "message",
            Self::Session => "session",
            Self::Ticket => "ticket",
            Self::User => "user",
            Self::Webhook => "webhook",
        }
    }
}

/// An audit log entry to be written.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name of the action, such as `key.rotated`.
    pub action: &'static str,
    pub subject: Subject,
    pub subject_id: String,
    /// The details of the action: a JSON object without secrets.
    pub detail: Value,
}

/// An audit log entry as it is read from the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLogEntry {
    pub position: i64,
    pub at: Timestamp,
    pub user_id: Option<UserId>,
    pub via: String,
    pub request_id: Option<String>,
    pub action: String,
    pub subject_kind: String,
    pub subject_id: String,
    /// The details of the action: the text of a JSON object.
    pub detail: String,
}
