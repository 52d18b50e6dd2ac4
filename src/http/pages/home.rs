//! The start page at `/`, with links to the documentation, the settings page and the health check; and the server's icon.

use maud::html;

use super::{
    layout::{self, DocumentationPage},
    static_content::Download,
};
use crate::http::machinery::routing::PREFIX;

const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><rect width=\"16\" height=\"16\" rx=\"4\" fill=\"#3355cc\"/>\
     <path d=\"M4 5h8v5H8l-3 2v-2H4z\" fill=\"white\"/></svg>\n";

/// Makes the start page, with the name of the revision of the contract (A or B) that this build serves.
pub fn page(revision: &'static str) -> Download {
    let content = move || {
        html! {
            h1 { "counterpart" }
            p { "The data API of a customer-support inbox, revision " (revision) " of its contract, at " code { (PREFIX) } "." }
            dl {
                dt { a href="/docs" { "API reference" } }
                dd { "Every operation, with an example. Begin with " a href="/docs/guides/authentication" { "the first guide" } "." }
                dt { a href="/openapi.json" { "OpenAPI document" } }
                dd {
                    "For client generators and other tools, also " a href="/openapi.yaml" { "as YAML" } ". "
                    a href="/openapi-events.json" { "The document of the events" } " that are sent to webhooks."
                }
                dt { a href="/settings" { "Settings" } }
                dd {
                    "Keys, webhooks, accounts, seats and drafts of a store, for its owners and admins. " a href="/settings/docs" { "The settings API" } "."
                }
                dt { a href="/readyz" { "Health" } }
                dd { "Whether the server is ready to answer requests. " a href="/metrics" { "Metrics" } "." }
            }
        }
    };
    layout::download(move || layout::page(&DocumentationPage { path: "/", title: "Start", content: content(), outline: html! {} }))
}

/// Returns the icon (`/favicon.ico`) that browsers request from every server.
pub fn icon() -> Download {
    Download::text("image/svg+xml", || ICON.to_owned())
}
