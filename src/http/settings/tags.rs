//! The tags of the settings plane's document.

use poem_openapi::Tags;

/// The nouns under which operations are grouped.
#[derive(Debug, Tags)]
pub enum SettingsTag {
    /// Who is asking.
    Session,
    /// API keys.
    Keys,
    /// Subscriptions to events, the log of deliveries, and deliveries on demand.
    Webhooks,
    /// Recorded events.
    Events,
    /// Moves of tickets and conversations, and messages that a bridge brings.
    Inbox,
    /// Seats, and who may work on which account.
    Team,
    /// Endpoints that hand the messages of channel accounts over.
    Bridges,
    /// What was changed, and by whom.
    Audit,
}
