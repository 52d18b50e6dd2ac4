//! The settings page at `/settings`: static files that are part of the binary. The page's scripts get all data from the settings API.
//!
//! The page loads nothing from other servers, so it works without access to the internet. Its content security policy permits only script
//! files of this server, and no script inside HTML. So the browser does not run a script that is hidden in a record, for example in a name.

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
const TABS: [File; 9] = files![
    "tabs/keys.js",
    "tabs/webhooks.js",
    "tabs/deliveries.js",
    "tabs/drafts.js",
    "tabs/undelivered_messages.js",
    "tabs/accounts.js",
    "tabs/team.js",
    "tabs/sessions.js",
    "tabs/audit_log.js"
];

/// The scripts that the tabs share, the texts in each language, the library that reads the texts (Project Fluent), and the style sheet.
const FILES: [File; 10] = files![
    "page.css",
    "page.js",
    "tabs.js",
    "dialogs.js",
    "dom_helpers.js",
    "settings_api.js",
    "localization.js",
    "texts/en.ftl",
    "texts/th.ftl",
    "vendor/fluent-bundle.js"
];

const PATH: &str = "/settings";

/// Returns every file of the page with its whole path. `sends_mail`: whether the server sends sign-in links by e-mail.
pub fn downloads(sends_mail: bool) -> impl Iterator<Item = (String, Download)> {
    let files = FILES.into_iter().chain(TABS).map(|(path, content)| {
        let media_type = match path.rsplit('.').next() {
            Some("css") => "text/css; charset=utf-8",
            Some("ftl") => "text/plain; charset=utf-8",
            _ => "text/javascript; charset=utf-8",
        };
        (format!("{PATH}{path}"), Download::text(media_type, || content.to_owned()))
    });
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'none'; \
         base-uri 'none'; frame-ancestors 'none'";
    files.chain([(PATH.to_owned(), Download::page(move || html(sends_mail), HeaderValue::from_static(policy)))])
}

/// The form in which a user who is not signed in requests a sign-in link, which the server sends by e-mail.
const MAIL: &str = r#"  <form id="gate-mail">
    <label><span data-t="gate-email"></span> <input name="email" inputmode="email" required maxlength="254" autocomplete="email" autocapitalize="off" spellcheck="false"></label>
    <p class="hint" data-t="gate-email-hint"></p>
    <p class="buttons"><button class="main" data-t="gate-send"></button></p>
  </form>
"#;

fn html(sends_mail: bool) -> String {
    let tabs: String = TABS.iter().map(|(path, _)| format!("<link rel=\"modulepreload\" href=\"{PATH}{path}\">\n")).collect();
    include_str!("settings_page/index.html").replace("{tabs}", &tabs).replace("{mail}", if sends_mail { MAIL } else { "" })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use regex::Regex;

    use super::*;

    /// Returns the names of the messages (texts) in the catalogue of a language, each with the names of the message's arguments.
    fn messages(language: &str) -> BTreeMap<&'static str, BTreeSet<&'static str>> {
        let path = format!("/texts/{language}.ftl");
        let (_, catalogue) = FILES.into_iter().find(|(file, _)| *file == path).unwrap();
        let (name, argument) = (Regex::new(r"^([a-z][a-z_-]*) =").unwrap(), Regex::new(r"\{ \$([a-z]+)").unwrap());
        let mut found = BTreeMap::new();
        let mut current = "";
        for line in catalogue.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            if let Some(start) = name.captures(line) {
                current = start.get(1).unwrap().as_str();
                assert!(found.insert(current, BTreeSet::new()).is_none(), "{language}: {current} is there twice");
            }
            assert!(line.starts_with("    ") || name.is_match(line), "{language}: {line}");
            found.entry(current).or_default().extend(argument.captures_iter(line).map(|one| one.get(1).unwrap().as_str()));
        }
        found
    }

    #[test]
    fn the_catalogues_have_the_same_messages_and_the_page_uses_each() {
        let english = messages("en");
        assert!(english.len() > 200, "{}", english.len());
        assert_eq!(english, messages("th"));
        let own = FILES.into_iter().filter(|(path, _)| path.ends_with(".js") && !path.starts_with("/vendor"));
        let sources: String = own.chain(TABS).map(|(_, source)| source).chain([include_str!("settings_page/index.html"), MAIL]).collect();
        // The scripts refer to a message (a text of the catalogue) in three ways: by its name in quotes, by a template string that begins
        // with a fixed part of the name, and by the name of a tab, from which `tabs.js` makes message names such as `keys-hint`.
        let quoted = Regex::new(r#""([a-z][a-z_-]*)""#).unwrap();
        let begun = Regex::new(r"`([a-z-]+-)\$\{").unwrap();
        let tab = Regex::new(r#"name: "([a-z]+)""#).unwrap();
        let all = |regex: &Regex| regex.captures_iter(&sources).map(|one| one[1].to_owned()).collect::<BTreeSet<_>>();
        let (quoted, begun, tabs) = (all(&quoted), all(&begun), all(&tab));
        let of_tab = |name: &str| tabs.iter().any(|tab| name == format!("{tab}-hint") || name == format!("{tab}-empty"));
        let used = |name: &str| quoted.contains(name) || begun.iter().any(|start| name.starts_with(start.as_str())) || of_tab(name);
        let unused: Vec<_> = english.keys().filter(|name| !used(name)).collect();
        assert!(unused.is_empty(), "no script uses {unused:?}");
        let called = Regex::new(r#"(?:\bt\(|data-t=)"([a-z_-]+)""#).unwrap();
        let columns = Regex::new(r#"table\("[a-z]+", "[a-z-]+", \[([^\]]*)\]"#).unwrap();
        let columns: BTreeSet<_> =
            all(&columns).iter().flat_map(|list| list.split(", ")).map(|name| name.trim_matches('"').to_owned()).collect();
        assert!(columns.len() > 20, "{columns:?}");
        let of_tabs = tabs.iter().flat_map(|tab| [tab.clone(), format!("{tab}-empty")]);
        let needed = all(&called).into_iter().chain(columns).chain(of_tabs);
        let missing: Vec<_> = needed.filter(|name| !english.contains_key(name.as_str())).collect();
        assert!(missing.is_empty(), "the catalogues lack {missing:?}");
        for start in begun {
            assert!(english.keys().any(|name| name.starts_with(&start)), "no message begins with {start}");
        }
    }
}
