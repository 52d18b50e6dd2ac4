//! MCP resources: documents about the API that an assistant may read.

use rmcp::model::{ReadResourceResult, Resource, ResourceContents};

use crate::http::{events, openapi::contract_document};

struct Document {
    uri: &'static str,
    name: &'static str,
    title: &'static str,
    about: &'static str,
    media_type: &'static str,
    text: fn() -> String,
}

const DOCUMENTS: [Document; 3] = [
    Document {
        uri: "counterpart://openapi.json",
        name: "openapi.json",
        title: "The OpenAPI document",
        about: "Every operation of this revision of the contract, in OpenAPI 3.0.",
        media_type: "application/json",
        text: || contract_document::json(&contract_document::document()),
    },
    Document {
        uri: "counterpart://changes.md",
        name: "changes.md",
        title: "The changes from revision A to B",
        about: "What an integration changes when it moves from revision A of the contract to revision B.",
        media_type: "text/markdown",
        text: || include_str!("../../openapi/a-to-b.md").to_owned(),
    },
    Document {
        uri: "counterpart://events.json",
        name: "events.json",
        title: "The events",
        about: "The events that the store's webhooks receive, in OpenAPI 3.1.",
        media_type: "application/json",
        text: || contract_document::json(&events::openapi_document::document()),
    },
];

pub fn list() -> Vec<Resource> {
    let one = |document: &Document| {
        Resource::new(document.uri, document.name)
            .with_title(document.title)
            .with_description(document.about)
            .with_mime_type(document.media_type)
    };
    DOCUMENTS.iter().map(one).collect()
}

pub fn read(uri: &str) -> Option<ReadResourceResult> {
    let document = DOCUMENTS.iter().find(|document| document.uri == uri)?;
    let contents = ResourceContents::text((document.text)(), uri).with_mime_type(document.media_type);
    Some(ReadResourceResult::new(vec![contents]))
}
