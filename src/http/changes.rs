//! The page at `/docs/changes`: what changed from revision A to revision B and back, the same in both builds.
//!
//! It is made from the committed comparison when somebody asks for it, which takes a few milliseconds; so a server that
//! nobody asks holds nothing of it in memory and starts no later. Served by `app`.

use base64::{Engine, prelude::BASE64_STANDARD};
use poem::{Response, http::header};
use sha2::{Digest, Sha256};

use crate::contract::{Report, STYLE};

/// The comparison of the two revisions, with notes on what to do about it.
const A_TO_B: &str = include_str!("../../openapi/a-to-b.json");

/// The page, which may use its own style sheet and nothing else.
pub fn page() -> serde_json::Result<Response> {
    let report: Report = serde_json::from_str(A_TO_B)?;
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!("default-src 'none'; style-src 'sha256-{style}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'");
    Ok(Response::builder()
        .content_type("text/html; charset=utf-8")
        .header(header::CONTENT_SECURITY_POLICY, policy)
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(header::REFERRER_POLICY, "no-referrer")
        .header(header::CACHE_CONTROL, "no-cache")
        .body(report.html(Some(("/docs", "Documentation")))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_page_shows_the_committed_comparison() {
        let response = page().expect("a page");
        let policy = response.header(header::CONTENT_SECURITY_POLICY).expect("a policy").to_owned();
        let text = response.into_body().into_string().await.expect("text");
        let style = text.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>")).expect("a style sheet").0;
        let hash = BASE64_STANDARD.encode(Sha256::digest(style.as_bytes()));
        assert!(policy.contains(&hash), "the browser would refuse the style sheet: {policy}");
        assert!(text.contains("counterpart, revision A 1.0.0 <b>→</b> counterpart, revision B 1.0.0"));
        assert!(text.contains("x-pagination-total") && text.contains("what to do: 1"));
    }
}
