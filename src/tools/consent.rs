//! Whether a message goes out: it is sent, shown to the client's person first, or kept as a draft that a person releases.

use std::time::Duration;

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, RequestStateCodec, SealOptions};
use serde_json::{Value, json};

use serde::{Deserialize, Serialize};

use super::{
    call::{Asking, Call, Outcome},
    operations::Input,
    problems::Problem,
    untrusted::spelled_out,
};
use crate::{
    domain::{drafts::Draft, events::Actor, ids::DraftId, time::Timestamp},
    revision::wire,
    service::{IdempotentRequest, WriteContext, WriteOutcome},
};

/// How long a person has for the decision.
pub const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The longest content that is shown to a person, in characters. A longer one becomes a draft, since nobody can accept what is not shown.
const MAX_SHOWN_CHARS: usize = 4_000;

/// The name of the one question of a call.
pub const QUESTION: &str = "send";

/// What a person sees of a message before it is sent.
pub struct Shown {
    to: String,
    content: Vec<(&'static str, String)>,
}

impl Shown {
    /// `to`: the recipient in words; the content is what the operation gets.
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

    /// The question to the person; `None` if it is too long to be shown.
    fn question(&self) -> Option<String> {
        // No line of the message can be taken for one of the question: its lines begin with `> `, and the recipient has one line.
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

/// Sends a message, if that is permitted and the person agrees; otherwise keeps it as a draft.
pub async fn deliver(call: &Call<'_>, input: Input, shown: Shown) -> Result<Outcome, Problem> {
    if call.session.narrowing.drafts_only {
        return draft(call, &input, "This connection makes drafts. A person releases the draft in the settings of the store.").await;
    }
    if !call.permits.send {
        return draft(call, &input, "Sends are not permitted here. A person releases the draft in the settings of the store.").await;
    }
    let Some(question) = shown.question() else {
        return match call.person {
            Asking::Absent => send(call, &input).await,
            _ => draft(call, &input, "The message is too long to be shown and accepted here. A person releases the draft.").await,
        };
    };
    match call.person {
        Asking::Absent => send(call, &input).await,
        Asking::Live(peer) => {
            check(call, &input).await?;
            let asked =
                ElicitRequestParams::FormElicitationParams { meta: None, message: question, requested_schema: nothing_to_fill_in() };
            let reply = peer.create_elicitation_with_timeout(asked, Some(PATIENCE)).await;
            let reply =
                reply.map_err(|error| Problem::Unavailable(format!("The person could not be asked, and nothing was sent: {error}")))?;
            decided(call, &input, &reply.action).await
        }
        Asking::Rounds { state: None, .. } => {
            check(call, &input).await?;
            let codec = codec(call).await?;
            let binding = call.binding();
            let options = SealOptions::new().associated_data(binding.as_bytes()).ttl(PATIENCE);
            Ok(Outcome::Ask { question, state: codec.seal_with(question_digest(&input).as_bytes(), &options) })
        }
        Asking::Rounds { state: Some(state), replies } => {
            let codec = codec(call).await?;
            let opened = codec.open_with(state, call.binding().as_bytes());
            let opened = opened
                .map_err(|error| Problem::Arguments(format!("The state of the question is not valid: {error}. Nothing was sent.")))?;
            if opened != question_digest(&input).as_bytes() {
                return Err(Problem::Arguments(
                    "The recipient changed since the person was asked. Nothing was sent; call again.".to_owned(),
                ));
            }
            let reply = replies.and_then(|replies| replies.get(QUESTION)).cloned();
            let reply = reply.and_then(|reply| serde_json::from_value::<ElicitResult>(reply).ok());
            let reply = reply.ok_or_else(|| Problem::Arguments("The person's reply is missing. Nothing was sent.".to_owned()))?;
            decided(call, &input, &reply.action).await
        }
    }
}

/// The form of a yes-or-no question: its buttons are the answer.
pub fn nothing_to_fill_in() -> ElicitationSchema {
    ElicitationSchema::new(std::collections::BTreeMap::new())
}

/// Identifies what is sent and to whom.
fn question_digest(input: &Input) -> String {
    use sha2::{Digest, Sha256};
    let text = json!([input.operation.id, input.body]).to_string();
    crate::domain::keys::hexadecimal(&Sha256::digest(text))
}

async fn codec(call: &Call<'_>) -> Result<RequestStateCodec, Problem> {
    let key = call.service.server_secret("mcp").await.map_err(|error| Problem::Internal(error.to_string()))?;
    RequestStateCodec::try_new(key).map_err(|error| Problem::Internal(error.to_string()))
}

async fn decided(call: &Call<'_>, input: &Input, action: &ElicitationAction) -> Result<Outcome, Problem> {
    if *action == ElicitationAction::Accept {
        return send(call, input).await;
    }
    Ok(Outcome::Done(json!({ "status": "declined", "note": "The person declined. Nothing was sent." })))
}

async fn send(call: &Call<'_>, input: &Input) -> Result<Outcome, Problem> {
    let answer = call.call(input).await?;
    let mut result = json!({ "status": "sent", "message": answer.data["message"] });
    if answer.replayed {
        result["note"] = super::results::REPLAYED.into();
    }
    Ok(Outcome::Done(result))
}

/// Checks a message as if it were sent, so that a person is asked only about what can be.
async fn check(call: &Call<'_>, input: &Input) -> Result<(), Problem> {
    let (operation, caller) = (input.operation.id.as_str(), &call.session.caller);
    let refused = |error| Problem::of_api(operation, error);
    let send = wire::send_of(operation, input.body.as_ref().unwrap_or(&Value::Null)).map_err(refused)?;
    let actor = Actor::ApiKey(caller.key_id.clone());
    call.service.rehearse(&caller.store_id, actor, send).await.map_err(|error| refused(error.into()))
}

/// The operation under which repeated drafts are recognised.
const DRAFTING: &str = "makeDraft";

/// What the caller learns of a draft, and what is stored for a repeated call.
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

/// Keeps the message as a draft. It is checked as if it were sent.
async fn draft(call: &Call<'_>, input: &Input, note: &str) -> Result<Outcome, Problem> {
    let (operation, caller) = (input.operation.id.as_str(), &call.session.caller);
    let refused = |error| Problem::of_api(operation, error);
    let body = input.body.clone().unwrap_or_default();
    let send = wire::send_of(operation, &body).map_err(refused)?;
    let once = input.idempotency_key.as_deref().map(|key| IdempotentRequest {
        operation: DRAFTING,
        key,
        request_hash: call.fingerprint(),
        // Plain data with fixed names always has a JSON text.
        render: |draft: &Draft| serde_json::to_vec(&Receipt::from(draft)).unwrap_or_default(),
    });
    let by = WriteContext::alone(&caller.store_id, Actor::ApiKey(caller.key_id.clone())).once(once);
    let made = call.service.make_draft(&by, &caller.key_id, &caller.key_name, send).await;
    let (receipt, note) = match made.map_err(|error| refused(error.into()))? {
        WriteOutcome::New(draft) => (Receipt::from(&draft), note.to_owned()),
        WriteOutcome::Replayed(kept) => {
            let receipt = serde_json::from_slice(&kept).map_err(|error| Problem::Internal(error.to_string()))?;
            (receipt, format!("{note} {}", super::results::REPLAYED))
        }
    };
    Ok(Outcome::Done(json!({ "status": "draft", "draftId": receipt.draft_id, "expiresAt": receipt.expires_at, "note": note })))
}
