//! The settings page at `/settings`: static files that are part of the binary. Their script gets all data from the settings plane.
//!
//! The page loads nothing from other servers, and its content security policy allows nothing else. So the page works without the internet,
//! and the browser does not run a script that a name contains.

use poem::{Response, http::header};

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// The whole path at which the file is served.
    pub path: &'static str,
    pub media_type: &'static str,
    pub body: &'static str,
}

pub const ASSETS: [Asset; 3] = [
    Asset { path: "/settings", media_type: "text/html; charset=utf-8", body: include_str!("page/index.html") },
    Asset { path: "/settings/page.js", media_type: "text/javascript; charset=utf-8", body: include_str!("page/page.js") },
    Asset { path: "/settings/page.css", media_type: "text/css; charset=utf-8", body: include_str!("page/page.css") },
];

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

impl Asset {
    pub fn response(self) -> Response {
        Response::builder()
            .content_type(self.media_type)
            .header(header::CONTENT_SECURITY_POLICY, POLICY)
            .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
            .header(header::REFERRER_POLICY, "no-referrer")
            .header(header::CACHE_CONTROL, "no-cache")
            .body(self.body)
    }
}
