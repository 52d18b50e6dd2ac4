//! Operations that send e-mails and template messages: their request bodies and handlers. Only revision B of the API has these operations.

use poem_openapi::{Object, OpenApi};
use serde::Deserialize;
use serde_json::Value;

use super::request_bodies::TextInput;
use crate::{
    domain::{
        contacts::{is_e164, is_email},
        outbound_messages::Mailbox,
        send_requests::{EmailContent, FilledTemplate, Send},
    },
    http::{
        machinery::{
            auth::{Authorised, MessagesWrite},
            body::Body,
            error_responses::{ApiError, Change, Failure},
            expand_parameter::NoExpand,
            idempotency::{Acknowledgement, IdempotencyKey},
            success_responses::{One, Reply},
        },
        openapi::openapi_tags::Tag,
        schemas::{value_types::AddressText, write_inputs::bounded},
    },
};

/// The maximum number of addresses in each of the lists `to`, `cc` and `bcc`.
const MAX_ADDRESSES: usize = 50;

/// A recipient of an e-mail.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EmailAddress {
    /// The e-mail address alone, without a display name, such as `mali@example.com`.
    email: AddressText,
    /// The display name of the recipient, at most 64 KiB in UTF-8.
    #[oai(validator(max_length = 65_536, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    name: Option<String>,
}

/// An e-mail that starts a new conversation.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewEmail {
    /// The account to send from; its channel must be `gmail` or `outlook`.
    #[oai(validator(max_length = 64))]
    account_id: String,
    /// 1 to 50 main recipients. The new conversation is with the contact of the first address.
    #[oai(validator(min_items = 1, max_items = 50))]
    to: Vec<EmailAddress>,
    /// At most 50 recipients of a copy.
    #[oai(validator(max_items = 50))]
    cc: Option<Vec<EmailAddress>>,
    /// At most 50 recipients of a blind copy.
    #[oai(validator(max_items = 50))]
    bcc: Option<Vec<EmailAddress>>,
    /// The subject, which also becomes the conversation's `emailSubject`: one line, at most 64 KiB in UTF-8.
    #[oai(validator(max_length = 65_536, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    subject: Option<String>,
    /// The body as plain text. At least one of `text` and `html` must not be blank.
    #[oai(validator(max_length = 1_048_576))]
    text: Option<String>,
    /// The body as HTML, alone or in addition to `text`. At least one of the two must not be blank.
    #[oai(validator(max_length = 1_048_576))]
    html: Option<String>,
}

/// An e-mail in an existing conversation.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EmailReply {
    /// A conversation of the channel `gmail` or `outlook`.
    #[oai(validator(max_length = 64))]
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
    /// The subject: one line, at most 64 KiB in UTF-8. If omitted: `Re: ` and the conversation's `emailSubject`.
    #[oai(validator(max_length = 65_536, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"))]
    subject: Option<String>,
    /// The body as plain text. At least one of `text` and `html` must not be blank.
    #[oai(validator(max_length = 1_048_576))]
    text: Option<String>,
    /// The body as HTML, alone or in addition to `text`. At least one of the two must not be blank.
    #[oai(validator(max_length = 1_048_576))]
    html: Option<String>,
}

/// A template message in an existing conversation.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateReply {
    /// A conversation of the channel `whatsapp`.
    #[oai(validator(max_length = 64))]
    conversation_id: String,
    /// A template of the conversation's account. Its status must be `APPROVED`, `REINSTATED` or `FLAGGED`. Only its body may need values: a
    /// template with media, or with placeholders in other parts, is refused.
    #[oai(validator(max_length = 64))]
    template_id: String,
    /// Values of the placeholders `{{1}}`, `{{2}}` and so on, in order, one for each placeholder of the body. The filled-in body is at most
    /// 64 KiB in UTF-8.
    variables: Option<Vec<String>>,
}

/// A template message to a phone number.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateToPhone {
    /// The account to send from; its channel must be `whatsapp`.
    #[oai(validator(max_length = 64))]
    account_id: String,
    /// The phone number in E.164: `+` and 2 to 14 digits, of which the first are the country code.
    #[oai(validator(max_length = 15, pattern = r"^\+[1-9][0-9]{1,13}$"))]
    phone_number: String,
    /// A template of this account. Its status must be `APPROVED`, `REINSTATED` or `FLAGGED`. Only its body may need values: a template with
    /// media, or with placeholders in other parts, is refused.
    #[oai(validator(max_length = 64))]
    template_id: String,
    /// Values of the placeholders `{{1}}`, `{{2}}` and so on, in order, one for each placeholder of the body. The filled-in body is at most
    /// 64 KiB in UTF-8.
    variables: Option<Vec<String>>,
}

/// Checks and converts the e-mail addresses of the list `name` (`to`, `cc` or `bcc`).
fn mailboxes(name: &str, addresses: Vec<EmailAddress>) -> Result<Vec<Mailbox>, ApiError> {
    if addresses.len() > MAX_ADDRESSES {
        return Err(ApiError::field(&format!("body.{name}"), format!("must hold at most {MAX_ADDRESSES} addresses")));
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

/// Returns whether a text has a control character. A line break, for example, would end the e-mail header that contains the text (header
/// injection).
fn ends_a_header(text: &str) -> bool {
    text.chars().any(char::is_control)
}

fn email_content(
    to: Vec<EmailAddress>,
    copies: [Option<Vec<EmailAddress>>; 2],
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
) -> Result<EmailContent, ApiError> {
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
    Ok(EmailContent { to, cc, bcc, subject, text, html })
}

fn filling(template: String, variables: Option<Vec<String>>) -> FilledTemplate {
    FilledTemplate { template_id: template.into(), variables: variables.unwrap_or_default() }
}

impl NewEmail {
    pub fn send(self) -> Result<Send, ApiError> {
        let email = email_content(self.to, [self.cc, self.bcc], self.subject, self.text, self.html)?;
        Ok(Send::EmailNew { account_id: self.account_id.into(), email })
    }
}

impl EmailReply {
    pub fn send(self) -> Result<Send, ApiError> {
        let email = email_content(self.to, [self.cc, self.bcc], self.subject, self.text, self.html)?;
        Ok(Send::EmailReply { conversation_id: self.conversation_id.into(), email })
    }
}

impl TemplateReply {
    pub fn send(self) -> Result<Send, ApiError> {
        Ok(Send::TemplateReply { conversation_id: self.conversation_id.into(), filling: filling(self.template_id, self.variables) })
    }
}

impl TemplateToPhone {
    pub fn send(self) -> Result<Send, ApiError> {
        if !is_e164(&self.phone_number) {
            return Err(ApiError::field("body.phoneNumber", "must be a number in E.164: `+`, a country code, and up to 14 digits in all"));
        }
        let filling = filling(self.template_id, self.variables);
        Ok(Send::TemplateToPhone { account_id: self.account_id.into(), phone_number: self.phone_number, filling })
    }
}

/// Parses the request body of an operation that sends messages, with the same checks as the operation's handler. Returns the message.
pub fn send_of(operation: &str, body: &Value) -> Result<Send, ApiError> {
    match operation {
        "sendTextMessage" => Body::<TextInput>::of_value(body).parse()?.send(),
        "sendEmailReply" => Body::<EmailReply>::of_value(body).parse()?.send(),
        "sendTemplateReply" => Body::<TemplateReply>::of_value(body).parse()?.send(),
        "sendEmailNew" => Body::<NewEmail>::of_value(body).parse()?.send(),
        "sendTemplateToPhone" => Body::<TemplateToPhone>::of_value(body).parse()?.send(),
        other => Err(ApiError::field("operation", format!("`{other}` is not an operation of revision B that sends a message"))),
    }
}

/// Operations that send e-mails and template messages.
#[derive(Debug)]
pub struct Sends;

#[OpenApi(tag = "Tag::Messages")]
impl Sends {
    /// Send an e-mail, new conversation
    ///
    /// Sends an e-mail that starts a new conversation with the contact whose primary e-mail is the first address of `to`. If there is no
    /// such contact, one is created. The answer does not contain the conversation's id. The message is stored before the answer is sent,
    /// and delivered afterwards. A repeated request sends the e-mail again, unless it repeats an `Idempotency-Key`.
    #[oai(path = "/messages/email/new", method = "post", operation_id = "sendEmailNew")]
    async fn send_email_new(
        &self,
        request: Authorised<MessagesWrite>,
        body: Body<NewEmail>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let send = body.parse()?.send()?;
        let by = request.by::<(), Acknowledgement, _, _>("sendEmailNew", &key, &body);
        let outcome = request.state.service.send(&by, send).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }

    /// Send an e-mail, existing conversation
    ///
    /// Sends an e-mail in the thread of a conversation, to the recipients that the request names. The message is stored before the answer
    /// is sent, and delivered afterwards. A repeated request sends the e-mail again, unless it repeats an `Idempotency-Key`.
    #[oai(path = "/messages/email", method = "post", operation_id = "sendEmailReply")]
    async fn send_email_reply(
        &self,
        request: Authorised<MessagesWrite>,
        body: Body<EmailReply>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let send = body.parse()?.send()?;
        let by = request.by::<(), Acknowledgement, _, _>("sendEmailReply", &key, &body);
        let outcome = request.state.service.send(&by, send).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }

    /// Send a template, existing conversation
    ///
    /// Sends a message template in a WhatsApp conversation, no matter when its contact last wrote. The message is stored before the answer
    /// is sent, and delivered afterwards. A repeated request sends the template again, unless it repeats an `Idempotency-Key`.
    #[oai(path = "/messages/template", method = "post", operation_id = "sendTemplateReply")]
    async fn send_template_reply(
        &self,
        request: Authorised<MessagesWrite>,
        body: Body<TemplateReply>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let send = body.parse()?.send()?;
        let by = request.by::<(), Acknowledgement, _, _>("sendTemplateReply", &key, &body);
        let outcome = request.state.service.send(&by, send).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }

    /// Send a template to a phone number
    ///
    /// Sends a message template to a phone number. If the account has no conversation with that number, one is created with the contact
    /// whose primary phone is the number; if there is no such contact, one is created too. The answer does not contain the conversation's
    /// id. The message is stored before the answer is sent, and delivered afterwards. A repeated request sends the template again, unless
    /// it repeats an `Idempotency-Key`.
    #[oai(path = "/messages/template/phone", method = "post", operation_id = "sendTemplateToPhone")]
    async fn send_template_to_phone(
        &self,
        request: Authorised<MessagesWrite>,
        body: Body<TemplateToPhone>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let send = body.parse()?.send()?;
        let by = request.by::<(), Acknowledgement, _, _>("sendTemplateToPhone", &key, &body);
        let outcome = request.state.service.send(&by, send).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_send_is_read_from_the_body_of_its_operation() {
        let mail = json!({"to": [{"email": "a@example.com", "name": "Ann"}], "subject": "Hi", "html": "<p>Hi</p>"});
        let with = |mut body: Value, name: &str, value: &str| {
            body[name] = value.into();
            body
        };
        for (operation, body) in [
            ("sendTextMessage", json!({"conversationId": "c1", "text": "Hi"})),
            ("sendEmailReply", with(mail.clone(), "conversationId", "c1")),
            ("sendEmailNew", with(mail, "accountId", "m1")),
            ("sendTemplateReply", json!({"conversationId": "c1", "templateId": "t1", "variables": ["Ann"]})),
            ("sendTemplateToPhone", json!({"accountId": "w1", "phoneNumber": "+66812345678", "templateId": "t1"})),
        ] {
            let send = send_of(operation, &body).unwrap();
            assert_eq!((send.operation(), send.body()), (operation, body.clone()));
            let refused = send_of(operation, &with(body, "nope", "x")).unwrap_err();
            assert!(refused.message.starts_with("`body.nope` is not a known property"), "{refused}");
        }
        for (operation, body, start) in [
            ("sendTextMessage", json!({"conversationId": "c1", "text": " "}), "`body.text` must not be blank"),
            ("sendTextMessage", json!({"conversationId": "c1", "text": "a\0"}), "`body.text` must not contain U+0000"),
            ("sendTextMessage", json!([]), "`body` must be an object"),
            ("sendEmailNew", json!({"accountId": "m1", "to": []}), "`body.to` must hold 1 to 50 addresses"),
            (
                "sendTemplateToPhone",
                json!({"accountId": "w1", "phoneNumber": "0812345678", "templateId": "t1"}),
                "`body.phoneNumber` must be",
            ),
            ("addInternalComment", json!({}), "`operation` `addInternalComment` is not an operation of revision B"),
        ] {
            let refused = send_of(operation, &body).unwrap_err();
            assert!(refused.status.as_u16() == 400 && refused.message.starts_with(start), "{refused}");
        }
    }
}
