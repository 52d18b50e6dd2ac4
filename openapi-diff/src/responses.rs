//! Compares the responses of an operation, status by status, with their headers, bodies and links.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    comparison_state::{Differ, Location},
    headers::headers,
    json_values::{Object, both_same, empty, keys, members},
    media_types::{Named, content, name},
    rules::{self, Direction},
    servers::server,
};

pub(super) fn compare_responses<'a>(differ: &mut Differ<'a>, at: &Location, old: &'a Object, new: &'a Object) {
    let Some((before, after)) = differ.maps(at, "responses", old, new) else { return };
    let by_status = |responses: &'a Object| {
        let mut named = Named::new();
        responses.iter().for_each(|(written, answer)| name(&mut named, status(written), written, answer));
        named
    };
    let (one, other) = (by_status(before), by_status(after));
    let all: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    for key in all {
        let place = at.part(&format!("response {key}"));
        let (was, is) = (one.get(key), other.get(key));
        let written = was.or(is).map_or(key.as_str(), |(written, _)| written);
        if !is_status(written) {
            differ.report_keyword(&at.part("responses"), written, before.get(written), after.get(written));
            continue;
        }
        match (was, is) {
            (Some((written, was)), Some((other, is))) => {
                if written != other {
                    differ.report_detail(&rules::RESTATED, &place, "status");
                }
                response(differ, &place, was, is);
            }
            (Some((_, was)), None) => match covering(after, key) {
                Some((cover, is)) => {
                    differ.report_detail(&rules::ANSWER_UNLISTED, &place, cover);
                    response(differ, &place, was, is);
                }
                None => differ.report(answer(key, false, after), &place),
            },
            (None, Some((_, is))) => match covering(before, key) {
                Some((cover, was)) => {
                    differ.report_detail(&rules::ANSWER_LISTED, &place, cover);
                    response(differ, &place, was, is);
                }
                None => differ.report(answer(key, true, before), &place),
            },
            (None, None) => {}
        }
    }
}

/// Returns a status in a normal form: `4xx` becomes `4XX`.
pub(super) fn status(written: &str) -> String {
    if written != "default" && is_status(written) { written.to_uppercase() } else { written.to_owned() }
}

/// Counts the responses that both operations describe.
pub(super) fn shared_answers(old: &Object, new: &Object) -> usize {
    let [before, after] = [old, new].map(|operation| members(operation.get("responses").unwrap_or(empty())));
    let listed = |responses: &Object, key: &str| responses.keys().any(|listed| status(listed) == key) || covering(responses, key).is_some();
    let all: BTreeSet<_> = keys(before, after).into_iter().filter(|key| is_status(key)).map(status).collect();
    all.iter().filter(|key| listed(before, key) && listed(after, key)).count()
}

fn is_status(key: &str) -> bool {
    let bytes = key.as_bytes();
    key == "default"
        || matches!(bytes, [b'1'..=b'5', one, other] if one.is_ascii_digit() && other.is_ascii_digit())
        || matches!(bytes, [b'1'..=b'5', b'x' | b'X', b'x' | b'X'])
}

fn is_success(key: &str) -> bool {
    key.starts_with(['2', '3'])
}

/// Returns the response that applies to a status that `responses` does not list: that of the status range, such as `4XX`, or, for a
/// failure, that of `default`.
pub(super) fn covering<'a>(responses: &'a Object, key: &str) -> Option<(&'a str, &'a Value)> {
    if key == "default" {
        return None;
    }
    let range = format!("{}XX", &key[..1]);
    let listed = responses.iter().find(|(listed, _)| !key.eq_ignore_ascii_case(&range) && listed.eq_ignore_ascii_case(&range));
    let default = || responses.get_key_value("default").filter(|_| !is_success(key));
    listed.or_else(default).map(|(cover, response)| (cover.as_str(), response))
}

/// Returns the rule for a response that only one document describes.
fn answer(key: &str, is_new: bool, other: &Object) -> &'static rules::Rule {
    let parts = key.ends_with("XX") && is_success(key) && other.keys().any(|listed| is_status(listed) && listed[..1] == key[..1]);
    match (key, is_new) {
        // The key is a range such as `2XX`, and the other document lists single statuses of this range.
        (_, true) if parts => &rules::RANGE_ADDED,
        (_, false) if parts => &rules::RANGE_REMOVED,
        ("default", true) => &rules::DEFAULT_ANSWER_ADDED,
        ("default", false) => &rules::DEFAULT_ANSWER_REMOVED,
        (key, true) if is_success(key) => &rules::SUCCESS_ADDED,
        (key, false) if is_success(key) => &rules::SUCCESS_REMOVED,
        (_, true) => &rules::FAILURE_ADDED,
        (_, false) => &rules::FAILURE_REMOVED,
    }
}

fn response<'a>(differ: &mut Differ<'a>, at: &Location, old: &'a Value, new: &'a Value) {
    let Some((old, new)) = differ.objects(at, old, new) else { return };
    headers(differ, at, old, new);
    content(differ, at, old, new);
    if let Some((before, after)) = differ.maps(at, "links", old, new) {
        for key in keys(before, after) {
            let at = at.part(&format!("link {key}"));
            let (Some(was), Some(is)) = (before.get(key), after.get(key)) else {
                differ.report_either(after.contains_key(key), &rules::LINK_ADDED, &rules::LINK_REMOVED, &at, None);
                continue;
            };
            if let Some((was, is)) = differ.objects(&at.towards(Direction::Both), was, is) {
                let at = at.towards(Direction::Both);
                if let Some((was, is)) = differ.maps(&at, "server", was, is) {
                    let at = at.part("server");
                    if was.get("url") != is.get("url") {
                        differ.report_full(&rules::LINK_CHANGED, &at, Some("url"), was.get("url"), is.get("url"));
                    }
                    server(differ, &at, was, is);
                }
                for key in ["operationRef", "operationId", "parameters", "requestBody"] {
                    if !both_same(was.get(key), is.get(key)) {
                        differ.report_full(&rules::LINK_CHANGED, &at, Some(key), was.get(key), is.get(key));
                    }
                }
                differ.rest(&at, was, is, &["operationRef", "operationId", "parameters", "requestBody", "server", "$ref"]);
            }
        }
    }
    differ.rest(at, old, new, &["headers", "content", "links", "$ref"]);
}
