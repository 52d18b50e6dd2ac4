//! Authentication by API key, and authorisation by scope (API contract, section 5). The extractor [`Authorised`] is the first parameter of
//! every operation of the contract, so that the API key is checked before the parameters and the body. The operation's scope is a part of
//! the extractor's type.

use std::{marker::PhantomData, ops::Deref, sync::Arc};

use poem::{RequestBody, http::StatusCode};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaSecurityScheme, Registry},
};

use super::{
    context::{Context, Recipient},
    data_attached_to_requests::RequestData,
    error_responses::ApiError,
    shared_state::SharedState,
};
use crate::{
    domain::{api_key_scopes::Scope, api_keys::Caller, ids::StoreId},
    service::{LookedUpCaller, Service},
};

/// The header that carries the API key.
pub const API_KEY: &str = "x-api-key";

/// The name of the security scheme in the OpenAPI document. The generator (poem-openapi) writes the requirement of an operation as
/// `ApiKey:<scope>`. `openapi::document_post_processing` moves the scope to `x-required-scope`, since OpenAPI 3.0 has no scopes for API
/// keys.
pub const SCHEME: &str = "ApiKey";

/// A request whose API key is valid, with its caller.
#[derive(Clone, Debug)]
pub struct AuthenticatedRequest {
    pub state: Arc<SharedState>,
    pub context: Context,
    pub caller: Caller,
    scope: Scope,
    /// Whether the operation reads from the standby (replica) of the database instead of the primary.
    on_replica: bool,
}

impl AuthenticatedRequest {
    /// Returns the service for an operation that only reads. The service reads from the standby of the database if the standby already has
    /// every change that the caller may know of, and otherwise from the primary.
    pub fn reads(&self) -> &Service {
        self.state.replica.as_ref().filter(|_| self.on_replica).unwrap_or(&self.state.service)
    }

    /// Like [`Self::reads`], for an operation that reads many records. The returned service limits how many expensive statements of the
    /// store (tenant) run at the same time (`fair_share`). If the response may be long, this function first waits for the store's only
    /// permit for long responses.
    pub async fn reads_many(&self) -> Result<Service, ApiError> {
        let turn = self.state.turns.take(self.store(), self.scope).await?;
        let service = self.reads().within(turn.share());
        self.context.begin(turn).await;
        // While the request waited for the permit, the bytes of unsent responses may have reached a limit (`unsent_response_limits`). So
        // the limits are checked again.
        if let Some(recipient) = self.context.recipient() {
            self.state.under_way.admit(recipient)?;
        }
        Ok(service)
    }

    pub fn store(&self) -> &StoreId {
        &self.caller.store_id
    }
}

/// A scope as a type. The signature of an operation names the type of the scope that the operation requires.
pub trait Requires: Send + Sync + 'static {
    const SCOPE: Scope;
    /// The security requirement of an operation as poem-openapi writes it: `ApiKey:<scope>`.
    const REQUIREMENT: &'static str;
}

macro_rules! requires {
    ($($name:ident = $scope:literal),* $(,)?) => {$(
        #[derive(Debug)]
        pub struct $name;

        impl Requires for $name {
            const SCOPE: Scope = Scope::$name;
            const REQUIREMENT: &'static str = concat!("ApiKey:", $scope);
        }
    )*

        #[cfg(test)]
        pub const REQUIREMENTS: &[(Scope, &str)] = &[$((<$name as Requires>::SCOPE, <$name as Requires>::REQUIREMENT)),*];
    };
}

requires! {
    TicketsRead = "tickets:read",
    ConversationsRead = "conversations:read",
    ContactsRead = "contacts:read",
    MessagesRead = "messages:read",
    AccountsRead = "accounts:read",
    UsersRead = "users:read",
    LabelsRead = "labels:read",
    TeamsRead = "teams:read",
    TicketsWrite = "tickets:write",
    ConversationsWrite = "conversations:write",
    ContactsWrite = "contacts:write",
    MessagesWrite = "messages:write",
}

/// A request whose API key is valid and has the scope `S`.
#[derive(Debug)]
pub struct Authorised<S>(AuthenticatedRequest, PhantomData<S>);

impl<S> Deref for Authorised<S> {
    type Target = AuthenticatedRequest;

    fn deref(&self) -> &AuthenticatedRequest {
        &self.0
    }
}

impl<'a, S: Requires> ApiExtractor<'a> for Authorised<S> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        registry.create_security_scheme(
            SCHEME,
            MetaSecurityScheme {
                ty: "apiKey",
                description: Some("An API key of the store, created in its developer settings. Each operation names the scope that it needs in `x-required-scope`."),
                name: Some(API_KEY),
                key_in: Some("header"),
                scheme: None,
                bearer_format: None,
                flows: None,
                openid_connect_url: None,
            },
        );
    }

    fn security_schemes() -> Vec<&'static str> {
        vec![S::REQUIREMENT]
    }

    async fn from_request(request: &'a poem::Request, _: &mut RequestBody, _: ExtractParamOptions<()>) -> poem::Result<Self> {
        let RequestData { state, context, .. } = RequestData::of(request)?;
        let known = identify(request).await?;
        let caller = known.caller;
        let recipient = Recipient::Key(caller.store_id.clone(), caller.key_id.clone());
        context.authenticated(recipient.clone(), Some(caller.key_name.clone()), S::SCOPE.only_reads());
        if !caller.scopes.contains(S::SCOPE) {
            return Err(ApiError::new(StatusCode::FORBIDDEN, format!("`x-api-key` lacks the scope {}", S::SCOPE)).into());
        }
        if let Some(rate) = &state.rate {
            rate.take(&caller.store_id, &caller.key_id, context.received_at()).map_err(ApiError::from)?;
        }
        state.under_way.admit(&recipient).map_err(ApiError::from)?;
        let on_replica = match known.newest {
            Some(newest) if S::SCOPE.only_reads() => state.service.db().replica_shows(newest).await,
            _ => false,
        };
        Ok(Self(AuthenticatedRequest { state: state.clone(), context: context.clone(), caller, scope: S::SCOPE, on_replica }, PhantomData))
    }
}

/// Looks up the caller to whom the API key of a request belongs. A key that is not valid (unknown, inactive, expired or deleted) counts
/// against the rate limit of the request's IP address (`rate_limits`). A missing key does not count.
pub async fn identify(request: &poem::Request) -> Result<LookedUpCaller, ApiError> {
    let RequestData { state, context, .. } = RequestData::of(request)?;
    if let Some(known) = state.service.authenticate(presented(request)?).await? {
        return Ok(known);
    }
    if let Some(rate) = &state.rate {
        rate.take_refused(request.remote_addr(), context.received_at())?;
    }
    Err(ApiError::unauthorized("`x-api-key` is not a valid key: it is unknown, inactive, expired or deleted"))
}

/// Returns the API key of a request. A request without a key, or with two different keys, is refused.
pub fn presented(request: &poem::Request) -> Result<&str, ApiError> {
    let mut keys = request.headers().get_all(API_KEY).iter();
    let Some(first) = keys.next() else {
        return Err(ApiError::unauthorized("`x-api-key` is missing; send an API key of the store in this header"));
    };
    if keys.any(|other| other != first) {
        return Err(ApiError::unauthorized("`x-api-key` is sent with two different values"));
    }
    first.to_str().map_err(|_| ApiError::unauthorized("`x-api-key` is not a valid key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_requirement_names_its_own_scope() {
        for (scope, requirement) in REQUIREMENTS {
            assert_eq!(*requirement, format!("{SCHEME}:{scope}"));
        }
    }
}
