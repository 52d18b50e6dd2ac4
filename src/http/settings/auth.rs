//! Who asks the settings plane: an owner or admin of a store, by a browser's session or a machine's token.
//!
//! A browser sends its cookie with whatever any site asks it to send. `SameSite=Strict` keeps it from other sites, but not
//! from other hosts of the same site; so a change by cookie must come from our own origin, which the browser tells in
//! headers that no page can set.

use std::sync::Arc;

use poem::{
    RequestBody,
    http::{Method, StatusCode, header},
    web::RemoteAddr,
};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaSecurityScheme, Registry},
};

use crate::{
    domain::{
        ids::StoreId,
        settings::{Editor, GrantKind, Manager, Via},
    },
    http::machinery::{
        arrival::Arrival,
        context::{Context, Recipient, is_secure},
        error::ApiError,
        shared_state::SharedState,
    },
    service::{IdempotentRequest, WriteContext},
};

/// The cookie of a session.
pub const COOKIE: &str = "counterpart_session";

const SESSION_SCHEME: &str = "Session";
const TOKEN_SCHEME: &str = "Token";

/// A request by somebody who may change settings.
#[derive(Clone, Debug)]
pub struct Managed {
    pub state: Arc<SharedState>,
    pub context: Context,
    pub manager: Manager,
    pub editor: Editor,
    /// What the caller proved itself with.
    pub secret: String,
}

impl Managed {
    pub fn store(&self) -> &StoreId {
        &self.manager.store_id
    }

    /// This caller as the author of a write.
    pub fn by<'a, T>(&'a self, once: Option<IdempotentRequest<'a, T>>) -> WriteContext<'a, T> {
        WriteContext::editor(&self.editor).once(once)
    }
}

impl<'a> ApiExtractor<'a> for Managed {
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
                    "A browser's session, which POST /session opens. A change must come from the page's own origin \
                     (`Sec-Fetch-Site: same-origin`, or an `Origin` with the scheme and host asked).",
                )
            },
        );
        registry.create_security_scheme(
            TOKEN_SCHEME,
            MetaSecurityScheme {
                scheme: Some("bearer"),
                ..scheme("http", "A machine's token, which `counterpart settings token` prints.")
            },
        );
    }

    fn security_schemes() -> Vec<&'static str> {
        vec![SESSION_SCHEME, TOKEN_SCHEME]
    }

    async fn from_request(request: &'a poem::Request, _: &mut RequestBody, _: ExtractParamOptions<()>) -> poem::Result<Self> {
        let Arrival { state, context, .. } = Arrival::of(request)?;
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
            return Err(ApiError::unauthorized("the session or token is unknown or has ended").into());
        };
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let recipient = Recipient::Manager(manager.store_id.clone(), manager.user_id.clone());
        context.authenticated(recipient.clone(), None, reads);
        if !manager.may_manage() {
            return Err(not_a_manager().into());
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
        Ok(Self { state: state.clone(), context: context.clone(), manager, editor, secret })
    }
}

/// Has the address pay for a proof that is refused, where there is a rate limit.
pub fn refused(state: &SharedState, context: &Context, from: &RemoteAddr) -> Result<(), ApiError> {
    state.rate.as_ref().map_or(Ok(()), |rate| Ok(rate.take_refused(from, context.received_at())?))
}

pub fn not_a_manager() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "only owners and admins of the store may see and change its settings")
}

/// The most cookies of one name that are tried: another host of the site may have left one of its own.
const MAX_COOKIES: usize = 8;

/// The proofs that a request carries: a token before cookies.
fn presented(request: &poem::Request) -> Result<(Vec<String>, GrantKind, Via), ApiError> {
    let headers = request.headers();
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|text| text.split_once(' '));
    // A proxy in front of us may have a scheme of its own there.
    if let Some((_, token)) = authorization.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
        return Ok((vec![token.trim().to_owned()], GrantKind::Token, Via::Token));
    }
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(';'));
    let sessions = cookies.filter_map(|cookie| cookie.trim().split_once('=')).filter(|(name, _)| *name == COOKIE);
    let sessions: Vec<String> = sessions.map(|(_, session)| session.to_owned()).take(MAX_COOKIES).collect();
    if sessions.is_empty() {
        return Err(ApiError::unauthorized(
            "there is no session; open the link that `counterpart settings link` prints, or send `authorization: Bearer` and a token",
        ));
    }
    Ok((sessions, GrantKind::Session, Via::Session))
}

/// Refuses what a browser sends for a page that is not ours. `strangers`: whether a client that is no browser may pass.
pub fn own_origin(request: &poem::Request, strangers: bool) -> Result<(), ApiError> {
    let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    let own = match (text("sec-fetch-site"), text("origin")) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => {
            let (host, scheme) = (text("host").unwrap_or_default(), if is_secure(request) { "https" } else { "http" });
            let same = |(theirs, origin): (&str, &str)| theirs.eq_ignore_ascii_case(scheme) && origin.eq_ignore_ascii_case(host);
            !host.is_empty() && origin.split_once("://").is_some_and(same)
        }
        (None, None) => strangers,
    };
    if own {
        return Ok(());
    }
    let message = "a change by a browser's session must come from the settings page itself; machines use a token";
    Err(ApiError::new(StatusCode::FORBIDDEN, message))
}
