//! The settings page at `/settings`: static files that are part of the binary. Their script gets all data from the settings plane.
//!
//! The page loads nothing from other servers, and its content security policy allows nothing else. So the page works without the internet,
//! and the browser does not run a script that a name contains.

use poem::http::HeaderValue;

use super::static_content::Download;

/// A file of the page: its path below `/settings`, and its content.
type File = (&'static str, &'static str);

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        [$((concat!("/", $path), include_str!(concat!("settings_page/", $path)))),*]
    };
}

/// The scripts of the tabs, in the order of the navigation.
const TABS: [File; 7] = files![
    "tabs/keys.js",
    "tabs/webhooks.js",
    "tabs/deliveries.js",
    "tabs/drafts.js",
    "tabs/accounts.js",
    "tabs/team.js",
    "tabs/changes.js"
];

/// The scripts that the tabs share, and the style sheet.
const FILES: [File; 6] = files!["page.css", "page.js", "sections.js", "dialogs.js", "elements.js", "plane.js"];

const PATH: &str = "/settings";

/// Every file of the page with its whole path.
pub fn downloads() -> impl Iterator<Item = (String, Download)> {
    let files = FILES.into_iter().chain(TABS).map(|(path, content)| {
        let media_type = if path.ends_with(".css") { "text/css; charset=utf-8" } else { "text/javascript; charset=utf-8" };
        (format!("{PATH}{path}"), Download::text(media_type, || content.to_owned()))
    });
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'none'; \
         base-uri 'none'; frame-ancestors 'none'";
    files.chain([(PATH.to_owned(), Download::page(html, HeaderValue::from_static(policy)))])
}

fn html() -> String {
    let tabs: String = TABS.iter().map(|(path, _)| format!("<script type=\"module\" src=\"{PATH}{path}\"></script>\n")).collect();
    include_str!("settings_page/index.html").replace("{tabs}", &tabs)
}
