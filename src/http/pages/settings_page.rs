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
const TABS: [File; 8] = files![
    "tabs/keys.js",
    "tabs/webhooks.js",
    "tabs/deliveries.js",
    "tabs/drafts.js",
    "tabs/accounts.js",
    "tabs/team.js",
    "tabs/sessions.js",
    "tabs/changes.js"
];

/// The scripts that the tabs share, and the style sheet.
const FILES: [File; 6] = files!["page.css", "page.js", "sections.js", "dialogs.js", "elements.js", "plane.js"];

const PATH: &str = "/settings";

/// Every file of the page with its whole path. `sends_mail`: whether the server sends links by e-mail.
pub fn downloads(sends_mail: bool) -> impl Iterator<Item = (String, Download)> {
    let files = FILES.into_iter().chain(TABS).map(|(path, content)| {
        let media_type = if path.ends_with(".css") { "text/css; charset=utf-8" } else { "text/javascript; charset=utf-8" };
        (format!("{PATH}{path}"), Download::text(media_type, || content.to_owned()))
    });
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'none'; \
         base-uri 'none'; frame-ancestors 'none'";
    files.chain([(PATH.to_owned(), Download::page(move || html(sends_mail), HeaderValue::from_static(policy)))])
}

/// The form of a person who is not signed in.
const MAIL: &str = r#"  <form id="gate-mail">
    <label>E-mail <input name="email" type="email" required maxlength="254" autocomplete="email"></label>
    <p class="hint">The address that your store has of you. If you are an owner or admin, a link is sent to it.</p>
    <p class="buttons"><button class="main">Send me a link</button></p>
  </form>
"#;

fn html(sends_mail: bool) -> String {
    let tabs: String = TABS.iter().map(|(path, _)| format!("<script type=\"module\" src=\"{PATH}{path}\"></script>\n")).collect();
    include_str!("settings_page/index.html").replace("{tabs}", &tabs).replace("{mail}", if sends_mail { MAIL } else { "" })
}
