//! WhatsApp message templates: their placeholders, and the values that a template needs outside of its body (API contract, section 2.12).

use std::ops::Range;

use serde_json::Value;

use super::stores_and_accounts::Template;

/// Types of buttons for which the channel requires a value in every message.
const ASKING: [&str; 5] = ["COPY_CODE", "FLOW", "MPM", "ORDER_DETAILS", "OTP"];

impl Template {
    /// Returns a description of a value that every message needs outside of its body, such as an image for the header. The channel refuses
    /// a message without this value. `None`: the template needs values only for its body, or none.
    pub fn beyond_body(&self) -> Option<String> {
        let components: Vec<Value> = serde_json::from_str(&self.components).unwrap_or_default();
        let body = components.iter().position(|component| component["type"] == "BODY");
        components.iter().enumerate().filter(|(place, _)| Some(*place) != body).find_map(|(_, component)| asked(component))
    }
}

fn asked(component: &Value) -> Option<String> {
    let kind = upper(&component["type"]);
    let media = match kind.as_str() {
        "HEADER" => Some(upper(&component["format"])).filter(|format| !["", "TEXT"].contains(&format.as_str())),
        _ => None,
    };
    if let Some(format) = media {
        return Some(format!("a {kind} of the format {format}"));
    }
    // Each card of a carousel has media of its own, which every message must provide.
    if kind == "CAROUSEL" {
        return Some(format!("a {kind}"));
    }
    if component["limited_time_offer"]["has_expiration"] == true {
        return Some("an offer that expires".to_owned());
    }
    let mut buttons = component["buttons"].as_array().into_iter().flatten().map(|button| upper(&button["type"]));
    if let Some(button) = buttons.find(|button| ASKING.contains(&button.as_str())) {
        return Some(format!("a button of the type {button}"));
    }
    has_placeholder(component).then(|| format!("a placeholder in its {kind}"))
}

fn upper(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_ascii_uppercase()
}

/// Whether any text in the value has a placeholder. Properties with the name `example` are skipped: they contain sample values.
fn has_placeholder(value: &Value) -> bool {
    match value {
        Value::String(text) => !placeholders(text).is_empty(),
        Value::Array(items) => items.iter().any(has_placeholder),
        Value::Object(members) => members.iter().any(|(name, member)| name != "example" && has_placeholder(member)),
        _ => false,
    }
}

/// Returns the placeholders `{{…}}` of a text: their ranges and names.
pub fn placeholders(text: &str) -> Vec<(Range<usize>, &str)> {
    let place = |(start, _): (usize, &str)| {
        let inner = &text[start + 2..];
        let name = &inner[..inner.find("}}")?];
        let range = start..start + 2 + name.len() + 2;
        let name = name.trim();
        (!name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')).then_some((range, name))
    };
    text.match_indices("{{").filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn beyond(component: Value) -> Option<String> {
        let template = Template {
            id: "tpl".into(),
            account_id: "acc".into(),
            name: "order".to_owned(),
            parameter_format: "POSITIONAL".to_owned(),
            language: "th".to_owned(),
            status: "APPROVED".to_owned(),
            category: "UTILITY".to_owned(),
            components: json!([component, {"type": "BODY", "text": "Hi {{1}}"}]).to_string(),
        };
        template.beyond_body()
    }

    #[test]
    fn template_components_without_variables_need_no_values() {
        for component in [
            json!({"type": "HEADER", "text": "Your order"}),
            json!({"type": "HEADER", "format": "TEXT", "text": "Your {order} {{}} {{a b}}"}),
            json!({"type": "FOOTER", "text": "Sent by a machine"}),
            json!({"type": "BUTTONS", "buttons": [
                {"type": "QUICK_REPLY", "text": "Stop"},
                {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+6620000000"},
                {"type": "URL", "text": "Look", "url": "https://example.com/orders", "example": ["https://example.com/{{1}}"]},
            ]}),
            json!({"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"text": "Now", "has_expiration": false}}),
        ] {
            assert_eq!(beyond(component.clone()), None, "{component}");
        }
    }

    #[test]
    fn placeholders_and_media_outside_of_the_body_are_named() {
        for (component, what) in [
            (json!({"type": "HEADER", "format": "TEXT", "text": "Order {{1}}"}), "a placeholder in its HEADER"),
            (json!({"type": "header", "text": "Hi {{ name }}"}), "a placeholder in its HEADER"),
            (json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["x"]}}), "a HEADER of the format IMAGE"),
            (json!({"type": "HEADER", "format": "document"}), "a HEADER of the format DOCUMENT"),
            (json!({"type": "HEADER", "format": "LOCATION"}), "a HEADER of the format LOCATION"),
            (
                json!({"type": "BUTTONS", "buttons": [{"type": "URL", "text": "Look", "url": "https://example.com/{{1}}"}]}),
                "a placeholder in its BUTTONS",
            ),
            (
                json!({"type": "BUTTONS", "buttons": [{"type": "QUICK_REPLY", "text": "Stop"}, {"type": "OTP", "otp_type": "COPY_CODE"}]}),
                "a button of the type OTP",
            ),
            (json!({"type": "buttons", "buttons": [{"type": "copy_code", "example": "SALE"}]}), "a button of the type COPY_CODE"),
            (json!({"type": "BUTTONS", "buttons": [{"type": "FLOW", "text": "Book"}]}), "a button of the type FLOW"),
            (json!({"type": "CAROUSEL", "cards": []}), "a CAROUSEL"),
            (json!({"type": "LIMITED_TIME_OFFER", "limited_time_offer": {"has_expiration": true}}), "an offer that expires"),
            (json!({"type": "FOOTER", "text": "{{1}}"}), "a placeholder in its FOOTER"),
            // A component of the type `body`, in lower case, is not the body of the template. So its placeholder is reported, as in any
            // other component.
            (json!({"type": "body", "text": "{{1}}"}), "a placeholder in its BODY"),
        ] {
            assert_eq!(beyond(component.clone()).as_deref(), Some(what), "{component}");
        }
    }
}
