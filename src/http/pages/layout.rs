//! The layout of the documentation pages: head, navigation, style sheet and script. The pages load nothing from other servers; their
//! content security policy forbids such requests.

use maud::{DOCTYPE, Markup, html};
use poem::http::HeaderValue;

use super::{guides::GUIDES, static_content::Download};

/// The path of the style sheet of the pages.
pub const STYLE: &str = "/docs/page.css";
/// The path of the script of the pages. The script remembers the programming language that the reader chose for examples, and adds buttons
/// that copy an example.
pub const SCRIPT: &str = "/docs/page.js";

/// The paths and titles of the reference pages, in the order of the navigation.
const REFERENCES: [(&str, &str); 3] =
    [("/docs", "API reference"), ("/docs/changes", "Changes between revisions"), ("/settings/docs", "Settings API reference")];

/// A documentation page.
#[derive(Debug)]
pub struct DocumentationPage<'a> {
    pub path: &'a str,
    pub title: &'a str,
    pub content: Markup,
    /// Links to the parts of the page. The navigation shows them below the link to the page itself.
    pub outline: Markup,
}

/// Renders the HTML of a page.
pub fn page(DocumentationPage { path, title, content, outline }: &DocumentationPage<'_>) -> String {
    let link = |to: &str, text: &str| {
        let is_here = to == *path;
        html! { li { a href=(to) aria-current=[is_here.then_some("page")] { (text) } @if is_here { (outline) } } }
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – counterpart" }
                link rel="icon" href="/favicon.ico" type="image/svg+xml";
                link rel="stylesheet" href=(STYLE);
                script type="module" src=(SCRIPT) {}
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header { a.brand href="/" { "counterpart" } " " a.menu href="#contents" { "Contents" } }
                main #content tabindex="-1" { (content) }
                nav #contents aria-label="Documentation" {
                    h2 { "Guides" }
                    ul { @for guide in &GUIDES { (link(&guide.path(), guide.title())) } }
                    h2 { "Reference" }
                    ul { @for (to, text) in REFERENCES { (link(to, text)) } }
                }
            }
        }
    }
    .into_string()
}

/// Makes a [`Download`] of a documentation page with the content security policy of these pages. `html` renders the page with [`page`].
pub fn download(html: impl Fn() -> String + Send + Sync + 'static) -> Download {
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; form-action 'none'; base-uri 'none'; \
         frame-ancestors 'none'";
    Download::page(html, HeaderValue::from_static(policy))
}

/// Returns the style sheet at [`STYLE`].
pub fn style() -> Download {
    Download::text("text/css; charset=utf-8", || include_str!("documentation_page.css").to_owned())
}

/// Returns the script at [`SCRIPT`].
pub fn script() -> Download {
    Download::text("text/javascript; charset=utf-8", || include_str!("documentation_page.js").to_owned())
}
