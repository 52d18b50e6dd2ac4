//! JSON Schema of import lines, generated from the types that parse them.

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use crate::domain::ndjson_records::{
    Account, Comment, Contact, ContactField, Conversation, Label, Message, RecordKind, Role, Team, Template, Ticket, TicketField, User,
};

/// An example file with a record of every kind.
pub const EXAMPLE: &str = include_str!("../../../openapi/import-example.ndjson");

/// Returns the JSON Schema (draft 2020-12) of a line. The schema describes the types of properties; the import also validates their values.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let lines: Vec<Value> = RecordKind::ALL.into_iter().map(|kind| line(kind, &mut generator)).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of an import or an export",
        "description": "A file is a sequence of such lines (NDJSON), in any order. What a record refers to by an id stands in the file or \
            in the store. A record whose id the store has already is replaced.",
        "oneOf": lines,
        "$defs": generator.take_definitions(true),
    })
}

fn line(kind: RecordKind, generator: &mut SchemaGenerator) -> Value {
    let record = match kind {
        RecordKind::Role => generator.subschema_for::<Role>(),
        RecordKind::User => generator.subschema_for::<User>(),
        RecordKind::Team => generator.subschema_for::<Team>(),
        RecordKind::Account => generator.subschema_for::<Account>(),
        RecordKind::Template => generator.subschema_for::<Template>(),
        RecordKind::Label => generator.subschema_for::<Label>(),
        RecordKind::ContactField => generator.subschema_for::<ContactField>(),
        RecordKind::TicketField => generator.subschema_for::<TicketField>(),
        RecordKind::Contact => generator.subschema_for::<Contact>(),
        RecordKind::Conversation => generator.subschema_for::<Conversation>(),
        RecordKind::Ticket => generator.subschema_for::<Ticket>(),
        RecordKind::Message => generator.subschema_for::<Message>(),
        RecordKind::Comment => generator.subschema_for::<Comment>(),
    };
    json!({
        "type": "object",
        "properties": {
            "kind": { "const": kind.name() },
            "record": record,
            "asStored": {
                "type": "boolean",
                "description": "Set by an export: the record breaks a rule that came after it, and is taken as it is.",
            },
            "oversized": {
                "type": "boolean",
                "description": "What exports of former builds say for `asStored`.",
                "deprecated": true,
            },
        },
        "required": ["kind", "record"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        domain::clock::ClocksAndIds,
        service::import::{Options, RereadableInput, run},
        store::fixture::Fixture,
    };

    #[test]
    fn the_committed_schema_is_the_one_of_this_build() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/import.schema.json");
        let committed: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        assert!(committed == schema(), "the committed schema is stale: run `cargo run -- import --schema > openapi/import.schema.json`");
    }

    #[test]
    fn the_schema_accepts_the_example_and_refuses_invalid_records() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        for line in EXAMPLE.lines() {
            let errors: Vec<String> = validator.iter_errors(&serde_json::from_str(line).unwrap()).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{line}: {errors:?}");
        }
        for wrong in [
            r#"{"kind":"roles","record":{"id":"r","name":"Owner","kind":"owner"}}"#,
            r#"{"kind":"role","record":{"id":"r","name":"Owner"}}"#,
            r#"{"kind":"role","record":{"id":"r","name":"Owner","kind":"owner","colour":"red"}}"#,
            r#"{"kind":"comment","record":{"id":"","conversationId":"c","text":"t","createdBy":"u","sentAt":"2026-01-01T00:00:00Z"}}"#,
            r#"{"kind":"message","record":{"id":"m","conversationId":"c","direction":"both","sentAt":"2026-01-01T00:00:00Z"}}"#,
        ] {
            assert!(!validator.is_valid(&serde_json::from_str(wrong).unwrap()), "{wrong}");
        }
    }

    #[tokio::test]
    async fn the_example_is_imported_with_a_record_of_every_kind() {
        let fixture = Fixture::new().await;
        let spool = RereadableInput::of_lines(EXAMPLE.lines().map(str::to_owned)).unwrap();
        let summary = run(&fixture.db, &ClocksAndIds::real(), &fixture.store, spool, Options::default()).await.unwrap();
        assert_eq!(summary.counts, RecordKind::ALL.map(|kind| (kind, 1)));
    }
}
