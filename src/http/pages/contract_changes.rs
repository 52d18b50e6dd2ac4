//! The pages at `/docs/changes` and `/docs/changes/events`, which show the changes from revision A of the contract (the specification of
//! the public API) to revision B, and from B to A. The first page shows the changes in requests and responses, the second page the changes
//! in events. The builds for the two revisions have the same pages, apart from links to the API reference.
//!
//! Each page is rendered from a comparison of the two revisions. The comparison is a JSON file that is compiled into the program. A page is
//! rendered when it is first requested, so that the rendering does not delay the start of the server.

use std::collections::BTreeSet;

use base64::{Engine, prelude::BASE64_STANDARD};
use openapi_diff::{PageContext, Report, STYLE};
use poem::http::HeaderValue;
use sha2::{Digest, Sha256};

use super::static_content::Download;
use crate::http::openapi::contract_document;

/// The comparison of the requests and responses of the two revisions, as JSON, with notes on how to adapt a client to the changes.
const A_TO_B: &str = include_str!("../../../openapi/a-to-b.json");
/// The comparison of the events of the two revisions, as JSON, with notes on how to adapt a client to the changes.
const EVENTS_A_TO_B: &str = include_str!("../../../openapi/events-a-to-b.json");

/// The path of the script that both pages of changes load.
pub const SCRIPT: &str = "/docs/changes.js";

/// Makes the page with the changes in requests and responses.
pub fn page() -> Download {
    Download::page(
        || {
            shown(
                A_TO_B,
                &[("/docs", "Documentation"), ("/docs/guides/moving-from-a-to-b", "Guide"), ("/docs/changes/events", "Changes of events")],
            )
        },
        policy(),
    )
}

/// Makes the page with the changes in events.
pub fn events_page() -> Download {
    Download::page(|| shown(EVENTS_A_TO_B, &[("/docs", "Documentation"), ("/docs/changes", "Changes of requests and answers")]), policy())
}

/// Returns the script at [`SCRIPT`].
pub fn script() -> Download {
    Download::text("text/javascript; charset=utf-8", || include_str!("contract_changes.js").to_owned())
}

/// Renders the page of a comparison. Operations that this build serves are linked to their documentation.
fn shown(comparison: &str, links: &[(&str, &str)]) -> String {
    let served: BTreeSet<_> =
        contract_document::routes(&contract_document::document()).into_iter().map(|route| route.operation_id).collect();
    let documented_at = |operation: &str| served.contains(operation).then(|| format!("/docs#{operation}"));
    let around = PageContext { links, documented_at: Some(&documented_at), script: Some(SCRIPT) };
    // A test parses both comparisons, so parsing does not fail here.
    serde_json::from_str(comparison).map_or_else(|error| error.to_string(), |report: Report| report.html(&around))
}

/// Returns the content security policy of the pages, which permits only their style sheet and the scripts of this server.
fn policy() -> HeaderValue {
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    );
    // The policy consists of visible ASCII characters, so it is a valid header value. The fallback, which permits nothing, is never used.
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_show_the_committed_comparisons() {
        let text = shown(A_TO_B, &[("/docs/changes/events", "Changes of events")]);
        assert!(text.contains("counterpart, revision A 1.0.0 <b>→</b> counterpart, revision B 1.0.0"));
        assert!(text.contains("x-pagination-total") && text.contains("what to do: 1"));
        assert!(text.contains("a cursor with other filters") && text.contains("href=\"/docs/changes/events\""));
        assert!(text.contains("href=\"/docs#listTickets\""));
        let text = shown(EVENTS_A_TO_B, &[("/docs/changes", "Changes")]);
        assert!(text.contains("counterpart events, revision A 1.0.0 <b>→</b> counterpart events, revision B 1.0.0"));
        assert!(text.contains("webhook message.received POST") && text.contains("href=\"/docs/changes\""));
    }

    #[test]
    fn the_policy_allows_the_style_sheet_of_the_page() {
        let text = shown(A_TO_B, &[]);
        let style = text.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>")).expect("a style sheet").0;
        let hash = BASE64_STANDARD.encode(Sha256::digest(style.as_bytes()));
        assert!(policy().to_str().unwrap().contains(&hash), "the browser would refuse the style sheet");
    }
}
