//! The store (tenant), its channel accounts and their message templates (API contract, sections 2.3, 2.11 and 2.12).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ids::{AccountId, StoreId, TemplateId},
    time::Timestamp,
};

/// A store (the tenant) and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    pub id: StoreId,
    pub name: String,
    /// ISO 4217 code.
    pub currency: String,
    /// The reopen window: a message reopens a ticket that was closed less than this many hours ago. 0 means never, -1 always.
    pub reopen_window_hours: i64,
    pub created_at: Timestamp,
}

/// The name of a channel. The list of names is open: a name that this revision does not know is stored and returned unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Channel(pub String);

impl Channel {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The channels that the OpenAPI documents of the revisions A and B list, taken together.
pub const CHANNELS: [&str; 11] =
    ["line", "instagram", "facebook", "lazada", "shopee", "tiktok", "whatsapp", "widget", "gmail", "outlook", "drunken_lullabies"];

/// WhatsApp: the only channel with message templates. Its reply window, the time after a contact's message in which it accepts free text,
/// differs from those of other channels.
pub const WHATSAPP: &str = "whatsapp";

/// The statuses of an account: the states of its connection to the channel.
pub const ACCOUNT_STATUSES: [&str; 5] = ["healthy", "degraded", "reauthorization_required", "restricted", DISCONNECTED];

/// The status of an inactive account. The list of accounts in the API leaves such accounts out.
pub const DISCONNECTED: &str = "disconnected";

/// A channel account: an account of the store on a channel, such as a LINE account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub id: AccountId,
    pub channel: Channel,
    pub name: String,
    pub status: String,
    pub last_authorized_at: Option<Timestamp>,
    /// A JSON object, as text.
    pub metadata: Option<String>,
    pub created_at: Timestamp,
}

/// A message template of a WhatsApp account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pub id: TemplateId,
    pub account_id: AccountId,
    pub name: String,
    pub parameter_format: String,
    pub language: String,
    pub status: String,
    pub category: String,
    /// The components of the template, such as its body and its buttons: the text of a JSON array of objects.
    pub components: String,
}

impl Template {
    /// Returns the text of the body; empty if there is no body.
    pub fn body(&self) -> String {
        let components: Vec<Value> = serde_json::from_str(&self.components).unwrap_or_default();
        let body = components.iter().find(|component| component["type"] == "BODY");
        body.and_then(|body| body["text"].as_str()).unwrap_or_default().to_owned()
    }
}

/// The maximum number of templates in one response (contract, section 8).
pub const MAX_TEMPLATES: u64 = 100;

/// Template statuses (contract, section 2.12).
pub const TEMPLATE_STATUSES: [&str; 13] = [
    "APPROVED",
    "ARCHIVED",
    "DELETED",
    "DISABLED",
    "FLAGGED",
    "IN_APPEAL",
    "LIMIT_EXCEEDED",
    "LOCKED",
    "PAUSED",
    "PENDING",
    "PENDING_DELETION",
    "REINSTATED",
    "REJECTED",
];

/// Template categories: the purposes of a template.
pub const TEMPLATE_CATEGORIES: [&str; 3] = ["MARKETING", "UTILITY", "AUTHENTICATION"];

/// Parameter formats of a template: its placeholders have numbers (`POSITIONAL`) or names (`NAMED`).
pub const PARAMETER_FORMATS: [&str; 2] = ["POSITIONAL", NAMED];

/// The parameter format of a template with named placeholders.
pub const NAMED: &str = "NAMED";

/// A reference to an account or a conversation: its id, its name and its channel (contract, section 2.13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelRef {
    pub id: String,
    pub name: String,
    pub channel: Channel,
}

/// A template filter. An absent property does not filter.
#[derive(Clone, Debug, Default)]
pub struct TemplateFilter {
    /// A text to search for in name and body, without regard to case and Unicode form.
    pub search: Option<String>,
    pub language: Option<String>,
    pub status: Option<String>,
    pub category: Option<String>,
}
