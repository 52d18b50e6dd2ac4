//! Webhook subscriptions: their events, signatures and retry schedule (API contract, section 6).

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{
    ids::{AccountId, StoreId, WebhookId},
    retry_backoff,
    time::Timestamp,
};

/// Every kind of recorded event, in the order of section 6 of the contract.
pub const KINDS: [&str; 11] = [
    "message.received",
    "message.sent",
    "ticket.opened",
    "ticket.closed",
    "ticket.assigned",
    "ticket.unassigned",
    "ticket.ticket_field_updated",
    "conversation.label_added",
    "conversation.label_removed",
    "contact.contact_field_updated",
    "ai.escalated",
];

/// The kind of a test event.
pub const TEST_KIND: &str = "webhook.test";

/// A subscription of an endpoint to events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    pub id: WebhookId,
    pub url: String,
    /// The kinds of events that are delivered. Empty: all kinds.
    pub kinds: Vec<String>,
    /// If present, only events of this account are delivered.
    pub account_id: Option<AccountId>,
    pub enabled: bool,
    /// Why the subscription was disabled.
    pub disabled_reason: Option<String>,
    /// Since when every delivery attempt has failed. Absent: the last attempt at the current URL succeeded, or there was none. A subscription
    /// that was disabled because of failures keeps the instant, even if its URL changes.
    pub failing_since: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// An event to be delivered to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookDelivery {
    pub store_id: StoreId,
    pub webhook_id: WebhookId,
    pub event_id: String,
    pub kind: String,
    pub url: String,
    /// The payload, the same on every attempt.
    pub body: Vec<u8>,
    /// The signing secrets; several during a rotation. `Err`: why no secret can be decrypted.
    pub secrets: Result<Vec<SigningSecret>, String>,
}

/// The signing secret of a webhook's endpoint or of a bridge (an external program that connects a channel): 32 random bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(pub Vec<u8>);

impl std::fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningSecret")
    }
}

/// The length of a signing secret, in bytes.
pub const SECRET_BYTES: usize = 32;

impl SigningSecret {
    /// Returns the secret as text. It is shown only once, when it is created.
    pub fn reveal(&self) -> String {
        format!("whsec_{}", BASE64.encode(&self.0))
    }

    /// Returns the Standard Webhooks signature over id, time in Unix seconds, and body.
    pub fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let Some(mac) = self.mac(id, &seconds.to_string(), body) else { return String::new() };
        format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()))
    }

    /// Whether one of the signatures is the signature of the id, the time and the body. The comparison takes constant time.
    pub fn verifies(&self, id: &str, time: &str, body: &[u8], signatures: &[Vec<u8>]) -> bool {
        let Some(mac) = self.mac(id, time, body) else { return false };
        signatures.iter().fold(false, |found, signature| found | mac.clone().verify_slice(signature).is_ok())
    }

    /// Returns the HMAC-SHA256 of id, time and body. `None` does not occur: HMAC accepts a key of any length.
    fn mac(&self, id: &str, time: &str, body: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(format!("{id}.{time}.").as_bytes());
        mac.update(body);
        Some(mac)
    }
}

/// How long the former signing secret of a webhook or a bridge stays valid after a rotation (the replacement by a new secret) with
/// `FormerSecrets::Overlap`, in milliseconds. During this time, requests to the webhook or bridge are also signed with the former secret,
/// and a bridge may still sign its own requests with it.
pub const ROTATION_MILLIS: i64 = 24 * HOUR;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// Backoff schedule: the pause after each failed attempt, in milliseconds, counted from the end of the attempt.
pub const PAUSES: [i64; 9] = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];

/// A webhook is disabled when all of its delivery attempts have failed for this long, in milliseconds.
pub const DISABLE_AFTER_MILLIS: i64 = 5 * 24 * HOUR;

/// Returns the time of the next attempt after `attempts` attempts, the last of which ended at `ended`; `None` at the end of the schedule.
/// `asked` is the pause in milliseconds that the endpoint asked for. `jitter`, between 0 and 1, makes a pause of the schedule up to a fifth
/// shorter or longer.
pub fn next_attempt(attempts: i64, ended: Timestamp, asked: Option<i64>, jitter: f64) -> Option<Timestamp> {
    retry_backoff::next_attempt(&PAUSES, attempts, ended, asked, jitter)
}

/// An attempt that has ended: its times, and how the endpoint responded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempted {
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub answer: EndpointAnswer,
    /// The beginning of the body of a response that reports a failure, at most [`MAX_ANSWER_CHARS`] characters. Absent: there was no such
    /// response, or it had no body.
    pub body: Option<String>,
}

/// At most this many characters of the body of a response are stored.
pub const MAX_ANSWER_CHARS: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointAnswer {
    /// The HTTP status, and the pause in milliseconds that the endpoint asks for.
    Status(u16, Option<i64>),
    /// No response. Contains the reason.
    None(String),
}

impl EndpointAnswer {
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Status(200..=299, _))
    }

    /// Whether the endpoint is permanently gone (410).
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Status(410, _))
    }
}

/// An attempt to deliver an event, as the log of attempts shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedAttempt {
    pub position: i64,
    pub event_id: String,
    pub kind: String,
    /// The URL of the endpoint at the time of the attempt.
    pub url: String,
    pub attempt: i64,
    pub started_at: Timestamp,
    /// The duration of the attempt, in milliseconds.
    pub took: i64,
    pub status: Option<i64>,
    pub reason: Option<String>,
    pub outcome: String,
    pub next_at: Option<Timestamp>,
    /// The beginning of the body of a response that reports a failure.
    pub answer: Option<String>,
}

/// The part of the log of attempts that a page shows.
#[derive(Clone, Copy, Debug)]
pub enum AttemptLogPage {
    /// The attempts after this position in the log, oldest first.
    After(i64),
    /// The attempts before this position in the log, newest first. `None`: from the newest attempt on.
    Before(Option<i64>),
}

/// A selection of recorded events to be delivered again.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    pub event: Option<String>,
    /// Only events at or after this instant.
    pub since: Option<Timestamp>,
    /// Only events before this instant.
    pub until: Option<Timestamp>,
    /// Only events without a successful delivery.
    pub missing: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_the_example_of_the_standard_webhooks_specification() {
        // The example of the Standard Webhooks specification.
        let secret = SigningSecret(BASE64.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let signed = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn retries_follow_the_schedule() {
        let ended = Timestamp::from_millis(1_000_000);
        let pause = |attempts, asked, jitter| next_attempt(attempts, ended, asked, jitter).map(|at| at.millis() - ended.millis());
        assert_eq!(pause(1, None, 0.5), Some(5_000));
        assert_eq!(pause(1, None, 0.0), Some(4_000));
        assert_eq!(pause(1, None, 1.0), Some(6_000));
        assert_eq!(pause(9, None, 0.5), Some(24 * HOUR));
        assert_eq!(pause(10, None, 0.5), None);
        assert_eq!(pause(0, None, 0.5), None);
        assert_eq!(pause(1, Some(60_000), 0.5), Some(60_000));
        assert_eq!(pause(1, Some(90 * HOUR), 0.5), Some(24 * HOUR));
        assert_eq!(pause(9, Some(-5), 0.5), Some(24 * HOUR));
        assert_eq!(PAUSES.len() + 1, 10);
    }
}
