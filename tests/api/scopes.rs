//! Tests of the scopes (permissions) of API keys: every operation requires the one scope that the list of routes (`openapi/*.routes`) names
//! for it, and no other.

use serde_json::json;

use crate::{
    REV_A,
    client::{Api, Call},
    fixture::{self, ANN, at},
    harness::{ALL_SCOPES, Server, one, world},
    openapi_documents::routes,
};

/// The read operations of the API: method, path, operationId, scope, and whether only the newer revision of the API has the operation.
const READS: [(&str, &str, &str, &str, bool); 16] = [
    ("GET", "/tickets", "getTicket", "tickets:read", false),
    ("POST", "/tickets/list", "listTickets", "tickets:read", false),
    ("GET", "/tickets/fields", "listTicketFields", "tickets:read", false),
    ("GET", "/conversations", "listConversations", "conversations:read", false),
    ("GET", "/contacts", "getContact", "contacts:read", false),
    ("POST", "/contacts/list", "listContacts", "contacts:read", false),
    ("GET", "/contacts/search", "searchContacts", "contacts:read", true),
    ("GET", "/contacts/fields", "listContactFields", "contacts:read", false),
    ("GET", "/messages", "listMessages", "messages:read", false),
    ("GET", "/messages/search", "searchMessages", "messages:read", true),
    ("GET", "/messages/internal-comments", "listInternalComments", "messages:read", false),
    ("GET", "/users", "listUsers", "users:read", false),
    ("GET", "/labels", "listLabels", "labels:read", false),
    ("GET", "/teams", "listTeams", "teams:read", false),
    ("GET", "/accounts", "listAccounts", "accounts:read", true),
    ("GET", "/accounts/whatsapp-templates", "listWhatsappTemplates", "accounts:read", true),
];

/// The write operations of the API, in the form of [`READS`].
const WRITES: [(&str, &str, &str, &str, bool); 13] = [
    ("PATCH", "/tickets/field-values", "updateTicketField", "tickets:write", false),
    ("POST", "/tickets/close", "closeTicket", "tickets:write", false),
    ("POST", "/tickets/assign", "assignTickets", "tickets:write", true),
    ("POST", "/conversations/mark-read", "markConversationRead", "conversations:write", false),
    ("PATCH", "/conversations/labels", "updateConversationLabels", "conversations:write", false),
    ("POST", "/contacts", "createContact", "contacts:write", false),
    ("PATCH", "/contacts/field-values", "updateContactField", "contacts:write", false),
    ("POST", "/messages/internal-comments", "addInternalComment", "messages:write", false),
    ("POST", "/messages", "sendTextMessage", "messages:write", false),
    ("POST", "/messages/email/new", "sendEmailNew", "messages:write", true),
    ("POST", "/messages/email", "sendEmailReply", "messages:write", true),
    ("POST", "/messages/template", "sendTemplateReply", "messages:write", true),
    ("POST", "/messages/template/phone", "sendTemplateToPhone", "messages:write", true),
];

/// Returns a valid request to an operation. The request succeeds on the data of store `one`. A write may be refused if it is repeated.
pub fn good_request(api: &Api, operation: &str) -> Call {
    match operation {
        "getTicket" => api.get("/tickets").query("ticketId", "t-first"),
        "listTickets" => api.post("/tickets/list", json!({})),
        "listTicketFields" => api.get("/tickets/fields"),
        "listConversations" => api.get("/conversations").query("conversationId", "conv-main"),
        "getContact" => api.get("/contacts").query("contactId", "con-mia"),
        "listContacts" => api.post("/contacts/list", json!({})),
        "searchContacts" => api.get("/contacts/search").query("query", "mia"),
        "searchMessages" => api.get("/messages/search").query("query", "hello"),
        "listContactFields" => api.get("/contacts/fields"),
        "listMessages" => api.get("/messages").query("conversationId", "conv-main").query("pageSize", 5),
        "listInternalComments" => api.get("/messages/internal-comments").query("conversationId", "conv-main"),
        "listUsers" => api.get("/users"),
        "listLabels" => api.get("/labels"),
        "listTeams" => api.get("/teams"),
        "listAccounts" => api.get("/accounts"),
        "listWhatsappTemplates" => api.get("/accounts/whatsapp-templates").query("accountId", "acc-wa"),
        "updateTicketField" => set_field(api),
        "closeTicket" => api.post("/tickets/close", json!({"ticketId": "t-quiet"})),
        "assignTickets" => api.post("/tickets/assign", json!([{"ticketId": "t-third", "assigneeUserId": ANN}])),
        "markConversationRead" => api.post("/conversations/mark-read", json!({"conversationId": "conv-main"})),
        "updateConversationLabels" => {
            api.call("PATCH", "/conversations/labels").json(json!({"conversationId": "conv-main", "addLabels": ["lab-wide"]}))
        }
        "createContact" => api.post("/contacts", json!({"firstName": "Ada", "email": "ada@example.com"})),
        "updateContactField" => api.call("PATCH", "/contacts/field-values").json(json!({
            "contactId": "con-mia", "contactFieldId": "c-born", "value": "2000-02-29", "updatedAt": at("04-30T00:00"),
        })),
        "addInternalComment" => api.post("/messages/internal-comments", json!({"conversationId": "conv-main", "text": "Note"})),
        "sendTextMessage" => api.post("/messages", json!({"conversationId": "conv-main", "text": "Hello"})),
        "sendEmailNew" => {
            api.post("/messages/email/new", json!({"accountId": "acc-mail", "to": [{"email": "eva@example.com"}], "text": "Hello"}))
        }
        "sendEmailReply" => {
            api.post("/messages/email", json!({"conversationId": "conv-mail", "to": [{"email": "eva@example.com"}], "text": "Hello"}))
        }
        "sendTemplateReply" => api.post("/messages/template", json!({"conversationId": "conv-wa", "templateId": "tpl-001"})),
        "sendTemplateToPhone" => {
            api.post("/messages/template/phone", json!({"accountId": "acc-wa", "phoneNumber": "+66812340000", "templateId": "tpl-001"}))
        }
        other => panic!("{other} has no request here that succeeds: add one"),
    }
}

fn set_field(api: &Api) -> Call {
    api.call("PATCH", "/tickets/field-values").json(json!({"ticketId": "t-third", "ticketFieldId": "f-text", "newValue": "new"}))
}

#[test]
fn the_routes_hold_every_operation_with_its_scope() {
    let routes = routes();
    for (method, path, operation, scope, newer) in READS.into_iter().chain(WRITES) {
        let found = routes.iter().find(|route| route.operation == operation);
        let expected = (!newer || !REV_A).then(|| (method.to_owned(), path.to_owned(), scope.to_owned()));
        assert_eq!(found.map(|route| (route.method.clone(), route.path.clone(), route.scope.clone())), expected, "{operation}");
    }
}

#[test]
fn an_operation_accepts_a_key_that_has_only_its_scope() {
    let mut scopes: Vec<_> = routes().into_iter().map(|route| route.scope).collect();
    scopes.sort_unstable();
    scopes.dedup();
    // Some of the requests are writes. So they go to a separate server, and not to the server that other tests share.
    let server = Server::with(&[("one", fixture::one())]);
    for scope in scopes {
        let api = server.api("one", &[&scope]);
        for route in routes().iter().filter(|route| route.scope == scope) {
            good_request(&api, &route.operation).send().ok();
        }
    }
}

#[test]
fn an_operation_refuses_a_key_with_every_scope_but_its_own() {
    let mut scopes: Vec<_> = routes().into_iter().map(|route| route.scope).collect();
    scopes.sort_unstable();
    scopes.dedup();
    for scope in scopes {
        // A write scope includes the read scope of the same kind of record. So if `scope` is a read scope, the key gets neither `scope` nor
        // its write scope.
        let write = scope.replace(":read", ":write");
        let others: Vec<_> = ALL_SCOPES.into_iter().filter(|other| *other != scope && *other != write).collect();
        let api = world().server.api("one", &others);
        for route in routes().iter().filter(|route| route.scope == scope) {
            good_request(&api, &route.operation).send().fails(403);
            // This request has no parameters and no body. It is refused with 403, since the scope is checked first.
            api.call(&route.method, &route.path).send().fails(403);
        }
    }
}

#[test]
fn every_operation_refuses_a_request_without_a_key() {
    for route in routes() {
        good_request(&one().anonymous(), &route.operation).send().fails(401);
    }
}
