//! Compares encoding objects: how the properties of a form or of a multipart body are serialised.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;

use super::{
    comparison_state::{Differ, Location},
    headers::headers,
    json_values::{Object, canonical, empty, flag, keys, members, text, without_annotations},
    references::DocumentIndex,
    rules,
    schema_resolution::{inner, resolve},
};

/// How the bodies of a media type use encoding objects.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Form,
    Multipart,
    Nothing,
}

pub(super) fn encodings<'a>(differ: &mut Differ<'a>, at: &Location, media_type: &str, old: &'a Object, new: &'a Object) {
    let Some((before, after)) = differ.maps(at, "encoding", old, new) else { return };
    let form = match media_type.split(';').next().unwrap_or_default() {
        "application/x-www-form-urlencoded" => Use::Form,
        kind if kind.starts_with("multipart/") => Use::Multipart,
        _ => Use::Nothing,
    };
    for name in keys(before, after) {
        let at = at.part(&format!("encoding {name}"));
        let (was, is) = (before.get(name), after.get(name));
        if form == Use::Nothing {
            if was.map(without_annotations) != is.map(without_annotations) {
                differ.report_detail(&rules::RESTATED, &at, "encoding");
            }
            continue;
        }
        let [one, other] = [was, is].map(|encoding| encoding.unwrap_or(empty()));
        let Some((one, other)) = differ.objects(&at, one, other) else {
            if was.is_some() != is.is_some() {
                differ.report_detail(&rules::RESTATED, &at, "encoding");
            }
            continue;
        };
        let from = differ.found.len();
        let implied = [(&differ.old, old), (&differ.new, new)].map(|(side, media)| implied_type(side, media, name));
        content_types(differ, &at, [one, other], implied);
        written(differ, &at, [one, other], form);
        headers(differ, &at, one, other);
        differ.rest(&at, one, other, &["contentType", "headers", "style", "explode", "allowReserved"]);
        if differ.found.len() == from && was.map(without_annotations) != is.map(without_annotations) {
            differ.report_detail(&rules::RESTATED, &at, "encoding");
        }
    }
}

/// Compares the media types that the encodings of a property permit (`contentType`).
fn content_types(differ: &mut Differ, at: &Location, encodings: [&Object; 2], implied: [&'static str; 2]) {
    if encodings.iter().any(|encoding| encoding.get("contentType").is_some_and(|kinds| !kinds.is_string())) {
        return differ.report_keyword(at, "contentType", encodings[0].get("contentType"), encodings[1].get("contentType"));
    }
    let kinds = |position: usize| -> BTreeSet<String> {
        let written = text(encodings[position], "contentType").unwrap_or(implied[position]);
        written.split(',').map(|kind| kind.trim().to_lowercase()).collect()
    };
    let (before, after) = (kinds(0), kinds(1));
    if encodings.iter().all(|encoding| !encoding.contains_key("contentType")) {
        return;
    }
    before.difference(&after).for_each(|kind| differ.report_detail(&rules::PART_TYPE_REMOVED, at, kind));
    after.difference(&before).for_each(|kind| differ.report_detail(&rules::PART_TYPE_ADDED, at, kind));
}

/// Returns the media type of a property whose encoding contains no `contentType`. This default depends on the type of the property.
fn implied_type(side: &DocumentIndex, media: &Object, name: &str) -> &'static str {
    let schema = media.get("schema").unwrap_or(empty());
    let schema = resolve(side, Cow::Owned(schema.clone()));
    let mut property = inner(&schema.member("properties"), name).map(Cow::into_owned);
    for _ in 0..8 {
        let resolved = resolve(side, Cow::Owned(property.clone().unwrap_or_else(|| empty().clone())));
        let object = members(&resolved.schema);
        match text(object, "type") {
            Some("object") => return "application/json",
            Some("array") => property = object.get("items").cloned(),
            Some("string") if text(object, "format") == Some("binary") || object.contains_key("contentEncoding") => {
                return "application/octet-stream";
            }
            Some(_) => return "text/plain",
            None => return "application/octet-stream",
        }
    }
    "application/octet-stream"
}

/// Compares the keywords for how a property of a body is serialised as a form parameter: `style`, `explode` and `allowReserved`.
fn written(differ: &mut Differ, at: &Location, encodings: [&Object; 2], form: Use) {
    const KEYS: [&str; 3] = ["style", "explode", "allowReserved"];
    // In a multipart body these keywords take effect only if at least one of them is given.
    let takes_effect = |encoding: &Object| form == Use::Form || KEYS.iter().any(|key| encoding.contains_key(*key));
    let spelled = |encoding: &Object| {
        if !takes_effect(encoding) {
            return "by its media type".to_owned();
        }
        let style = text(encoding, "style").unwrap_or("form");
        let explode = encoding.get("explode").map_or_else(|| (style == "form").to_string(), canonical);
        format!("style `{style}`, explode {explode}")
    };
    let [before, after] = encodings.map(spelled);
    if before != after {
        differ.report_values(&rules::SERIALISATION_CHANGED, at, Some(&before.into()), Some(&after.into()));
    }
    let [reserved, reserves] = encodings.map(|encoding| flag(encoding, "allowReserved"));
    differ.report_flag(reserved, reserves, &rules::RESERVED_ALLOWED, &rules::RESERVED_REFUSED, at);
    for key in KEYS {
        let fits = |value: &Value| if key == "style" { value.is_string() } else { value.is_boolean() };
        if encodings.iter().any(|encoding| encoding.get(key).is_some_and(|value| !fits(value))) {
            differ.report_keyword(at, key, encodings[0].get(key), encodings[1].get(key));
        }
    }
}
