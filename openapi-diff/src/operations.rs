//! Compares paths, webhooks and callbacks, and the operations under them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    comparison_state::{Differ, Location},
    json_values::{Object, empty, flag, is_annotation, keys, members, text},
    media_types::{Named, compare_body, name},
    parameters::{OperationInPath, compare_parameters},
    references::DocumentIndex,
    report::{Shared, unnamed},
    responses::{compare_responses, shared_answers},
    rules::{self, Direction, Rule},
    security,
    servers::compare_servers,
};

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// Compares the paths of both documents. Paths that differ only in the names of their parameters are compared with each other.
pub(super) fn compare_paths<'a>(differ: &mut Differ<'a>) {
    let whole = Location::document("");
    let (old, new) = (differ.old.root(), differ.new.root());
    let Some((before, after)) = differ.maps(&whole, "paths", old, new) else { return };
    for (one, other) in pairs(before, after) {
        let written = one.or(other).unwrap_or_default();
        if written.starts_with("x-") {
            differ.report_keyword(&Location::document("paths"), written, before.get(written), after.get(written));
            continue;
        }
        let [was, is] = [one.and_then(|path| before.get(path)), other.and_then(|path| after.get(path))].map(|item| item.unwrap_or(empty()));
        let label = |method: &str| if method.is_empty() { written.to_owned() } else { format!("{} {written}", method.to_uppercase()) };
        let kind = OperationKind {
            label: &label,
            prefix: "",
            sends: Direction::Request,
            added: &rules::OPERATION_ADDED,
            removed: &rules::OPERATION_REMOVED,
        };
        if let (Some(one), Some(other)) = (one, other) {
            path_item(differ, &kind, was, is, one, other);
        } else {
            let (item, is_new) = if other.is_some() { (is, true) } else { (was, false) };
            alone(differ, &kind, item, is_new, (&rules::PATH_ADDED, &rules::PATH_REMOVED));
        }
    }
}

/// Pairs the paths of two documents: equal paths first, then paths that differ only in the names of their parameters. A path without a
/// partner forms a pair by itself.
pub(super) fn pairs<'a>(before: &'a Object, after: &'a Object) -> Vec<(Option<&'a str>, Option<&'a str>)> {
    let mut pairs: Vec<_> =
        before.keys().filter(|path| after.contains_key(*path)).map(|path| (Some(path.as_str()), Some(path.as_str()))).collect();
    let left = |from: &'a Object, other: &'a Object| {
        let mut by_form: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for path in from.keys().filter(|path| !other.contains_key(*path)) {
            by_form.entry(unnamed(path)).or_default().push(path);
        }
        by_form
    };
    let (gone, come) = (left(before, after), left(after, before));
    let forms: BTreeSet<_> = gone.keys().chain(come.keys()).collect();
    for form in forms {
        let (gone, come) = (gone.get(form).cloned().unwrap_or_default(), come.get(form).cloned().unwrap_or_default());
        for position in 0..gone.len().max(come.len()) {
            pairs.push((gone.get(position).copied(), come.get(position).copied()));
        }
    }
    pairs
}

pub(super) fn compare_webhooks<'a>(differ: &mut Differ<'a>) {
    let whole = Location::document("");
    let (old, new) = (differ.old.root(), differ.new.root());
    let Some((before, after)) = differ.maps(&whole, "webhooks", old, new) else { return };
    for name in keys(before, after) {
        let label = |method: &str| format!("webhook {name} {}", method.to_uppercase()).trim_end().to_owned();
        let kind = OperationKind {
            label: &label,
            prefix: "",
            sends: Direction::Response,
            added: &rules::WEBHOOK_ADDED,
            removed: &rules::WEBHOOK_REMOVED,
        };
        match (before.get(name), after.get(name)) {
            (Some(was), Some(is)) => path_item(differ, &kind, was, is, "", ""),
            (Some(item), None) => alone(differ, &kind, item, false, (kind.added, kind.removed)),
            (None, Some(item)) => alone(differ, &kind, item, true, (kind.added, kind.removed)),
            (None, None) => {}
        }
    }
}

/// Counts the operations and responses that both documents have.
pub(super) fn shared(old: &DocumentIndex, new: &DocumentIndex) -> Shared {
    let section = |side: &DocumentIndex, key: &str| members(side.root().get(key).unwrap_or(empty())).clone();
    let [[before, after], [was, is]] = ["paths", "webhooks"].map(|key| [section(old, key), section(new, key)]);
    let paths = pairs(&before, &after).into_iter().filter_map(|(one, other)| Some((before.get(one?)?, after.get(other?)?)));
    let webhooks = was.iter().filter_map(|(name, one)| Some((one, is.get(name)?)));
    let mut shared = Shared::default();
    for (was, is) in paths.chain(webhooks) {
        let (Ok(was), Ok(is)) = (old.follow(was), new.follow(is)) else { continue };
        for method in methods(members(was)) {
            let (Some(was), Some(is)) = (was[method].as_object(), is.get(method).and_then(Value::as_object)) else { continue };
            shared.operations += 1;
            shared.answers += shared_answers(was, is);
        }
    }
    shared
}

/// How the operations of a path, a webhook or a callback appear in a report.
struct OperationKind<'k> {
    label: &'k dyn Fn(&str) -> String,
    /// The text with which each location begins. Empty except for a callback: its changes are reported under the operation that declares
    /// it, and the text names the callback.
    prefix: &'k str,
    /// The direction in which requests are sent: `Response` for a webhook, because the server sends its requests to integrators.
    sends: Direction,
    added: &'static Rule,
    removed: &'static Rule,
}

impl OperationKind<'_> {
    fn at(&self, method: &str) -> Location {
        let at = Location::operation(&(self.label)(method), self.prefix);
        if self.prefix.is_empty() || method.is_empty() { at } else { at.part(&method.to_uppercase()) }
    }
}

/// Reports each operation of a path, webhook or callback that only one document has. If there are no operations, reports the path, webhook
/// or callback itself: under the first rule of `without` if it was added, under the second if it was removed.
fn alone<'a>(differ: &mut Differ<'a>, kind: &OperationKind, item: &'a Value, is_new: bool, without: (&'static Rule, &'static Rule)) {
    let side = if is_new { &differ.new } else { &differ.old };
    let followed = side.follow(item).map(|item| methods(members(item)));
    if let Err(reference) = &followed {
        differ.report_either(is_new, &rules::REFERENCE_BROKEN, &rules::REFERENCE_MENDED, &kind.at(""), Some(reference));
    }
    let methods = followed.unwrap_or_default();
    if methods.is_empty() {
        differ.report_either(is_new, without.0, without.1, &kind.at(""), None);
    }
    for method in methods {
        differ.report_either(is_new, kind.added, kind.removed, &kind.at(method), None);
        if let (false, Ok(item)) = (is_new, differ.old.follow(item)) {
            differ.add_sunset(&item[method]);
        }
    }
}

fn methods(item: &Object) -> Vec<&str> {
    item.keys().map(String::as_str).filter(|key| METHODS.contains(key)).collect()
}

fn path_item<'a>(differ: &mut Differ<'a>, kind: &OperationKind, old: &'a Value, new: &'a Value, one: &'a str, other: &'a str) {
    let both = if differ.identical(old, new) {
        // Equal path items can still have different effects, because the security or the servers of the documents differ, or because the
        // path parameters have other names.
        let all = one == other && ["security", "servers"].iter().all(|key| differ.old.root().get(*key) == differ.new.root().get(*key));
        let (Ok(old), Ok(new), false) = (differ.old.follow(old), differ.new.follow(new), all) else { return };
        Some((members(old), members(new)))
    } else {
        differ.objects(&kind.at(""), old, new)
    };
    let Some((old, new)) = both else { return };
    let mut common = 0;
    for method in keys(old, new) {
        if !METHODS.contains(&method) {
            continue;
        }
        let (Some(was), Some(is)) = (old.get(method), new.get(method)) else {
            differ.report_either(new.contains_key(method), kind.added, kind.removed, &kind.at(method), None);
            if let Some(gone) = old.get(method) {
                differ.add_sunset(gone);
            }
            continue;
        };
        if !(was.is_object() && is.is_object()) {
            differ.report_keyword(&kind.at(method), method, Some(was), Some(is));
            continue;
        }
        common += 1;
        let [was, is] = [(was, old, one), (is, new, other)].map(|(operation, path, template)| OperationInPath {
            path,
            operation: members(operation),
            template,
        });
        operation(differ, &kind.at(method), kind.sends, &was, &is);
    }
    if common == 0 {
        // `parameters` and `servers` of a path are compared as part of each operation that both documents have. Here there is no such
        // operation, so their changes are reported for the path.
        for key in ["parameters", "servers"] {
            differ.report_keyword(&kind.at(""), key, old.get(key), new.get(key));
        }
    }
    let known: Vec<_> = METHODS.into_iter().chain(["parameters", "servers", "$ref"]).collect();
    differ.rest(&kind.at(""), old, new, &known);
}

const OPERATION: [&str; 10] =
    ["operationId", "parameters", "requestBody", "responses", "callbacks", "deprecated", "security", "servers", "tags", "externalDocs"];

fn operation<'a>(differ: &mut Differ<'a>, at: &Location, sends: Direction, old: &OperationInPath<'a>, new: &OperationInPath<'a>) {
    let (before, after) = (old.operation, new.operation);
    identity(differ, at, before, after);
    for (one, other) in names(old.template).into_iter().zip(names(new.template)).filter(|(one, other)| one != other) {
        differ.report_values(&rules::PATH_PARAMETER_RENAMED, at, Some(&one.into()), Some(&other.into()));
    }
    let request = at.towards(sends);
    security::compare(differ, &request.part("security"), before, after);
    let own = |operation: &'a Object, path: &'a Object| operation.get("servers").or_else(|| path.get("servers"));
    let (was, is) = (own(before, old.path), own(after, new.path));
    if was.is_some() || is.is_some() {
        let general = (differ.old.root().get("servers"), differ.new.root().get("servers"));
        compare_servers(differ, &at.part("servers"), was.or(general.0), is.or(general.1));
    }
    // If both operations have their own servers, the servers of the path have no effect. Then no other comparison reports changed servers
    // of the path, so they are reported here.
    if before.contains_key("servers") && after.contains_key("servers") {
        differ.report_keyword(&at.part("path"), "servers", old.path.get("servers"), new.path.get("servers"));
    }
    compare_parameters(differ, &request, old, new);
    compare_body(differ, &request, before, after);
    compare_responses(differ, &at.towards(sends.answered()), before, after);
    callbacks(differ, at, sends.answered(), before, after);
    differ.rest(at, before, after, &OPERATION);
}

fn names(template: &str) -> Vec<&str> {
    template.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
}

/// Compares the identifier, the tags and the deprecation of an operation.
fn identity<'a>(differ: &mut Differ<'a>, at: &Location, old: &'a Object, new: &'a Object) {
    match (text(old, "operationId"), text(new, "operationId")) {
        (Some(one), Some(other)) if one == other => {}
        (Some(_), Some(_)) => differ.report_values(&rules::OPERATION_ID_RENAMED, at, old.get("operationId"), new.get("operationId")),
        (None, Some(_)) if !old.contains_key("operationId") => {
            differ.report_values(&rules::OPERATION_ID_ADDED, at, None, new.get("operationId"))
        }
        (Some(_), None) if !new.contains_key("operationId") => {
            differ.report_values(&rules::OPERATION_ID_REMOVED, at, old.get("operationId"), None)
        }
        _ => differ.report_keyword(at, "operationId", old.get("operationId"), new.get("operationId")),
    }
    let deprecated = (old.get("deprecated"), new.get("deprecated"));
    if [deprecated.0, deprecated.1].into_iter().flatten().any(|value| !value.is_boolean()) {
        differ.report_keyword(at, "deprecated", deprecated.0, deprecated.1);
    } else if flag(old, "deprecated") != flag(new, "deprecated") {
        differ.report_flag(flag(old, "deprecated"), flag(new, "deprecated"), &rules::DEPRECATED, &rules::UNDEPRECATED, at);
    } else if deprecated.0 != deprecated.1 {
        differ.report_detail(&rules::RESTATED, at, "deprecated");
    }
    let Some((one, other)) = differ.lists(at, "tags", old, new) else { return };
    let from = differ.found.len();
    let name = |tag: &Value| tag.as_str().map_or_else(|| tag.to_string(), str::to_owned);
    one.iter().filter(|tag| !other.contains(tag)).for_each(|tag| differ.report_detail(&rules::OPERATION_TAG_REMOVED, at, &name(tag)));
    other.iter().filter(|tag| !one.contains(tag)).for_each(|tag| differ.report_detail(&rules::OPERATION_TAG_ADDED, at, &name(tag)));
    if differ.found.len() == from && one != other {
        differ.report(&rules::OPERATION_TAGS_REORDERED, at);
    }
}

fn callbacks<'a>(differ: &mut Differ<'a>, at: &Location, sends: Direction, old: &'a Object, new: &'a Object) {
    let Some((before, after)) = differ.maps(at, "callbacks", old, new) else { return };
    let outer = at.operation.clone();
    for name in keys(before, after) {
        let at = at.part(&format!("callback {name}"));
        let (Some(was), Some(is)) = (before.get(name), after.get(name)) else {
            differ.report_either(after.contains_key(name), &rules::CALLBACK_ADDED, &rules::CALLBACK_REMOVED, &at, None);
            continue;
        };
        let Some((was, is)) = differ.objects(&at, was, is) else { continue };
        for expression in keys(was, is) {
            if expression.starts_with("x-") {
                differ.report_keyword(&at, expression, was.get(expression), is.get(expression));
            }
            if expression.starts_with("x-") || expression == "$ref" || is_annotation(expression) {
                continue;
            }
            let prefix = at.part(expression).place();
            let label = |_: &str| outer.to_string();
            let kind =
                OperationKind { label: &label, prefix: &prefix, sends, added: &rules::CALLBACK_ADDED, removed: &rules::CALLBACK_REMOVED };
            match (was.get(expression), is.get(expression)) {
                (Some(was), Some(is)) => path_item(differ, &kind, was, is, "", ""),
                (Some(item), None) => alone(differ, &kind, item, false, (kind.added, kind.removed)),
                (None, Some(item)) => alone(differ, &kind, item, true, (kind.added, kind.removed)),
                (None, None) => {}
            }
        }
    }
}

/// Compares the tags of the documents by name.
pub(super) fn compare_tags(differ: &mut Differ) {
    let whole = Location::document("");
    let (old, new) = (differ.old.root(), differ.new.root());
    let Some((before, after)) = differ.lists(&whole, "tags", old, new) else { return };
    fn by_name(list: &[Value]) -> Named<'_> {
        let mut named = Named::new();
        for tag in list {
            let called = text(members(tag), "name").map_or_else(|| tag.to_string(), str::to_owned);
            name(&mut named, called.clone(), &called, tag);
        }
        named
    }
    let (one, other) = (by_name(before), by_name(after));
    let all: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let at = Location::document("tags");
    for name in all {
        match (one.get(name), other.get(name)) {
            (Some((_, was)), Some((_, is))) => differ.rest(&at.part(name), members(was), members(is), &["name"]),
            (was, _) => differ.report_either(was.is_none(), &rules::TAG_ADDED, &rules::TAG_REMOVED, &at, Some(name)),
        }
    }
    let order = |list: &[Value]| list.iter().filter_map(|tag| tag["name"].as_str().map(str::to_owned)).collect::<Vec<_>>();
    let (mut was, mut is) = (order(before), order(after));
    if was != is {
        was.sort();
        is.sort();
        if was == is {
            differ.report_detail(&rules::RESTATED, &at, "tags");
        }
    }
}
