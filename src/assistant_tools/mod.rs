//! The assistant tools: a server of the Model Context Protocol (MCP), over HTTP at `/mcp` and over standard input and output.
//!
//! A tool calls one or more operations of the API with the caller's API key. It calls them through the HTTP router of this process, so each
//! call passes the same authentication, scopes, rate limits and checks as any other request. The API contract exists in two revisions, A
//! and B, and a build serves one of them. The schemas of a tool come from the OpenAPI document of this revision. A tool whose operation
//! this revision lacks is not listed.
//!
//! The modules `app` and `cli` call this module. It calls the operations of `http`, and `service` for what no operation offers, such as the
//! creation of a draft.
//!
//! - `catalog` lists the tools. The tools for each kind of record are in a file of their own. `definition` has the parts of a tool's
//!   definition.
//! - `api_operation_calls` finds and calls API operations; `schemas` makes the schemas of tools.
//! - `server` implements the protocol. `http_endpoint` serves it over HTTP, and `remote_proxy` forwards it to another server.
//! - `approval_flow` decides whether a message is sent, shown to the client's user first, or kept as a draft.
//! - `prompt_injection` removes hidden characters from results; `results` limits the size of results; `errors` writes error messages for
//!   assistants.

mod accounts;
mod api_operation_calls;
mod approval_flow;
mod arguments;
mod catalog;
mod contacts;
mod conversations;
mod definition;
mod documentation_resources;
mod errors;
mod field_definitions;
mod http_endpoint;
mod labels;
mod message_sending;
mod messages_and_comments;
mod prompt_injection;
mod prompts;
mod remote_proxy;
mod results;
mod schemas;
mod server;
mod store_overview_tool;
mod tickets;
mod tool_call;
mod users_and_teams;

#[cfg(test)]
mod tests;

pub use api_operation_calls::Api;
pub use http_endpoint::{HttpTools, PATH, named_tools};
pub use remote_proxy::RemoteTools;
pub use server::ToolServer;
pub use tool_call::{CallerLimits, ToolPermissions};
