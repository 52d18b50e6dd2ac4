//! Compares security requirements of operations, and security schemes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    comparison_state::{Differ, Location},
    json_values::{Object, both_same, canonical, empty, is_annotation, items, keys, members, same, without_annotations},
    references::DocumentIndex,
    rules,
};

/// A security requirement: the security schemes, all of which are needed, and the scopes of each.
type Requirement = BTreeMap<String, BTreeSet<String>>;

/// The alternative security requirements of an operation. `open` is set if the operation needs no credentials: it has no requirement, or
/// one of its requirements is empty.
struct Requirements {
    ways: Vec<Requirement>,
    open: bool,
}

impl Requirements {
    fn of(requirements: Option<&Value>) -> Self {
        let scopes =
            |list: &Value| items(Some(list)).iter().map(|scope| scope.as_str().map_or_else(|| canonical(scope), str::to_owned)).collect();
        let way = |way: &Value| -> Requirement { members(way).iter().map(|(scheme, list)| (scheme.clone(), scopes(list))).collect() };
        let mut ways: Vec<Requirement> = items(requirements).iter().map(way).collect();
        ways.sort();
        ways.dedup();
        let open = ways.is_empty() || ways.iter().any(Requirement::is_empty);
        ways.retain(|way| !way.is_empty());
        Self { ways, open }
    }

    fn spelled(&self) -> String {
        self.ways.iter().map(spelled).collect::<Vec<_>>().join(" or ")
    }
}

fn spelled(way: &Requirement) -> String {
    let one = |(scheme, scopes): (&String, &BTreeSet<String>)| match scopes.len() {
        0 => scheme.clone(),
        _ => format!("{scheme} ({})", scopes.iter().cloned().collect::<Vec<_>>().join(", ")),
    };
    way.iter().map(one).collect::<Vec<_>>().join(" and ")
}

/// Whether a value is a valid list of requirements.
fn is_requirements(value: &Value) -> bool {
    let way = |way: &Value| way.as_object().is_some_and(|way| way.values().all(Value::is_array));
    value.as_array().is_some_and(|ways| ways.iter().all(way))
}

/// Compares the requirements of an operation. An operation without `security` has the requirements of the document.
pub(super) fn compare<'a>(differ: &mut Differ<'a>, at: &Location, old: &'a Object, new: &'a Object) {
    let (before, after) = (effective(&differ.old, old), effective(&differ.new, new));
    if both_same(before, after) {
        return;
    }
    if before.is_some_and(|value| !is_requirements(value)) || after.is_some_and(|value| !is_requirements(value)) {
        return differ.report_keyword(at, "security", before, after);
    }
    let from = differ.found.len();
    let (was, is) = (Requirements::of(before), Requirements::of(after));
    // If one document asks for no credentials at all, one change covers all requirements of the other document.
    let mut gone = if is.open && is.ways.is_empty() { Vec::new() } else { was.ways.clone() };
    let mut come = if was.open && was.ways.is_empty() { Vec::new() } else { is.ways.clone() };
    match (was.open, is.open) {
        (true, false) => differ.report_values(&rules::SECURITY_REQUIRED, at, None, Some(&is.spelled().into())),
        (false, true) => differ.report_values(&rules::SECURITY_WAIVED, at, Some(&was.spelled().into()), None),
        _ => {}
    }
    take_pairs(&mut gone, &mut come, |one, other| one == other);
    for (one, other) in take_pairs(&mut gone, &mut come, |one, other| one.keys().eq(other.keys())) {
        for (scheme, scopes) in &one {
            let now = other.get(scheme).cloned().unwrap_or_default();
            // If the requirement has several schemes, the location names the scheme, because several schemes may have the same scope.
            let at = if one.len() > 1 { &at.part(scheme) } else { at };
            scopes.difference(&now).for_each(|scope| differ.report_detail(&rules::SCOPE_REMOVED, at, scope));
            now.difference(scopes).for_each(|scope| differ.report_detail(&rules::SCOPE_ADDED, at, scope));
        }
    }
    // A requirement with fewer schemes still accepts clients that send the credentials of more schemes.
    let fewer = |more: &Requirement, less: &Requirement| {
        let known = |(scheme, scopes): (&String, &BTreeSet<String>)| more.get(scheme).is_some_and(|known| scopes.is_subset(known));
        less.len() < more.len() && less.iter().all(known)
    };
    for is_stricter in [false, true] {
        let pairs = if is_stricter { take_pairs(&mut come, &mut gone, fewer) } else { take_pairs(&mut gone, &mut come, fewer) };
        for (more, less) in pairs {
            for scheme in more.keys().filter(|scheme| !less.contains_key(*scheme)) {
                differ.report_either(is_stricter, &rules::CREDENTIAL_ADDED, &rules::CREDENTIAL_REMOVED, at, Some(scheme));
            }
            for (scheme, scopes) in &less {
                for scope in more.get(scheme).into_iter().flatten().filter(|scope| !scopes.contains(*scope)) {
                    differ.report_either(is_stricter, &rules::SCOPE_ADDED, &rules::SCOPE_REMOVED, &at.part(scheme), Some(scope));
                }
            }
        }
    }
    let resolved = |side: &DocumentIndex, way: &Requirement| {
        way.iter().map(|(name, scopes)| (definition(side, name), scopes.clone())).collect::<BTreeSet<_>>()
    };
    let pairs = take_pairs(&mut gone, &mut come, |one, other| resolved(&differ.old, one) == resolved(&differ.new, other));
    if !pairs.is_empty() {
        differ.report_detail(&rules::RESTATED, at, "security");
    }
    gone.iter().for_each(|way| differ.report_detail(&rules::ALTERNATIVE_REMOVED, at, &spelled(way)));
    come.iter().for_each(|way| differ.report_detail(&rules::ALTERNATIVE_ADDED, at, &spelled(way)));
    if differ.found.len() == from {
        differ.report_detail(&rules::RESTATED, at, "security");
    }
}

fn effective<'a>(side: &DocumentIndex<'a>, operation: &'a Object) -> Option<&'a Value> {
    operation.get("security").or_else(|| side.root().get("security"))
}

/// Removes the pairs for which `belong` is true from both lists, and returns them.
fn take_pairs(
    old: &mut Vec<Requirement>,
    new: &mut Vec<Requirement>,
    belong: impl Fn(&Requirement, &Requirement) -> bool,
) -> Vec<(Requirement, Requirement)> {
    let mut pairs = Vec::new();
    old.retain(|one| match new.iter().position(|other| belong(one, other)) {
        Some(found) => {
            pairs.push((one.clone(), new.remove(found)));
            false
        }
        None => true,
    });
    pairs
}

/// Returns the definition of a security scheme in canonical JSON, or its name if it is not defined.
fn definition(side: &DocumentIndex, name: &str) -> String {
    let scheme = members(members(side.get("components")).get("securitySchemes").unwrap_or(empty())).get(name);
    match scheme.and_then(|scheme| side.follow(scheme).ok()).and_then(Value::as_object) {
        Some(scheme) => {
            let mut scheme = scheme.clone();
            scheme.retain(|key, _| !is_annotation(key));
            canonical(&Value::Object(scheme))
        }
        None => format!("undefined {name}"),
    }
}

/// Compares the security schemes of the document. A change of a scheme is reported once, and not at each operation.
pub(super) fn schemes<'a>(differ: &mut Differ<'a>, old: &'a Object, new: &'a Object) {
    let whole = Location::document("components");
    let Some((before, after)) = differ.maps(&whole, "securitySchemes", old, new) else { return };
    let mut used = BTreeSet::new();
    [&differ.old, &differ.new].into_iter().for_each(|side| required_schemes(&side.document.root, &mut used));
    for name in keys(before, after) {
        let at = Location::document(&format!("security scheme {name}"));
        let (Some(one), Some(other)) = (before.get(name), after.get(name)) else {
            differ.report_either(after.contains_key(name), &rules::SCHEME_ADDED, &rules::SCHEME_REMOVED, &at, None);
            continue;
        };
        if !used.contains(name) {
            if !same(&without_annotations(one), &without_annotations(other)) {
                differ.report_values(&rules::UNUSED_CHANGED, &at, Some(one), Some(other));
            }
            continue;
        }
        let Some((one, other)) = differ.objects(&at, one, other) else { continue };
        const DEFINING: [&str; 5] = ["type", "in", "name", "scheme", "openIdConnectUrl"];
        for key in DEFINING {
            // Header names and HTTP authentication schemes are case-insensitive.
            let folded = |object: &Object| {
                let value = object.get(key)?.as_str()?;
                let header = object.get("in").is_some_and(|place| place == "header");
                Some(if key == "scheme" || key == "name" && header { value.to_lowercase() } else { value.to_owned() })
            };
            if both_same(one.get(key), other.get(key)) {
                continue;
            }
            if folded(one).is_some() && folded(one) == folded(other) {
                differ.report_detail(&rules::RESTATED, &at, key);
            } else {
                differ.report_full(&rules::SCHEME_CHANGED, &at, Some(key), one.get(key), other.get(key));
            }
        }
        flows(differ, &at, one, other);
        if !both_same(one.get("bearerFormat"), other.get("bearerFormat")) {
            differ.report_full(&rules::SCHEME_HINT_CHANGED, &at, Some("bearerFormat"), one.get("bearerFormat"), other.get("bearerFormat"));
        }
        differ.rest(&at, one, other, &[&DEFINING[..], &["flows", "bearerFormat"]].concat());
    }
}

/// Collects the names of the security schemes that any requirement within a value names.
fn required_schemes<'v>(value: &'v Value, used: &mut BTreeSet<&'v str>) {
    if let Some(requirements) = value.get("security") {
        used.extend(items(Some(requirements)).iter().flat_map(|way| members(way).keys()).map(String::as_str));
    }
    members(value).values().chain(items(Some(value))).for_each(|inner| required_schemes(inner, used));
}

/// Compares OAuth flows and their scopes. The description of a scope is not compared.
fn flows<'a>(differ: &mut Differ<'a>, at: &Location, old: &'a Object, new: &'a Object) {
    let Some((before, after)) = differ.maps(at, "flows", old, new) else { return };
    for name in keys(before, after) {
        let (one, other) = (before.get(name), after.get(name));
        let (Some(Value::Object(was)), Some(Value::Object(is))) = (one, other) else {
            match (one, other) {
                (Some(Value::Object(_)), None) if !name.starts_with("x-") => differ.report_detail(&rules::FLOW_REMOVED, at, name),
                (None, Some(Value::Object(_))) if !name.starts_with("x-") => differ.report_detail(&rules::FLOW_ADDED, at, name),
                (one, other) => differ.report_keyword(&at.part("flows"), name, one, other),
            }
            continue;
        };
        const ADDRESSES: [&str; 3] = ["authorizationUrl", "tokenUrl", "refreshUrl"];
        for key in ADDRESSES.into_iter().filter(|key| !both_same(was.get(*key), is.get(*key))) {
            differ.report_full(&rules::SCHEME_CHANGED, at, Some(&format!("{name} {key}")), was.get(key), is.get(key));
        }
        let at = at.part(&format!("flow {name}"));
        if let Some((had, has)) = differ.maps(&at, "scopes", was, is) {
            had.keys().filter(|scope| !has.contains_key(*scope)).for_each(|scope| differ.report_detail(&rules::OFFER_REMOVED, &at, scope));
            has.keys().filter(|scope| !had.contains_key(*scope)).for_each(|scope| differ.report_detail(&rules::OFFER_ADDED, &at, scope));
        }
        differ.rest(&at, was, is, &[&ADDRESSES[..], &["scopes"]].concat());
    }
}
