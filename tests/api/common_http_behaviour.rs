//! Tests of the HTTP behaviour that all operations share: the order of checks, headers, methods, paths and bodies.

use std::io::Write;

use serde_json::json;

use crate::{
    REV_A,
    client::{Answer, Call},
    contract,
    harness::{one, world},
    messages::messages,
    tickets::OPEN,
};

const MIB: usize = 1024 * 1024;

/// Returns an API client whose API key has only the scope `teams:read`.
fn unscoped() -> crate::client::Api {
    world().server.api("one", &["teams:read"])
}

#[track_caller]
fn allows(answer: &Answer, methods: &[&str]) {
    answer.fails(405);
    let allow = answer.header("allow").unwrap_or_else(|| panic!("no allow header\n{}", answer.described()));
    let mut found: Vec<_> = allow.split(',').map(str::trim).filter(|method| !["HEAD", "OPTIONS"].contains(method)).collect();
    found.sort_unstable();
    assert_eq!(found, methods, "{}", answer.described());
}

#[test]
fn an_unknown_path_is_not_found_before_the_key_is_checked() {
    for path in ["/", "", "/nothing", "/tickets/", "/tickets//fields", "/Tickets", "/tickets/fields/", "/tickets/t-third", "/v1/tickets"] {
        for api in [one().clone(), one().anonymous()] {
            api.get(path).send().fails(404);
            api.call("DELETE", path).send().fails(404);
        }
    }
}

#[test]
fn a_wrong_method_is_refused_before_the_key_is_checked() {
    for api in [one().clone(), one().anonymous()] {
        allows(&api.call("DELETE", "/tickets").send(), &["GET"]);
        allows(&api.call("PUT", "/tickets/list").send(), &["POST"]);
        allows(&api.get("/tickets/list").send(), &["POST"]);
        allows(&api.call("POST", "/labels").send(), &["GET"]);
        allows(&api.call("BREW", "/teams").send(), &["GET"]);
    }
}

#[test]
fn the_key_is_checked_before_query_and_body() {
    let anonymous = one().anonymous();
    anonymous.get("/tickets").send().fails(401);
    anonymous.get("/tickets").raw_query("ticketId=%FF&expand=nothing").send().fails(401);
    anonymous.call("POST", "/tickets/list").header("content-type", "text/plain").bytes("{").send().fails(401);
    anonymous.call("POST", "/tickets/list").bytes(vec![b' '; MIB + 1]).send().fails(401);
}

#[test]
fn the_scope_is_checked_before_query_and_body() {
    let unscoped = unscoped();
    unscoped.get("/tickets").send().fails(403);
    unscoped.get("/labels").raw_query("pageSize=x").send().fails(403);
    unscoped.call("POST", "/tickets/list").header("content-type", "text/plain").bytes("{").send().fails(403);
    unscoped.call("POST", "/tickets/list").bytes(vec![b' '; MIB + 1]).send().fails(403);
}

#[test]
fn the_query_is_checked_before_the_body_and_the_shape_before_the_record() {
    one().post("/tickets/list", json!({"statuses": 5})).query("pageSize", 0).send().refuses("pageSize");
    messages().query("conversationId", "nobody").query("expand", "nothing").send().refuses_expand();
    one().get("/conversations").query("contactId", "nobody").query("pageSize", 0).send().refuses("pageSize");
    one().get("/tickets").query("ticketId", "nobody").query("expand", "nothing").send().refuses_expand();
}

#[test]
fn an_invalid_cursor_is_reported_before_an_invalid_body() {
    for path in ["/tickets/list", "/contacts/list"] {
        for body in [json!({"updatedAfter": 5, "statuses": 5}), json!({"nothing": 1}), json!([])] {
            one().post(path, body.clone()).query("cursor", "none").send().refuses("cursor");
            one().post(path, body.clone()).query("cursor", "none").query("pageSize", 0).send().refuses("pageSize");
        }
        one().call("POST", path).query("cursor", "none").bytes("{").send().refuses("cursor");
    }
}

#[test]
fn a_not_found_error_names_the_member_with_the_unknown_id() {
    let get = |path: &str, query: &[(&str, &str)]| query.iter().fold(one().get(path), |call, (name, value)| call.query(name, value)).send();
    get("/tickets", &[("ticketId", "nobody")]).misses("ticketId");
    get("/contacts", &[("contactId", "nobody")]).misses("contactId");
    get("/conversations", &[("conversationId", "nobody")]).misses("conversationId");
    get("/conversations", &[("contactId", "nobody")]).misses("contactId");
    get("/messages", &[("conversationId", "nobody"), ("pageSize", "5")]).misses("conversationId");
    get("/messages", &[("ticketId", "nobody"), ("pageSize", "5")]).misses("ticketId");
    get("/messages/internal-comments", &[("conversationId", "nobody")]).misses("conversationId");
    let at = "2026-01-01T00:00:00Z";
    let post = |path: &str, body| one().post(path, body).send();
    let patch = |path: &str, body| one().call("PATCH", path).json(body).send();
    patch("/tickets/field-values", json!({"ticketId": "nobody", "ticketFieldId": "x", "newValue": 1})).misses("body.ticketId");
    patch("/tickets/field-values", json!({"ticketId": "t-third", "ticketFieldId": "nobody", "newValue": 1})).misses("body.ticketFieldId");
    post("/tickets/close", json!({"ticketId": "nobody"})).misses("body.ticketId");
    post("/conversations/mark-read", json!({"conversationId": "nobody"})).misses("body.conversationId");
    patch("/conversations/labels", json!({"conversationId": "nobody", "addLabels": ["x"]})).misses("body.conversationId");
    let field = |contact: &str| json!({"contactId": contact, "contactFieldId": "nobody", "value": 1, "updatedAt": at});
    patch("/contacts/field-values", field("nobody")).misses("body.contactId");
    patch("/contacts/field-values", field("con-thai")).misses("body.contactFieldId");
    post("/messages/internal-comments", json!({"conversationId": "nobody", "text": "x"})).misses("body.conversationId");
    post("/messages", json!({"conversationId": "nobody", "text": "x"})).misses("body.conversationId");
    if REV_A {
        return;
    }
    get("/accounts/whatsapp-templates", &[("accountId", "nobody")]).misses("accountId");
    let mia = "00000000-0000-4000-8000-000000000000";
    let assigned = json!([{"ticketId": "t-third", "assigneeUserId": mia}, {"ticketId": "nobody", "assigneeUserId": mia}]);
    post("/tickets/assign", assigned).misses("body[1].ticketId");
    let to = json!([{"email": "a@example.com"}]);
    post("/messages/email/new", json!({"accountId": "nobody", "to": to, "text": "x"})).misses("body.accountId");
    post("/messages/email", json!({"conversationId": "nobody", "to": to, "text": "x"})).misses("body.conversationId");
    post("/messages/template", json!({"conversationId": "nobody", "templateId": "x"})).misses("body.conversationId");
    let phone = |account: &str| json!({"accountId": account, "phoneNumber": "+66812345678", "templateId": "nobody"});
    post("/messages/template/phone", phone("nobody")).misses("body.accountId");
    // An error message does not repeat a long id in full.
    let message = get("/tickets", &[("ticketId", &"x".repeat(5000))]).fails(404);
    assert!(message.len() < 200, "{message}");
}

#[test]
fn size_and_type_of_a_body_are_checked_before_its_shape() {
    let list = || one().call("POST", "/tickets/list");
    list().query("pageSize", 0).header("content-type", "text/plain").bytes("{}").send().fails(415);
    list().query("pageSize", 0).bytes(vec![b' '; MIB + 1]).send().fails(413);
}

#[test]
fn a_body_is_at_most_one_mebibyte() {
    let padded = |size: usize| {
        let mut body = b"{}".to_vec();
        body.resize(size, b' ');
        one().call("POST", "/tickets/list").header("content-type", "application/json").bytes(body)
    };
    padded(MIB).send().lists(&OPEN);
    padded(MIB + 1).send().fails(413);
    padded(MIB).chunked().send().lists(&OPEN);
    padded(MIB + 1).chunked().send().fails(413);
    one().call("POST", "/contacts/list").bytes(vec![b' '; MIB + 1]).send().fails(413);
}

#[test]
fn a_body_may_lack_a_content_type_but_not_have_a_wrong_one() {
    let list = || one().call("POST", "/tickets/list");
    list().bytes("{}").send().lists(&OPEN);
    for good in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
        list().header("content-type", good).bytes("{}").send().lists(&OPEN);
    }
    for wrong in ["text/plain", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data", "nonsense"] {
        list().header("content-type", wrong).bytes("{}").send().fails(415);
    }
    for (charset, named) in [("iso-8859-1", "iso-8859-1"), ("\"UTF-16\"", "utf-16")] {
        let message = list().header("content-type", &format!("application/json; charset={charset}")).bytes("{}").send().fails(415);
        assert!(message.starts_with("`content-type`") && message.contains(named), "{message}");
    }
}

#[test]
fn a_body_may_begin_with_a_byte_order_mark_and_be_compressed_with_gzip() {
    let list = || one().call("POST", "/tickets/list");
    let packed = |bytes: &[u8]| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(bytes).expect("to memory");
        packer.finish().expect("to memory")
    };
    // The check against the OpenAPI document would parse these bodies as JSON, which fails because of the byte order mark or the
    // compression. So `attempt` sends them without this check.
    list().bytes("\u{feff}{}").attempt().expect("an answer").lists(&OPEN);
    list().header("content-encoding", "gzip").bytes(packed(b"{}")).attempt().expect("an answer").lists(&OPEN);
    list().header("content-encoding", "GZIP").bytes(packed("\u{feff}{}".as_bytes())).attempt().expect("an answer").lists(&OPEN);
    list().header("content-encoding", "identity").bytes("{}").attempt().expect("an answer").lists(&OPEN);
    let mut long = b"{}".to_vec();
    long.resize(MIB, b' ');
    list().header("content-encoding", "gzip").bytes(packed(&long)).attempt().expect("an answer").lists(&OPEN);
    long.push(b' ');
    list().header("content-encoding", "gzip").bytes(packed(&long)).send().fails(413);
    // Gzip compresses this body of 100 mebibytes to about 100 kibibytes. The limit applies to the decompressed size.
    list().header("content-encoding", "gzip").bytes(packed(&vec![b' '; 100 * MIB])).send().fails(413);
    list().header("content-encoding", "gzip").bytes("{}").send().refuses("body");
    let cut = packed(b"{}");
    list().header("content-encoding", "gzip").bytes(cut[..cut.len() - 4].to_vec()).send().refuses("body");
    for wrong in ["br", "deflate", "gzip, br", "gzip, gzip", "gzip,"] {
        let message = list().header("content-encoding", wrong).bytes(packed(b"{}")).send().fails(415);
        assert!(message.starts_with("`content-encoding`") && message.contains("gzip"), "{message}");
    }
    list().header("content-encoding", "gzip").header("content-encoding", "gzip").bytes(packed(&packed(b"{}"))).send().fails(415);
}

#[test]
fn a_parameter_name_with_brackets_is_refused_with_the_right_form() {
    for (path, name) in [("/labels", "expand[]"), ("/conversations", "expand[0]"), ("/users", "expand[]")] {
        let message = one().get(path).query("contactId", "k-mia").query("pageSize", 1).query(name, "account").send().fails(400);
        assert!(message.starts_with(&format!("`{name}`")) && message.contains("expand=a,b"), "{path}: {message}");
    }
    one().get("/labels").query("colour[]", "red").send().ok();
}

#[test]
fn a_body_that_is_not_json_is_refused() {
    for path in ["/tickets/list", "/contacts/list"] {
        for bad in
            ["{", "{}{}", "nothing", "[]", "\"{}\"", "5", "null", "{\"a\":}", "{'statuses':[]}", "{\"isSpam\":NaN}", " ", " \u{feff}{}"]
        {
            one().call("POST", path).bytes(bad).send().fails(400);
        }
        one().call("POST", path).bytes(b"{\"search\":\"\xff\"}".to_vec()).send().fails(400);
        one().call("POST", path).bytes("[".repeat(100_000)).send().fails(400);
    }
}

#[test]
fn a_body_of_a_get_is_not_read() {
    one().get("/labels").header("content-type", "text/plain").bytes("anything").send().ok();
}

#[test]
fn a_printable_request_id_is_kept_and_any_other_is_replaced() {
    let with = |id: &str| one().get("/labels").header("x-request-id", id).send();
    let longest = "x".repeat(128);
    for kept in ["1", "order-66", "~!@#$%^&*()_+{}|", &longest] {
        assert_eq!(with(kept).header("x-request-id"), Some(kept));
    }
    for replaced in ["", &"x".repeat(129), "two words", "naïve", "tab\there"] {
        let answer = with(replaced);
        let made = answer.header("x-request-id").unwrap_or_default();
        let version = uuid::Uuid::parse_str(made).map(|id| id.get_version_num());
        assert_eq!(version, Ok(7), "{}", answer.described());
    }
}

#[test]
fn failures_carry_the_request_id_too() {
    for (call, status) in [
        (one().get("/nothing"), 404),
        (one().call("PUT", "/tickets"), 405),
        (one().anonymous().get("/tickets"), 401),
        (unscoped().get("/tickets"), 403),
        (one().get("/tickets"), 400),
    ] {
        let answer = call.header("x-request-id", "mine").send();
        answer.fails(status);
        assert_eq!(answer.header("x-request-id"), Some("mine"), "{}", answer.described());
    }
}

/// The test suite checks each response against the OpenAPI document. For a path without an operation, this check must accept only the
/// statuses 404 and 405.
#[test]
fn the_contract_check_expects_404_or_405_for_a_path_without_an_operation() {
    for call in [one().get("/nothing"), one().call("PUT", "/tickets"), one().raw("GET", "/settings/v1/nothing")] {
        let answer = call.exchange();
        for status in [200, 400, 401, 500] {
            let got = Answer { status, ..answer.clone() };
            assert!(std::panic::catch_unwind(|| contract::conforms(&call, &got)).is_err(), "{status} {}", call.path);
        }
    }
}

#[test]
fn request_ids_are_unique() {
    let made = || one().get("/labels").send().header("x-request-id").map(str::to_owned);
    assert_ne!(made(), made());
}

#[test]
fn head_is_get_without_a_body() {
    let get = one().get("/labels").query("pageSize", 2).send();
    let head = one().call("HEAD", "/labels").query("pageSize", 2).send();
    assert_eq!(head.status, 200);
    for name in ["x-pagination-page-size", "x-pagination-next-cursor", "x-pagination-total", "content-type"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
    assert_eq!(one().call("HEAD", "/tickets").query("ticketId", "nobody").send().status, 404);
    assert_eq!(one().anonymous().call("HEAD", "/tickets").send().status, 401);
    assert_eq!(one().call("HEAD", "/tickets/list").send().status, 405);
}

#[test]
fn an_unknown_query_parameter_is_ignored() {
    let plain = one().get("/labels").send();
    for extra in ["limit=1", "PAGESIZE=1", "page_size=0", "a&b&&=&c=%FF", "pagesize=1"] {
        assert_eq!(one().get("/labels").raw_query(extra).send().ids(), plain.ids(), "{extra}");
    }
}

#[test]
fn a_repeated_parameter_is_refused() {
    let repeated = |call: Call, name: &str| call.raw_query(&format!("{name}=x&{name}=x")).send().refuses(name);
    repeated(one().get("/tickets"), "ticketId");
    repeated(one().get("/contacts"), "contactId");
    repeated(one().get("/conversations"), "conversationId");
    repeated(one().get("/conversations"), "contactId");
    repeated(messages(), "ticketId");
    repeated(one().get("/users"), "userId");
    repeated(one().get("/labels"), "searchTerm");
}

#[test]
fn spaces_and_plus_signs_of_a_query_are_distinguished() {
    one().get("/labels").raw_query("searchTerm=Late+delivery").send().lists(&["lab-late"]);
    one().get("/labels").raw_query("searchTerm=Late%20delivery").send().lists(&["lab-late"]);
    one().get("/labels").raw_query("searchTerm=Late%2Bdelivery").send().lists(&[]);
}

#[test]
fn a_nul_in_a_value_finds_nothing_and_breaks_nothing() {
    one().get("/tickets").raw_query("ticketId=t%00").send().fails(404);
    one().get("/labels").raw_query("searchTerm=a%00b").send().lists(&[]);
    one().post("/contacts/list", json!({"search": "\u{0}"})).send().lists(&[]);
    one().post("/tickets/list", json!({"accountIds": ["\u{0}"]})).send().lists(&[]);
}

#[test]
fn pages_run_only_their_own_scripts_and_cannot_be_framed() {
    let anonymous = one().anonymous();
    for path in ["/", "/docs", "/docs/guides/paging", "/settings/docs", "/docs/changes", "/docs/changes/events", "/settings"] {
        let page = anonymous.raw("GET", path).exchange();
        assert_eq!((page.status, page.header("x-content-type-options")), (200, Some("nosniff")), "{path}");
        let policy = page.header("content-security-policy").unwrap_or_else(|| panic!("{path} has no policy"));
        for part in ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        let scripts = policy.split("; ").find(|part| part.starts_with("script-src")).unwrap_or_default();
        assert!(!scripts.contains("unsafe") && !scripts.contains('*'), "{path}: {policy}");
    }
    for path in ["/openapi.json", "/openapi.yaml", "/openapi-events.json", "/settings/openapi.json", "/healthz", "/readyz", "/metrics"] {
        let page = anonymous.raw("GET", path).exchange();
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
}

/// The HTTP library (hyper) refuses malformed HTTP before a handler of the server gets the request. So these responses have no envelope
/// (the JSON object with `data` or `error`), as the OpenAPI document and docs/integrating.md say.
#[test]
fn malformed_http_is_refused_without_an_envelope() {
    let refused = |request: &str| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(&one().address).expect("the server listens");
        // The server may close the connection before it has read the whole request. So errors of writing and reading are ignored.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    let headers: String = (0..101).map(|i| format!("x-{i}: y\r\n")).collect();
    for (request, status) in [
        ("NOT A REQUEST\r\n\r\n".to_owned(), "400"),
        (format!("GET /v1/labels?{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(70_000)), "414"),
        (format!("GET /v1/labels HTTP/1.1\r\nhost: x\r\n{headers}\r\n"), "431"),
    ] {
        let answer = refused(&request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
        assert!(answer.contains("connection: close") && answer.ends_with("\r\n\r\n"), "{answer}");
    }
    let description = one().anonymous().raw("GET", "/openapi.json").exchange().body()["info"]["description"].to_string();
    for status in ["with 400", "with 414", "with 431"] {
        assert!(description.contains(status), "{description}");
    }
}

#[test]
fn health_metrics_and_documentation_pages_need_no_key() {
    let anonymous = one().anonymous();
    for path in ["/healthz", "/readyz", "/metrics", "/openapi.json", "/openapi.yaml", "/docs"] {
        let answer = anonymous.raw("GET", path).exchange();
        assert_eq!(answer.status, 200, "{}", answer.described());
    }
    let health = anonymous.raw("GET", "/healthz").exchange();
    assert!(health.text.contains(if crate::REV_A { "A" } else { "B" }), "{}", health.described());
}
