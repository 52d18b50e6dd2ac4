//! Tests of the HTTP features of published documents and of responses: ETags, gzip compression, the server address in a document, and CORS.

use serde_json::json;

use crate::{
    fixture::line,
    harness::{ALL_SCOPES, Database, Server, one},
};

const PATHS: [&str; 12] = [
    "/",
    "/favicon.ico",
    "/docs",
    "/docs/changes",
    "/docs/guides/paging",
    "/docs/page.css",
    "/docs/page.js",
    "/openapi.json",
    "/openapi.yaml",
    "/openapi-events.json",
    "/settings/docs",
    "/settings/openapi.json",
];

#[test]
fn documents_and_pages_have_etags_and_are_compressed() {
    let anonymous = one().anonymous();
    for path in PATHS {
        let get = || anonymous.raw("GET", path);
        let plain = get().exchange();
        let tag = plain.header("etag").unwrap_or_else(|| panic!("{path} has no ETag")).to_owned();
        assert!(tag.starts_with('"') && tag.ends_with('"'), "{path}: {tag} is no strong ETag");
        assert_eq!((plain.header("vary"), plain.header("cache-control")), (Some("accept-encoding"), Some("no-cache")), "{path}");

        let packed = get().header("accept-encoding", "gzip, br").exchange();
        assert_eq!((packed.header("content-encoding"), &packed.text), (Some("gzip"), &plain.text), "{path}");
        assert!(packed.length < plain.length || plain.length < 500, "{path}: {} of {}", packed.length, plain.length);
        assert_ne!(packed.header("etag"), Some(&*tag), "{path}: other bytes have another strong ETag");

        for known in [tag.clone(), format!("\"x\", {tag}"), "*".to_owned()] {
            let unchanged = get().header("if-none-match", &known).exchange();
            assert_eq!((unchanged.status, unchanged.length, unchanged.header("etag")), (304, 0, Some(&*tag)), "{path}: {known}");
        }
        assert_eq!(get().header("if-none-match", "\"other\"").exchange().status, 200, "{path}");
        let head = anonymous.raw("HEAD", path).exchange();
        assert_eq!(head.header("content-length"), Some(&*plain.length.to_string()), "{path}");
    }
}

#[test]
fn a_long_list_is_compressed_on_request() {
    const AT: &str = "2026-01-01T00:00:00Z";
    let contact = |n: usize| {
        let note = format!("{n} ").repeat(1000);
        line("contact", json!({"id": format!("c-{n}"), "fullName": "C", "firstName": "C", "note": note, "createdAt": AT, "updatedAt": AT}))
    };
    let server = Server::with(&[("one", (0..50).map(contact).collect())]);
    let api = server.api("one", &ALL_SCOPES);
    let list = || api.post("/contacts/list", json!({})).query("pageSize", 50);
    let plain = list().send();
    assert!(plain.length > 64 * 1024, "{}", plain.length);
    assert_eq!(plain.header("content-encoding"), None);
    let packed = list().header("accept-encoding", "gzip").send();
    assert_eq!(packed.ok(), plain.ok());
    assert_eq!((packed.header("content-encoding"), plain.header("vary")), (Some("gzip"), Some("accept-encoding")));
    assert!(packed.length < plain.length / 5, "{} of {}", packed.length, plain.length);
    // A short response is not compressed.
    assert_eq!(
        api.post("/contacts/list", json!({})).query("pageSize", 1).header("accept-encoding", "gzip").send().header("content-encoding"),
        None
    );
}

#[test]
fn a_document_names_the_address_of_its_request() {
    let address = &one().address;
    let server = |name: &str, value: &str| {
        let mut call = one().anonymous().raw("GET", "/openapi.json");
        if !name.is_empty() {
            call = call.header(name, value);
        }
        call.exchange().body()["servers"][0]["url"].as_str().expect("a server").to_owned()
    };
    assert_eq!(server("", ""), format!("http://{address}/v1"));
    for https in ["https", "HTTPS", "https, http"] {
        assert_eq!(server("x-forwarded-proto", https), format!("https://{address}/v1"));
    }
    assert_eq!(server("x-forwarded-proto", "javascript"), format!("http://{address}/v1"));
    let yaml = one().anonymous().raw("GET", "/openapi.yaml").exchange();
    assert!(yaml.text.contains(&format!("http://{address}/v1")));
    let settings = one().anonymous().raw("GET", "/settings/openapi.json").exchange();
    assert_eq!(settings.body()["servers"][0]["url"], format!("http://{address}/settings/v1"));

    let public = Server::start_with(Database::fresh(), &[("COUNTERPART_PUBLIC_URL", "https://api.example.com/")]);
    let anonymous = public.api_of(&crate::harness::Key { store: String::new(), id: String::new(), secret: String::new() }).anonymous();
    let document = anonymous.raw("GET", "/openapi.json").exchange();
    assert_eq!(document.body()["servers"][0]["url"], "https://api.example.com/v1");
}

/// If the host of a request is invalid, the document has a relative server URL, and does not contain that host.
#[test]
fn a_document_does_not_repeat_an_invalid_host() {
    use std::io::{Read, Write};
    for nonsense in ["x\"},<script>", "[[[", "someone@x", "x/y", "x?y", "x\\y", "x:99999", ""] {
        let mut stream = std::net::TcpStream::connect(&one().address).expect("the server listens");
        write!(stream, "GET /openapi.json HTTP/1.1\r\nhost: {nonsense}\r\nconnection: close\r\n\r\n").expect("the request is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"url\": \"/v1\""), "{nonsense}: {}", &answer[..300]);
    }
}

#[test]
fn pages_of_a_configured_origin_may_call_the_api() {
    const APP: &str = "https://app.example.com";
    let database = Database::with(&[("one", vec![])]);
    let server = Server::start_with(database, &[("COUNTERPART_CORS_ORIGIN", "https://app.example.com,http://localhost:3000")]);
    let api = server.api("one", &ALL_SCOPES);
    let asked = |path: &str, origin: &str| {
        api.anonymous()
            .raw("OPTIONS", path)
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "x-api-key,content-type")
            .attempt()
            .expect("an answer")
    };
    let preflight = asked("/v1/tickets/list", APP);
    assert_eq!((preflight.status, preflight.length), (204, 0), "{}", preflight.described());
    assert_eq!(preflight.header("access-control-allow-origin"), Some(APP));
    assert_eq!(preflight.header("access-control-allow-methods"), Some("POST"));
    assert!(preflight.header("access-control-allow-headers").is_some_and(|names| names.contains("x-api-key")));
    assert_eq!(preflight.header("access-control-allow-credentials"), None, "no cookie goes along");

    // Browser pages of an allowed origin can read successful responses and error responses.
    for (call, status) in [(api.get("/labels").query("searchTerm", "any"), 200), (api.anonymous().get("/labels"), 401)] {
        let answer = call.header("origin", "http://localhost:3000").exchange();
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (status, Some("http://localhost:3000")));
        assert_eq!((answer.header("access-control-expose-headers"), answer.header("vary")), (Some("*"), Some("origin")));
    }
    for (path, origin) in [("/v1/tickets/list", "https://evil.example.com"), ("/settings/v1/session", APP), ("/v1/tickets/list", "null")] {
        let refused = asked(path, origin);
        assert_eq!((refused.status, refused.header("access-control-allow-origin")), (405, None), "{path} {origin}");
    }
    // A request from another origin succeeds as usual. The response has no `access-control-allow-origin`, so the browser does not let the
    // page read it.
    let other = api.get("/labels").query("searchTerm", "any").header("origin", "https://evil.example.com").exchange();
    assert_eq!((other.status, other.header("access-control-allow-origin"), other.header("vary")), (200, None, Some("origin")));
    // CORS is off by default.
    let off = one().get("/labels").query("searchTerm", "any").header("origin", APP).exchange();
    assert_eq!((off.status, off.header("access-control-allow-origin")), (200, None));
}
