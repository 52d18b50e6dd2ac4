//! Registers the operations of the settings API ([`settings_operations`]), and generates their OpenAPI document from the handlers
//! ([`document`]).

use poem_openapi::{OpenApi, OpenApiService};
use serde_json::{Value, json};

use super::required_grants::TOKEN_SCHEME;
use crate::{
    domain::revision_rules::ReceivedAt,
    http::{
        machinery::routing::SETTINGS_PREFIX,
        openapi::{
            components::{operations_mut, share},
            document_post_processing::{canonical, sorted},
            examples::{ExampleFiles, Examples},
            introduction::UNENVELOPED,
            merged_paths::MergedGroups,
        },
    },
};

/// Returns all operations of the settings API, in groups. The router serves them under paths that begin with [`SETTINGS_PREFIX`]. Register
/// a new group of operations here.
pub fn settings_operations() -> impl OpenApi {
    let groups = (
        super::session::SessionOperations,
        super::credentials::CredentialOperations,
        super::keys::KeyOperations,
        super::webhooks::WebhookOperations,
        super::deliveries::DeliveryOperations,
        super::event_feed::EventOperations,
        super::change_feed::ChangeOperations,
        super::drafts::DraftOperations,
        super::undelivered_messages::UndeliveredOperations,
        super::unassign_snooze_handover::TicketStateOperations,
        super::inbound_messages::InboundMessageOperations,
        super::seats_and_account_access::TeamOperations,
        super::channel_bridges::BridgeOperations,
        super::audit::AuditOperations,
        super::clock::ClockOperations,
    );
    MergedGroups { groups, prefix: SETTINGS_PREFIX }
}

fn service() -> OpenApiService<impl OpenApi, ()> {
    OpenApiService::new(settings_operations(), "counterpart, settings", "1.0.0")
        .description(format!(
            "The settings of a store: API keys, webhooks, recorded events, and what the contract has no operation for. The callers are the \
             store's owners and admins, who authenticate with a browser's session or a machine's token, which may be limited to some \
             operations; bridges sign what they bring in. The settings API is the same in both revisions of the contract. {UNENVELOPED}"
        ))
        .license(poem_openapi::LicenseObject::new("MIT OR Apache-2.0").url("https://spdx.org/licenses/MIT.html"))
        .contact(poem_openapi::ContactObject::new().name("The operator of this server"))
        .server(poem_openapi::ServerObject::new(SETTINGS_PREFIX))
}

/// Generates the OpenAPI document of the settings API.
pub fn document() -> Value {
    let mut document = canonical(&service().spec());
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut).into_iter().flatten();
    for (_, schema) in schemas.filter(|(name, _)| name.ends_with("Envelope")) {
        // The envelope is the JSON object around the `data` of a response. Its generated schema shows `requestReceivedAt` in the form of
        // the revision (A or B) of the contract that this build serves. In the settings API, this property is always a date-time.
        if let Some(received_at) = schema.pointer_mut("/properties/requestReceivedAt") {
            *received_at = json!({ "description": "When the request arrived, in UTC.", "format": "date-time", "type": "string" });
        }
        if let Some(store) = schema.pointer_mut("/properties/storeId/description") {
            *store = "The store of the session, token or signature; empty where no store is known.".into();
        }
    }
    operations_mut(&mut document).for_each(required_grant);
    examples().put_into(&mut document);
    share(&mut document);
    sorted(document)
}

/// Splits a requirement such as `Token:keys` into the security scheme and the operation's `x-required-grant`, and adds the grant to the
/// operation's description.
fn required_grant(operation: &mut Value) {
    let required = operation["security"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut).find_map(|schemes| {
        let name = schemes.keys().find(|name| name.starts_with(TOKEN_SCHEME) && name.len() > TOKEN_SCHEME.len())?.clone();
        let scopes = schemes.remove(&name)?;
        schemes.insert(TOKEN_SCHEME.to_owned(), scopes);
        Some(name[TOKEN_SCHEME.len() + 1..].to_owned())
    });
    let Some(grant) = required else { return };
    let description = operation["description"].as_str().unwrap_or_default();
    operation["description"] = format!("{description}\n\nA token needs the grant `{grant}`.").into();
    operation["x-required-grant"] = grant.into();
}

/// Returns the examples of the document, which are the same in both revisions.
pub fn examples() -> Examples {
    let files = ExampleFiles {
        requests: &[include_str!("example_requests.json")],
        refusals: &[include_str!("refused_requests.json")],
        answers: include_str!("example_responses.json"),
        errors: include_str!("example_errors.json"),
    };
    Examples::read(files, ReceivedAt::Timestamp)
}
