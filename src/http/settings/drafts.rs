//! Operations of the settings API on drafts: messages to contacts that an AI assistant proposed with an API key, and that a user of the
//! store releases (sends), edits or discards.

use std::collections::HashMap;

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::{auth::GrantedRequest, params::LimitParam, required_grants};
use crate::{
    domain::{
        conversations::Destination,
        drafts::{Draft, DraftState},
        ids::{ConversationId, DraftId},
        messages::Message,
        time::Timestamp,
    },
    http::{
        machinery::{
            body::Body,
            error_responses::{ApiError, Failure, SettingsChange, SettingsListing, SettingsLookup, SettingsRemoval},
            idempotency::Acknowledgement,
            params::{Choice, Id, OneOf, Query, Required},
            success_responses::{All, One, Reply},
        },
        schemas::value_types::{AnyObject, EnumValue, ValueSet},
    },
    revision::wire,
};

/// The states of drafts, in responses and as a filter.
#[derive(Debug, Clone)]
pub struct DraftStates;

impl ValueSet for DraftStates {
    const NAME: &'static str = "DraftState";
    const DESCRIPTION: &'static str = "`pending`: the draft waits for its release; `released`: its message was sent; `discarded`: it was rejected; `expired`: it was not released or discarded before `expiresAt`.";
    const VALUES: &'static [&'static str] = &{
        let mut names = [""; DraftState::ALL.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = DraftState::ALL[i].name();
            i += 1;
        }
        names
    };
}

impl Choice for DraftStates {
    const VALUES: &'static [&'static str] = <Self as ValueSet>::VALUES;
}

/// A message that is sent once a person releases it.
#[derive(Debug, Object, Serialize)]
#[oai(rename = "Draft", rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct DraftView {
    /// Identifies the draft, as `draftId` in the operations on it.
    id: String,
    /// The `operationId` of the contract's operation that sends the message, such as `sendTextMessage`.
    operation: String,
    /// The request body of that operation.
    body: AnyObject,
    /// The conversation that the message goes to; absent if there was none when the draft was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<String>,
    /// The channel account over which the message goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    account_id: Option<String>,
    /// The name of the contact whom the conversation is with; absent without a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    contact_name: Option<String>,
    /// The API key that the draft was made with. The key may have been deleted since.
    key_id: String,
    /// The name of the API key when the draft was made.
    key_name: String,
    /// Whether the draft can still be released.
    state: EnumValue<DraftStates>,
    /// When the draft was made. Lists are ordered by this time, the newest first.
    created_at: Timestamp,
    /// When the draft was made or last edited.
    updated_at: Timestamp,
    /// When the draft expires if it is not released or discarded: 7 days after it was made.
    expires_at: Timestamp,
    /// When the draft was released or discarded; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_at: Option<Timestamp>,
    /// The `userId` of the user who released or discarded the draft; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_by: Option<String>,
    /// The newest message of the contact in the conversation at the time when the draft was made; absent if the contact had
    /// written none.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_message_id: Option<String>,
}

impl DraftView {
    fn of(draft: Draft, destinations: &HashMap<ConversationId, Destination>) -> Self {
        let destination = draft.conversation_id.as_ref().and_then(|id| destinations.get(id)).cloned();
        let (account_id, contact_name) = match destination {
            Some(Destination { account_id, contact_name }) => (Some(account_id), Some(contact_name)),
            None => (draft.account_id, None),
        };
        Self {
            id: draft.id.into_string(),
            operation: draft.send.operation().to_owned(),
            body: AnyObject(draft.send.body()),
            conversation_id: draft.conversation_id.map(|id| id.into_string()),
            account_id: account_id.map(|id| id.into_string()),
            contact_name,
            key_id: draft.key_id.into_string(),
            key_name: draft.key_name,
            state: draft.state.name().to_owned().into(),
            created_at: draft.created_at,
            updated_at: draft.updated_at,
            expires_at: draft.expires_at,
            settled_at: draft.settled_at,
            settled_by: draft.settled_by.map(|id| id.into_string()),
            seen_message_id: draft.seen_message_id.map(|id| id.into_string()),
        }
    }
}

/// A message of the conversation that a draft goes to.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct DraftMessage {
    /// Identifies the message, as `confirmedMessageId` of a release.
    id: String,
    /// Whether the contact sent the message.
    from_contact: bool,
    /// When the message was sent, as the channel says.
    sent_at: Timestamp,
    /// The text of the message; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The addresses of the message's images; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<Vec<String>>,
}

impl From<Message> for DraftMessage {
    fn from(Message { id, inbound, sent_at, text, images, .. }: Message) -> Self {
        Self { id: id.into_string(), from_contact: inbound, sent_at, text, images }
    }
}

/// A draft, and what it says from now on.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DraftChange {
    /// The draft to edit; it must be pending.
    #[oai(validator(max_length = 64))]
    draft_id: String,
    /// The whole new request body of the draft's operation. Its `conversationId`, or its `accountId` and `phoneNumber`, stay the same.
    body: AnyObject,
}

/// A draft to release.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DraftRelease {
    /// The draft whose message is sent; it must be pending.
    #[oai(validator(max_length = 64))]
    draft_id: String,
    /// If the contact wrote after the draft was made: the contact's newest message, as proof that it was read.
    #[oai(validator(max_length = 64))]
    confirmed_message_id: Option<String>,
}

/// Returns the account and the contact's name for each conversation that drafts go to.
async fn destinations(
    managed: &GrantedRequest<required_grants::Team>,
    drafts: &[Draft],
) -> Result<HashMap<ConversationId, Destination>, ApiError> {
    let conversations = drafts.iter().filter_map(|draft| draft.conversation_id.as_ref());
    Ok(managed.state.service.destinations(managed.store(), conversations).await?)
}

async fn shown(managed: &GrantedRequest<required_grants::Team>, draft: Draft) -> Result<Reply<One<DraftView>>, Failure<SettingsChange>> {
    let destinations = destinations(managed, std::slice::from_ref(&draft)).await?;
    Ok(Reply::of(&managed.context, &DraftView::of(draft, &destinations), vec![]))
}

/// The operations on drafts.
#[derive(Debug)]
pub struct DraftOperations;

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Drafts")]
impl DraftOperations {
    /// List drafts
    ///
    /// Lists the drafts in one state, the newest first. Drafts are deleted some time after they are 30 days old.
    #[oai(path = "/drafts", method = "get", operation_id = "listDrafts")]
    async fn list_drafts(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        /// Only drafts in this state; omitted: `pending` ones.
        state: Query<Option<OneOf<DraftStates>>>,
        /// Only drafts that are older than the draft with this id. To read on, send the `id` of the last draft received.
        before: Query<Option<Id<DraftId>>>,
        /// The largest number of drafts to return.
        limit: Query<LimitParam>,
    ) -> Result<Reply<All<DraftView>>, Failure<SettingsListing>> {
        let named = state.0.and_then(|name| DraftState::ALL.into_iter().find(|state| state.name() == name.0));
        let (state, before) = (named.unwrap_or(DraftState::Pending), before.0.map(|id| id.0));
        let drafts = managed.state.service.drafts(managed.store(), state, before.as_ref(), limit.0.0).await?;
        let destinations = destinations(&managed, &drafts).await?;
        let drafts: Vec<DraftView> = drafts.into_iter().map(|draft| DraftView::of(draft, &destinations)).collect();
        Ok(Reply::of(&managed.context, &drafts, vec![]))
    }

    /// List the messages before a draft
    ///
    /// Lists the 20 newest messages of the conversation that a draft goes to, the newest first, so that a person can judge the draft. There
    /// are none if the draft opens a conversation.
    #[oai(path = "/drafts/messages", method = "get", operation_id = "listDraftMessages")]
    async fn list_draft_messages(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        /// The draft.
        #[oai(name = "draftId")]
        draft_id: Query<Required<Id<DraftId>>>,
    ) -> Result<Reply<All<DraftMessage>>, Failure<SettingsLookup>> {
        let messages = managed.state.service.messages_before_draft(managed.store(), &draft_id.0.0.0).await?;
        let messages: Vec<DraftMessage> = messages.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &messages, vec![]))
    }

    /// Edit a draft
    ///
    /// Replaces the content of a pending draft. The new content is checked as if it were sent now, and a later release sends it. An edit
    /// does not prove that the contact's newest message was read: a release may still need `confirmedMessageId`.
    #[oai(path = "/drafts", method = "patch", operation_id = "editDraft")]
    async fn edit_draft(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        body: Body<DraftChange>,
    ) -> Result<Reply<One<DraftView>>, Failure<SettingsChange>> {
        let DraftChange { draft_id, body } = body.parse()?;
        let (id, service) = (draft_id.into(), &managed.state.service);
        let operation = service.draft(managed.store(), &id).await.map_err(ApiError::in_body)?.send.operation();
        let send = wire::send_of(operation, &body.0).map_err(ApiError::within_body)?;
        let draft = service.edit_draft(&managed.editor, &id, send).await.map_err(ApiError::in_body)?;
        shown(&managed, draft).await
    }

    /// Release a draft
    ///
    /// Sends the message of a pending draft, on behalf of the caller. If the contact wrote after the draft was made, the draft is
    /// released only with the newest message of the contact as `confirmedMessageId`. If the message is refused, for example because the
    /// contact has not written recently enough for its channel, the draft stays pending. A draft is sent only once, however often it is
    /// released.
    #[oai(path = "/drafts/release", method = "post", operation_id = "releaseDraft")]
    async fn release_draft(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        body: Body<DraftRelease>,
    ) -> Result<Reply<One<DraftView>>, Failure<SettingsChange>> {
        let DraftRelease { draft_id, confirmed_message_id } = body.parse()?;
        let draft = managed.state.service.release_draft(&managed.editor, &draft_id.into(), confirmed_message_id.map(Into::into)).await?;
        shown(&managed, draft).await
    }

    /// Discard a draft
    ///
    /// Rejects a pending draft. Its message is never sent.
    #[oai(path = "/drafts", method = "delete", operation_id = "discardDraft")]
    async fn discard_draft(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        /// The draft to discard; it must be pending.
        #[oai(name = "draftId")]
        draft_id: Query<Required<Id<DraftId>>>,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<SettingsRemoval>> {
        managed.state.service.discard_draft(&managed.editor, &draft_id.0.0.0).await?;
        Ok(Reply::of(&managed.context, &Acknowledgement::from(()), vec![]))
    }
}
