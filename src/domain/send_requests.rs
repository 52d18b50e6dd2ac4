//! Messages to be sent to a contact: the inputs of the send operations of the API contract (section 4.3), before they are checked against
//! the database.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ids::{AccountId, ConversationId, TemplateId},
    outbound_messages::Mailbox,
};

/// The content and the recipients of an e-mail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmailContent {
    /// The recipients of the field `To`; at least one.
    pub to: Vec<Mailbox>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cc: Vec<Mailbox>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bcc: Vec<Mailbox>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
}

/// A template and the values of its placeholders, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilledTemplate {
    pub template_id: TemplateId,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
}

/// A message that has not been sent yet: the input of one of the contract's send operations. A draft stores it as the request body of the
/// operation with one more property, `operation`, which contains the operation's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all_fields = "camelCase")]
pub enum Send {
    #[serde(rename = "sendTextMessage")]
    Text { conversation_id: ConversationId, text: String },
    #[serde(rename = "sendEmailReply")]
    EmailReply {
        conversation_id: ConversationId,
        #[serde(flatten)]
        email: EmailContent,
    },
    #[serde(rename = "sendTemplateReply")]
    TemplateReply {
        conversation_id: ConversationId,
        #[serde(flatten)]
        filling: FilledTemplate,
    },
    #[serde(rename = "sendEmailNew")]
    EmailNew {
        account_id: AccountId,
        #[serde(flatten)]
        email: EmailContent,
    },
    #[serde(rename = "sendTemplateToPhone")]
    TemplateToPhone {
        account_id: AccountId,
        phone_number: String,
        #[serde(flatten)]
        filling: FilledTemplate,
    },
}

impl Send {
    /// Returns the `operationId` of the operation that sends this message.
    pub const fn operation(&self) -> &'static str {
        match self {
            Self::Text { .. } => "sendTextMessage",
            Self::EmailReply { .. } => "sendEmailReply",
            Self::TemplateReply { .. } => "sendTemplateReply",
            Self::EmailNew { .. } => "sendEmailNew",
            Self::TemplateToPhone { .. } => "sendTemplateToPhone",
        }
    }

    /// Returns the conversation that the request names.
    pub const fn conversation_id(&self) -> Option<&ConversationId> {
        match self {
            Self::Text { conversation_id, .. } | Self::EmailReply { conversation_id, .. } | Self::TemplateReply { conversation_id, .. } => {
                Some(conversation_id)
            }
            Self::EmailNew { .. } | Self::TemplateToPhone { .. } => None,
        }
    }

    /// Returns the account that the request names.
    pub const fn account_id(&self) -> Option<&AccountId> {
        match self {
            Self::EmailNew { account_id, .. } | Self::TemplateToPhone { account_id, .. } => Some(account_id),
            Self::Text { .. } | Self::EmailReply { .. } | Self::TemplateReply { .. } => None,
        }
    }

    /// Returns the phone number that the request names.
    pub fn phone_number(&self) -> Option<&str> {
        match self {
            Self::TemplateToPhone { phone_number, .. } => Some(phone_number),
            _ => None,
        }
    }

    /// Returns the request body of the operation; absent properties are left out.
    pub fn body(&self) -> Value {
        // The conversion does not fail: texts, lists and options always have a JSON form.
        let mut body = serde_json::to_value(self).unwrap_or_default();
        if let Some(members) = body.as_object_mut() {
            members.remove("operation");
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mailbox(email: &str, name: Option<&str>) -> Mailbox {
        Mailbox { email: email.to_owned(), name: name.map(str::to_owned) }
    }

    #[test]
    fn a_send_has_the_body_of_its_operation_and_is_restored_from_storage() {
        let full = EmailContent {
            to: vec![mailbox("a@example.com", Some("Ann"))],
            cc: vec![mailbox("b@example.com", None)],
            bcc: vec![mailbox("c@example.com", None)],
            subject: Some("Hi".to_owned()),
            text: Some("Hello".to_owned()),
            html: Some("<p>Hello</p>".to_owned()),
        };
        let bare =
            EmailContent { to: vec![mailbox("a@example.com", None)], cc: vec![], bcc: vec![], subject: None, text: None, html: None };
        let filled = FilledTemplate { template_id: "t1".into(), variables: vec!["Ann".to_owned()] };
        let empty = FilledTemplate { template_id: "t1".into(), variables: vec![] };
        for (send, operation, body) in [
            (
                Send::Text { conversation_id: "c1".into(), text: "Hi".to_owned() },
                "sendTextMessage",
                json!({"conversationId": "c1", "text": "Hi"}),
            ),
            (
                Send::EmailReply { conversation_id: "c1".into(), email: full },
                "sendEmailReply",
                json!({"conversationId": "c1", "to": [{"email": "a@example.com", "name": "Ann"}], "cc": [{"email": "b@example.com"}],
                    "bcc": [{"email": "c@example.com"}], "subject": "Hi", "text": "Hello", "html": "<p>Hello</p>"}),
            ),
            (
                Send::EmailNew { account_id: "m1".into(), email: bare },
                "sendEmailNew",
                json!({"accountId": "m1", "to": [{"email": "a@example.com"}]}),
            ),
            (
                Send::TemplateReply { conversation_id: "c1".into(), filling: filled },
                "sendTemplateReply",
                json!({"conversationId": "c1", "templateId": "t1", "variables": ["Ann"]}),
            ),
            (
                Send::TemplateToPhone { account_id: "w1".into(), phone_number: "+66812345678".to_owned(), filling: empty },
                "sendTemplateToPhone",
                json!({"accountId": "w1", "phoneNumber": "+66812345678", "templateId": "t1"}),
            ),
        ] {
            assert_eq!((send.operation(), send.body()), (operation, body));
            assert_eq!(send.conversation_id().is_some(), send.account_id().is_none());
            let stored = serde_json::to_string(&send).unwrap();
            assert!(stored.contains(operation), "{stored}");
            assert_eq!(serde_json::from_str::<Send>(&stored).unwrap(), send);
        }
    }
}
