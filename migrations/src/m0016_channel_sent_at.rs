//! Column for the time at which a message was sent according to its channel. The column is set only if this time is more than five minutes
//! after the receipt of the message. In this case the clock of the channel is wrong, and `messages.sent_at` is the time of receipt.
//!
//! `messages.sent_at` stays the sort key, which lists, tickets and counters use.

crate::migration!(
    "m0016_channel_sent_at",
    up: "ALTER TABLE messages ADD COLUMN channel_sent_at BIGINT",
    down: "ALTER TABLE messages DROP COLUMN channel_sent_at"
);
