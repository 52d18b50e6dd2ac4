//! The document of the settings plane, generated like that of the contract.

use poem_openapi::{OpenApiService, Tags};
use serde_json::{Value, json};

use crate::{
    domain::rules::ReceivedAt,
    http::{
        document::{UNENVELOPED, canonical, page_of, sorted},
        examples::Examples,
        merged::Merged,
    },
};

/// The nouns under which operations are grouped.
#[derive(Debug, Tags)]
pub enum Tag {
    /// Who is asking.
    Session,
    /// API keys.
    Keys,
    /// Subscriptions to events, the log of deliveries, and deliveries on demand.
    Webhooks,
    /// Recorded events.
    Events,
    /// Moves of tickets and conversations, and messages that a bridge brings.
    Inbox,
    /// Seats, and who may work on which account.
    Team,
    /// Endpoints that hand the messages of channel accounts over.
    Bridges,
    /// What was changed, and by whom.
    Audit,
}

macro_rules! groups {
    ($($group:path),* $(,)?) => {
        /// Every operation of the plane.
        pub type Plane = Merged<($($group,)*)>;

        /// The operations, ready to be served: their paths begin with [`PREFIX`].
        pub fn plane() -> Plane {
            Merged { groups: ($($group,)*), prefix: PREFIX }
        }
    };
}

groups! {
    super::session::Sessions,
    super::keys::Keys,
    super::webhooks::Webhooks,
    super::events::Events,
    super::inbox::Inbox,
    super::team::Team,
    super::bridges::Bridges,
    super::audit::Audit,
}

/// The path that the plane is served under.
pub const PREFIX: &str = "/settings/v1";

/// Whether a path is one of the plane's, served or not.
pub fn in_settings(path: &str) -> bool {
    path.strip_prefix(PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn service() -> OpenApiService<Plane, ()> {
    OpenApiService::new(plane(), "counterpart, settings", "1.0.0")
        .description(format!(
            "The settings of a store: API keys, webhooks, recorded events, and what the contract has no operation for. For the \
             store's owners and admins, by a browser's session or a machine's token. The same in both revisions of the contract. \
             {UNENVELOPED}"
        ))
        .license(poem_openapi::LicenseObject::new("MIT OR Apache-2.0").url("https://spdx.org/licenses/MIT.html"))
        .contact(poem_openapi::ContactObject::new().name("Whoever runs this server"))
        .server(poem_openapi::ServerObject::new(PREFIX))
}

/// The document.
pub fn document() -> Value {
    let mut document = canonical(&service().spec());
    for schema in document.pointer_mut("/components/schemas").and_then(Value::as_object_mut).into_iter().flat_map(|all| all.values_mut()) {
        // Written as the compiled revision writes it; here it is the same in both.
        if let Some(received_at) = schema.pointer_mut("/properties/requestReceivedAt") {
            *received_at = json!({ "description": "When the request arrived, in UTC.", "format": "date-time", "type": "string" });
        }
        if let Some(store) = schema.pointer_mut("/properties/storeId/description") {
            *store = "The store whose settings they are; empty where no store is known.".into();
        }
    }
    examples().put_into(&mut document);
    sorted(document)
}

/// The examples of the document, the same in both revisions too.
pub fn examples() -> Examples {
    Examples::read(&[include_str!("requests.json")], include_str!("answers.json"), ReceivedAt::Timestamp)
}

/// The documentation page, self-contained.
pub fn docs() -> String {
    let service = service();
    page_of(&service.swagger_ui_html(), &service.spec(), &document(), "counterpart settings API")
}
