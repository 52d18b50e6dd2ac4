//! The MCP tools for tickets: list and get tickets, set ticket fields, close a ticket, and assign tickets.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{
    api_operation_calls::Input,
    definition::{Effect, InputMember, Run, Tool, pages},
    errors::ToolError,
    results,
    tool_call::{Call, Outcome},
};

const TICKET: &str = "t-204";
const USER: &str = "7b2f6c1e-5b1d-4b8e-9a53-0c6de2a4f111";
const STAMP: &str = "2026-11-02T08:15:30.250Z";

/// The related records that `get_ticket` includes in its result.
const EXPAND: &str = "account,conversation,assignee,handledBy";

/// The largest number of a contact's conversations whose tickets one call lists.
const MAX_CONVERSATIONS: u32 = 10;

pub fn list_tickets() -> Option<Tool> {
    let filter = |name, pointer, description, example| InputMember::body(name, "listTickets", pointer, description, example);
    let mut members = vec![
        filter("statuses", "/statuses", "Open if omitted.", json!(["open", "closed"])),
        filter("assigneeUserIds", "/assigneeUserIds", "Any of these.", json!(["7b2f…"])),
        filter("unassigned", "/unassigned", "Without assignee.", json!(true)),
        InputMember::own("contactId", json!({ "type": "string", "maxLength": 64 }), "The contact.", json!("c-118")),
        filter("conversationId", "/conversationId", "The conversation.", json!("cv-204")),
        filter("labelIds", "/advancedFilters/labels/labelIds", "Any of these.", json!(["l-7"])).map(InputMember::by_tool),
        filter("waitingMinutes", "/advancedFilters/waitingForReply/value", "Waiting this long.", json!(30))
            .map(|member| InputMember { required: false, ..member }),
        InputMember::own("openedAfter", json!({ "type": "string" }), "An instant.", json!("2026-11-02T08:00:00Z")),
        InputMember::own("openedBefore", json!({ "type": "string" }), "An instant.", json!("2026-11-03T00:00:00Z")),
        field_filters(),
        filter("isSpam", "/isSpam", "Only spam.", json!(true)),
    ];
    members.extend(pages("listTickets"));
    let tool = Tool::of(
        &["listTickets"],
        "list_tickets",
        "List tickets",
        "Tickets that match all filters, the newest message first. Without filters: open ones.",
        Effect::Reads,
        members,
    )?;
    Some(Tool { run: Run::Code(|call| list(call)), ..tool })
}

/// Makes the argument for filters on field values. The argument's schema does not describe the properties of a filter, since the
/// description would be as long as the schemas of all other arguments. The example shows these properties, and the operation checks them.
/// Unlike the operation, the tool takes the two bounds of `between` as an array in `value`.
fn field_filters() -> Option<InputMember> {
    let example = json!([{ "ticketFieldId": "topic", "operator": "is_one_of", "value": ["Lost"] }]);
    let mut member =
        InputMember::body("fieldFilters", "listTickets", "/advancedFilters/ticketFields", "All must match.", example)?.by_tool();
    member.schema["items"] = json!({ "type": "object" });
    Some(member)
}

/// Converts a filter on a field value to the form that the operation takes: `between` gets `min` and `max` in place of an array.
fn field_filter(filter: &Value) -> Value {
    let mut filter = filter.clone();
    if filter["operator"] == "between"
        && let Some([min, max]) = filter["value"].as_array().map(Vec::as_slice)
    {
        filter = json!({ "ticketFieldId": filter["ticketFieldId"], "operator": "between", "min": min, "max": max });
    }
    filter
}

fn list<'a>(call: &'a Call<'a>) -> BoxFuture<'a, Result<Outcome, ToolError>> {
    Box::pin(async move {
        let input = filtered(call)?;
        let Some(contact) = call.text("contactId") else { return call.records(input).await.map(Outcome::Done) };
        if call.text("conversationId").is_some() {
            return Err(ToolError::Arguments(
                "`contactId` and `conversationId` exclude each other; give the conversation alone.".to_owned(),
            ));
        }
        let conversations = Input::of("listConversations")?.query("contactId", Some(contact)).query("pageSize", Some(MAX_CONVERSATIONS));
        let conversations = call.call(&conversations).await?;
        let more = conversations.next_cursor.is_some();
        let ids: Vec<Value> = conversations.data.as_array().into_iter().flatten().map(|one| one["id"].clone()).collect();
        let of_conversation = |id: &Value| {
            let mut input = input.clone();
            input.set("/conversationId", id.clone());
            input
        };
        if let ([only], false) = (ids.as_slice(), more) {
            return call.records(of_conversation(only)).await.map(Outcome::Done);
        }
        if call.text("cursor").is_some() {
            return Err(ToolError::Arguments(
                "`cursor` goes with `conversationId` here: the contact has several conversations.".to_owned(),
            ));
        }
        let mut items = Vec::new();
        for id in &ids {
            // Each conversation gets an equal part of the result's size limit.
            let page = call.records_within(of_conversation(id), usize::MAX, results::MAX_BYTES / ids.len()).await?;
            items.extend(page["items"].as_array().cloned().unwrap_or_default());
        }
        let mut result = json!({ "items": items });
        if !ids.is_empty() {
            result["note"] = format!(
                "The contact has several conversations. These are the first tickets of each{}; `conversationId` lists all of one.",
                if more { format!(" of the first {MAX_CONVERSATIONS}") } else { String::new() }
            )
            .into();
        }
        Ok(Outcome::Done(result))
    })
}

/// Builds the operation's filters from the arguments of the tool.
fn filtered(call: &Call<'_>) -> Result<Input, ToolError> {
    let mut input = call.input("listTickets")?;
    if let Some(labels) = call.argument("labelIds") {
        input.set("/advancedFilters/labels", json!({ "operator": "contains_any", "labelIds": labels }));
    }
    if let Some(filters) = call.argument("fieldFilters").and_then(Value::as_array) {
        input.set("/advancedFilters/ticketFields", filters.iter().map(field_filter).collect());
    }
    let opened = match (call.argument("openedAfter"), call.argument("openedBefore")) {
        (Some(min), Some(max)) => Some(json!({ "operator": "between", "min": min, "max": max })),
        (Some(value), None) => Some(json!({ "operator": "greater_than", "value": value })),
        (None, Some(value)) => Some(json!({ "operator": "less_than", "value": value })),
        (None, None) => None,
    };
    if let Some(opened) = opened {
        input.set("/advancedFilters/openedAt", opened);
    }
    Ok(input)
}

pub fn get_ticket() -> Option<Tool> {
    let tool = Tool::of(
        &["getTicket"],
        "get_ticket",
        "Get a ticket",
        "One ticket, with its channel account, conversation (its id is the `conversationId`), assignee and handler.",
        Effect::Reads,
        vec![InputMember::query("getTicket", "ticketId", "The ticket.", json!(TICKET))],
    )?;
    Some(Tool {
        run: Run::Code(|call| {
            Box::pin(async move { call.records(call.input("getTicket")?.query("expand", Some(EXPAND))).await.map(Outcome::Done) })
        }),
        ..tool
    })
}

pub fn set_ticket_field() -> Option<Tool> {
    let member = |name, pointer, description, example| InputMember::body(name, "updateTicketField", pointer, description, example);
    Tool::of(
        &["updateTicketField"],
        "set_ticket_field",
        "Set a ticket field",
        "Sets or unsets one field of a ticket.",
        Effect::Writes { idempotent: true, destructive: false },
        vec![
            member("ticketId", "/ticketId", "The ticket.", json!(TICKET)),
            member("fieldId", "/ticketFieldId", "The field; list_fields finds it.", json!("f-3")),
            member("value", "/newValue", "The new value, of the field's type; null unsets it.", json!("blue")),
            member(
                "ticketFieldsUpdatedAt",
                "/ticketFieldsUpdatedAt",
                "As get_ticket gave it: refuses the write if somebody changed the fields since.",
                json!(STAMP),
            ),
        ],
    )
}

pub fn close_ticket() -> Option<Tool> {
    let member = |name, pointer, description, example| InputMember::body(name, "closeTicket", pointer, description, example);
    Tool::of(
        &["closeTicket"],
        "close_ticket",
        "Close a ticket",
        "Closes a ticket and records values on it. It cannot be opened again by a tool; a new message of the contact does that.",
        Effect::Writes { idempotent: true, destructive: true },
        vec![
            member("ticketId", "/ticketId", "The ticket.", json!(TICKET)),
            member("handledBy", "/handledBy", "The `userId` of who handled it.", json!(USER)),
            member("isConverted", "/isConverted", "Whether it led to a sale.", json!(true)),
            member("totalRevenue", "/totalRevenue", "The revenue.", json!(1290.5)),
            member("currency", "/currency", "The currency of the revenue; the store's if omitted.", json!("THB")),
            member("fields", "/ticketFields", "Field values by field id.", json!({ "f-3": "blue" })),
        ],
    )
}

pub fn assign_tickets() -> Option<Tool> {
    let items =
        InputMember::body("items", "assignTickets", "", "1 to 50 tickets.", json!([{ "ticketId": TICKET, "assigneeUserId": USER }]))?
            .item("ticketId", "An open ticket.", TICKET)
            .item("assigneeUserId", "The assignee; list_people finds it.", USER);
    Tool::of(
        &["assignTickets"],
        "assign_tickets",
        "Assign tickets",
        "Assigns open tickets to users; all or none.",
        Effect::Writes { idempotent: true, destructive: false },
        vec![Some(items)],
    )
}
