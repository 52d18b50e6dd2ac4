//! Documentation pages: Swagger UI around a document, with a policy under which the browser runs nothing but what the page came with.

use base64::{Engine, engine::general_purpose::STANDARD};
use poem::{
    Response,
    http::{HeaderValue, header},
};
use sha2::{Digest, Sha256};

/// A page, and the policy of its content.
#[derive(Clone, Debug)]
pub struct DocsPage {
    html: String,
    policy: HeaderValue,
}

impl DocsPage {
    /// The page's own scripts and style sheets are allowed by their hashes. Swagger UI writes `style` attributes, which hold no code,
    /// and has its pictures inline; it asks this server alone.
    pub fn new(html: String) -> Self {
        let (scripts, styles) = (hashes(&html, "script"), hashes(&html, "style"));
        let policy = format!(
            "default-src 'none'; script-src{scripts}; style-src{styles}; style-src-attr 'unsafe-inline'; img-src 'self' data:; \
             connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
        );
        // Hashes and words are visible ASCII. Without a policy nothing may run.
        let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
        Self { html, policy }
    }

    pub fn response(&self) -> Response {
        Response::builder()
            .content_type("text/html; charset=utf-8")
            .header(header::CONTENT_SECURITY_POLICY, self.policy.clone())
            .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
            .header(header::REFERRER_POLICY, "no-referrer")
            .header(header::CACHE_CONTROL, "no-cache")
            .body(self.html.clone())
    }
}

/// The sources of a policy for each element of this name.
fn hashes(html: &str, element: &str) -> String {
    let (begin, end) = (format!("<{element}"), format!("</{element}>"));
    let mut rest = html;
    let mut sources = String::new();
    while let Some((_, behind)) = rest.split_once(&begin) {
        let Some((content, behind)) = behind.split_once('>').and_then(|(_, inner)| inner.split_once(&end)) else { break };
        // A browser reads every line end as one character.
        let content = content.replace("\r\n", "\n").replace('\r', "\n");
        sources.push_str(&format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(content))));
        rest = behind;
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_and_style_sheet_is_allowed_by_its_hash() {
        let page = DocsPage::new("<style a>x</style><script>1\r\n2</script><b></b><script src='y'></script>".to_owned());
        let policy = page.policy.to_str().unwrap();
        let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
        assert!(policy.contains(&format!("script-src {} {};", hash("1\n2"), hash(""))), "{policy}");
        assert!(policy.contains(&format!("style-src {};", hash("x"))), "{policy}");
        assert!(policy.ends_with("frame-ancestors 'none'"), "{policy}");
    }
}
