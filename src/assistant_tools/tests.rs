//! Tests of the definitions of tools: their number, names, schemas and sizes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    api_operation_calls, catalog,
    definition::{Place, Tool},
    schemas,
    server::listed,
};

/// Returns the size in bytes of a tool's entry in the response to `tools/list`. The output schema is not counted, since few clients pass it
/// on to their model.
fn size_of(tool: &Tool) -> usize {
    let mut listed = serde_json::to_value(listed(tool)).unwrap();
    listed.as_object_mut().unwrap().remove("outputSchema");
    schemas::size(&listed)
}

#[test]
fn tool_definitions_stay_within_their_size_limits() {
    let sizes: Vec<(&str, usize, usize)> =
        catalog::tools().iter().map(|tool| (tool.name, size_of(tool), schemas::size(&tool.output_schema()))).collect();
    for (name, size, output) in &sizes {
        println!("{name} {size} {output}");
        assert!(*size <= 1500 && *output <= schemas::MAX_OUTPUT_BYTES && *output > 2, "{name}: {size} and {output} bytes");
    }
    let all: usize = sizes.iter().map(|(_, size, _)| size).sum();
    let reading: usize = catalog::tools().iter().filter(|tool| tool.reads()).map(size_of).sum();
    println!("all {all}, read-only {reading}, outputs {}", sizes.iter().map(|(.., output)| output).sum::<usize>());
    assert!(all <= 24 * 1024 && reading <= 12 * 1024, "{all} and {reading} bytes");
}

#[test]
fn every_operation_is_reached_by_one_tool_at_least() {
    let has_accounts = api_operation_calls::find("listAccounts").is_some();
    assert_eq!(catalog::tools().len(), if has_accounts { 24 } else { 19 });
    let reached: BTreeSet<&str> =
        catalog::tools().iter().flat_map(|tool| tool.available()).map(|operation| operation.id.as_str()).collect();
    let all: BTreeSet<&str> = api_operation_calls::all().map(|operation| operation.id.as_str()).collect();
    assert_eq!(reached, all);
}

/// Asserts that a schema and its properties have no references or alternatives, and that each property has a description with an example.
/// `name` is the path of the schema.
fn check(name: &str, schema: &Value) {
    for keyword in ["$ref", "oneOf", "anyOf", "allOf"] {
        assert!(schema.get(keyword).is_none(), "{name}: {keyword}");
    }
    for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
        let name = format!("{name}.{property}");
        assert!(schema["description"].as_str().is_some_and(|text| text.contains("E.g. ") && text.len() > 10), "{name}: {schema}");
        check(&name, schema);
    }
    if schema["items"].is_object() {
        check(name, &schema["items"]);
    }
}

#[test]
fn input_schemas_are_simple_closed_and_described() {
    for tool in catalog::tools() {
        let schema = Value::Object(tool.input_schema());
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
        check(tool.name, &schema);
    }
}

/// Asserts that each argument, except those for the tool's own code, maps to an existing query parameter or body property. Otherwise the
/// argument's value would be lost.
#[test]
fn every_tool_argument_maps_to_a_parameter_or_property_of_its_operation() {
    for tool in catalog::tools() {
        for member in &tool.members {
            let found = tool.available().any(|operation| match member.place {
                Place::Query(name) => operation.parameters.contains_key(name),
                Place::Body(pointer) => schemas::property(&operation.body, pointer).is_some(),
                Place::Tool => true,
            });
            assert!(found, "{} {}", tool.name, member.name);
        }
    }
}

#[test]
fn references_and_alternatives_are_resolved_in_tool_schemas() {
    let document = json!({"components": {"schemas": {
        "Known": {"type": "string", "enum": ["a"]},
        "Open": {"anyOf": [{"$ref": "#/components/schemas/Known"}, {"type": "string"}]},
        "Tree": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}}},
    }}});
    let plain = |name: &str| schemas::plain(&document, &json!({"$ref": format!("#/components/schemas/{name}")}));
    assert_eq!(plain("Open"), json!({"type": "string"}));
    assert_eq!(plain("Tree"), json!({"type": "object", "properties": {"children": {"type": "array", "items": {}}}}));
}
