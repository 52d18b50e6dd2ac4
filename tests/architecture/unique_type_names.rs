//! Test of a naming rule: no two files of `src` define types of the same name, except for the names listed here.

use std::collections::BTreeMap;

use super::{lines, none};

/// The type names that several files may define, in groups. The text of each group is the reason.
const SHARED_NAMES: [(&str, &[&str]); 4] = [
    (
        "a record type of the domain, and its form in responses, events or imports",
        &[
            "Account",
            "Actor",
            "Attachment",
            "Contact",
            "Conversation",
            "EmailAddress",
            "Event",
            "Handover",
            "Label",
            "LastMessage",
            "Message",
            "SelectOption",
            "Sender",
            "ShowCondition",
            "Team",
            "Ticket",
            "TicketField",
            "TicketState",
            "User",
        ],
    ),
    ("the inputs of both revisions", &["CommentInput", "LabelsInput", "TextInput"]),
    ("how far a long command is, as each room reports it", &["Progress"]),
    ("the error of a room, and the names that SeaORM asks for", &["Error", "Model", "Result"]),
];

/// Returns the name of the type that a line of code defines. Indented `type` lines are left out: they define associated types.
fn defined(code: &str) -> Option<&str> {
    let mut words = code.split_whitespace().skip_while(|word| word.starts_with("pub") || (word.ends_with(')') && code.starts_with("pub(")));
    let keyword = words.next()?;
    let is_definition = ["struct", "enum", "trait"].contains(&keyword) || (keyword == "type" && !code.starts_with(' '));
    let name = words.next().filter(|_| is_definition)?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

#[test]
fn no_type_name_is_defined_in_several_files_unless_listed() {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut tests_of = String::new();
    for line in lines("src") {
        let path = line.path.display().to_string();
        if line.code.starts_with("mod tests {") {
            tests_of.clone_from(&path);
        }
        let is_test = path.contains("test") || path.ends_with("fixture.rs") || tests_of == path;
        let Some(name) = defined(&line.code).filter(|_| !is_test) else { continue };
        let found = files.entry(name.to_owned()).or_default();
        if !found.contains(&path) {
            found.push(path);
        }
    }
    assert!(files.len() > 300, "no types were read");
    let known = |name: &str| SHARED_NAMES.iter().any(|(_, names)| names.contains(&name));
    let twice = files.iter().filter(|(name, files)| files.len() > 1 && !known(name));
    none("a type name stands for several things", twice.map(|(name, files)| format!("{name}: {}", files.join(", "))));
    let idle = SHARED_NAMES.iter().flat_map(|(_, names)| *names).filter(|name| files.get(**name).is_none_or(|files| files.len() < 2));
    none("a name is listed that one file defines", idle.map(|name| (*name).to_owned()));
}
