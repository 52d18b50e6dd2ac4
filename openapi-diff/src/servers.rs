//! Compares server objects and their variables.

use serde_json::Value;

use super::{
    comparison_state::{Differ, Location},
    json_values::{Object, both_same, canonical, empty, items, keys, members, same, text, without_annotations},
    media_types::{Named, name},
    rules, validation_keywords,
};

/// Compares the servers of a document or an operation.
pub(super) fn compare_servers(differ: &mut Differ, at: &Location, old: Option<&Value>, new: Option<&Value>) {
    if both_same(old, new) {
        return;
    }
    let from = differ.found.len();
    fn by_address(list: Option<&Value>) -> Named<'_> {
        let mut named = Named::new();
        for server in items(list) {
            let address = text(members(server), "url").map_or_else(|| canonical(server), str::to_owned);
            name(&mut named, address.clone(), &address, server);
        }
        // If no server is listed, clients use the host from which the document was loaded (`/`).
        if named.is_empty() {
            name(&mut named, "/".to_owned(), "/", empty());
        }
        named
    }
    if [old, new].into_iter().flatten().any(|list| !list.is_array()) {
        return differ.report_keyword(at, "servers", old, new);
    }
    let (before, after) = (by_address(old), by_address(new));
    for (address, (_, one)) in &before {
        match after.get(address) {
            None => differ.report_detail(&rules::SERVER_REMOVED, at, address),
            Some((_, other)) => server(differ, &at.part(address), members(one), members(other)),
        }
    }
    after
        .keys()
        .filter(|address| !before.contains_key(*address))
        .for_each(|address| differ.report_detail(&rules::SERVER_ADDED, at, address));
    let sorted = |list: Option<&Value>| {
        let mut all: Vec<_> = items(list).iter().map(canonical).collect();
        all.sort();
        all
    };
    if differ.found.len() == from && sorted(old) == sorted(new) && !old.zip(new).is_some_and(|(old, new)| same(old, new)) {
        // Tools use the first server of the list, so a new order is reported, too: as restated, because the servers are the same.
        differ.report_detail(&rules::RESTATED, at, "servers");
    }
}

pub(super) fn server(differ: &mut Differ, at: &Location, old: &Object, new: &Object) {
    if validation_keywords::shaped(differ, at, "variables", old, new, Value::is_object) {
        let [before, after] = [old, new].map(|server| members(server.get("variables").unwrap_or(empty())));
        for name in keys(before, after) {
            let at = at.part(&format!("variable {name}"));
            match (before.get(name), after.get(name)) {
                (was, is) if [was, is].into_iter().flatten().all(Value::is_object) => {
                    let [was, is] = [was, is].map(|variable| members(variable.unwrap_or(empty())));
                    let from = differ.found.len();
                    variable(differ, &at, was, is);
                    if differ.found.len() == from
                        && without_annotations(&Value::Object(was.clone())) != without_annotations(&Value::Object(is.clone()))
                    {
                        differ.report_detail(&rules::RESTATED, &at, "variable");
                    }
                }
                (was, is) => differ.report_keyword(&at, "variables", was, is),
            }
        }
    }
    differ.rest(at, old, new, &["url", "variables"]);
}

/// Compares a server variable: its allowed values and its default.
fn variable(differ: &mut Differ, at: &Location, old: &Object, new: &Object) {
    if validation_keywords::shaped(differ, at, "enum", old, new, Value::is_array) {
        let (before, after) = (items(old.get("enum")), items(new.get("enum")));
        match (old.contains_key("enum"), new.contains_key("enum")) {
            (false, true) => differ.report_values(&rules::VARIABLE_LIMITED, at, None, new.get("enum")),
            (true, false) => differ.report_values(&rules::VARIABLE_FREED, at, old.get("enum"), None),
            _ => {
                let name = |value: &Value| value.as_str().map_or_else(|| canonical(value), str::to_owned);
                before
                    .iter()
                    .filter(|value| !after.contains(value))
                    .for_each(|value| differ.report_detail(&rules::VARIABLE_VALUE_REMOVED, at, &name(value)));
                after
                    .iter()
                    .filter(|value| !before.contains(value))
                    .for_each(|value| differ.report_detail(&rules::VARIABLE_VALUE_ADDED, at, &name(value)));
            }
        }
    }
    if validation_keywords::shaped(differ, at, "default", old, new, Value::is_string) && old.get("default") != new.get("default") {
        let none = Value::from("nothing");
        let [before, after] = [old, new].map(|variable| variable.get("default").unwrap_or(&none));
        differ.report_values(&rules::VARIABLE_DEFAULT_CHANGED, at, Some(before), Some(after));
    }
    differ.rest(at, old, new, &["enum", "default"]);
}
