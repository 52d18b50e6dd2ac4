//! Test fixture: a small OpenAPI document with most features of OpenAPI, which other tests edit.

use serde_json::{Value, json};

pub fn base() -> Value {
    json!({
        "openapi": "3.0.3",
        "info": { "title": "Pets", "version": "1.0.0", "license": { "name": "MIT" } },
        "servers": [{ "url": "https://pets.example/v1" }],
        "security": [{ "Key": [] }],
        "tags": [{ "name": "Pets", "description": "All of them." }],
        "paths": {
            "/pets": {
                "parameters": [{ "name": "trace", "in": "header", "schema": { "type": "string" } }],
                "get": {
                    "operationId": "listPets",
                    "tags": ["Pets"],
                    "parameters": [
                        { "$ref": "#/components/parameters/Limit" },
                        { "name": "tag", "in": "query", "schema": { "type": "array", "items": { "type": "string" } } },
                        { "name": "kind", "in": "query", "schema": { "type": "string", "enum": ["cat", "dog"], "default": "cat" } },
                        { "name": "sort", "in": "query", "required": true, "schema": { "type": "string", "x-extensible-enum": ["name", "age"] } }
                    ],
                    "responses": {
                        "200": {
                            "description": "A page.",
                            "headers": {
                                "X-Next": { "schema": { "type": "string" } },
                                "x-size": { "required": true, "schema": { "type": "integer" } }
                            },
                            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/PetList" } } },
                            "links": { "first": { "operationId": "getPet", "parameters": { "id": "$response.body#/data/0/id" } } }
                        },
                        "4XX": { "description": "Refused.", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } } },
                        "default": { "description": "Failed.", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } } }
                    }
                },
                "post": {
                    "operationId": "addPet",
                    "tags": ["Pets"],
                    "security": [{ "OAuth": ["pets:write"] }, { "Key": [] }],
                    "requestBody": {
                        "required": true,
                        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/NewPet" } } }
                    },
                    "callbacks": {
                        "added": { "{$request.body#/hook}": { "post": {
                            "requestBody": { "content": { "application/json": { "schema": {
                                "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"]
                            } } } },
                            "responses": { "204": { "description": "Taken." } }
                        } } }
                    },
                    "responses": {
                        "201": { "$ref": "#/components/responses/Pet" },
                        "409": { "description": "There already.", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } } }
                    }
                }
            },
            "/pets/{id}": {
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string", "maxLength": 40 } }],
                "get": {
                    "operationId": "getPet",
                    "tags": ["Pets"],
                    "responses": { "200": { "$ref": "#/components/responses/Pet" } }
                },
                "delete": {
                    "operationId": "removePet",
                    "security": [],
                    "responses": { "204": { "description": "Gone." } }
                }
            }
        },
        "components": {
            "parameters": {
                "Limit": { "name": "limit", "in": "query", "schema": { "type": "integer", "minimum": 1, "maximum": 100 } }
            },
            "responses": {
                "Pet": { "description": "One.", "content": { "application/json; charset=utf-8": { "schema": { "$ref": "#/components/schemas/Pet" } } } }
            },
            "schemas": {
                "PetList": {
                    "type": "object",
                    "required": ["data"],
                    "properties": { "data": { "type": "array", "items": { "$ref": "#/components/schemas/Pet" } } }
                },
                "Pet": {
                    "description": "A pet.",
                    "allOf": [
                        { "$ref": "#/components/schemas/Named" },
                        { "type": "object", "required": ["id", "food"], "properties": {
                            "id": { "type": "string", "readOnly": true },
                            "age": { "type": "integer", "format": "int32", "nullable": true },
                            "channel": { "type": "string", "x-extensible-enum": ["line", "mail"] },
                            "state": { "type": "string", "enum": ["well", "ill"] },
                            "parents": { "type": "array", "maxItems": 2, "items": { "$ref": "#/components/schemas/Pet" } },
                            "marks": { "type": "object", "additionalProperties": { "type": "string" } },
                            "food": { "$ref": "#/components/schemas/Food" }
                        } }
                    ]
                },
                "Named": {
                    "allOf": [{ "type": "object", "required": ["name"], "properties": { "name": { "type": "string", "minLength": 1, "maxLength": 50 } } }]
                },
                "NewPet": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["name"],
                    "properties": {
                        "name": { "type": "string", "pattern": "^[a-z]+$" },
                        "id": { "type": "string", "readOnly": true },
                        "secret": { "type": "string", "writeOnly": true },
                        "weight": { "type": "number", "exclusiveMinimum": true, "minimum": 0, "multipleOf": 0.5 },
                        "labels": { "type": "array", "uniqueItems": true, "items": { "type": "string" } },
                        "hook": { "type": "string", "format": "uri" },
                        "mood": { "not": { "enum": ["sad"] } }
                    }
                },
                "Food": {
                    "oneOf": [{ "$ref": "#/components/schemas/Fish" }, { "$ref": "#/components/schemas/Meat" }],
                    "discriminator": { "propertyName": "kind", "mapping": { "fish": "#/components/schemas/Fish", "meat": "#/components/schemas/Meat" } }
                },
                "Fish": { "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string" }, "bones": { "type": "boolean" } } },
                "Meat": { "type": "object", "required": ["kind"], "properties": { "kind": { "type": "string" } }, "additionalProperties": false },
                "Error": { "type": "object", "required": ["message"], "properties": { "message": { "type": "string" } } },
                "Unused": { "type": "object" }
            },
            "securitySchemes": {
                "Key": { "type": "apiKey", "in": "header", "name": "x-api-key" },
                "OAuth": { "type": "oauth2", "flows": { "clientCredentials": { "tokenUrl": "https://pets.example/token", "scopes": { "pets:write": "" } } } }
            }
        }
    })
}

/// Returns the document of `base` with features that OpenAPI 3.1 adds to 3.0.
pub fn base_3_1() -> Value {
    let mut document = base();
    document["openapi"] = "3.1.0".into();
    document["webhooks"] = json!({ "petLost": { "post": {
        "requestBody": { "required": true, "content": { "application/json": { "schema": {
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": { "type": "string" },
                "where": { "type": ["string", "null"] },
                "kind": { "const": "lost" },
                "spot": { "type": "array", "prefixItems": [{ "type": "number" }, { "type": "number" }], "items": false },
                "tags": { "type": "object", "propertyNames": { "maxLength": 10 }, "patternProperties": { "^x-": { "type": "string" } } }
            }
        } } } },
        "responses": { "200": { "description": "Seen.", "content": { "application/json": { "schema": {
            "type": "object", "properties": { "found": { "$ref": "#/components/schemas/Flag", "default": false } }
        } } } } }
    } } });
    document["components"]["schemas"]["Flag"] = json!({ "type": "boolean" });
    document
}
