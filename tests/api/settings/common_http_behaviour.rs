//! Tests of rules for all operations of the settings API: responses to malformed bodies, unknown paths and wrong methods, and the
//! credentials that the OpenAPI document lists. Also tests that the settings page loads nothing from other hosts.

use serde_json::json;

use super::SettingsFixture;
use crate::contract;

#[test]
fn malformed_bodies_are_refused_by_every_operation_and_change_nothing() {
    let fixture = SettingsFixture::open();
    let before = fixture.changes();
    fixture.shop.assert_unchanged(|| {
        for operation in contract::settings(&fixture.api).operations() {
            let call = || fixture.call(&operation.method, &operation.path);
            if operation.node.get("requestBody").is_none() {
                continue;
            }
            for nonsense in ["", "{", "null", "[]", "5", "\"text\"", "{\"a\":1}", "{\"keyId\":{}}", "{\"webhookId\":[]}", "{}{}"] {
                let answer = call().bytes(nonsense).send();
                answer.fails(400);
            }
            call().header("content-type", "text/plain").bytes("{}").send().fails(415);
            call().json(json!({"x": "y".repeat(1024 * 1024)})).send().fails(413);
        }
    });
    assert_eq!(fixture.changes(), before);
}

#[test]
fn unknown_paths_and_wrong_methods_are_distinguished() {
    let fixture = SettingsFixture::open();
    for path in ["/nope", "/keys/", "/keys/rotate/x", ""] {
        fixture.get(path).send().fails(404);
    }
    let refused = fixture.call("PUT", "/keys").send();
    refused.fails(405);
    let mut allowed: Vec<_> = refused.header("allow").unwrap_or_default().split(", ").collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["DELETE", "GET", "HEAD", "PATCH", "POST"]);
    assert_eq!(fixture.call("POST", "/events").send().header("allow"), Some("GET, HEAD"));
    fixture.call("HEAD", "/keys").send();
    // The credential is checked before the form of the body.
    fixture.api.raw("POST", "/settings/v1/keys").bytes("{").send().fails(401);
}

#[test]
fn the_settings_page_loads_nothing_from_other_hosts() {
    let fixture = SettingsFixture::open();
    let page = fixture.api.raw("GET", "/settings").exchange();
    let policy = page.header("content-security-policy").unwrap_or_default();
    assert!(
        policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    let tabs: Vec<_> = page.text.split('"').filter(|path| path.starts_with("/settings/tabs/")).map(str::to_owned).collect();
    assert!(tabs.len() > 5, "{tabs:?}");
    let scripts = ["page", "tabs", "dialogs", "dom_helpers", "localization", "settings_api"].map(|name| format!("/settings/{name}.js"));
    let files = scripts.into_iter().chain(tabs).map(|path| (path, "text/javascript"));
    for (path, media) in files.chain([("/settings".to_owned(), "text/html"), ("/settings/page.css".to_owned(), "text/css")]) {
        let path = &path;
        let page = fixture.api.raw("GET", path).exchange();
        assert_eq!(page.status, 200);
        assert!(page.header("content-type").is_some_and(|found| found.starts_with(media)), "{path}");
        // The settings page must load nothing from other hosts. Only these addresses may occur in the page: the namespace of SVG, and
        // examples in input fields.
        let text = ["http://www.w3.org/2000/svg", "https://example.com/hooks", "https://example.com/bridge"]
            .into_iter()
            .fold(page.text, |text, address| text.replace(address, ""));
        assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("//cdn"), "{path} names another host");
    }
    let document = &contract::settings(&fixture.api).document;
    assert!(document["servers"][0]["url"].as_str().is_some_and(|url| url.ends_with("/settings/v1")), "{}", document["servers"]);
    for operation in contract::settings(&fixture.api).operations() {
        let security = &operation.node["security"];
        let expected = match operation.id.as_str() {
            "openSession" | "sendLink" => json!([]),
            "receiveMessage" => json!([{"Session": []}, {"Token": []}, {"Signature": []}]),
            _ => json!([{"Session": []}, {"Token": []}]),
        };
        assert_eq!(*security, expected, "{}", operation.id);
    }
}
