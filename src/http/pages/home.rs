//! The start page at `/`, which links to everything that is served, and its icon.

use super::{api_reference, static_content::Download};
use crate::http::machinery::routing::PREFIX;

const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><rect width=\"16\" height=\"16\" rx=\"4\" fill=\"#3355cc\"/>\
     <path d=\"M4 5h8v5H8l-3 2v-2H4z\" fill=\"white\"/></svg>\n";

/// The start page, with the name of the revision that this build serves.
pub fn page(revision: &'static str) -> Download {
    api_reference::page(move || include_str!("home.html").replace("{revision}", revision).replace("{prefix}", PREFIX))
}

/// The icon that browsers request from every server.
pub fn icon() -> Download {
    Download::text("image/svg+xml", || ICON.to_owned())
}
