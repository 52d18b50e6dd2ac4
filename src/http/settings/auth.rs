//! Authentication and authorisation in the settings API: the caller is an owner or admin of a store, with a browser's session or a
//! machine's token.
//!
//! Protection against cross-site request forgery (CSRF): a page of another server can make the browser send a request to this server, with
//! the session cookie. The cookie attribute `SameSite=Strict` prevents such requests by pages of other sites, but not by pages of other
//! hosts of the same site: `shop.example.com` and `inbox.example.com` are one site. So if the session cookie authenticates a request that
//! changes something, the request must come from the server's own origin. The browser states the origin in headers that a page cannot set.

use std::{marker::PhantomData, ops::Deref, sync::Arc};

use poem::{
    RequestBody,
    http::{Method, StatusCode, header},
    web::RemoteAddr,
};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaSecurityScheme, Registry},
};

use super::required_grants::{RequiredGrant, TOKEN_SCHEME};
use crate::{
    domain::{
        ids::StoreId,
        settings_access::{CredentialKind, Editor, Manager, Via},
        token_grants::Grant,
    },
    http::machinery::{
        context::{Context, Recipient, is_own_origin},
        data_attached_to_requests::RequestData,
        error_responses::ApiError,
        shared_state::SharedState,
    },
    service::{IdempotentRequest, WriteContext},
};

/// The name of the session cookie.
pub const COOKIE: &str = "counterpart_session";

const SESSION_SCHEME: &str = "Session";

/// An authenticated request of an owner or admin of a store.
#[derive(Clone, Debug)]
pub struct SettingsRequest {
    pub state: Arc<SharedState>,
    pub context: Context,
    pub manager: Manager,
    pub editor: Editor,
    /// The secret of the session or token that the caller presented.
    pub secret: String,
}

impl SettingsRequest {
    pub fn store(&self) -> &StoreId {
        &self.manager.store_id
    }

    /// Returns the context of a write whose author is the caller of this request. `once` is absent if the request has no idempotency key.
    pub fn by<'a, T>(&'a self, once: Option<IdempotentRequest<'a, T>>) -> WriteContext<'a, T> {
        WriteContext::editor(&self.editor).once(once)
    }
}

/// A request whose caller is authenticated and whose credential has the grant (permission) `G`.
#[derive(Clone, Debug)]
pub struct GrantedRequest<G>(SettingsRequest, PhantomData<G>);

impl<G> Deref for GrantedRequest<G> {
    type Target = SettingsRequest;

    fn deref(&self) -> &SettingsRequest {
        &self.0
    }
}

impl<'a, G: RequiredGrant> ApiExtractor<'a> for GrantedRequest<G> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        let scheme = |ty, description| MetaSecurityScheme {
            ty,
            description: Some(description),
            name: None,
            key_in: None,
            scheme: None,
            bearer_format: None,
            flows: None,
            openid_connect_url: None,
        };
        registry.create_security_scheme(
            SESSION_SCHEME,
            MetaSecurityScheme {
                name: Some(COOKIE),
                key_in: Some("cookie"),
                ..scheme(
                    "apiKey",
                    "A browser's session, which POST /session opens. A change must come from the origin of the settings page: the \
                     browser sends `Sec-Fetch-Site: same-origin`, or else an `Origin` with the scheme and host of this server.",
                )
            },
        );
        registry.create_security_scheme(
            TOKEN_SCHEME,
            MetaSecurityScheme {
                scheme: Some("bearer"),
                ..scheme(
                    "http",
                    "A machine's token, which `counterpart settings token` prints. Each operation names the grant that it needs in \
                     `x-required-grant`; a token with the grant `all` may call every operation.",
                )
            },
        );
    }

    fn security_schemes() -> Vec<&'static str> {
        vec![SESSION_SCHEME, G::REQUIREMENT]
    }

    async fn from_request(request: &'a poem::Request, _: &mut RequestBody, _: ExtractParamOptions<()>) -> poem::Result<Self> {
        let RequestData { state, context, .. } = RequestData::of(request)?;
        let (secrets, kind, via) = presented(request)?;
        let mut found = None;
        for secret in secrets {
            if let Some(manager) = state.service.manager(&secret, kind).await.map_err(ApiError::from)? {
                found = Some((secret, manager));
                break;
            }
        }
        let Some((secret, manager)) = found else {
            refused(state, context, request.remote_addr())?;
            return Err(ApiError::unauthorized(
                "the session or token is unknown or has ended; get a new one with `counterpart settings link` or `token`",
            )
            .into());
        };
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let recipient = Recipient::Manager(manager.store_id.clone(), manager.user_id.clone());
        context.authenticated(recipient.clone(), None, reads);
        if !manager.may_manage() {
            return Err(not_a_manager().into());
        }
        if let Some(grant) = G::GRANT.filter(|grant| !manager.can.permits(*grant)) {
            return Err(lacks(grant).into());
        }
        if via == Via::Session && !reads {
            own_origin(request, false)?;
        }
        state.under_way.admit(&recipient).map_err(ApiError::from)?;
        let editor = Editor {
            store_id: manager.store_id.clone(),
            user_id: Some(manager.user_id.clone()),
            via,
            is_owner: manager.is_owner(),
            request_id: Some(context.request_id().to_owned()),
        };
        Ok(Self(SettingsRequest { state: state.clone(), context: context.clone(), manager, editor, secret }, PhantomData))
    }
}

fn lacks(grant: Grant) -> ApiError {
    let message = format!("the token lacks the grant `{grant}`; `counterpart settings token --can {grant}` prints one that has it");
    ApiError::new(StatusCode::FORBIDDEN, message)
}

/// Returns whether a request presents a token.
pub fn has_token(request: &poem::Request) -> bool {
    bearer(request).is_some()
}

/// Counts a refused credential of a client against the rate limit of the client's address, if the server has rate limits. Returns an error
/// if the address has reached the limit.
pub fn refused(state: &SharedState, context: &Context, from: &RemoteAddr) -> Result<(), ApiError> {
    state.rate.as_ref().map_or(Ok(()), |rate| Ok(rate.take_refused(from, context.received_at())?))
}

pub fn not_a_manager() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "only owners and admins of the store may see and change its settings")
}

/// How many session cookies of one request are checked at most. A request has several if another host of the same site has set a cookie of
/// the same name.
const MAX_COOKIES: usize = 8;

/// Returns the secrets that a request presents, and their kind. If the request has a token, the session cookies are ignored.
fn presented(request: &poem::Request) -> Result<(Vec<String>, CredentialKind, Via), ApiError> {
    if let Some(token) = bearer(request) {
        return Ok((vec![token.to_owned()], CredentialKind::Token, Via::Token));
    }
    let cookies = request.headers().get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(';'));
    let sessions = cookies.filter_map(|cookie| cookie.trim().split_once('=')).filter(|(name, _)| *name == COOKIE);
    let sessions: Vec<String> = sessions.map(|(_, session)| session.to_owned()).take(MAX_COOKIES).collect();
    if sessions.is_empty() {
        return Err(ApiError::unauthorized(
            "there is no session; open the link that `counterpart settings link` prints, or send `authorization: Bearer` and a token",
        ));
    }
    Ok((sessions, CredentialKind::Session, Via::Session))
}

/// Returns the token in the header `authorization`. A header with a scheme other than `Bearer` is ignored: it may be meant for a proxy in
/// front of the server.
fn bearer(request: &poem::Request) -> Option<&str> {
    let (scheme, token) = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Refuses a request that a browser sends for a page of another origin. A request with neither `Sec-Fetch-Site` nor `Origin` comes from a
/// program that is not a browser; `strangers` says whether such a request is accepted.
pub fn own_origin(request: &poem::Request, strangers: bool) -> Result<(), ApiError> {
    let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    let own = match (text("sec-fetch-site"), text("origin")) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => is_own_origin(request, origin),
        (None, None) => strangers,
    };
    if own {
        return Ok(());
    }
    let message = "a browser may send this request only for the settings page of this server; other programs use a token";
    Err(ApiError::new(StatusCode::FORBIDDEN, message))
}
