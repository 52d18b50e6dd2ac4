//! Loads the files that a document refers to, and rewrites each reference to be relative to the folder of the document.

use serde_json::Value;

use super::read::{Document, NOTICES, parsed};

/// The maximum number of other files that are loaded for one document.
const FILES: usize = 1_000;
/// The maximum total size of the files that are loaded for one document, in bytes.
const BYTES: usize = 128 * 1024 * 1024;

/// Loads the files that a document refers to, directly or through other files. A file that cannot be read becomes a notice.
pub(super) fn load(document: &mut Document, name: &str, load: &mut dyn FnMut(&str) -> Result<String, String>) {
    let mut ids = Vec::new();
    identifiers(&document.root, &mut ids);
    let mut todo = Vec::new();
    rewrite(&mut document.root, &SourceFile { file: "", name, ids: &ids }, &mut todo);
    let mut bytes = 0;
    let mut tried = std::collections::BTreeSet::new();
    while let Some(file) = todo.pop() {
        if !tried.insert(file.clone()) {
            continue;
        }
        let text = match tried.len() {
            count if count > FILES => Err(format!("the document consists of more than {FILES} files")),
            _ => load(&file),
        };
        let text = text.and_then(|text| {
            bytes += text.len();
            if bytes > BYTES { Err(format!("the files of the document have more than {BYTES} bytes")) } else { Ok(text) }
        });
        let parsed = text.and_then(|text| parsed(text.trim_start_matches('\u{feff}')).map_err(|error| error.to_string()));
        match parsed {
            Ok((mut value, notices)) => {
                rewrite(&mut value, &SourceFile { file: &file, name, ids: &ids }, &mut todo);
                document.notices.extend(notices.into_iter().map(|notice| format!("{file}{notice}")));
                document.files.insert(file, value);
            }
            Err(reason) if document.notices.len() < NOTICES => document.notices.push(format!("{file} cannot be read: {reason}")),
            Err(_) => {}
        }
    }
}

/// The file whose references are being rewritten.
struct SourceFile<'p> {
    /// The path of the file. Empty for the document itself.
    file: &'p str,
    /// The name of the document, by which other files refer to it.
    name: &'p str,
    /// The `$id`s of the document's schemas. A reference to such an identifier leads to no file.
    ids: &'p [String],
}

impl SourceFile<'_> {
    /// Converts a reference in this file into one that is relative to the folder of the document. The second value is the file that has to
    /// be loaded for the reference, if any. None if the reference stays unchanged.
    fn resolved(&self, reference: &str) -> Option<(String, Option<String>)> {
        let (path, fragment) = reference.split_once('#').map_or((reference, None), |(path, fragment)| (path, Some(fragment)));
        let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
        if path.is_empty() {
            return (!self.file.is_empty()).then(|| (format!("{}{fragment}", self.file), None));
        }
        if path.contains("://") || path.starts_with(['/', '\\']) || path.contains(':') || self.ids.iter().any(|id| id == path) {
            return None;
        }
        let file = joined(self.file, path)?;
        if file == self.name {
            return Some((if fragment.is_empty() { "#".to_owned() } else { fragment }, None));
        }
        Some((format!("{file}{fragment}"), Some(file)))
    }
}

/// Resolves a path that the file `from` refers to. None if the path leaves the folder of the document.
fn joined(from: &str, path: &str) -> Option<String> {
    let mut steps: Vec<&str> = from.split('/').collect();
    steps.pop();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => _ = steps.pop()?,
            step => steps.push(step),
        }
    }
    (!steps.is_empty()).then(|| steps.join("/"))
}

fn rewrite(value: &mut Value, place: &SourceFile, todo: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, member) in object {
                if key == "$ref" && member.is_string() {
                    replace(member, place, todo);
                } else if key == "mapping" {
                    let targets = member.as_object_mut().into_iter().flat_map(|mapping| mapping.values_mut());
                    let paths = |target: &&mut Value| target.as_str().is_some_and(|target| target.contains(['#', '/', '.']));
                    targets.filter(paths).for_each(|target| replace(target, place, todo));
                } else {
                    rewrite(member, place, todo);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite(item, place, todo)),
        _ => {}
    }
}

fn replace(value: &mut Value, place: &SourceFile, todo: &mut Vec<String>) {
    if let Some((reference, file)) = value.as_str().and_then(|reference| place.resolved(reference)) {
        todo.extend(file);
        *value = Value::String(reference);
    }
}

/// Collects every `$id` within a value.
fn identifiers(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#').to_owned()));
            object.values().for_each(|member| identifiers(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| identifiers(item, found)),
        _ => {}
    }
}
