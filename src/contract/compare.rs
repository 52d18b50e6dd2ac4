//! The comparison from its top: the document as a whole, then everything in it.

use std::collections::BTreeSet;

use super::{
    contents::compare_servers,
    operations,
    read::{Document, NOTICES},
    refs::Side,
    report::Report,
    rules, security,
    values::{bare, both_same, is_annotation, keys, same, text},
    walk::{At, INFO, Walk},
};

/// Everything that differs between two documents. Never fails: what cannot be understood is told as it stands.
pub fn diff(old: &Document, new: &Document) -> Report {
    let mut walk = Walk::new(Side::new(old), Side::new(new));
    document(&mut walk);
    operations::compare_paths(&mut walk);
    operations::compare_webhooks(&mut walk);
    components(&mut walk);
    let notices = [("old", &walk.old), ("new", &walk.new)].map(|(which, side)| notices(which, side)).concat();
    let shared = operations::shared(&walk.old, &walk.new);
    Report::new(old, new, shared, walk.found, notices)
}

const ROOT: [&str; 9] = ["openapi", "info", "servers", "security", "tags", "paths", "webhooks", "components", "externalDocs"];

fn document(walk: &mut Walk) {
    let whole = At::document("");
    let (old, new) = (walk.old.root(), walk.new.root());
    match (text(old, "openapi"), text(new, "openapi")) {
        (Some(one), Some(other)) if one == other => {}
        (Some(one), Some(other)) if one.get(..3) == other.get(..3) => walk.tell_of(&rules::RESTATED, &whole, "openapi"),
        _ => walk.tell_values(&rules::OPENAPI_VERSION_CHANGED, &whole, old.get("openapi"), new.get("openapi")),
    }
    if let Some((before, after)) = walk.maps(&whole, "info", old, new) {
        for key in keys(before, after).into_iter().filter(|key| !is_annotation(key)) {
            walk.tell_trio(&INFO, &At::document("info"), key, before.get(key), after.get(key));
        }
    }
    compare_servers(walk, &At::document("servers"), old.get("servers"), new.get("servers"));
    if !both_same(old.get("security"), new.get("security")) {
        walk.tell(&rules::SECURITY_DEFAULT_CHANGED, &At::document("security"));
    }
    operations::compare_tags(walk);
    walk.rest(&whole, old, new, &ROOT);
}

/// Components are compared where they are used; here, those that nothing leads to.
fn components(walk: &mut Walk) {
    let whole = At::document("");
    let (old, new) = (walk.old.root(), walk.new.root());
    let Some((before, after)) = walk.maps(&whole, "components", old, new) else { return };
    security::schemes(walk, before, after);
    let used = [&walk.old, &walk.new].map(|side| side.reached(&[side.get("paths"), side.get("webhooks")]));
    for section in keys(before, after) {
        if section == "securitySchemes" || is_annotation(section) {
            continue;
        }
        let place = At::document("components");
        if section.starts_with("x-") || [before, after].iter().any(|map| map.get(section).is_some_and(|value| !value.is_object())) {
            walk.tell_keyword(&place, section, before.get(section), after.get(section));
            continue;
        }
        let Some((one, other)) = walk.maps(&place, section, before, after) else { continue };
        for name in keys(one, other) {
            let reference = format!("#/components/{section}/{}", super::values::step(name));
            // A part of a component may be named by itself.
            let leads = |used: &BTreeSet<String>| {
                used.iter().any(|used| used.strip_prefix(&*reference).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
            };
            let at = At::document(&format!("components/{section}/{name}"));
            match (one.get(name), other.get(name)) {
                (Some(was), Some(is)) if !leads(&used[0]) && !leads(&used[1]) && !same(&bare(was), &bare(is)) => {
                    walk.tell_values(&rules::UNUSED_CHANGED, &at, Some(was), Some(is));
                }
                (Some(_), None) if !leads(&used[0]) => walk.tell(&rules::UNUSED_REMOVED, &at),
                (None, Some(_)) if !leads(&used[1]) => walk.tell(&rules::UNUSED_ADDED, &at),
                _ => {}
            }
        }
    }
}

/// What is wrong with a document, which does not make it different from another.
fn notices(which: &str, side: &Side) -> Vec<String> {
    let mut notices: Vec<_> = side.document.notices.iter().map(|notice| format!("{which}: {notice}")).collect();
    let root = side.root();
    for (key, fits) in [("info", true), ("paths", true), ("components", true), ("webhooks", true), ("servers", false), ("tags", false)] {
        let odd = root.get(key).is_some_and(|value| if fits { !value.is_object() } else { !value.is_array() });
        if odd {
            notices.push(format!("{which}: `{key}` is not {}", if fits { "an object" } else { "a list" }));
        }
    }
    if !["paths", "webhooks", "components"].iter().any(|key| root.contains_key(*key)) {
        notices.push(format!("{which}: there are neither `paths` nor `webhooks` nor `components`"));
    }
    for reference in side.references(&side.document.root) {
        if side.loops(&reference) {
            notices.push(format!("{which}: the reference {reference} leads back to itself"));
        } else if side.follow(&serde_json::json!({ "$ref": reference })).is_err() {
            notices.push(match reference.starts_with('#') {
                true => format!("{which}: the reference {reference} leads nowhere"),
                false => format!("{which}: the reference {reference} leads out of the document and is not followed"),
            });
        }
    }
    let all = notices.len();
    if all > NOTICES {
        notices.truncate(NOTICES);
        notices.push(format!("{which}: and {} more", all - NOTICES));
    }
    notices
}
