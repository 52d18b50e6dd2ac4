//! Compares two OpenAPI documents: the root object, then paths, webhooks and components.

use std::collections::BTreeSet;

use super::{
    comparison_state::{Differ, INFO, Location},
    json_values::{both_same, is_annotation, keys, same, text, without_annotations},
    operations,
    read::{Document, NOTICES},
    references::DocumentIndex,
    report::Report,
    rules, security,
    semantics::Arena,
    servers::compare_servers,
};

/// Compares two documents. Never fails: an invalid part is compared as plain JSON.
pub fn diff(old: &Document, new: &Document) -> Report {
    let arena = Arena::new();
    let mut differ = Differ::new(DocumentIndex::new(old), DocumentIndex::new(new), &arena);
    document(&mut differ);
    operations::compare_paths(&mut differ);
    operations::compare_webhooks(&mut differ);
    components(&mut differ);
    unfollowed(&mut differ);
    let notices = [("old", &differ.old), ("new", &differ.new)].map(|(which, side)| notices(which, side)).concat();
    let shared = operations::shared(&differ.old, &differ.new);
    Report::new(old, new, shared, differ.found, notices)
}

const ROOT: [&str; 9] = ["openapi", "info", "servers", "security", "tags", "paths", "webhooks", "components", "externalDocs"];

fn document(differ: &mut Differ) {
    let whole = Location::document("");
    let (old, new) = (differ.old.root(), differ.new.root());
    match (text(old, "openapi"), text(new, "openapi")) {
        (Some(one), Some(other)) if one == other => {}
        (Some(one), Some(other)) if one.get(..3) == other.get(..3) => differ.report_detail(&rules::RESTATED, &whole, "openapi"),
        _ => differ.report_values(&rules::OPENAPI_VERSION_CHANGED, &whole, old.get("openapi"), new.get("openapi")),
    }
    if let Some((before, after)) = differ.maps(&whole, "info", old, new) {
        for key in keys(before, after).into_iter().filter(|key| !is_annotation(key)) {
            differ.report_presence(&INFO, &Location::document("info"), key, before.get(key), after.get(key));
        }
    }
    compare_servers(differ, &Location::document("servers"), old.get("servers"), new.get("servers"));
    if !both_same(old.get("security"), new.get("security")) {
        differ.report(&rules::SECURITY_DEFAULT_CHANGED, &Location::document("security"));
    }
    operations::compare_tags(differ);
    differ.rest(&whole, old, new, &ROOT);
}

/// Compares the security schemes, and the components that no operation uses. Other components are compared where they are used.
fn components(differ: &mut Differ) {
    let whole = Location::document("");
    let (old, new) = (differ.old.root(), differ.new.root());
    let Some((before, after)) = differ.maps(&whole, "components", old, new) else { return };
    security::schemes(differ, before, after);
    let used = [&differ.old, &differ.new].map(|side| side.reached(&[side.get("paths"), side.get("webhooks")]));
    for section in keys(before, after) {
        if section == "securitySchemes" || is_annotation(section) {
            continue;
        }
        let place = Location::document("components");
        if section.starts_with("x-") || [before, after].iter().any(|map| map.get(section).is_some_and(|value| !value.is_object())) {
            differ.report_keyword(&place, section, before.get(section), after.get(section));
            continue;
        }
        let Some((one, other)) = differ.maps(&place, section, before, after) else { continue };
        for name in keys(one, other) {
            let reference = format!("#/components/{section}/{}", super::json_values::step(name));
            // A component counts as used even if a reference leads only to a part of it.
            let leads = |used: &BTreeSet<String>| {
                used.iter().any(|used| used.strip_prefix(&*reference).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
            };
            let at = Location::document(&format!("components/{section}/{name}"));
            match (one.get(name), other.get(name)) {
                (Some(was), Some(is))
                    if !leads(&used[0]) && !leads(&used[1]) && !same(&without_annotations(was), &without_annotations(is)) =>
                {
                    differ.report_values(&rules::UNUSED_CHANGED, &at, Some(was), Some(is));
                }
                (Some(_), None) if !leads(&used[0]) => differ.report(&rules::UNUSED_REMOVED, &at),
                (None, Some(_)) if !leads(&used[1]) => differ.report(&rules::UNUSED_ADDED, &at),
                _ => {}
            }
        }
    }
}

/// Reports each reference that both documents contain and whose target was not loaded, because the target may have changed.
fn unfollowed(differ: &mut Differ) {
    let of = |side: &DocumentIndex| {
        side.all_references().iter().filter(|reference| side.is_unfollowed(reference)).cloned().collect::<BTreeSet<_>>()
    };
    let (old, new) = (of(&differ.old), of(&differ.new));
    for reference in old.intersection(&new) {
        differ.report_detail(&rules::REFERENCE_UNFOLLOWED, &Location::document("references"), reference);
    }
}

/// Returns the faults of one document, such as a broken reference, as notices for the report. A fault is no difference between the
/// documents.
fn notices(which: &str, side: &DocumentIndex) -> Vec<String> {
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
    for reference in side.all_references() {
        if side.is_cyclic(reference) {
            notices.push(format!("{which}: the reference {reference} leads back to itself"));
        } else if side.follow(&serde_json::json!({ "$ref": reference })).is_err() {
            let file = reference.split('#').next().unwrap_or_default();
            let fault = if file.is_empty() || side.document.files.contains_key(file) {
                "leads nowhere"
            } else if side.document.notices.iter().any(|notice| notice.starts_with(&format!("{file} "))) {
                "is not followed"
            } else {
                "is not followed: only files below the folder of the document are read"
            };
            notices.push(format!("{which}: the reference {reference} {fault}"));
        }
    }
    let all = notices.len();
    if all > NOTICES {
        notices.truncate(NOTICES);
        notices.push(format!("{which}: and {} more", all - NOTICES));
    }
    notices
}
