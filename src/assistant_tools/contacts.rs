//! MCP tools for contacts: get, find, list and create contacts, and set contact fields.

use futures_util::future::BoxFuture;
use serde_json::json;

use super::{
    api_operation_calls,
    definition::{Effect, InputMember, Run, Tool, answer_of, pages, repetition},
    errors::ToolError,
    tool_call::{Call, Outcome},
};

const CONTACT: &str = "c-118";
const STAMP: &str = "2026-11-02T08:15:30.250Z";

pub fn get_contact() -> Option<Tool> {
    Tool::of(
        &["getContact"],
        "get_contact",
        "Get a contact",
        "One contact with addresses, numbers and custom fields.",
        Effect::Reads,
        vec![InputMember::query("getContact", "contactId", "The contact.", json!(CONTACT))],
    )
}

/// Returns the API operation that searches contacts. A build serves one of two revisions of the API contract: revision B has
/// `searchContacts`; in revision A, `listContacts` has a filter for a search text.
fn search_operation() -> &'static str {
    if api_operation_calls::find("searchContacts").is_some() { "searchContacts" } else { "listContacts" }
}

pub fn find_contacts() -> Option<Tool> {
    let operation = search_operation();
    let (about, example) = ("A part of a name, e-mail address or phone number.", json!("anong"));
    let mut query = match operation {
        "searchContacts" => InputMember::query(operation, "query", about, example),
        _ => InputMember::body("query", operation, "/search", about, example),
    };
    query = query.map(InputMember::required);
    let mut members = vec![query];
    members.extend(pages(operation));
    Some(Tool {
        name: "find_contacts",
        title: "Find contacts",
        description: "Contacts by name, e-mail address or phone number, the best match first.".to_owned(),
        effect: Effect::Reads,
        operations: if operation == "searchContacts" { &["searchContacts"] } else { &["listContacts"] },
        members: members.into_iter().flatten().collect(),
        output: answer_of(api_operation_calls::find(operation)?),
        run: Run::Code(find),
        once: false,
    })
}

fn find<'a>(call: &'a Call<'a>) -> BoxFuture<'a, Result<Outcome, ToolError>> {
    Box::pin(call.run_operation(search_operation()))
}

pub fn list_contacts() -> Option<Tool> {
    let member = |name, pointer, description| InputMember::body(name, "listContacts", pointer, description, json!(STAMP));
    let mut members = vec![
        member("updatedAfter", "/updatedAfter", "Changed at this time or later."),
        member("updatedBefore", "/updatedBefore", "Changed before this time."),
    ];
    members.extend(pages("listContacts"));
    Tool::of(
        &["listContacts"],
        "list_contacts",
        "List contacts",
        "Contacts by the time of their last change, the newest first.",
        Effect::Reads,
        members,
    )
}

pub fn create_contact() -> Option<Tool> {
    let member = |name, pointer, description, example: &str| InputMember::body(name, "createContact", pointer, description, json!(example));
    let tool = Tool::of(
        &["createContact"],
        "create_contact",
        "Create a contact",
        "Creates a contact. Look for an existing one with find_contacts first.",
        Effect::Writes { idempotent: false, destructive: false },
        vec![
            member("firstName", "/firstName", "The given name.", "Anong"),
            member("lastName", "/lastName", "The family name.", "Suksai"),
            member("email", "/email", "An e-mail address that no other contact has.", "anong@example.com"),
            member("phone", "/phone", "A phone number in E.164 that no other contact has.", "+66812345678"),
            repetition(),
        ],
    )?;
    Some(Tool { once: true, ..tool })
}

pub fn set_contact_field() -> Option<Tool> {
    let member = |name, pointer, description, example| InputMember::body(name, "updateContactField", pointer, description, example);
    Tool::of(
        &["updateContactField"],
        "set_contact_field",
        "Set a contact field",
        "Sets or unsets one custom field of a contact.",
        Effect::Writes { idempotent: true, destructive: false },
        vec![
            member("contactId", "/contactId", "The contact.", json!(CONTACT)),
            member("fieldId", "/contactFieldId", "The field; list_fields finds it.", json!("cf-2")),
            member("value", "/value", "The new value, of the field's type; null unsets it.", json!("gold")),
            member("updatedAt", "/updatedAt", "`customFieldsUpdatedAt` of the contact, or `updatedAt` if that is absent.", json!(STAMP)),
        ],
    )
}
