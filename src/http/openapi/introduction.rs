//! The introduction of the OpenAPI document of the API contract (`info.description`, in Markdown): the rules that apply to all operations.

use crate::{
    domain::revision_rules::{DEFAULT_PAGE_SIZE, Rules},
    revision,
};

/// The paragraph about responses that have no envelope (the JSON object around `data` or `error`), for the OpenAPI documents of the
/// contract and of the settings API.
pub const UNENVELOPED: &str = "Every answer is an envelope, unless the head of a request is unusable. A head that is not HTTP is answered \
     with 400, a URL of more than 64 KiB with 414, and too many or too long headers with 431. These answers have no body, and the \
     connection is closed.";

/// Writes the introduction for the revision (A or B) for which the program is compiled.
pub fn introduction() -> String {
    let Rules { max_page_size, messages_max_page_size, page_echo, strict_cursors, messages_default_page_size, .. } = revision::RULES;
    let total = if page_echo { " `x-pagination-total` is the number of records that matched when the first page was read." } else { "" };
    let bound = if strict_cursors {
        " A cursor goes with the filters and the `pageSize` of its first request; with others it is answered with 400."
    } else {
        ""
    };
    let most_messages =
        if messages_max_page_size == max_page_size { String::new() } else { format!(" ({messages_max_page_size} for messages)") };
    let messages = match messages_default_page_size {
        Some(default) => format!("{default} for messages"),
        None => "messages have no default".to_owned(),
    };
    format!(
        "The data API of a customer-support inbox: one store's tickets, conversations, messages, contacts, labels, teams and users.

## Authentication

Every request carries an API key in the header `x-api-key`, and sees the data of that key's store alone. Owners and admins create keys \
on the settings page or with the [settings API](/settings/docs). Each operation names the scope that it needs in `x-required-scope`. A \
write scope includes the read scope of the same noun. A key that is missing or not valid is answered with 401, a key without the scope \
with 403.

## Key expiry

A key is valid for six months. A rotation gives the key a new secret and another six months; the former secret is valid for two more \
hours, so that clients can be changed one after the other.

## Envelope and errors

{UNENVELOPED} A success has `data`, a failure has `error` with `message` and `statusCode`. `requestId` identifies the request in the \
server's log. `error.message` begins with the offending field in backticks where there is one. An answer with 429 or 503 says in \
`Retry-After` how many seconds to wait before the request is sent again. A server may also answer 409 with `Retry-After`, while the \
first request with the same `Idempotency-Key` is in progress.

## Paging

A list returns `data` as an array, and the cursor of the next page in the header `x-pagination-next-cursor`. Send that cursor as \
`cursor`, with everything else unchanged; the last page has no cursor.{total}{bound} `pageSize` is at most {max_page_size}{most_messages}, \
and {DEFAULT_PAGE_SIZE} if omitted ({messages}). A page may hold fewer records than `pageSize`. A list without `pageSize` returns \
everything at once.

The pages of tickets, conversations and contacts show the order that the list had when the first page was read: each record that was there \
comes once, with its content of today, however records move meanwhile. Later records do not come; records that were deleted or no longer \
match may be missing. Such a cursor is accepted for seven days after the first page. Searches have promises of their own.

## Expand

`expand` returns related records as objects, in place of or beside their ids. Several values are separated by commas: \
`expand=account,assignee`. A record that cannot be found leaves the id as it is. An unknown value is answered with 400.

## Idempotency

A write that is sent twice is done twice, unless both requests carry the same `Idempotency-Key`. For 24 hours after a success, a \
request with that key and the same body changes nothing, gets the same `data`, and the header `idempotency-replayed: true`. The same key \
with another body is answered with 409.

## Limits

A request body is JSON of at most 1 MiB. A text that is stored has at most 64 KiB in UTF-8, if no other limit is given. An id has at \
most 64 characters; a longer one is answered like an unknown one. A server may limit the requests per second of a key, of a store, and of \
refused keys from one address. Above a limit it answers 429, and the header `RateLimit` says which limit is used up. A key with too many \
long answers that it has not read is answered with 429, too.

## Events

Webhooks deliver events to your server; [the document of the events](/openapi-events.json) describes them. \
[The OpenAPI 3.1 document](/openapi-3.1.json) has these operations and the events together.

## Revisions

This document describes revision {name} of the contract. [What differs between revisions A and B](/docs/changes) lists every change, \
and what a client has to do.
",
        name = revision::NAME,
    )
}
