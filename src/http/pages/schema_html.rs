//! Renders schemas of an OpenAPI document as HTML: the type in words, the limits, and the properties of an object.

use maud::{Markup, html};
use serde_json::Value;

use super::markdown::rendered;

/// Schema keywords that limit a value, with the words that the page shows for them.
const LIMITS: [(&str, &str); 9] = [
    ("minLength", "characters at least"),
    ("maxLength", "characters at most"),
    ("minimum", "or more"),
    ("maximum", "or less"),
    ("minItems", "items at least"),
    ("maxItems", "items at most"),
    ("minProperties", "members at least"),
    ("maxProperties", "members at most"),
    ("pattern", "as a regular expression"),
];

/// Schema keywords that combine schemas, with the word that the page shows between two of them.
const COMBINATIONS: [(&str, &str); 3] = [("allOf", " and "), ("anyOf", " or "), ("oneOf", " or ")];

/// Renders the type of a schema in a few words. A reference to another schema becomes a link to the part of the page that shows that
/// schema.
pub fn type_of(schema: &Value) -> Markup {
    let nullable = schema["nullable"] == true;
    html! { (type_without_null(schema)) @if nullable { " or null" } }
}

fn type_without_null(schema: &Value) -> Markup {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return html! { a href={ "#schema-" (name) } { (name) } };
    }
    for (keyword, word) in COMBINATIONS {
        if let Some(parts) = schema[keyword].as_array() {
            return html! { @for (number, part) in parts.iter().enumerate() { @if number > 0 { (word) } (type_of(part)) } };
        }
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("array"), _) => html! { "list of " (type_of(&schema["items"])) },
        (Some("object"), _) if schema.get("properties").is_none() && schema["additionalProperties"].is_object() => {
            html! { "object with values: " (type_of(&schema["additionalProperties"])) }
        }
        (Some(kind), Some(format)) => html! { (kind) " (" (format) ")" },
        (Some(kind), None) => html! { (kind) },
        (None, _) => html! { "any value" },
    }
}

/// Renders the permitted values, the limits and the default value of a schema.
pub fn limits(schema: &Value) -> Markup {
    let schema = if schema["type"] == "array" && schema["items"].get("enum").is_some() { &schema["items"] } else { schema };
    let bounds: Vec<_> = LIMITS.into_iter().filter_map(|(keyword, words)| Some((schema.get(keyword)?, words))).collect();
    let default = &schema["default"];
    html! {
        @if let Some(values) = schema["enum"].as_array() {
            p.limits { "One of " @for (number, value) in values.iter().enumerate() { @if number > 0 { ", " } code { (shown(value)) } } "." }
        }
        @if !bounds.is_empty() || !default.is_null() {
            p.limits {
                @for (number, (value, words)) in bounds.iter().enumerate() {
                    @if number > 0 { "; " }
                    code { (shown(value)) } " " (words)
                }
                @if !default.is_null() { @if !bounds.is_empty() { "; " } "default " code { (shown(default)) } }
            }
        }
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Renders the properties of an object schema, and nothing for a schema of another type.
pub fn members(schema: &Value) -> Markup {
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|of| of == name));
    html! {
        @if let Some(properties) = schema["properties"].as_object() {
            dl.members {
                @for (name, member) in properties {
                    dt {
                        code { (name) } " " span.type { (type_of(member)) }
                        @if !required(name) { span.optional { ", optional" } }
                    }
                    dd { (rendered(member["description"].as_str().unwrap_or_default())) (limits(member)) (members(member)) (members(&member["items"])) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_described_in_words() {
        let got = |schema: Value| type_of(&schema).into_string();
        assert_eq!(
            got(json!({ "type": "array", "items": { "$ref": "#/components/schemas/Pet" } })),
            "list of <a href=\"#schema-Pet\">Pet</a>"
        );
        assert_eq!(got(json!({ "type": "string", "format": "date-time", "nullable": true })), "string (date-time) or null");
        assert_eq!(got(json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] })), "string or integer");
        assert_eq!(got(json!({})), "any value");
    }

    #[test]
    fn markup_in_names_and_values_stays_text() {
        let schema = json!({ "properties": { "<b>": { "type": "string", "enum": ["<i>"], "description": "<script>" } } });
        let page = members(&schema).into_string();
        assert!(!page.contains("<b>") && !page.contains("<i>") && !page.contains("<script>"), "{page}");
    }
}
