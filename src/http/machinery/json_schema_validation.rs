//! Validates JSON against the OpenAPI schema of a type, before serde converts it to the type. serde alone would accept an array for a
//! struct, and `{"open": null}` for an enumeration. The API contract requires error messages that name the invalid field, and serde's
//! messages do not name it.
//!
//! Called by `body`. The error names the path of the first value that does not match. Checks that only a type itself can make (such as
//! whether a string is a date-time) are left to the deserializer of the type.

use std::{
    any::TypeId,
    collections::HashMap,
    fmt::{Arguments, Write as _},
    sync::{LazyLock, PoisonError, RwLock},
};

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef, Registry},
    types,
};
use serde_json::Value;

/// The error about a JSON value that does not match its schema: the path of the value, and the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// The path of the value within the body. It begins with `.` or `[`; it is empty if the value is the body itself.
    pub place: String,
    pub reason: String,
}

type Plan = (MetaSchemaRef, Registry);

/// Returns the OpenAPI schema of a type, and the registry of the schemas to which it refers. Schema and registry are built at the first
/// call for the type, and cached.
fn plan<T: types::Type + 'static>() -> &'static Plan {
    static PLANS: LazyLock<RwLock<HashMap<TypeId, &'static Plan>>> = LazyLock::new(Default::default);
    if let Some(plan) = PLANS.read().unwrap_or_else(PoisonError::into_inner).get(&TypeId::of::<T>()) {
        return plan;
    }
    let mut registry = Registry::new();
    T::register(&mut registry);
    // The schema is leaked on purpose: it is small, and there is one for each type of body.
    let plan = Box::leak(Box::new((T::schema_ref(), registry)));
    PLANS.write().unwrap_or_else(PoisonError::into_inner).insert(TypeId::of::<T>(), plan);
    plan
}

/// Checks a value against the OpenAPI schema of `T`. An error names the first value that does not match.
pub fn check<T: types::Type + 'static>(value: &Value) -> Result<(), SchemaViolation> {
    let (schema, registry) = plan::<T>();
    walk(registry, schema, value, &mut String::new())
}

fn walk(registry: &Registry, schema: &MetaSchemaRef, value: &Value, place: &mut String) -> Result<(), SchemaViolation> {
    let schema = match schema {
        MetaSchemaRef::Inline(schema) => schema,
        MetaSchemaRef::Reference(name) => match registry.schemas.get(name) {
            Some(schema) => schema,
            None => return Ok(()),
        },
    };
    if value.is_null() && schema.nullable {
        return Ok(());
    }
    let wrong = |place: &str, reason: String| Err(SchemaViolation { place: place.to_owned(), reason });
    if !fits(schema.ty, value) {
        return wrong(place, format!("must be {}", described(schema.ty)));
    }
    if !schema.enum_items.is_empty() && !schema.enum_items.contains(value) {
        let known: Vec<&str> = schema.enum_items.iter().filter_map(Value::as_str).collect();
        return wrong(place, format!("must be one of {}", known.join(", ")));
    }
    // Of the keywords that combine schemas, only `all_of` is checked here. Alternatives (`one_of`, `any_of`) permit values of several
    // types; the deserializer of the type checks them.
    for part in &schema.all_of {
        walk(registry, part, value, place)?;
    }
    match value {
        Value::Object(members) if !schema.properties.is_empty() => object(registry, schema, members, place),
        Value::Array(items) => match &schema.items {
            Some(item) => items
                .iter()
                .enumerate()
                .try_for_each(|(i, value)| step(place, format_args!("[{i}]"), |place| walk(registry, item, value, place))),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn object(
    registry: &Registry,
    schema: &MetaSchema,
    members: &serde_json::Map<String, Value>,
    place: &mut String,
) -> Result<(), SchemaViolation> {
    if let Some(name) = members.keys().find(|name| schema.properties.iter().all(|(known, _)| known != name)) {
        let known: Vec<&str> = schema.properties.iter().map(|(name, _)| *name).collect();
        let reason = format!("is not a known property; known here: {}", known.join(", "));
        return Err(SchemaViolation { place: format!("{place}.{name}"), reason });
    }
    for (name, property) in &schema.properties {
        match members.get(*name) {
            Some(value) => step(place, format_args!(".{name}"), |place| walk(registry, property, value, place))?,
            None if schema.required.contains(name) => {
                return Err(SchemaViolation { place: format!("{place}.{name}"), reason: "is required".to_owned() });
            }
            None => {}
        }
    }
    Ok(())
}

/// Appends one step (a property name or an array index) to the path `place`, calls `inner` with the longer path, and removes the step. The
/// step is not removed after an error: the error ends the check, so `place` is not used again.
fn step(
    place: &mut String,
    name: Arguments<'_>,
    inner: impl FnOnce(&mut String) -> Result<(), SchemaViolation>,
) -> Result<(), SchemaViolation> {
    let length = place.len();
    // Writing to a string cannot fail.
    _ = place.write_fmt(name);
    inner(place)?;
    place.truncate(length);
    Ok(())
}

fn fits(ty: &str, value: &Value) -> bool {
    match ty {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        // `3.0` is an integer in JSON Schema.
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn described(ty: &str) -> &'static str {
    match ty {
        "string" => "a string",
        "boolean" => "true or false",
        "number" => "a number",
        "integer" => "a whole number",
        "array" => "an array",
        _ => "an object",
    }
}
