//! The MCP tools for messages and internal comments: read a thread, search messages, and add a comment.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{
    api_operation_calls::{self, Input},
    definition::{Effect, InputMember, PAGE_SIZE, Run, Tool, pages, repetition},
    errors::ToolError,
    results,
    tool_call::{Call, Outcome},
};

/// The length to which texts of a thread are cut, in characters.
const MAX_TEXT_CHARS: usize = 2_000;

pub fn read_thread() -> Option<Tool> {
    let id = |name, description, example: &str| InputMember::query("listMessages", name, description, json!(example));
    let flag = |name, description, example: bool| InputMember::own(name, json!({ "type": "boolean" }), description, json!(example));
    let mut members = vec![
        id("conversationId", "The conversation.", "cv-204"),
        id("ticketId", "Only the messages of this ticket.", "t-204"),
        flag("includeComments", "Adds the newest internal comments of the conversation.", true),
        flag("newestFirst", "The order within the page; true if omitted. Pages go from new to old in any case.", false),
        InputMember::own("commentsCursor", json!({ "type": "string" }), "`commentsNextCursor` of the page before.", json!("eyJ2")),
    ];
    members.extend(pages("listMessages"));
    let tool = Tool::of(
        &["listMessages"],
        "read_thread",
        "Read a thread",
        "The messages of a conversation or a ticket. Give `conversationId` or `ticketId`. Texts are cut at 2,000 characters.",
        Effect::Reads,
        members,
    )?;
    let mut output = tool.output.clone();
    let comment = api_operation_calls::find("listInternalComments")?.data["items"].clone();
    output["properties"]["comments"] = json!({ "type": "array", "items": comment });
    output["properties"]["commentsNextCursor"] = json!({ "type": "string" });
    Some(Tool { operations: &["listMessages", "listInternalComments"], output, run: Run::Code(read), ..tool })
}

fn read<'a>(call: &'a Call<'a>) -> BoxFuture<'a, Result<Outcome, ToolError>> {
    Box::pin(async move {
        if call.text("conversationId").is_none() && call.text("ticketId").is_none() {
            return Err(ToolError::Arguments("`conversationId` or `ticketId` is required; list_tickets has both.".to_owned()));
        }
        // Comments take a quarter of the result's size limit at most.
        let with_comments = call.is_set("includeComments");
        let room = if with_comments { results::MAX_BYTES / 4 * 3 } else { results::MAX_BYTES };
        let mut result = call.records_within(call.input("listMessages")?, MAX_TEXT_CHARS, room).await?;
        if with_comments {
            let found = result["items"][0]["conversationId"].as_str();
            if let Some(conversation) = call.text("conversationId").or(found) {
                let mut input =
                    Input::of("listInternalComments")?.query("conversationId", Some(conversation)).query("pageSize", Some(PAGE_SIZE));
                if let Some(cursor) = call.text("commentsCursor") {
                    input = input.after(cursor);
                }
                let mut comments = call.records_within(input, MAX_TEXT_CHARS, results::MAX_BYTES / 4).await?;
                result["comments"] = comments["items"].take();
                if let Value::String(cursor) = comments["nextCursor"].take() {
                    result["commentsNextCursor"] = cursor.into();
                }
            }
        }
        if call.argument("newestFirst") == Some(&Value::Bool(false)) {
            for list in ["items", "comments"] {
                if let Some(list) = result.get_mut(list).and_then(Value::as_array_mut) {
                    list.reverse();
                }
            }
        }
        Ok(Outcome::Done(result))
    })
}

pub fn search_messages() -> Option<Tool> {
    let mut members = vec![InputMember::query("searchMessages", "query", "Words of the message.", json!("refund order"))];
    members.extend(pages("searchMessages"));
    Tool::of(
        &["searchMessages"],
        "search_messages",
        "Search messages",
        "Messages of all conversations that contain the words, the best match first.",
        Effect::Reads,
        members,
    )
}

pub fn add_comment() -> Option<Tool> {
    let member =
        |name, pointer, description, example: &str| InputMember::body(name, "addInternalComment", pointer, description, json!(example));
    let tool = Tool::of(
        &["addInternalComment"],
        "add_comment",
        "Add an internal comment",
        "Adds a comment to a conversation. Not seen by the customer.",
        Effect::Writes { idempotent: false, destructive: false },
        vec![
            member("conversationId", "/conversationId", "The conversation.", "cv-204"),
            member("text", "/text", "The text; `<@userId:name@>` mentions a user.", "Refund approved."),
            repetition(),
        ],
    )?;
    Some(Tool { once: true, ..tool })
}
