//! Compares request bodies and media types.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    comparison_state::{Differ, Location},
    encodings::encodings,
    json_values::{Object, flag, members},
    parameters::flags,
    rules,
};

/// The entries of a section such as `content`, by their keys in a normal form. Each entry is a pair: its key as the document writes it, and
/// its value.
pub(super) type Named<'a> = BTreeMap<String, (String, &'a Value)>;

/// Adds a value under its normalised key. If the map already has the key, a number is appended to the key.
pub(super) fn name<'a>(named: &mut Named<'a>, key: String, written: &str, value: &'a Value) {
    let (mut unique, mut count) = (key.clone(), 1);
    while named.contains_key(&unique) {
        count += 1;
        unique = format!("{key} ({count})");
    }
    named.insert(unique, (written.to_owned(), value));
}

pub(super) fn compare_body<'a>(differ: &mut Differ<'a>, at: &Location, old: &'a Object, new: &'a Object) {
    let at = at.part("request body");
    let (before, after) = match (old.get("requestBody"), new.get("requestBody")) {
        (None, None) => return,
        (Some(before), Some(after)) => (before, after),
        (Some(gone), None) => {
            let needed = differ.old.follow(gone).is_ok_and(|gone| flag(members(gone), "required"));
            differ.report(if needed { &rules::REQUIRED_BODY_REMOVED } else { &rules::BODY_REMOVED }, &at);
            return differ.report_broken(false, gone, &at);
        }
        (None, Some(come)) => {
            let needed = differ.new.follow(come).is_ok_and(|come| flag(members(come), "required"));
            differ.report(if needed { &rules::REQUIRED_BODY_ADDED } else { &rules::BODY_ADDED }, &at);
            return differ.report_broken(true, come, &at);
        }
    };
    let Some((before, after)) = differ.objects(&at, before, after) else { return };
    flags(differ, &at, before, after, &rules::BODY_BECAME_REQUIRED, &rules::BODY_BECAME_OPTIONAL);
    content(differ, &at, before, after);
    differ.rest(&at, before, after, &["required", "content", "$ref"]);
}

/// Compares the `content` of two bodies, parameters or headers, media type by media type.
pub(super) fn content<'a>(differ: &mut Differ<'a>, at: &Location, old: &'a Object, new: &'a Object) {
    let Some((before, after)) = differ.maps(at, "content", old, new) else { return };
    let types = |map: &'a Object| {
        let mut named = Named::new();
        map.iter().for_each(|(written, media)| name(&mut named, media_type(written), written, media));
        named
    };
    let (before, after) = (types(before), types(after));
    let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in all {
        // For the most common media type, JSON, the location does not name the media type.
        let place = if key == "application/json" { at.clone() } else { at.part(&format!("({key})")) };
        match (before.get(key), after.get(key)) {
            (Some((one, was)), Some((other, is))) => {
                if one != other {
                    differ.report_detail(&rules::RESTATED, &place, "media type");
                }
                media(differ, &place, key, was, is);
            }
            (Some((_, was)), None) if let Some((range, is)) = covering_type(&after, key) => {
                differ.report_detail(&rules::MEDIA_TYPE_UNLISTED, &place, range);
                media(differ, &place, key, was, is);
            }
            (None, Some((_, is))) if let Some((range, was)) = covering_type(&before, key) => {
                differ.report_detail(&rules::MEDIA_TYPE_LISTED, &place, range);
                media(differ, &place, key, was, is);
            }
            (_, is) => differ.report_either(is.is_some(), &rules::MEDIA_TYPE_ADDED, &rules::MEDIA_TYPE_REMOVED, at, Some(key)),
        }
    }
}

/// Returns the range in `types`, such as `image/*` or `*/*`, that covers a media type which `types` does not list.
fn covering_type<'n, 'a>(types: &'n Named<'a>, key: &str) -> Option<(&'n str, &'a Value)> {
    let (kind, _) = key.split_once('/')?;
    let ranges = [format!("{kind}/*"), "*/*".to_owned()];
    let range = ranges.iter().filter(|range| *range != key).find_map(|range| types.get_key_value(range))?;
    Some((range.0, range.1.1))
}

fn media<'a>(differ: &mut Differ<'a>, at: &Location, media_type: &str, old: &'a Value, new: &'a Value) {
    let Some((old, new)) = differ.objects(at, old, new) else { return };
    differ.schema(&at.as_xml(is_xml(media_type)), old.get("schema"), new.get("schema"));
    encodings(differ, at, media_type, old, new);
    differ.rest(at, old, new, &["schema", "encoding", "$ref"]);
}

/// Whether bodies of a media type, or of a range such as `*/*`, may be XML.
fn is_xml(media_type: &str) -> bool {
    let kind = media_type.split(';').next().unwrap_or_default();
    kind.ends_with("/xml") || kind.ends_with("+xml") || kind.contains('*')
}

/// Returns a media type in a normal form: lower case, sorted parameters, without `charset=utf-8`.
fn media_type(written: &str) -> String {
    let mut parts = written.split(';').map(|part| part.trim().to_lowercase());
    let kind = parts.next().unwrap_or_default();
    let mut parameters: Vec<_> =
        parts.map(|part| part.replace([' ', '"'], "")).filter(|part| !part.is_empty() && part != "charset=utf-8").collect();
    parameters.sort();
    [vec![kind], parameters].concat().join("; ")
}
