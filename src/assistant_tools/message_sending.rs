//! The MCP tools that send messages to contacts: in a conversation, or to begin one.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{
    api_operation_calls::{self, Input},
    approval_flow::{self, Preview},
    definition::{Effect, InputMember, REPETITION, Run, Tool, repetition},
    errors::ToolError,
    tool_call::{Call, Outcome},
};
use crate::domain::{api_key_scopes::Scope, contacts::is_email};

/// The operations that `send_message` calls: for a text, an e-mail, a template.
const TEXT: &str = "sendTextMessage";
const EMAIL: &str = "sendEmailReply";
const TEMPLATE: &str = "sendTemplateReply";

/// The operations that `start_conversation` calls: for an e-mail, and for a template.
const NEW_EMAIL: &str = "sendEmailNew";
const TO_PHONE: &str = "sendTemplateToPhone";

/// How many of the newest messages of a conversation `send_message` reads to find the recipient of an e-mail without `to`: the contact who
/// last wrote. Both revisions of the API, A and B, permit this page size.
const RECENT_MESSAGES: u32 = 15;

/// Returns the schema of the result of a tool that sends messages.
fn sent_or_draft() -> Value {
    json!({
        "type": "object",
        "properties": {
            "status": { "type": "string", "enum": ["sent", "draft", "declined"] },
            "message": { "type": "string" },
            "draftId": { "type": "string" },
            "expiresAt": { "type": "string" },
            "note": { "type": "string" },
        },
        "required": ["status"],
    })
}

/// Makes the argument for a list of e-mail addresses; `None` if the API revision (A or B) that this build serves lacks the operation, or
/// the operation lacks the list.
fn recipients(name: &'static str, operation: &str, description: &str) -> Option<InputMember> {
    api_operation_calls::find(operation)?.body["properties"].get(name)?;
    let addresses = json!({ "type": "array", "items": { "type": "string" } });
    InputMember::own(name, addresses, description, json!(["a@example.com"]))
}

/// Makes an optional argument for a property of an e-mail or a template. The tool's code passes the value on to the operation.
fn part(name: &'static str, operation: &str, pointer: &'static str, description: &str, example: Value) -> Option<InputMember> {
    InputMember::body(name, operation, pointer, description, example).map(|member| InputMember { required: false, ..member })
}

pub fn send_message() -> Option<Tool> {
    let members = vec![
        InputMember::body("conversationId", TEXT, "/conversationId", "The conversation.", json!("cv-204")),
        InputMember::own("text", json!({ "type": "string" }), "The plain text.", json!("It left today.")),
        part("html", EMAIL, "/html", "The body of an e-mail in HTML.", json!("<p>Hello</p>")),
        part("subject", EMAIL, "/subject", "Of an e-mail; `Re: …` if omitted.", json!("Your order")),
        recipients("to", EMAIL, "Of an e-mail; the last sender if omitted."),
        recipients("cc", EMAIL, "Copies."),
        recipients("bcc", EMAIL, "Blind copies."),
        part("templateId", TEMPLATE, "/templateId", "A WhatsApp template; list_templates finds it.", json!("t-5")),
        part("variables", TEMPLATE, "/variables", "Values of its placeholders, in order.", json!(["Anong"])),
        repetition(),
    ];
    Some(Tool {
        name: "send_message",
        title: "Send a message",
        description: description("Sends a text, an e-mail reply or a template to the contact of a conversation."),
        effect: Effect::Sends,
        operations: &[TEXT, EMAIL, TEMPLATE],
        members: members.into_iter().flatten().collect(),
        output: sent_or_draft(),
        run: Run::Code(reply),
        once: true,
    })
}

fn description(what: &str) -> String {
    format!("{what} Goes to the customer at once and cannot be recalled; where sends are not permitted, it becomes a draft for a person.")
}

/// The arguments that hold e-mail addresses.
const RECIPIENTS: [&str; 3] = ["to", "cc", "bcc"];

/// The arguments that only an e-mail has.
const OF_EMAIL: [&str; 5] = ["html", "subject", "to", "cc", "bcc"];

fn reply<'a>(call: &'a Call<'a>) -> BoxFuture<'a, Result<Outcome, ToolError>> {
    Box::pin(async move {
        let conversation = call.text("conversationId").unwrap_or_default();
        let (template, email) = (call.argument("templateId").is_some(), OF_EMAIL.iter().any(|name| call.argument(name).is_some()));
        let operation = match (template, email) {
            (true, true) => return Err(one_kind(call, TEMPLATE)),
            (true, false) => TEMPLATE,
            (false, true) => EMAIL,
            (false, false) if call.argument("text").is_none() => {
                return Err(ToolError::Arguments(match api_operation_calls::find(TEMPLATE) {
                    Some(_) => "`text`, `html` or `templateId` is required.".to_owned(),
                    None => "`text` is required.".to_owned(),
                }));
            }
            (false, false) => TEXT,
        };
        let mut input = body_of(call, operation)?;
        if operation == EMAIL && call.argument("to").is_none() {
            input.set("/to", json!([{ "email": last_sender(call, conversation).await? }]));
        }
        let to = format!("the contact of conversation {conversation}{}", described(call, conversation).await);
        let to = match input.body.as_ref().map(|body| &body["to"]) {
            Some(addresses) if operation == EMAIL => format!("{}, in conversation {conversation}", addresses_of(addresses)),
            _ => to,
        };
        let preview = Preview::of(&input, to);
        approval_flow::send_or_draft(call, input, preview).await
    })
}

/// Makes the error for an argument that belongs to another kind of message.
fn one_kind(call: &Call<'_>, operation: &str) -> ToolError {
    let known = api_operation_calls::find(operation).map(|operation| &operation.body["properties"]);
    let strange = call.arguments.keys().find(|name| known.is_some_and(|known| known.get(name.as_str()).is_none()));
    let strange = strange.map_or_else(String::new, |name| format!("`{name}` does not belong to this kind. "));
    ToolError::Arguments(format!("{strange}A message is a text, an e-mail, or a template (`templateId` and `variables`)."))
}

/// Builds the request body of an operation from the arguments. An argument for which the operation has no property is refused.
fn body_of(call: &Call<'_>, operation: &'static str) -> Result<Input, ToolError> {
    let mut input = Input::of(operation)?;
    input.idempotency_key = call.idempotency_key();
    let known = input.operation.body["properties"].as_object().cloned().unwrap_or_default();
    input.body = Some(json!({}));
    for (name, value) in &call.arguments {
        if !known.contains_key(name) && name != REPETITION {
            return Err(one_kind(call, operation));
        }
        if known.contains_key(name) {
            let recipients = value.as_array().filter(|_| RECIPIENTS.contains(&name.as_str()));
            let value = recipients.map_or_else(|| value.clone(), |all| all.iter().map(|email| json!({ "email": email })).collect());
            input.set(&format!("/{name}"), value);
        }
    }
    Ok(input)
}

/// Returns the address of the contact who last wrote in an e-mail conversation.
async fn last_sender(call: &Call<'_>, conversation: &str) -> Result<String, ToolError> {
    let input = Input::of("listMessages")?.query("conversationId", Some(conversation)).query("pageSize", Some(RECENT_MESSAGES));
    let messages = call.call(&input).await?.data;
    let senders = messages.as_array().into_iter().flatten().filter(|message| message["sender"]["type"] == "contact");
    let address = senders.filter_map(|message| message["sender"]["id"].as_str()).find(|id| is_email(id));
    address.map(str::to_owned).ok_or_else(|| {
        ToolError::Arguments(
            "`to` is required: no contact with an e-mail address wrote in the last messages of this conversation.".to_owned(),
        )
    })
}

/// Returns the name and the channel of a conversation, for the user who approves the message; empty if they cannot be read.
async fn described(call: &Call<'_>, conversation: &str) -> String {
    if !call.session.caller.scopes.contains(Scope::ConversationsRead) {
        return String::new();
    }
    let Ok(input) = Input::of("listConversations") else { return String::new() };
    match call.call(&input.query("conversationId", Some(conversation))).await {
        Ok(answer) => {
            let text = |name: &str| answer.data[0][name].as_str().unwrap_or("?").to_owned();
            format!(" ({}, {})", text("displayName"), text("channel"))
        }
        Err(_) => String::new(),
    }
}

fn addresses_of(list: &Value) -> String {
    list.as_array().into_iter().flatten().filter_map(|one| one["email"].as_str()).collect::<Vec<_>>().join(", ")
}

pub fn start_conversation() -> Option<Tool> {
    api_operation_calls::find(NEW_EMAIL)?;
    let members = vec![
        InputMember::body("accountId", NEW_EMAIL, "/accountId", "The account to send from.", json!("a-3")),
        recipients("to", NEW_EMAIL, "Of an e-mail."),
        recipients("cc", NEW_EMAIL, "Copies."),
        recipients("bcc", NEW_EMAIL, "Blind copies."),
        part("subject", NEW_EMAIL, "/subject", "The subject.", json!("Your order")),
        part("text", NEW_EMAIL, "/text", "Plain text.", json!("It left today.")),
        part("html", NEW_EMAIL, "/html", "In HTML.", json!("<p>Hello</p>")),
        part("phoneNumber", TO_PHONE, "/phoneNumber", "For WhatsApp, in E.164.", json!("+66812345678")),
        part("templateId", TO_PHONE, "/templateId", "For WhatsApp; list_templates finds it.", json!("t-5")),
        part("variables", TO_PHONE, "/variables", "Values of its placeholders, in order.", json!(["Anong"])),
        repetition(),
    ];
    Some(Tool {
        name: "start_conversation",
        title: "Start a conversation",
        description: description("Sends an e-mail or a WhatsApp template to somebody who need not have written."),
        effect: Effect::Sends,
        operations: &[NEW_EMAIL, TO_PHONE],
        members: members.into_iter().flatten().collect(),
        output: sent_or_draft(),
        run: Run::Code(start),
        once: true,
    })
}

fn start<'a>(call: &'a Call<'a>) -> BoxFuture<'a, Result<Outcome, ToolError>> {
    Box::pin(async move {
        let (operation, to) = match (call.argument("to"), call.text("phoneNumber")) {
            (Some(to), None) => (NEW_EMAIL, to.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")),
            (None, Some(phone)) => (TO_PHONE, phone.to_owned()),
            _ => return Err(ToolError::Arguments("`to` for an e-mail, or `phoneNumber` for a WhatsApp template, is required.".to_owned())),
        };
        let input = body_of(call, operation)?;
        let account = call.text("accountId").unwrap_or_default();
        let preview = Preview::of(&input, format!("{to}, from account {account}"));
        approval_flow::send_or_draft(call, input, preview).await
    })
}
