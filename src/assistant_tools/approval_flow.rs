//! Approval of messages that an assistant sends with MCP tools. Decides whether a message is sent at once, is first shown to the user of
//! the MCP client, or becomes a draft that a user of the store releases.

use std::time::Duration;

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    api_operation_calls::Input,
    errors::ToolError,
    prompt_injection::spelled_out,
    results::REPLAYED,
    tool_call::{ApprovalChannel, Call, Outcome, digest},
};
use crate::{
    domain::{
        drafts::{Draft, DraftState},
        ids::DraftId,
        send_requests::Send,
        time::Timestamp,
    },
    revision::wire,
    service::{Error, IdempotentRequest, WriteContext, WriteOutcome},
};

/// How long the client's user has to reply to a question.
pub const REPLY_LIMIT: Duration = Duration::from_secs(15 * 60);

/// The longest question that is shown to the user, in characters. If the user can be asked, a message whose question is longer becomes a
/// draft, since the user cannot approve what is not shown.
const MAX_SHOWN_CHARS: usize = 4_000;

/// The name of the only question that a call asks.
pub const QUESTION: &str = "send";

/// The parts of a message that the client's user is shown before the message is sent.
pub struct Preview {
    to: String,
    content: Vec<(&'static str, String)>,
}

impl Preview {
    /// Makes the preview of a message. `to`: the recipient in words. The content is taken from the operation's input.
    pub fn of(input: &Input, to: String) -> Self {
        let parts = ["to", "cc", "bcc", "subject", "text", "html", "templateId", "variables"];
        let content = parts.into_iter().filter_map(|name| {
            let text = match input.body.as_ref()?.get(name)? {
                Value::String(text) => text.clone(),
                Value::Array(all) => {
                    all.iter().map(|one| one["email"].as_str().or(one.as_str()).unwrap_or("?")).collect::<Vec<_>>().join(", ")
                }
                other => other.to_string(),
            };
            Some((name, text))
        });
        Self { to, content: content.collect() }
    }

    /// Returns the text of the question for the user. `None` if the text is longer than [`MAX_SHOWN_CHARS`].
    fn question(&self) -> Option<String> {
        // A line of the message must not look like a line of the question. So the lines of the message begin with `> `, and the recipient
        // is one line.
        let mut question = format!("Send this message to {}?", spelled_out(&self.to).replace('\n', "[U+000A]"));
        for (name, text) in &self.content {
            question.push_str(&format!("\n\n{name}:"));
            for line in spelled_out(text).split('\n') {
                question.push_str(&format!("\n> {line}"));
            }
        }
        (question.chars().count() <= MAX_SHOWN_CHARS).then_some(question)
    }
}

/// Sends a message, or keeps it as a draft where sends are not permitted. If the client can ask its user, the message is sent only after
/// the user's approval; a message that is too long for the question becomes a draft.
pub async fn send_or_draft(call: &Call<'_>, input: Input, preview: Preview) -> Result<Outcome, ToolError> {
    if call.session.caller_limits.drafts_only {
        return draft(call, &input, "This connection makes drafts. A person releases the draft in the settings of the store.").await;
    }
    if !call.permits.send {
        return draft(call, &input, "Sends are not permitted here. A person releases the draft in the settings of the store.").await;
    }
    let Some(question) = preview.question() else {
        return match call.person {
            ApprovalChannel::None => send(call, &input).await,
            _ => draft(call, &input, "The message is too long to be shown and accepted here. A person releases the draft.").await,
        };
    };
    match call.person {
        ApprovalChannel::None => send(call, &input).await,
        ApprovalChannel::DuringCall(peer) => {
            check(call, &input).await?;
            let asked =
                ElicitRequestParams::FormElicitationParams { meta: None, message: question, requested_schema: nothing_to_fill_in() };
            let reply = peer.create_elicitation_with_timeout(asked, Some(REPLY_LIMIT)).await;
            let reply =
                reply.map_err(|error| ToolError::Unavailable(format!("The person could not be asked, and nothing was sent: {error}")))?;
            on_reply(call, &input, &reply.action).await
        }
        ApprovalChannel::BetweenCalls { state: None, .. } => {
            check(call, &input).await?;
            let codec = codec(call).await?;
            let binding = call.binding();
            let options = SealOptions::new().associated_data(binding.as_bytes()).ttl(REPLY_LIMIT);
            Ok(Outcome::Ask { question, state: codec.seal_with(fingerprint(&input).as_bytes(), &options) })
        }
        ApprovalChannel::BetweenCalls { state: Some(state), replies } => {
            let codec = codec(call).await?;
            let opened = codec.open_with(state, call.binding().as_bytes());
            let opened = opened
                .map_err(|error| ToolError::Arguments(format!("The state of the question is not valid: {error}. Nothing was sent.")))?;
            if opened != fingerprint(&input).as_bytes() {
                return Err(ToolError::Arguments(
                    "The recipient changed since the person was asked. Nothing was sent; call again.".to_owned(),
                ));
            }
            let reply = replies.and_then(|replies| replies.get(QUESTION)).cloned();
            let reply = reply.and_then(|reply| serde_json::from_value::<ElicitResult>(reply).ok());
            let reply = reply.ok_or_else(|| ToolError::Arguments("The person's reply is missing. Nothing was sent.".to_owned()))?;
            on_reply(call, &input, &reply.action).await
        }
    }
}

/// Returns the form of a yes-or-no question. The form has no fields: the user replies with the accept or decline button of the client.
pub fn nothing_to_fill_in() -> ElicitationSchema {
    ElicitationSchema::new(std::collections::BTreeMap::new())
}

/// Returns a hash of the operation and of its body, which has the message and its recipients.
fn fingerprint(input: &Input) -> String {
    digest(json!([input.operation.id, input.body]))
}

async fn codec(call: &Call<'_>) -> Result<RequestStateCodec, ToolError> {
    let key = call.service.server_secret("mcp").await.map_err(|error| ToolError::Internal(error.to_string()))?;
    RequestStateCodec::try_new(key).map_err(|error| ToolError::Internal(error.to_string()))
}

async fn on_reply(call: &Call<'_>, input: &Input, action: &ElicitationAction) -> Result<Outcome, ToolError> {
    if *action == ElicitationAction::Accept {
        return send(call, input).await;
    }
    Ok(Outcome::Done(json!({ "status": "declined", "note": "The person declined. Nothing was sent." })))
}

async fn send(call: &Call<'_>, input: &Input) -> Result<Outcome, ToolError> {
    let answer = call.call(input).await?;
    let mut result = json!({ "status": "sent", "message": answer.data["message"] });
    if answer.replayed {
        result["note"] = REPLAYED.into();
    }
    Ok(Outcome::Done(result))
}

/// Parses the input of an operation as the message that it sends.
fn message_of(input: &Input) -> Result<Send, ToolError> {
    let operation = input.operation.id.as_str();
    wire::send_of(operation, input.body.as_ref().unwrap_or(&Value::Null)).map_err(|error| ToolError::of_api(operation, error))
}

/// Checks a message as if it were sent, so that the user is asked only about a message that can be sent.
async fn check(call: &Call<'_>, input: &Input) -> Result<(), ToolError> {
    let checked = call.service.dry_run(&call.session.caller.store_id, call.actor(), message_of(input)?).await;
    checked.map_err(|error| ToolError::of_api(&input.operation.id, error.into()))
}

/// The operation name under which the idempotency keys of drafts are stored.
const DRAFT_OPERATION: &str = "makeDraft";

/// What is stored under the idempotency key of a call that made a draft, so that a repeated call gets the same draft.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Receipt {
    draft_id: DraftId,
    expires_at: Timestamp,
}

impl From<&Draft> for Receipt {
    fn from(draft: &Draft) -> Self {
        Self { draft_id: draft.id.clone(), expires_at: draft.expires_at }
    }
}

/// Returns what has happened to a draft since it was made, for a repeated call that gets the same draft.
fn since(draft: &Draft) -> &'static str {
    match draft.state {
        DraftState::Pending if draft.updated_at > draft.created_at => "A person edited the draft since, and has not released it yet.",
        DraftState::Pending => "The draft waits for a person to release it.",
        DraftState::Released => "A person released the draft since: the message was sent.",
        DraftState::Discarded => "A person discarded the draft since: nothing was sent.",
        DraftState::Expired => "The draft has expired since: nothing was sent.",
    }
}

/// Keeps the message as a draft, and returns the result of the call. The message is checked as if it were sent.
async fn draft(call: &Call<'_>, input: &Input, note: &str) -> Result<Outcome, ToolError> {
    let caller = &call.session.caller;
    let message = message_of(input)?;
    let once = input.idempotency_key.as_deref().map(|key| IdempotentRequest {
        operation: DRAFT_OPERATION,
        key,
        request_hash: call.fingerprint(),
        // The serialisation cannot fail: a `Receipt` is plain data with fixed names.
        render: |draft: &Draft| serde_json::to_vec(&Receipt::from(draft)).unwrap_or_default(),
    });
    let by = WriteContext::alone(&caller.store_id, call.actor()).once(once);
    let made = call.service.make_draft(&by, &caller.key_id, &caller.key_name, message).await;
    let (receipt, note) = match made.map_err(|error| ToolError::of_api(&input.operation.id, error.into()))? {
        WriteOutcome::New(draft) => (Receipt::from(&draft), note.to_owned()),
        WriteOutcome::Replayed(kept) => {
            let receipt: Receipt = serde_json::from_slice(&kept).map_err(|error| ToolError::Internal(error.to_string()))?;
            let since = match call.service.draft(&caller.store_id, &receipt.draft_id).await {
                Ok(draft) => since(&draft),
                Err(Error::NotFound { .. }) => "The draft is gone since.",
                Err(error) => return Err(ToolError::of_api(&input.operation.id, error.into())),
            };
            (receipt, format!("{REPLAYED} {since}"))
        }
    };
    Ok(Outcome::Done(json!({ "status": "draft", "draftId": receipt.draft_id, "expiresAt": receipt.expires_at, "note": note })))
}
