//! Documentation pages: Swagger UI around a document, with a content security policy that lets the browser run only the page's own code.

use base64::{Engine, engine::general_purpose::STANDARD};
use poem::http::HeaderValue;
use sha2::{Digest, Sha256};

use super::static_content::Download;

/// A page whose own scripts and style sheets are allowed by their hashes.
pub fn page(html: impl Fn() -> String + Send + Sync + 'static) -> Download {
    Download::page(html, policy)
}

/// Swagger UI writes `style` attributes, which contain no code, and has inline pictures; it sends requests to this server only.
fn policy(html: &str) -> HeaderValue {
    let (scripts, styles) = (hashes(html, "script"), hashes(html, "style"));
    let policy = format!(
        "default-src 'none'; script-src{scripts}; style-src{styles}; style-src-attr 'unsafe-inline'; img-src 'self' data:; \
         connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    );
    // Hashes and keywords are visible ASCII. The fallback policy lets nothing run.
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"))
}

/// The sources in a policy for the elements of this name.
fn hashes(html: &str, element: &str) -> String {
    let (begin, end) = (format!("<{element}"), format!("</{element}>"));
    let mut rest = html;
    let mut sources = String::new();
    while let Some((_, behind)) = rest.split_once(&begin) {
        let Some((content, behind)) = behind.split_once('>').and_then(|(_, inner)| inner.split_once(&end)) else { break };
        // A browser reads every kind of line end as one `\n`.
        let content = content.replace("\r\n", "\n").replace('\r', "\n");
        sources.push_str(&format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(content))));
        rest = behind;
    }
    // A directive without sources must say `'none'` explicitly.
    if sources.is_empty() { " 'none'".to_owned() } else { sources }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_and_style_sheet_is_allowed_by_its_hash() {
        let policy = policy("<style a>x</style><script>1\r\n2</script><b></b><script src='y'></script>");
        let policy = policy.to_str().unwrap();
        let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
        assert!(policy.contains(&format!("script-src {} {};", hash("1\n2"), hash(""))), "{policy}");
        assert!(policy.contains(&format!("style-src {};", hash("x"))), "{policy}");
        assert!(policy.ends_with("frame-ancestors 'none'"), "{policy}");
    }
}
