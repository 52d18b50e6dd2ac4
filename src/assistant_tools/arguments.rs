//! Validates a tool's arguments against its input schema: names, required arguments, types and fixed values. The operation that the tool
//! calls checks everything else, such as lengths and formats.

use serde_json::{Map, Value};

use super::{
    definition::{REPETITION, Tool},
    errors::ToolError,
};

/// Checks the arguments of a call, and returns them. A null argument whose schema does not allow null is removed: models send null for an
/// argument that they leave out.
pub fn checked(tool: &Tool, mut arguments: Map<String, Value>) -> Result<Map<String, Value>, ToolError> {
    let names = || tool.members.iter().map(|member| format!("`{}`", member.name)).collect::<Vec<_>>().join(", ");
    for name in arguments.keys() {
        if !tool.members.iter().any(|member| member.name == name) {
            let takes = if tool.members.is_empty() { "takes no members".to_owned() } else { format!("takes {}", names()) };
            return Err(ToolError::Arguments(format!("{} has no member `{}`; it {takes}.", tool.name, shown(name))));
        }
    }
    for member in &tool.members {
        if arguments.get(member.name).is_some_and(|value| value.is_null() && !allows(&member.schema, value)) {
            arguments.remove(member.name);
        }
        // By JSON Schema, the number `5.0` is an integer. The operations accept only digits in a query parameter, so `5.0` becomes `5`.
        if let Some(value) = arguments.get_mut(member.name)
            && member.schema["type"] == "integer"
            && let Some(whole) = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15)
        {
            *value = Value::from(whole as i64);
        }
        match arguments.get(member.name) {
            None if member.required => {
                return Err(ToolError::Arguments(format!("`{}` is required: {}", member.name, about(&member.schema))));
            }
            Some(value) => fits(member.name, &member.schema, value)
                .map_err(|reason| ToolError::Arguments(format!("{reason} {}", about(&member.schema))))?,
            None => {}
        }
    }
    match arguments.get(REPETITION).map(Value::as_f64) {
        // With `repetition: 2`, a caller repeats an equal call on purpose. `repetition: 1` means the same as leaving the argument out.
        Some(Some(1.0)) => _ = arguments.remove(REPETITION),
        Some(Some(2.0..=1000.0)) | None => {}
        _ => return Err(ToolError::Arguments(format!("`{REPETITION}` must be a whole number from 1 to 1000."))),
    }
    Ok(arguments)
}

/// Returns the description of an argument, which ends with an example.
fn about(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// Prepares a name that the caller sent for display in an error message: removes control characters, and shortens the name.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(40).collect()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn allows(schema: &Value, value: &Value) -> bool {
    let kind = type_of(value);
    let is = |allowed: &Value| *allowed == kind || *allowed == "number" && kind == "integer";
    match &schema["type"] {
        Value::Array(several) => several.iter().any(is),
        Value::Null => true,
        one => is(one),
    }
}

fn fits(place: &str, schema: &Value, value: &Value) -> Result<(), String> {
    if !allows(schema, value) {
        let types = match &schema["type"] {
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
            one => one.as_str().unwrap_or_default().to_owned(),
        };
        return Err(format!("`{place}` must be of the type {types}, not {}.", type_of(value)));
    }
    if let Some(values) = schema["enum"].as_array()
        && !values.contains(value)
    {
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        return Err(format!("`{place}` must be one of {}.", values.join(", ")));
    }
    match value {
        Value::Array(items) => items.iter().enumerate().try_for_each(|(i, item)| fits(&format!("{place}[{i}]"), &schema["items"], item)),
        Value::Object(members) => {
            let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !members.contains_key(name) {
                    return Err(format!("`{place}.{name}` is required."));
                }
            }
            for (name, member) in members {
                match properties.get(name) {
                    Some(schema) => fits(&format!("{place}.{name}"), schema, member)?,
                    None if schema["additionalProperties"] == false => {
                        return Err(format!("`{place}` has no member `{}`.", shown(name)));
                    }
                    None => {}
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
