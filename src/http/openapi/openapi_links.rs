//! The OpenAPI links in the document of the API contract. Each link leads from the response of one operation to a parameter of another
//! operation.

use serde_json::{Value, json};

use super::components::operations_mut;

/// A link from the response of an operation to another operation.
struct Link {
    from: &'static str,
    name: &'static str,
    to: &'static str,
    parameter: &'static str,
    /// A JSON pointer into the response body. A client sends the value at that place as `parameter` of the other operation.
    value: &'static str,
    description: &'static str,
}

const LINKS: [Link; 8] = [
    Link {
        from: "getTicket",
        name: "conversation",
        to: "listConversations",
        parameter: "conversationId",
        value: "/data/conversationId",
        description: "The conversation of the ticket.",
    },
    Link {
        from: "getTicket",
        name: "messages",
        to: "listMessages",
        parameter: "ticketId",
        value: "/data/id",
        description: "The messages in the time window of the ticket.",
    },
    Link {
        from: "getTicket",
        name: "contact",
        to: "getContact",
        parameter: "contactId",
        value: "/data/contactId",
        description: "The contact of the ticket.",
    },
    Link {
        from: "listTickets",
        name: "firstTicket",
        to: "getTicket",
        parameter: "ticketId",
        value: "/data/0/id",
        description: "The first ticket of the page.",
    },
    Link {
        from: "listConversations",
        name: "messages",
        to: "listMessages",
        parameter: "conversationId",
        value: "/data/0/id",
        description: "The messages of the first conversation of the page.",
    },
    Link {
        from: "listConversations",
        name: "internalComments",
        to: "listInternalComments",
        parameter: "conversationId",
        value: "/data/0/id",
        description: "The internal comments of the first conversation of the page.",
    },
    Link {
        from: "getContact",
        name: "conversations",
        to: "listConversations",
        parameter: "contactId",
        value: "/data/id",
        description: "The conversations of the contact.",
    },
    Link {
        from: "createContact",
        name: "contact",
        to: "getContact",
        parameter: "contactId",
        value: "/data/id",
        description: "The contact that was created.",
    },
];

/// Adds the links to the successful responses of a document.
pub fn add(document: &mut Value) {
    for operation in operations_mut(document) {
        let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
        for Link { name, to, parameter, value, description, .. } in LINKS.iter().filter(|link| link.from == id) {
            let mut parameters = json!({ *parameter: format!("$response.body#{value}") });
            // `listMessages` requires `pageSize` in revision A. The value is a string, since the JSON schema of OpenAPI 3.1 permits only
            // strings as parameters of a link.
            if *to == "listMessages" {
                parameters["pageSize"] = "15".into();
            }
            operation["responses"]["200"]["links"][name] =
                json!({ "operationId": to, "parameters": parameters, "description": description });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::openapi::contract_document;

    #[test]
    fn every_link_leads_from_an_example_to_a_parameter_of_an_operation() {
        let mut document = contract_document::document();
        let operations: Vec<Value> = operations_mut(&mut document).map(|operation| operation.clone()).collect();
        let named = |id: &str| operations.iter().find(|operation| operation["operationId"] == id).unwrap();
        for Link { from, to, parameter, value, name, .. } in &LINKS {
            let answer = &named(from)["responses"]["200"];
            assert!(answer["content"]["application/json"]["example"].pointer(value).is_some_and(Value::is_string), "{from} {name}");
            assert_eq!(answer["links"][name]["operationId"], *to);
            let taken = named(to)["parameters"].as_array().unwrap();
            assert!(taken.iter().any(|one| one["name"] == *parameter), "{from} {name}");
            let required = taken.iter().filter(|one| one["required"] == true).filter_map(|one| one["name"].as_str());
            required.for_each(|one| assert!(answer["links"][name]["parameters"].get(one).is_some(), "{from} {name} lacks {one}"));
        }
    }
}
