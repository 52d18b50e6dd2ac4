//! E-mails and template messages. Revision B alone sends them.

use poem_openapi::{Object, OpenApi};
use serde::Deserialize;

use crate::{
    domain::{
        contacts::{is_e164, is_email},
        outbound::Mailbox,
    },
    http::{
        document::tags::Tag,
        machinery::{
            auth::{Authorised, MessagesWrite},
            body::Body,
            error::{ApiError, Change, Failure},
            expand::NoExpand,
            idempotency::{Acknowledgement, IdempotencyKey},
            reply::{One, Reply},
        },
        schemas::{value_types::AddressText, write_inputs::bounded},
    },
    service::sends::{EmailDraft, FilledTemplate},
};

/// The most addresses of one list.
const MAX_ADDRESSES: usize = 50;

/// An address of an e-mail.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EmailAddress {
    /// A bare address, such as `mali@example.com`.
    email: AddressText,
    /// At most 64 KiB in UTF-8.
    #[oai(validator(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    name: Option<String>,
}

/// An e-mail that begins a conversation.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewEmail {
    /// The account to send from; its channel must be `gmail` or `outlook`.
    account_id: String,
    /// 1 to 50 main recipients; the first address decides whose conversation it becomes.
    #[oai(validator(min_items = 1, max_items = 50))]
    to: Vec<EmailAddress>,
    /// At most 50 recipients of a copy.
    #[oai(validator(max_items = 50))]
    cc: Option<Vec<EmailAddress>>,
    /// At most 50 recipients of a blind copy.
    #[oai(validator(max_items = 50))]
    bcc: Option<Vec<EmailAddress>>,
    /// One line, at most 64 KiB in UTF-8. The conversation is given it as `emailSubject`.
    #[oai(validator(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    subject: Option<String>,
    /// Plain text. One of `text` and `html` must not be blank.
    text: Option<String>,
    /// The body as HTML, alone or beside `text`; one of the two must not be blank.
    html: Option<String>,
}

/// An e-mail to a conversation.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EmailReply {
    /// A conversation of the channel `gmail` or `outlook`.
    conversation_id: String,
    /// 1 to 50 main recipients. They need not have written in the conversation.
    #[oai(validator(min_items = 1, max_items = 50))]
    to: Vec<EmailAddress>,
    /// At most 50 recipients of a copy.
    #[oai(validator(max_items = 50))]
    cc: Option<Vec<EmailAddress>>,
    /// At most 50 recipients of a blind copy.
    #[oai(validator(max_items = 50))]
    bcc: Option<Vec<EmailAddress>>,
    /// One line, at most 64 KiB in UTF-8. `Re: ` and the conversation's `emailSubject` when omitted.
    #[oai(validator(pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    subject: Option<String>,
    /// Plain text. One of `text` and `html` must not be blank.
    text: Option<String>,
    /// The body as HTML, alone or beside `text`; one of the two must not be blank.
    html: Option<String>,
}

/// A template to a conversation.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateReply {
    /// A conversation of the channel `whatsapp`.
    conversation_id: String,
    /// A template of the conversation's account. Its status must be `APPROVED`, `REINSTATED` or `FLAGGED`, and
    /// nothing but its body may have placeholders or media.
    template_id: String,
    /// Values of `{{1}}`, `{{2}}` and so on, in order; as many as the body has placeholders. The body with them is at most 64 KiB in UTF-8.
    variables: Option<Vec<String>>,
}

/// A template to a phone.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateToPhone {
    /// The account to send from; its channel must be `whatsapp`.
    account_id: String,
    /// In E.164: `+`, a country code, and up to 14 digits in all.
    #[oai(validator(max_length = 15, pattern = r"^\+[1-9][0-9]{1,13}$"))]
    phone_number: String,
    /// A template of this account. Its status must be `APPROVED`, `REINSTATED` or `FLAGGED`, and
    /// nothing but its body may have placeholders or media.
    template_id: String,
    /// Values of `{{1}}`, `{{2}}` and so on, in order; as many as the body has placeholders. The body with them is at most 64 KiB in UTF-8.
    variables: Option<Vec<String>>,
}

/// The addresses of one list.
fn mailboxes(name: &str, addresses: Vec<EmailAddress>) -> Result<Vec<Mailbox>, ApiError> {
    if addresses.len() > MAX_ADDRESSES {
        return Err(ApiError::field(&format!("body.{name}"), format!("takes at most {MAX_ADDRESSES} addresses")));
    }
    let one = |(i, address): (usize, EmailAddress)| {
        if !is_email(&address.email.0) {
            return Err(ApiError::field(&format!("body.{name}[{i}].email"), "must be an e-mail address, such as mali@example.com"));
        }
        if address.name.as_deref().is_some_and(ends_a_header) {
            return Err(ApiError::field(&format!("body.{name}[{i}].name"), "must not contain control characters"));
        }
        if let Some(text) = &address.name {
            bounded(&format!("body.{name}[{i}].name"), text)?;
        }
        Ok(Mailbox { email: address.email.0, name: address.name })
    };
    addresses.into_iter().enumerate().map(one).collect()
}

/// Whether a text would end the header that it stands in.
fn ends_a_header(text: &str) -> bool {
    text.chars().any(char::is_control)
}

fn letter(
    to: Vec<EmailAddress>,
    copies: [Option<Vec<EmailAddress>>; 2],
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
) -> Result<EmailDraft, ApiError> {
    if to.is_empty() {
        return Err(ApiError::field("body.to", format!("must hold 1 to {MAX_ADDRESSES} addresses")));
    }
    let [cc, bcc] = copies.map(Option::unwrap_or_default);
    let (to, cc, bcc) = (mailboxes("to", to)?, mailboxes("cc", cc)?, mailboxes("bcc", bcc)?);
    if subject.as_deref().is_some_and(ends_a_header) {
        return Err(ApiError::field("body.subject", "must not contain control characters"));
    }
    if let Some(subject) = &subject {
        bounded("body.subject", subject)?;
    }
    let filled = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    if !filled(&text) && !filled(&html) {
        return Err(ApiError::field("body.text", "or `html` must not be blank"));
    }
    let (text, html) = (text.filter(|text| !text.is_empty()), html.filter(|html| !html.is_empty()));
    Ok(EmailDraft { to, cc, bcc, subject, text, html })
}

fn filling(template: String, variables: Option<Vec<String>>) -> FilledTemplate {
    FilledTemplate { template_id: template.into(), variables: variables.unwrap_or_default() }
}

/// Sends beyond plain text.
#[derive(Debug)]
pub struct Sends;

#[OpenApi(tag = "Tag::Messages")]
impl Sends {
    /// Send an e-mail, new conversation
    ///
    /// Sends an e-mail that begins a conversation, with the contact whose primary e-mail is the first address of `to`; one
    /// is made where there is none. The answer does not name the conversation. The message is stored before the answer, and
    /// delivered after it. A repeated request sends again, unless it repeats an `Idempotency-Key`.
    #[oai(path = "/messages/email/new", method = "post", operation_id = "sendEmailNew")]
    async fn send_email_new(
        &self,
        request: Authorised<MessagesWrite>,
        body: Body<NewEmail>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let input = body.parse()?;
        let letter = letter(input.to, [input.cc, input.bcc], input.subject, input.text, input.html)?;
        let by = request.by::<(), Acknowledgement, _, _>("sendEmailNew", &key, &body);
        let outcome = request.state.service.send_mail(&by, input.account_id.into(), letter).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }

    /// Send an e-mail, existing conversation
    ///
    /// Sends an e-mail in the thread of a conversation, to whom it says. The message is stored before the answer, and
    /// delivered after it. A repeated request sends again, unless it repeats an `Idempotency-Key`.
    #[oai(path = "/messages/email", method = "post", operation_id = "sendEmailReply")]
    async fn send_email_reply(
        &self,
        request: Authorised<MessagesWrite>,
        body: Body<EmailReply>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let input = body.parse()?;
        let letter = letter(input.to, [input.cc, input.bcc], input.subject, input.text, input.html)?;
        let by = request.by::<(), Acknowledgement, _, _>("sendEmailReply", &key, &body);
        let outcome = request.state.service.send_mail_reply(&by, input.conversation_id.into(), letter).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }

    /// Send a template, existing conversation
    ///
    /// Sends a message template to a WhatsApp conversation, whenever its contact last wrote. The message is stored before
    /// the answer, and delivered after it. A repeated request sends again, unless it repeats an `Idempotency-Key`.
    #[oai(path = "/messages/template", method = "post", operation_id = "sendTemplateReply")]
    async fn send_template_reply(
        &self,
        request: Authorised<MessagesWrite>,
        body: Body<TemplateReply>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let input = body.parse()?;
        let by = request.by::<(), Acknowledgement, _, _>("sendTemplateReply", &key, &body);
        let filling = filling(input.template_id, input.variables);
        let outcome = request.state.service.send_template_reply(&by, input.conversation_id.into(), filling).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }

    /// Send a template to a phone number
    ///
    /// Sends a message template to a phone, beginning a conversation where the account has none with it. The contact is the
    /// one whose primary phone it is; one is made where there is none. The answer does not name the conversation. The
    /// message is stored before the answer, and delivered after it. A repeated request sends again, unless it repeats an `Idempotency-Key`.
    #[oai(path = "/messages/template/phone", method = "post", operation_id = "sendTemplateToPhone")]
    async fn send_template_to_phone(
        &self,
        request: Authorised<MessagesWrite>,
        body: Body<TemplateToPhone>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let input = body.parse()?;
        if !is_e164(&input.phone_number) {
            return Err(
                ApiError::field("body.phoneNumber", "must be a number in E.164: `+`, a country code, and up to 14 digits in all").into()
            );
        }
        let by = request.by::<(), Acknowledgement, _, _>("sendTemplateToPhone", &key, &body);
        let filling = filling(input.template_id, input.variables);
        let outcome = request.state.service.send_template(&by, input.account_id.into(), input.phone_number, filling).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }
}
