//! Tests of the replay (the same requests to two servers): differences between responses, their documented causes, and the file of requests
//! (corpus).

use serde_json::{Value, json};

use super::{compare_responses::Difference, *};
use crate::{Notes, diff};

const NOW: i64 = 1_780_300_800_000;

fn comparison() -> Comparison {
    Comparison { now: NOW, times_within: 0, chance: vec![] }
}

fn answer(status: u16, headers: &[(&str, &str)], body: &Value) -> Answer {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Answer { status, headers, text: body.to_string() }
}

fn places(comparison: &Comparison, old: &Value, new: &Value) -> Vec<String> {
    let answers = [old, new].map(|body| answer(200, &[], body));
    comparison.differences(&answers).into_iter().map(|difference| difference.place).collect()
}

#[test]
fn a_doubled_header_is_a_difference() {
    let body = json!({ "data": [] });
    let (once, twice) = ([("x-a", "1")], [("x-a", "1"), ("x-a", "1")]);
    let places = |old: &[(&str, &str)], new: &[(&str, &str)]| {
        let found = comparison().differences(&[answer(200, old, &body), answer(200, new, &body)]);
        found.into_iter().map(|difference| difference.place).collect::<Vec<_>>()
    };
    assert_eq!(places(&once, &twice), ["header x-a"]);
    assert_eq!(places(&twice, &twice), [""; 0]);
}

#[test]
fn records_that_a_server_created_are_compared_in_order() {
    let made = |last: u8| format!("01a1fec5-daf8-7403-8f14-4d07efbb590{last}");
    let list = |first: &str, second: &str| json!({ "data": [{ "id": made(1), "text": first }, { "id": made(2), "text": second }] });
    let found = |old: Value, new: Value| places(&comparison(), &old, &new);
    assert_eq!(found(list("a", "b"), list("a", "b")), [""; 0]);
    assert_eq!(found(list("a", "b"), list("a", "c")), ["/data/[]/text"]);
    assert_eq!(found(list("a", "b"), list("b", "a")), ["/data/[]/text", "/data/[]/text"]);
    assert_eq!(found(list("a", "b"), json!({ "data": [{ "id": made(1), "text": "a" }] })), ["rows"]);
}

#[test]
fn a_status_difference_includes_the_error_message_or_ids_of_each_answer() {
    let (refused, found) = (json!({ "error": { "message": "no" } }), json!({ "data": [{ "id": "t" }] }));
    let differences = comparison().differences(&[answer(400, &[], &refused), answer(200, &[], &found)]);
    assert_eq!(differences, [Difference { place: "status".to_owned(), sides: [json!([400, "no"]), json!([200, ["t"]])] }]);
}

#[test]
fn generated_ids_and_recent_times_are_compared_only_by_their_format() {
    let found = |comparison: &Comparison, old: &str, new: &str| !places(comparison, &json!(old), &json!(new)).is_empty();
    let strict = comparison();
    assert!(!found(&strict, "2026-06-01T08:00:00.000Z", "2026-06-01T08:20:00.000Z"), "both are recent");
    assert!(found(&strict, "2026-06-01T08:00:00.000Z", "1780300800123"), "the formats differ");
    assert!(found(&strict, "2026-05-01T08:00:00.000Z", "2026-05-01T08:00:01.000Z"), "neither is recent");
    assert!(found(&strict, "0a000000-0000-4000-8000-000000000001", "0a000000-0000-4000-8000-000000000002"), "no server made these");
    assert!(found(&strict, "65f1c0ffee", "65f1c0fff0"));
    let lenient = Comparison { times_within: 5_000, chance: vec![regex::Regex::new("^[0-9a-f]{10}$").expect("a pattern")], ..strict };
    assert!(!found(&lenient, "2026-05-01T08:00:00.000Z", "2026-05-01T08:00:05.000Z"));
    assert!(found(&lenient, "2026-05-01T08:00:00.000Z", "2026-05-01T08:00:05.001Z"));
    assert!(!found(&lenient, "65f1c0ffee", "65f1c0fff0"));
    assert!(found(&lenient, "65f1c0ffee", "65f1c0fff"));
}

/// Returns two documents, which describe a list of pets. The new document lacks the property `tag`, requires the parameter `page`, and adds
/// the path `/toys`.
fn documents() -> [Document; 2] {
    let list = |properties: Value| {
        let rows = json!({ "type": "array", "items": { "type": "object", "properties": properties } });
        let ok = json!({ "content": { "application/json": { "schema": { "type": "object", "properties": { "data": rows } } } } });
        json!({ "responses": { "200": ok, "400": {} } })
    };
    let text = json!({ "type": "string" });
    let old = json!({ "openapi": "3.0.3", "paths": { "/pets": { "get": list(json!({ "id": text, "tag": text })) } } });
    let mut new = json!({ "openapi": "3.0.3", "paths": { "/pets": { "get": list(json!({ "id": text })) }, "/toys": { "get": list(json!({ "id": text })) } } });
    new["paths"]["/pets"]["get"]["parameters"] =
        json!([{ "name": "page", "in": "query", "required": true, "schema": { "type": "integer" } }]);
    new["paths"]["/toys"]["get"]["parameters"] = json!([{ "name": "of", "in": "query", "schema": text, "example": "a pet" }]);
    [old, new].map(|document| Document::new(document).expect("a document"))
}

fn replayed(lines: &str, answers: &[[Answer; 2]]) -> Replayed {
    let documents = documents();
    let mut report = diff(&documents[0], &documents[1]);
    let notes: Notes =
        serde_json::from_value(json!({ "notes": [], "unshown": [{ "key": "order", "old": "by name", "new": "by age" }] })).expect("notes");
    report.annotate(&notes);
    let mut replay = Replay::new(documents.each_ref(), &report, comparison());
    for (request, answers) in corpus(lines).expect("a corpus").iter().zip(answers) {
        replay.add(request, answers);
    }
    replay.finish()
}

#[test]
fn a_difference_is_explained_only_by_a_reported_change_or_matching_note() {
    let rows = |rows: Value| answer(200, &[], &json!({ "data": rows }));
    let gone = [rows(json!([{ "id": "a", "tag": "x" }])), rows(json!([{ "id": "a" }]))];
    let found = replayed(r#"{"call": "GET /pets"}"#, std::slice::from_ref(&gone));
    assert!(found.unexplained.is_empty(), "{}", found.text());
    assert_eq!(found.seen, ["GET /pets: property-optional-removed response 200 /data/[]/tag".to_owned()].into());
    assert_eq!(found.unseen.len(), 3, "{:?}", found.unseen);

    let turned = [rows(json!([{ "id": "a" }, { "id": "b" }])), rows(json!([{ "id": "b" }, { "id": "a" }]))];
    let because = |pairs: Value| json!({ "call": "GET /pets", "because": { "rows": { "by": ["order"], "pairs": pairs } } }).to_string();
    assert_eq!(replayed(r#"{"call": "GET /pets"}"#, std::slice::from_ref(&turned)).unexplained.len(), 1);
    let found = replayed(&because(json!([[["a", "b"], ["b", "a"]]])), std::slice::from_ref(&turned));
    assert!(found.unexplained.is_empty() && found.seen.contains("order"), "{}", found.text());
    // `because` explains only the values that it names, and each difference that it names must occur.
    assert_eq!(replayed(&because(json!([[["a"], ["b"]]])), std::slice::from_ref(&turned)).unexplained.len(), 1);
    assert_eq!(replayed(&because(json!([[["a", "b"], ["b", "a"]]])), &[gone]).unexplained.len(), 1);
}

#[test]
fn a_new_operation_explains_a_difference_and_an_unknown_cause_does_not() {
    let (missing, rows) = (answer(404, &[], &json!({})), answer(200, &[], &json!({ "data": [{ "id": "t" }] })));
    let found = replayed(r#"{"call": "GET /toys"}"#, &[[missing.clone(), rows.clone()]]);
    assert!(found.unexplained.is_empty() && found.seen.contains("GET /toys: operation-added operation"), "{}", found.text());
    let line = r#"{"call": "GET /pets", "because": {"status": {"by": ["nothing"], "pairs": [[[400, null], [200, ["t"]]]]}}}"#;
    let found = replayed(line, &[[answer(400, &[], &json!({})), rows]]);
    assert_eq!(found.unexplained[0].faults, ["status: neither a change of the operation nor a note is called nothing"]);
}

#[test]
fn an_answer_that_violates_its_document_or_expected_status_is_a_fault() {
    let bad = answer(200, &[], &json!({ "data": [{ "id": 7 }] }));
    let found = replayed(r#"{"call": "GET /pets"}"#, &[[bad.clone(), bad]]);
    assert_eq!(found.unexplained[0].faults, ["old: body/data/0/id breaks type: 7", "new: body/data/0/id breaks type: 7"]);
    let fails = [answer(500, &[], &json!({})), answer(400, &[], &json!({}))];
    let found = replayed(r#"{"call": "GET /pets", "fails": true}"#, &[fails]);
    assert!(found.text().contains("new: the answer is 400; it must be a status from 500"), "{}", found.text());
}

#[test]
fn errors_for_invalid_corpus_lines_give_the_line_number() {
    let reason = |line: &str| corpus(&format!("{{\"call\": \"GET /pets\"}}\n\n{line}")).expect_err("no request").to_string();
    for (line, said) in [
        ("{", "line 3 is no request such as {\"call\": \"GET /pets\"}: EOF"),
        ("{\"call\": \"/pets\"}", "line 3 has a `call` that is not METHOD and path: /pets"),
        ("{\"call\": \"GET pets\"}", "line 3 has a `call` that is not METHOD and path: GET pets"),
        ("{\"call\": \"GET /pets\", \"pagse\": 2}", "line 3 is no request such as {\"call\": \"GET /pets\"}: unknown field `pagse`"),
        ("{\"call\": \"GET /pets\", \"body\": 1, \"text\": \"1\"}", "line 3 has both `body` and `text`"),
        ("{\"call\": \"GET /pets\", \"key\": \"a\", \"anonymous\": true}", "line 3 has both `key` and `anonymous`"),
    ] {
        assert!(reason(line).starts_with(said), "{}", reason(line));
    }
}

#[test]
fn example_requests_come_from_both_documents() {
    let [old, new] = documents();
    let requests: Vec<_> = examples(&old, &new).iter().map(ToString::to_string).collect();
    // In the old document, `GET /pets` needs no parameter. In the new document it requires a parameter without an example, so only the old
    // document gives a request.
    assert_eq!(requests, ["GET /pets", "GET /toys?of=a+pet"]);
    assert_eq!((old.credential(), old.server_path()), (None, ""));
    let secured = |server: &str, scheme: Value| {
        Document::new(json!({ "openapi": "3.0.3", "servers": [{ "url": server }], "components": { "securitySchemes": { "Key": scheme } } }))
            .expect("a document")
    };
    let keyed = secured("https://example.com/v1/", json!({ "type": "apiKey", "in": "header", "name": "X-Key" }));
    assert_eq!((keyed.credential(), keyed.server_path()), (Some(Credential::Header("X-Key".to_owned())), "/v1"));
    let bearer = secured("/v2", json!({ "type": "http", "scheme": "Bearer" }));
    assert_eq!((bearer.credential(), bearer.server_path()), (Some(Credential::Bearer), "/v2"));
    let page = corpus(r#"{"call": "GET /pets?a=1", "pages": 1, "then": "a=2"}"#).expect("a corpus")[0].page("c&d");
    assert_eq!(page.to_string(), "GET /pets?a=2&cursor=c%26d");
}
