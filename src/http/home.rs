//! The page at `/`, which leads to everything that is served, and its icon.

use super::{docs, document::PREFIX, download::Download};

const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><rect width=\"16\" height=\"16\" rx=\"4\" fill=\"#3355cc\"/>\
     <path d=\"M4 5h8v5H8l-3 2v-2H4z\" fill=\"white\"/></svg>\n";

/// The page of this revision.
pub fn page(revision: &'static str) -> Download {
    docs::page(move || include_str!("home.html").replace("{revision}", revision).replace("{prefix}", PREFIX))
}

/// The icon that browsers ask every server for.
pub fn icon() -> Download {
    Download::text("image/svg+xml", || ICON.to_owned())
}
