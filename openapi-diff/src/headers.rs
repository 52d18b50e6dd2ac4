//! Compares the headers of responses and of the parts of a multipart body.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    comparison_state::{Differ, Location},
    json_values::{Object, flag, members, without_annotations},
    media_types::{Named, name},
    parameters::{PARAMETER, flags, value, written},
    rules,
};

pub(super) fn headers<'a>(differ: &mut Differ<'a>, at: &Location, old: &'a Object, new: &'a Object) {
    let Some((before, after)) = differ.maps(at, "headers", old, new) else { return };
    let by_name = |map: &'a Object| {
        let mut named = Named::new();
        map.iter().for_each(|(written, header)| name(&mut named, written.to_lowercase(), written, header));
        named
    };
    let (before, after) = (by_name(before), by_name(after));
    let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for key in all {
        let at = at.part(&format!("header {key}"));
        // The media types under `content` determine the header `content-type`, so a changed definition of this header has no effect.
        if key == "content-type" {
            if before.get(key).map(|(_, header)| without_annotations(header))
                != after.get(key).map(|(_, header)| without_annotations(header))
            {
                differ.report_detail(&rules::RESTATED, &at, "header");
            }
            continue;
        }
        let needed = |side: &super::references::DocumentIndex<'a>, header: &'a Value| {
            side.follow(header).is_ok_and(|header| flag(members(header), "required"))
        };
        match (before.get(key), after.get(key)) {
            (Some((one, was)), Some((other, is))) => {
                if one != other {
                    differ.report_detail(&rules::RESTATED, &at, "name");
                }
                let Some((was, is)) = differ.objects(&at, was, is) else { continue };
                flags(differ, &at, was, is, &rules::HEADER_BECAME_REQUIRED, &rules::HEADER_BECAME_OPTIONAL);
                written(differ, &at, was, is, "header");
                value(differ, &at, was, is, "header");
                differ.rest(&at, was, is, &PARAMETER[2..]);
            }
            (Some((_, gone)), None) => {
                differ.report(if needed(&differ.old, gone) { &rules::REQUIRED_HEADER_REMOVED } else { &rules::HEADER_REMOVED }, &at);
                if let Ok(gone) = differ.old.follow(gone) {
                    differ.add_sunset(gone);
                }
                differ.report_broken(false, gone, &at);
            }
            (None, Some((_, come))) => {
                differ.report(if needed(&differ.new, come) { &rules::REQUIRED_HEADER_ADDED } else { &rules::HEADER_ADDED }, &at);
                differ.report_broken(true, come, &at);
            }
            (None, None) => {}
        }
    }
}
