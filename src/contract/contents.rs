//! What goes over the wire in an operation: bodies, answers, headers, links; and where it is served.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    keywords,
    parameters::{PARAMETER, flags, value, written},
    rules::{self, Direction},
    values::{Object, bare, both_same, canonical, empty, flag, items, keys, members, same, text},
    walk::{At, Walk},
};

/// Things by what tells them apart, with the way in which each document writes that.
pub(super) type Named<'a> = BTreeMap<String, (String, &'a Value)>;

/// Adds one under its key; what says the same twice is kept apart.
pub(super) fn name<'a>(named: &mut Named<'a>, key: String, written: &str, value: &'a Value) {
    let (mut unique, mut count) = (key.clone(), 1);
    while named.contains_key(&unique) {
        count += 1;
        unique = format!("{key} ({count})");
    }
    named.insert(unique, (written.to_owned(), value));
}

pub(super) fn compare_body<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Object, new: &'a Object) {
    let at = at.part("request body");
    let (before, after) = match (old.get("requestBody"), new.get("requestBody")) {
        (None, None) => return,
        (Some(before), Some(after)) => (before, after),
        (Some(gone), None) => {
            let needed = walk.old.follow(gone).is_ok_and(|gone| flag(members(gone), "required"));
            walk.tell(if needed { &rules::REQUIRED_BODY_REMOVED } else { &rules::BODY_REMOVED }, &at);
            return walk.tell_broken(false, gone, &at);
        }
        (None, Some(come)) => {
            let needed = walk.new.follow(come).is_ok_and(|come| flag(members(come), "required"));
            walk.tell(if needed { &rules::REQUIRED_BODY_ADDED } else { &rules::BODY_ADDED }, &at);
            return walk.tell_broken(true, come, &at);
        }
    };
    let Some((before, after)) = walk.objects(&at, before, after) else { return };
    flags(walk, &at, before, after, &rules::BODY_BECAME_REQUIRED, &rules::BODY_BECAME_OPTIONAL);
    content(walk, &at, before, after);
    walk.rest(&at, before, after, &["required", "content", "$ref"]);
}

/// Bodies by media type.
pub(super) fn content<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Object, new: &'a Object) {
    let Some((before, after)) = walk.maps(at, "content", old, new) else { return };
    let types = |map: &'a Object| {
        let mut named = Named::new();
        map.iter().for_each(|(written, media)| name(&mut named, media_type(written), written, media));
        named
    };
    let (before, after) = (types(before), types(after));
    let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in all {
        // The type that nearly every body has goes without saying.
        let place = if key == "application/json" { at.clone() } else { at.part(&format!("({key})")) };
        match (before.get(key), after.get(key)) {
            (Some((one, was)), Some((other, is))) => {
                if one != other {
                    walk.tell_of(&rules::RESTATED, &place, "media type");
                }
                media(walk, &place, was, is);
            }
            (Some((_, was)), None) if let Some((range, is)) = covering_type(&after, key) => {
                walk.tell_of(&rules::MEDIA_TYPE_UNLISTED, &place, range);
                media(walk, &place, was, is);
            }
            (None, Some((_, is))) if let Some((range, was)) = covering_type(&before, key) => {
                walk.tell_of(&rules::MEDIA_TYPE_LISTED, &place, range);
                media(walk, &place, was, is);
            }
            (_, is) => walk.tell_either(is.is_some(), &rules::MEDIA_TYPE_ADDED, &rules::MEDIA_TYPE_REMOVED, at, Some(key)),
        }
    }
}

/// The range that describes a media type which is not listed.
fn covering_type<'n, 'a>(types: &'n Named<'a>, key: &str) -> Option<(&'n str, &'a Value)> {
    let (kind, _) = key.split_once('/')?;
    let ranges = [format!("{kind}/*"), "*/*".to_owned()];
    let range = ranges.iter().filter(|range| *range != key).find_map(|range| types.get_key_value(range))?;
    Some((range.0, range.1.1))
}

fn media<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Value, new: &'a Value) {
    let Some((old, new)) = walk.objects(at, old, new) else { return };
    walk.schema(at, old.get("schema"), new.get("schema"));
    if let Some((before, after)) = walk.maps(at, "encoding", old, new) {
        for name in keys(before, after) {
            let at = at.part(&format!("encoding {name}"));
            let (Some(was), Some(is)) = (before.get(name), after.get(name)) else {
                walk.tell_keyword(&at, "encoding", before.get(name), after.get(name));
                continue;
            };
            let Some((was, is)) = walk.objects(&at, was, is) else { continue };
            headers(walk, &at, was, is);
            walk.rest(&at, was, is, &["headers"]);
        }
    }
    walk.rest(at, old, new, &["schema", "encoding", "$ref"]);
}

/// A media type without what means nothing: case, the order of its parameters, and UTF-8, which text is anyway.
fn media_type(written: &str) -> String {
    let mut parts = written.split(';').map(|part| part.trim().to_lowercase());
    let kind = parts.next().unwrap_or_default();
    let mut parameters: Vec<_> =
        parts.map(|part| part.replace([' ', '"'], "")).filter(|part| !part.is_empty() && part != "charset=utf-8").collect();
    parameters.sort();
    [vec![kind], parameters].concat().join("; ")
}

pub(super) fn compare_responses<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Object, new: &'a Object) {
    let Some((before, after)) = walk.maps(at, "responses", old, new) else { return };
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
            walk.tell_keyword(&at.part("responses"), written, before.get(written), after.get(written));
            continue;
        }
        match (was, is) {
            (Some((written, was)), Some((other, is))) => {
                if written != other {
                    walk.tell_of(&rules::RESTATED, &place, "status");
                }
                response(walk, &place, was, is);
            }
            (Some((_, was)), None) => match covering(after, key) {
                Some((cover, is)) => {
                    walk.tell_of(&rules::ANSWER_UNLISTED, &place, cover);
                    response(walk, &place, was, is);
                }
                None => walk.tell(answer(key, false, after), &place),
            },
            (None, Some((_, is))) => match covering(before, key) {
                Some((cover, was)) => {
                    walk.tell_of(&rules::ANSWER_LISTED, &place, cover);
                    response(walk, &place, was, is);
                }
                None => walk.tell(answer(key, true, before), &place),
            },
            (None, None) => {}
        }
    }
}

/// A status as it is compared: the letters of ranges have no case that means anything.
fn status(written: &str) -> String {
    if written != "default" && is_status(written) { written.to_uppercase() } else { written.to_owned() }
}

/// How many answers are compared with one of the other document.
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

/// What describes a status that is not listed: its range, or the default, which is about failures.
fn covering<'a>(responses: &'a Object, key: &str) -> Option<(&'a str, &'a Value)> {
    if key == "default" {
        return None;
    }
    let range = format!("{}XX", &key[..1]);
    let listed = responses.iter().find(|(listed, _)| !key.eq_ignore_ascii_case(&range) && listed.eq_ignore_ascii_case(&range));
    let default = || responses.get_key_value("default").filter(|_| !is_success(key));
    listed.or_else(default).map(|(cover, response)| (cover.as_str(), response))
}

/// What the answer of a status is that the other document does not describe.
fn answer(key: &str, is_new: bool, other: &Object) -> &'static rules::Rule {
    let parts = key.ends_with("XX") && is_success(key) && other.keys().any(|listed| is_status(listed) && listed[..1] == key[..1]);
    match (key, is_new) {
        // Some of a range are answered on either side: the others come or go.
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

fn response<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Value, new: &'a Value) {
    let Some((old, new)) = walk.objects(at, old, new) else { return };
    headers(walk, at, old, new);
    content(walk, at, old, new);
    if let Some((before, after)) = walk.maps(at, "links", old, new) {
        for key in keys(before, after) {
            let at = at.part(&format!("link {key}"));
            let (Some(was), Some(is)) = (before.get(key), after.get(key)) else {
                walk.tell_either(after.contains_key(key), &rules::LINK_ADDED, &rules::LINK_REMOVED, &at, None);
                continue;
            };
            if let Some((was, is)) = walk.objects(&at.towards(Direction::Both), was, is) {
                let at = at.towards(Direction::Both);
                if let Some((was, is)) = walk.maps(&at, "server", was, is) {
                    let at = at.part("server");
                    walk.tell_keyword(&at, "url", was.get("url"), is.get("url"));
                    server(walk, &at, was, is);
                }
                walk.rest(&at, was, is, &["server", "$ref"]);
            }
        }
    }
    walk.rest(at, old, new, &["headers", "content", "links", "$ref"]);
}

fn headers<'a>(walk: &mut Walk<'a>, at: &At, old: &'a Object, new: &'a Object) {
    let Some((before, after)) = walk.maps(at, "headers", old, new) else { return };
    let by_name = |map: &'a Object| {
        let mut named = Named::new();
        map.iter().for_each(|(written, header)| name(&mut named, written.to_lowercase(), written, header));
        named
    };
    let (before, after) = (by_name(before), by_name(after));
    let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in all {
        let at = at.part(&format!("header {key}"));
        // The content says it already.
        if key == "content-type" {
            if before.get(key).map(|(_, header)| bare(header)) != after.get(key).map(|(_, header)| bare(header)) {
                walk.tell_of(&rules::RESTATED, &at, "header");
            }
            continue;
        }
        let needed =
            |side: &super::refs::Side<'a>, header: &'a Value| side.follow(header).is_ok_and(|header| flag(members(header), "required"));
        match (before.get(key), after.get(key)) {
            (Some((one, was)), Some((other, is))) => {
                if one != other {
                    walk.tell_of(&rules::RESTATED, &at, "name");
                }
                let Some((was, is)) = walk.objects(&at, was, is) else { continue };
                flags(walk, &at, was, is, &rules::HEADER_BECAME_REQUIRED, &rules::HEADER_BECAME_OPTIONAL);
                written(walk, &at, was, is, "header");
                value(walk, &at, was, is);
                walk.rest(&at, was, is, &PARAMETER[2..]);
            }
            (Some((_, gone)), None) => {
                walk.tell(if needed(&walk.old, gone) { &rules::REQUIRED_HEADER_REMOVED } else { &rules::HEADER_REMOVED }, &at);
                walk.tell_broken(false, gone, &at);
            }
            (None, Some((_, come))) => {
                walk.tell(if needed(&walk.new, come) { &rules::REQUIRED_HEADER_ADDED } else { &rules::HEADER_ADDED }, &at);
                walk.tell_broken(true, come, &at);
            }
            (None, None) => {}
        }
    }
}

/// Where an operation is served.
pub(super) fn compare_servers(walk: &mut Walk, at: &At, old: Option<&Value>, new: Option<&Value>) {
    if both_same(old, new) {
        return;
    }
    let told = walk.found.len();
    fn by_address(list: Option<&Value>) -> Named<'_> {
        let mut named = Named::new();
        for server in items(list) {
            let address = text(members(server), "url").map_or_else(|| canonical(server), str::to_owned);
            name(&mut named, address.clone(), &address, server);
        }
        // Without any, the document's own address counts.
        if named.is_empty() {
            name(&mut named, "/".to_owned(), "/", empty());
        }
        named
    }
    if [old, new].into_iter().flatten().any(|list| !list.is_array()) {
        return walk.tell_keyword(at, "servers", old, new);
    }
    let (before, after) = (by_address(old), by_address(new));
    for (address, (_, one)) in &before {
        match after.get(address) {
            None => walk.tell_of(&rules::SERVER_REMOVED, at, address),
            Some((_, other)) => server(walk, &at.part(address), members(one), members(other)),
        }
    }
    after.keys().filter(|address| !before.contains_key(*address)).for_each(|address| walk.tell_of(&rules::SERVER_ADDED, at, address));
    let sorted = |list: Option<&Value>| {
        let mut all: Vec<_> = items(list).iter().map(canonical).collect();
        all.sort();
        all
    };
    if walk.found.len() == told && sorted(old) == sorted(new) && !old.zip(new).is_some_and(|(old, new)| same(old, new)) {
        // The first one is what tools take.
        walk.tell_of(&rules::RESTATED, at, "servers");
    }
}

fn server(walk: &mut Walk, at: &At, old: &Object, new: &Object) {
    if keywords::shaped(walk, at, "variables", old, new, Value::is_object) {
        let [before, after] = [old, new].map(|server| members(server.get("variables").unwrap_or(empty())));
        for name in keys(before, after) {
            let at = at.part(&format!("variable {name}"));
            match (before.get(name), after.get(name)) {
                (Some(Value::Object(was)), Some(Value::Object(is))) => walk.rest(&at, was, is, &[]),
                (was, is) => walk.tell_keyword(&at, "variables", was, is),
            }
        }
    }
    walk.rest(at, old, new, &["url", "variables"]);
}
