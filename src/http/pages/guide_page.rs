//! The pages of the guides, at `/docs/guides`.

use maud::html;

use super::{
    guides::Guide,
    layout::{self, DocumentationPage},
    markdown::rendered,
    static_content::Download,
};
use crate::revision;

/// Makes the page of a guide.
pub fn download(guide: &'static Guide) -> Download {
    layout::download(|| {
        let markdown = guide.markdown.replace("{revision}", revision::NAME);
        let content = html! { article { (rendered(&markdown)) } };
        layout::page(&DocumentationPage { path: &guide.path(), title: guide.title(), content, outline: html! {} })
    })
}
