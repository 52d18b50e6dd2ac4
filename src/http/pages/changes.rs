//! The pages at `/docs/changes` and `/docs/changes/events`: the changes from revision A to revision B and back, in requests and answers,
//! and in the events that subscribers receive. The pages are the same in both builds.
//!
//! The pages are rendered from the committed comparisons when they are first requested, which takes a few milliseconds. Before that they
//! use no memory, and they do not delay the start of the server. Served by `app`.

use base64::{Engine, prelude::BASE64_STANDARD};
use poem::{Response, http::header};
use sha2::{Digest, Sha256};

use openapi_diff::{Report, STYLE};

/// The comparisons of the two revisions, with notes for those who adapt to the changes.
const A_TO_B: &str = include_str!("../../../openapi/a-to-b.json");
const EVENTS_A_TO_B: &str = include_str!("../../../openapi/events-a-to-b.json");

/// The changes in requests and answers.
pub fn page() -> serde_json::Result<Response> {
    shown(A_TO_B, &[("/docs", "Documentation"), ("/docs/changes/events", "Changes of events")])
}

/// The changes in events.
pub fn events_page() -> serde_json::Result<Response> {
    shown(EVENTS_A_TO_B, &[("/docs", "Documentation"), ("/docs/changes", "Changes of requests and answers")])
}

/// The page of a comparison. Its content security policy allows the page's own style sheet and nothing else.
fn shown(comparison: &str, links: &[(&str, &str)]) -> serde_json::Result<Response> {
    let report: Report = serde_json::from_str(comparison)?;
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!("default-src 'none'; style-src 'sha256-{style}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'");
    Ok(Response::builder()
        .content_type("text/html; charset=utf-8")
        .header(header::CONTENT_SECURITY_POLICY, policy)
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(header::REFERRER_POLICY, "no-referrer")
        .header(header::CACHE_CONTROL, "no-cache")
        .body(report.html(links)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_pages_show_the_committed_comparisons() {
        let text = shows(page()).await;
        assert!(text.contains("counterpart, revision A 1.0.0 <b>→</b> counterpart, revision B 1.0.0"));
        assert!(text.contains("x-pagination-total") && text.contains("what to do: 1"));
        assert!(text.contains("a cursor with other filters") && text.contains("href=\"/docs/changes/events\""));
        let text = shows(events_page()).await;
        assert!(text.contains("counterpart events, revision A 1.0.0 <b>→</b> counterpart events, revision B 1.0.0"));
        assert!(text.contains("webhook message.received POST") && text.contains("href=\"/docs/changes\""));
    }

    async fn shows(page: serde_json::Result<Response>) -> String {
        let response = page.expect("a page");
        let policy = response.header(header::CONTENT_SECURITY_POLICY).expect("a policy").to_owned();
        let text = response.into_body().into_string().await.expect("text");
        let style = text.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>")).expect("a style sheet").0;
        let hash = BASE64_STANDARD.encode(Sha256::digest(style.as_bytes()));
        assert!(policy.contains(&hash), "the browser would refuse the style sheet: {policy}");
        text
    }
}
