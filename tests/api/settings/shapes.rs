//! Rules for all operations of the settings plane: the envelope, the order of checks, and answers to malformed requests.

use serde_json::json;

use super::Plane;
use crate::contract;

#[test]
fn malformed_bodies_are_refused_by_every_operation_and_change_nothing() {
    let plane = Plane::open();
    let before = plane.changes();
    plane.desk.unmoved(|| {
        for operation in contract::settings(&plane.api).operations() {
            let call = || plane.call(&operation.method, &operation.path);
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
    assert_eq!(plane.changes(), before);
}

#[test]
fn unknown_paths_and_wrong_methods_are_distinguished() {
    let plane = Plane::open();
    for path in ["/nope", "/keys/", "/keys/rotate/x", ""] {
        plane.get(path).send().fails(404);
    }
    let refused = plane.call("PUT", "/keys").send();
    refused.fails(405);
    let mut allowed: Vec<_> = refused.header("allow").unwrap_or_default().split(", ").collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["DELETE", "GET", "HEAD", "PATCH", "POST"]);
    assert_eq!(plane.call("POST", "/events").send().header("allow"), Some("GET, HEAD"));
    plane.call("HEAD", "/keys").send();
    // The credential is checked before the shape.
    plane.api.raw("POST", "/settings/v1/keys").bytes("{").send().fails(401);
}

#[test]
fn the_settings_page_loads_nothing_from_other_hosts() {
    let plane = Plane::open();
    for (path, media) in [("/settings", "text/html"), ("/settings/page.js", "text/javascript"), ("/settings/page.css", "text/css")] {
        let page = plane.api.raw("GET", path).exchange();
        assert_eq!(page.status, 200);
        assert!(page.header("content-type").is_some_and(|found| found.starts_with(media)), "{path}");
        let policy = page.header("content-security-policy").unwrap_or_default();
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        // These two addresses are the namespace of SVG and an example.
        let text = page.text.replace("http://www.w3.org/2000/svg", "").replace("https://example.com/hooks", "");
        assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("//cdn"), "{path} names another host");
    }
    let document = &contract::settings(&plane.api).document;
    assert!(document["servers"][0]["url"].as_str().is_some_and(|url| url.ends_with("/settings/v1")), "{}", document["servers"]);
    for operation in contract::settings(&plane.api).operations() {
        let security = &operation.node["security"];
        let expected = match operation.id.as_str() {
            "openSession" => json!([]),
            "receiveMessage" => json!([{"Session": []}, {"Token": []}, {"Signature": []}]),
            _ => json!([{"Session": []}, {"Token": []}]),
        };
        assert_eq!(*security, expected, "{}", operation.id);
    }
}
