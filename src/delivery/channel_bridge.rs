//! Bridge connector. A bridge is an operator's HTTP endpoint for a channel account. The connector posts each outbound message of the
//! account, signed, to the bridge. The bridge passes the message on to the channel and returns the channel's id of the message.
//!
//! Called by `outbound`. The header `webhook-id` is the message's id on every attempt, so that the bridge recognizes a repeated attempt. A
//! message counts as accepted only if the response contains the channel's id. `docs/bridges.md` documents the request and the possible
//! responses for authors of bridges.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::{Map, Value};
use url::Url;

use super::{
    channel_connector::{Accepted, Capabilities, Connector, FailureClass, SendFailure, Sending},
    signing_http_client::{ClientBuildError, EndpointResponse, MAX_RESPONSE_BYTES, ResponseBody, SigningHttpClient},
};
use crate::domain::{
    channel_bridges::BridgeEndpoint,
    clock::Clock,
    ids::{AccountId, ConversationId, MessageId, StoreId, TemplateId},
    inbound_messages::MAX_CHANNEL_ID_CHARS,
    outbound_messages::{Content, Email, Mailbox, OutboxEntry, TemplateMessage, header_text},
    ssrf_policy::Targets,
    stores_and_accounts::Channel,
    unicode_text::is_name,
};

/// Error texts of a bridge are cut to this many characters.
const MAX_ERROR_CHARS: usize = 200;

/// What the connectors of all bridges share: the HTTP client, the clock and the permitted targets.
#[derive(Clone)]
pub struct BridgeConnectors {
    http_client: SigningHttpClient,
    /// The clock for the timestamps of signatures. It shows real time even in a sandbox (a test database whose clock can be advanced),
    /// since bridges compare the timestamps with their own clocks.
    clock: Arc<dyn Clock>,
    targets: Targets,
}

/// The connector that sends messages to the bridge of one account.
pub struct BridgeConnector {
    bridges: BridgeConnectors,
    endpoint: BridgeEndpoint,
}

impl BridgeConnectors {
    pub fn new(timeout: Duration, clock: Arc<dyn Clock>, targets: Targets) -> Result<Self, ClientBuildError> {
        Ok(Self { http_client: SigningHttpClient::new(timeout, targets)?, clock, targets })
    }

    pub fn to(&self, endpoint: &BridgeEndpoint) -> BridgeConnector {
        BridgeConnector { bridges: self.clone(), endpoint: endpoint.clone() }
    }
}

impl Connector for BridgeConnector {
    fn capabilities(&self) -> Capabilities {
        Capabilities { text: true, email: true, templates: true }
    }

    fn send<'a>(&'a self, outbox_entry: &'a OutboxEntry, attempt: i64) -> Sending<'a> {
        Box::pin(self.post(outbox_entry, attempt))
    }
}

impl BridgeConnector {
    async fn post(&self, outbox_entry: &OutboxEntry, attempt: i64) -> Result<Accepted, SendFailure> {
        let BridgeConnectors { http_client, clock, targets } = &self.bridges;
        let url = Url::parse(&self.endpoint.url).map_err(never)?;
        targets.check(&url).map_err(never)?;
        let body = serde_json::to_vec(&MessageOrder::of(outbox_entry, attempt)).map_err(never)?;
        // If the signing secrets cannot be decrypted, the failure is transient: a retry succeeds once the operator has configured the
        // missing encryption key again.
        let secrets = self.endpoint.secrets.as_ref().map_err(|reason| transient_failure(reason.clone(), None))?;
        match http_client.post(url, outbox_entry.message_id.as_str(), clock.now(), secrets, body).await {
            Ok(received) => classify_bridge_response(&received),
            // Every request without a response is a transient failure, even if the host name has no public address. The name may get a
            // public address later. And if the class of the failure differed, a user who sets the URL of a bridge could find out which
            // internal names exist.
            Err(reason) => Err(transient_failure(reason, None)),
        }
    }
}

fn never(reason: impl ToString) -> SendFailure {
    SendFailure { class: FailureClass::Permanent, reason: reason.to_string() }
}

/// Makes a transient failure. `after`: the pause that the bridge asks for, in milliseconds.
fn transient_failure(reason: String, after: Option<i64>) -> SendFailure {
    SendFailure {
        class: FailureClass::Transient { after: after.map(|after| Duration::from_millis(u64::try_from(after).unwrap_or(0))) },
        reason,
    }
}

/// Classifies a response as accepted or failed. The JSON of a response that never ends is still used if all of the JSON has arrived.
fn classify_bridge_response(received: &EndpointResponse) -> Result<Accepted, SendFailure> {
    let (status, after) = (received.status, received.pause);
    let read = |body: &[u8]| serde_json::from_slice::<Map<String, Value>>(body).ok();
    let answer = match &received.body {
        ResponseBody::Whole(body) => read(body).ok_or_else(|| "it is no JSON object".to_owned()),
        ResponseBody::Part(body, reason) => read(body).ok_or_else(|| reason.clone()),
        ResponseBody::TooLong(_) => Err(format!("it is longer than {MAX_RESPONSE_BYTES} bytes")),
    };
    if (200..=299).contains(&status) {
        return answer.and_then(|answer| accepted(&answer)).map_err(|reason| {
            transient_failure(format!("the bridge answered {status}, but the answer is not understood: {reason}"), after)
        });
    }
    let mut reason = format!("the bridge answered {status}");
    if let Some(error) = answer.as_ref().ok().and_then(|answer| answer.get("error")?.as_str()) {
        reason.push_str(": ");
        reason.extend(header_text(error).chars().take(MAX_ERROR_CHARS));
    }
    match status {
        408 | 425 | 429 => Err(transient_failure(reason, after)),
        400..=499 => Err(never(reason)),
        _ => Err(transient_failure(reason, after)),
    }
}

fn accepted(answer: &Map<String, Value>) -> Result<Accepted, String> {
    let name = |member: &str| match answer.get(member) {
        None => Ok(None),
        Some(Value::String(name)) if is_name(name, MAX_CHANNEL_ID_CHARS) => Ok(Some(name.clone())),
        Some(_) => Err(format!("`{member}` must be a string of 1 to {MAX_CHANNEL_ID_CHARS} printable characters")),
    };
    let external_id = name("externalId")?.ok_or("`externalId` is missing")?;
    Ok(Accepted { external_id: Some(external_id), reference_id: name("referenceId")? })
}

/// The body of a request to a bridge: the same in both API revisions. A property without a value is left out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageOrder<'a> {
    r#type: &'static str,
    attempt: i64,
    store_id: &'a StoreId,
    message_id: &'a MessageId,
    conversation_id: &'a ConversationId,
    account_id: &'a AccountId,
    channel: &'a Channel,
    reference_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(flatten)]
    said: BridgeContent<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum BridgeContent<'a> {
    Text(&'a str),
    Email(BridgeMail<'a>),
    Template(Filled<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BridgeMail<'a> {
    message_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a Mailbox>,
    to: &'a [Mailbox],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    cc: &'a [Mailbox],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    bcc: &'a [Mailbox],
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_reply_to: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    references: &'a [String],
}

#[derive(Serialize)]
struct Filled<'a> {
    id: &'a TemplateId,
    name: &'a str,
    language: &'a str,
    variables: &'a [String],
    text: &'a str,
}

impl<'a> MessageOrder<'a> {
    fn of(outbox_entry: &'a OutboxEntry, attempt: i64) -> Self {
        // The bridge does not get the actor and the ticket: only the event about the message contains them.
        let OutboxEntry { store_id, message_id, conversation_id, account_id, channel, reference_id, kind, content, actor: _, ticket_id: _ } =
            outbox_entry;
        let (kind, said) = (kind.as_deref(), BridgeContent::of(content));
        Self { r#type: "message.send", attempt, store_id, message_id, conversation_id, account_id, channel, reference_id, kind, said }
    }
}

impl<'a> BridgeContent<'a> {
    fn of(content: &'a Content) -> Self {
        match content {
            Content::Text(text) => Self::Text(text),
            Content::Email(Email { message_id, from, to, cc, bcc, subject, text, html, in_reply_to, references }) => {
                Self::Email(BridgeMail {
                    message_id,
                    from: from.as_ref(),
                    to,
                    cc,
                    bcc,
                    subject: subject.as_deref(),
                    text: text.as_deref(),
                    html: html.as_deref(),
                    in_reply_to: in_reply_to.as_deref(),
                    references,
                })
            }
            Content::Template(TemplateMessage { id, name, language, variables, text }) => {
                Self::Template(Filled { id, name, language, variables, text })
            }
        }
    }
}

#[cfg(test)]
mod tests;
