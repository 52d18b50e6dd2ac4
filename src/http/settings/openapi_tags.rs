//! The tags of the settings API's OpenAPI document.

use poem_openapi::Tags;

/// The subjects by which operations are grouped.
#[derive(Debug, Tags)]
pub enum SettingsTag {
    /// Sessions of the settings page, and the user behind a session or token.
    Session,
    /// API keys.
    Keys,
    /// Subscriptions of endpoints to events, the log of delivery attempts, test events and replays.
    Webhooks,
    /// Recorded events.
    Events,
    /// Changed records, for a copy that is kept current.
    Changes,
    /// Messages to contacts that an assistant proposed, and that a person releases, edits or discards.
    Drafts,
    /// Messages that their channel has not accepted.
    Undelivered,
    /// State changes of tickets and conversations, and inbound messages from a bridge.
    Inbox,
    /// Seats, and which users may work on which channel account.
    Team,
    /// Endpoints that pass the outgoing messages of channel accounts on to their channels.
    Bridges,
    /// The audit log: what was changed, and by whom.
    Audit,
    /// The clock of the server, and advancing that of a sandbox.
    Clock,
}
