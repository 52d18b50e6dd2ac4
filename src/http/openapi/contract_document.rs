//! The OpenAPI document of the API contract: registers the operations of the contract's revision (A or B) for which the program is
//! compiled, and generates the document from their handlers. The modules `document_post_processing`, `examples`, `openapi_links` and
//! `components` post-process the document.

use poem_openapi::{OpenApi, OpenApiService};
use serde_json::Value;

use super::{
    components::share,
    document_post_processing::{canonical, sorted},
    examples,
    introduction::introduction,
    merged_paths::MergedGroups,
    openapi_links,
};
use crate::{
    http::{machinery::routing::PREFIX, operations},
    revision,
};

/// Returns all operations of the contract that exist in the revision for which the program is compiled, in groups. The router serves them
/// under paths that begin with [`PREFIX`]. Register a new group of operations here.
pub fn contract() -> impl OpenApi {
    let groups = (
        operations::tickets::TicketReads,
        operations::conversations::ConversationReads,
        operations::contacts::ContactReads,
        operations::messages::MessageReads,
        operations::users::UserReads,
        operations::labels::LabelReads,
        operations::teams::TeamReads,
        operations::tickets::TicketWrites,
        operations::conversations::ConversationWrites,
        operations::contacts::ContactWrites,
        operations::messages::MessageWrites,
        revision::extra(),
    );
    MergedGroups { groups, prefix: PREFIX }
}

fn service() -> OpenApiService<impl OpenApi, ()> {
    OpenApiService::new(contract(), format!("counterpart, revision {}", revision::NAME), "1.0.0")
        .description(introduction())
        .license(poem_openapi::LicenseObject::new("MIT OR Apache-2.0").url("https://spdx.org/licenses/MIT.html"))
        .contact(poem_openapi::ContactObject::new().name("The operator of this server"))
        .server(poem_openapi::ServerObject::new(PREFIX))
}

/// Generates the OpenAPI document of the contract.
pub fn document() -> Value {
    let mut document = canonical(&service().spec());
    examples::contract().put_into(&mut document);
    openapi_links::add(&mut document);
    share(&mut document);
    sorted(document)
}

/// Writes a document as JSON text, with a line break at the end.
pub fn json(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// Writes a document as YAML text.
pub fn yaml(document: &Value) -> String {
    serde_saphyr::to_string(document).unwrap_or_default()
}

/// One operation in the list of routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub method: String,
    /// The path without the prefix that all operations of the document share (such as [`PREFIX`]).
    pub path: String,
    pub operation_id: String,
    /// The permission that the operation requires: the scope of an API key or, in the settings API, the grant of a token. Empty if the
    /// operation requires none.
    pub scope: String,
}

/// Returns the operations of a document as a list of routes, in the order of the document.
pub fn routes(document: &Value) -> Vec<Route> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            routes.push(Route {
                method: method.to_uppercase(),
                path: path.clone(),
                operation_id: text(&operation["operationId"]),
                scope: text(operation.get("x-required-scope").unwrap_or(&operation["x-required-grant"])),
            });
        }
    }
    routes
}

/// Writes the list of routes for reviewers: one line for each operation, `METHOD PATH operationId`, and the scope or grant if there is one.
pub fn routes_page(document: &Value) -> String {
    let line =
        |route: Route| format!("{} {} {} {}", route.method, route.path, route.operation_id, route.scope).trim_end().to_owned() + "\n";
    routes(document).into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::schemas::value_types::OPEN_ENUM;

    fn operations_of<T: OpenApi>(_: T) -> usize {
        T::meta().into_iter().flat_map(|api| api.paths).map(|path| path.operations.len()).sum()
    }

    #[test]
    fn every_operation_has_a_unique_id_and_a_scope() {
        let routes = routes(&document());
        assert!(routes.len() >= 12);
        let mut ids: Vec<_> = routes.iter().map(|route| &route.operation_id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), routes.len());
        for route in &routes {
            assert!(!route.operation_id.is_empty() && !route.scope.is_empty(), "{route:?}");
        }
        assert_eq!(operations_of(contract()), routes.len());
    }

    #[test]
    fn nothing_internal_is_left_in_the_document() {
        let text = json(&document());
        for word in [OPEN_ENUM, "ApiKey:", "charset"] {
            assert!(!text.contains(word), "{word}");
        }
    }
}
