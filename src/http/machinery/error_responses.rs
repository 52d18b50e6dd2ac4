//! Error responses: the JSON object of an error response (error envelope; API contract, section 7), its description in the OpenAPI
//! document, and the conversion of every kind of error to an error response.

use std::marker::PhantomData;

use poem::{
    error::{MethodNotAllowedError, NotFoundError, ResponseError},
    http::StatusCode,
};
use poem_openapi::{
    ApiResponse, Object,
    registry::{MetaHeader, MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry},
    types::Type,
};
use serde::Serialize;

use super::envelope_schema::{envelope, header, request_id_header};
use crate::service;

/// An error response: the HTTP status, the message for the caller, and for some errors the time to wait before a retry.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub status: StatusCode,
    pub message: String,
    /// The value of `Retry-After`, in seconds.
    pub retry_after: Option<u32>,
    /// The rate limit that is used up, if the error is caused by a rate limit.
    pub used_up: Option<UsedUpRate>,
}

/// A rate limit that is used up, for the headers `RateLimit` and `RateLimit-Policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedUpRate {
    /// The name of the limit in the headers: `key`, `store` or `address`.
    pub policy: &'static str,
    pub requests_per_second: u32,
    /// The seconds until a request is accepted again.
    pub seconds: u32,
}

impl ApiError {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None, used_up: None }
    }

    /// Makes a 400 response whose message begins with the invalid field in backticks.
    pub fn field(field: &str, reason: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, format!("`{field}` {reason}"))
    }

    pub fn unauthorized(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    /// Converts any error of the framework (poem) to an error response.
    pub fn from_rejection(error: poem::Error) -> Self {
        if error.is::<Self>() {
            return error.downcast().unwrap_or_else(|_| Self::internal());
        }
        if error.is::<NotFoundError>() {
            return Self::new(StatusCode::NOT_FOUND, "there is no such path; /docs lists the paths that exist");
        }
        if error.is::<MethodNotAllowedError>() {
            return Self::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not accept that method; `Allow` lists those that it accepts");
        }
        let status = error.status();
        if status.is_server_error() {
            tracing::error!(%error, "unexpected failure");
            return Self::internal();
        }
        Self::new(status, error.to_string())
    }

    /// Converts an error of the service. A field that the error names is a property of the request body, so its path gets the prefix
    /// `body.`.
    pub fn in_body(error: service::Error) -> Self {
        match error {
            service::Error::Invalid { field, reason } => service::Error::invalid(format!("body.{field}"), reason).into(),
            service::Error::NotFound { field, reason } => service::Error::not_found(format!("body.{field}"), reason).into(),
            service::Error::Forbidden { field, reason } => service::Error::forbidden(format!("body.{field}"), reason).into(),
            service::Error::Conflict { field, reason } => service::Error::conflict(format!("body.{field}"), reason).into(),
            other => other.into(),
        }
    }

    /// Converts an error about a value inside the property `body` of the request body, such as the new content of a draft: the path
    /// `body.x` in the message of the error becomes `body.body.x`.
    pub fn within_body(self) -> Self {
        match self.message.strip_prefix("`body") {
            Some(rest) => Self { message: format!("`body.body{rest}"), ..self },
            None => self,
        }
    }

    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "something went wrong on our side; the request id identifies it in our log")
    }
}

impl ResponseError for ApiError {
    fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<service::Error> for ApiError {
    fn from(error: service::Error) -> Self {
        let status = match &error {
            service::Error::Invalid { .. } => StatusCode::BAD_REQUEST,
            service::Error::NotFound { .. } => StatusCode::NOT_FOUND,
            service::Error::Conflict { .. } | service::Error::Full(_) | service::Error::KeyReused | service::Error::Replayed => {
                StatusCode::CONFLICT
            }
            service::Error::Forbidden { .. } => StatusCode::FORBIDDEN,
            service::Error::Gone { .. } => StatusCode::GONE,
            service::Error::InProgress { reason, retry_after } => {
                return Self { retry_after: Some(*retry_after), ..Self::new(StatusCode::CONFLICT, reason.clone()) };
            }
            service::Error::Unavailable { reason, retry_after } => {
                return Self { retry_after: Some(*retry_after), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, reason.clone()) };
            }
            service::Error::Internal(detail) => {
                tracing::error!(%detail, "internal failure");
                return Self::internal();
            }
        };
        Self::new(status, error.to_string())
    }
}

/// Why a request failed: the property `error` of an error response.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct ErrorDetail {
    /// What is wrong. Begins with the offending field in backticks where there is one.
    pub message: String,
    /// The HTTP status of the answer.
    pub status_code: i32,
}

/// The schema of an error response.
struct ErrorEnvelope;

impl ErrorEnvelope {
    const NAME: &str = "ErrorEnvelope";

    fn register(registry: &mut Registry) {
        ErrorDetail::register(registry);
        registry.create_schema::<Self, _>(Self::NAME.to_owned(), |_| {
            envelope(
                "A failed answer.",
                "The store of the key; empty where no store is known.",
                ("error", "What is wrong.", ErrorDetail::schema_ref()),
            )
        });
    }
}

/// The error responses that the OpenAPI document lists for an operation. The list has no `default` response. So a generated client knows
/// every error status, and the tests detect a response whose status is not in the list.
pub trait Documented: Send + Sync + 'static {
    /// The error statuses in addition to those of [`Credential::everywhere`].
    const STATUSES: &'static [u16];
    /// The description of the 409 response; empty if the operation has none.
    const CONFLICT: &'static str;
    /// The credential that identifies the caller.
    const CREDENTIAL: Credential = Credential::ApiKey;
}

/// The kinds of credentials that operations accept. The descriptions of some error responses depend on the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    ApiKey,
    Session,
    /// A session, a token, or the signature of a bridge (an external program that connects a channel).
    Signature,
}

impl Credential {
    /// The error statuses that every operation may respond with.
    fn everywhere(self) -> &'static [u16] {
        match self {
            Self::ApiKey | Self::Session | Self::Signature => &[429, 500, 503],
        }
    }
}

macro_rules! documented {
    ($($(#[$doc:meta])* $name:ident = $statuses:expr, $conflict:expr $(, $credential:ident)?;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl Documented for $name {
            const STATUSES: &'static [u16] = $statuses;
            const CONFLICT: &'static str = $conflict;
            $(const CREDENTIAL: Credential = Credential::$credential;)?
        }
    )*};
}

/// The description of the 409 response that a write with an idempotency key may have.
macro_rules! key_conflict {
    ($($other:literal)?) => {
        concat!(
            $($other, " Or ",)?
            "`Idempotency-Key` was used for another request, or the first request with it is in progress."
        )
    };
}

documented! {
    /// The errors of a read that never responds with 404, such as a list. An unknown id in its filters is not an error.
    Listing = &[400, 401, 403], "";
    /// The errors of a read that responds with 404 if the request contains an unknown id.
    Lookup = &[400, 401, 403, 404], "";
    /// The errors of a write whose request contains a record id.
    Change = &[400, 401, 403, 404, 409, 413, 415], key_conflict!();
    /// The errors of a write whose request states the version (stamp) of the record that the client has read.
    StampedChange = &[400, 401, 403, 404, 409, 413, 415], key_conflict!("The record changed since it was read.");
    /// The errors of a write that creates a contact.
    ContactMaking = &[400, 401, 403, 409, 413, 415], key_conflict!("Another contact of the store has the same primary e-mail or phone.");
    /// The errors of a list whose filters are in the request body.
    FilteredListing = &[400, 401, 403, 413, 415], "";
    /// The errors of a settings operation without parameters and body.
    SettingsCatalog = &[401, 403], "", Session;
    /// The errors of a read of the settings that never responds with 404.
    SettingsListing = &[400, 401, 403], "", Session;
    /// The errors of a read of a feed whose entries are kept for a limited time.
    SettingsFeed = &[400, 401, 403, 410], "", Session;
    /// The errors of a settings operation that reads or removes records, and that responds with 404 if the request contains an unknown id.
    SettingsLookup = &[400, 401, 403, 404], "", Session;
    /// The errors of a change of settings that creates a record.
    SettingsCreation = &[400, 401, 403, 413, 415], "", Session;
    /// The errors of a request for sign-in links by e-mail.
    SettingsMail = &[400, 403, 409, 413, 415], "The server sends no e-mail.", Session;
    /// The errors of the operation by which a bridge delivers an inbound message.
    SettingsReceipt = &[400, 401, 403, 409, 413, 415], "The signed request was accepted before: `webhook-id` and `webhook-timestamp` are the same.", Signature;
    /// The errors of a change of settings that creates a record of which a store may have only a limited number.
    SettingsAddition = &[400, 401, 403, 409, 413, 415], "The store has the largest permitted number of such records; `error.message` says how many.", Session;
    /// The errors of the operation that adds a user.
    SettingsMembership = &[400, 401, 403, 409, 413, 415], "Another user of the store has the e-mail address, or the store has the largest permitted number of users; `error.message` says which.", Session;
    /// The errors of a change of one record of the settings, for changes that every state of the record allows.
    SettingsEdit = &[400, 401, 403, 404, 413, 415], "", Session;
    /// The errors of a change of one record of the settings, for changes that some states of the record do not allow.
    SettingsChange = &[400, 401, 403, 404, 409, 413, 415], "The record is in a state that does not allow the change; `error.message` says which.", Session;
    /// The errors of a removal that some states of the record do not allow.
    SettingsRemoval = &[400, 401, 403, 404, 409], "The record is in a state that does not allow the change; `error.message` says which.", Session;
    /// The errors of the operation that advances the clock of a sandbox (a test database).
    SettingsAdvance = &[400, 401, 403, 409, 413, 415], "The server serves no sandbox, or its clock is being advanced already; `error.message` says which.", Session;
    /// The errors of a settings operation that changes a ticket or a conversation, and that accepts an idempotency key.
    SettingsAction = &[400, 401, 403, 404, 409, 413, 415], key_conflict!(), Session;
}

/// The error type of a handler's result. `D` lists the errors that the OpenAPI document describes.
#[derive(Debug)]
pub struct Failure<D>(ApiError, PhantomData<D>);

impl<D, E: Into<ApiError>> From<E> for Failure<D> {
    fn from(error: E) -> Self {
        Self(error.into(), PhantomData)
    }
}

impl<D> From<Failure<D>> for poem::Error {
    fn from(failure: Failure<D>) -> Self {
        failure.0.into()
    }
}

impl<D: Documented> ApiResponse for Failure<D> {
    fn meta() -> MetaResponses {
        let response = |status: u16| MetaResponse {
            description: if status == 409 { D::CONFLICT } else { describe(status, D::CREDENTIAL) },
            status: Some(status),
            status_range: None,
            content: vec![MetaMediaType {
                content_type: super::envelope_schema::JSON,
                schema: MetaSchemaRef::Reference(ErrorEnvelope::NAME.to_owned()),
            }],
            headers: match status {
                409 if D::CONFLICT.contains("Idempotency-Key") => vec![
                    request_id_header(),
                    retry_after_header(
                        "Seconds to wait; sent while the first request with the same `Idempotency-Key` is in progress.",
                        false,
                    ),
                ],
                429 => vec![
                    request_id_header(),
                    retry_after_header("Seconds to wait.", true),
                    header(
                        RATE_LIMIT,
                        "The limit that is used up, the requests that are left of it, and the seconds until there are more: `\"key\";r=0;t=1`. \
                         Absent if the limit of unread answers is used up.",
                        false,
                        MetaSchema::new("string"),
                    ),
                    header(
                        RATE_LIMIT_POLICY,
                        "The limit that is used up, its requests and its seconds: `\"key\";q=50;w=1`. The limits are `key`, `store` and `address`. Absent \
                         with `RateLimit`.",
                        false,
                        MetaSchema::new("string"),
                    ),
                ],
                503 => vec![request_id_header(), retry_after_header("Seconds to wait.", true)],
                _ => vec![request_id_header()],
            },
        };
        MetaResponses { responses: D::STATUSES.iter().chain(D::CREDENTIAL.everywhere()).copied().map(response).collect() }
    }

    fn register(registry: &mut Registry) {
        ErrorEnvelope::register(registry);
    }
}

/// The names of the rate limit headers, as draft-ietf-httpapi-ratelimit-headers defines them.
pub const RATE_LIMIT: &str = "RateLimit";
pub const RATE_LIMIT_POLICY: &str = "RateLimit-Policy";

fn retry_after_header(description: &str, required: bool) -> MetaHeader {
    header("Retry-After", description, required, MetaSchema { minimum: Some(0.0), ..MetaSchema::new("integer") })
}

fn describe(status: u16, credential: Credential) -> &'static str {
    match status {
        401 if credential == Credential::Session => "There is no session or token, or it is unknown or has ended.",
        401 if credential == Credential::Signature => {
            "There is no session, token or signature, or it is unknown, wrong or has ended; or a signed request does not name an account with a \
             bridge, or is not from within five minutes."
        }
        403 if credential != Credential::ApiKey => {
            "The user is neither owner nor admin of the store, the token lacks the grant of this operation, an admin asks for what only an \
             owner may, or a browser sent the request for another site."
        }
        400 => "The request is malformed or invalid; `error.message` names the offending field.",
        401 => "`x-api-key` is missing, unrecognised, inactive, expired or deleted.",
        403 => "The key lacks the scope of this operation.",
        404 => "There is no such record in the store, or two ids do not belong together.",
        410 => "What the request asks for is no longer kept; `error.message` says how to go on.",
        413 => "The body is larger than 1 MiB.",
        415 => "The body is not declared as JSON.",
        429 if credential != Credential::ApiKey => {
            "A limit is used up: the server's rate limit of unknown sessions, tokens and links from one address, if it has one, the limit of long answers that were not read, or that of waiting requests. `error.message` says which."
        }
        429 => {
            "A limit is used up: the server's rate limit, if it has one, of the key, of its store or of refused keys from one address, or the limit of long answers that were not read. `error.message` says which."
        }
        500 => "Something went wrong on our side; `requestId` identifies it in the server's log.",
        503 => "The server cannot answer at present, or not in time.",
        _ => "Failure.",
    }
}
