//! Sessions of the settings page: a link that works once is exchanged for a session cookie.
//!
//! The secret of the link is in the fragment of the URL, after the `#`. No browser sends the fragment to a server. The page reads the
//! secret from the fragment, and requests a session with the secret. So a mail program that opens links in advance does not use up the
//! link, and the log of a proxy does not contain the secret.

use std::sync::Arc;

use poem::{
    RequestBody,
    http::{HeaderValue, StatusCode, header},
    web::RemoteAddr,
};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions, Object, OpenApi,
    registry::{MetaHeader, MetaSchema, MetaSchemaRef, Registry},
    types::Type,
};
use serde::{Deserialize, Serialize};

use super::{
    auth::{COOKIE, GrantedRequest, not_a_manager, own_origin, refused},
    required_grants::AnyGrant,
};
use crate::{
    domain::{
        contacts::is_email,
        settings_access::{CredentialKind, Manager},
        time::Timestamp,
        token_grants::Grant,
    },
    http::{
        machinery::{
            body::Body,
            context::{Context, Recipient, is_secure},
            data_attached_to_requests::RequestData,
            envelope_schema,
            error_responses::{ApiError, Failure, SettingsCatalog, SettingsCreation, SettingsMail},
            idempotency::Acknowledgement,
            shared_state::SharedState,
            success_responses::{One, Reply, ReplyShape},
        },
        schemas::value_types::{AddressText, EnumValue, UserIdText, ValueSet},
    },
    service::Error,
};

/// A request to open a session.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionOpening {
    /// The secret of a link that `counterpart settings link` printed, or that came by e-mail. It opens one session.
    link: String,
}

/// A request for links by e-mail.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LinkRequest {
    /// The e-mail address of an owner or admin, as the store has it; the case of ASCII letters does not matter.
    email: AddressText,
}

/// The grants (permissions) that a credential can have.
#[derive(Debug)]
pub struct Grants;

impl ValueSet for Grants {
    const NAME: &'static str = "Grant";
    const DESCRIPTION: &'static str =
        "What a credential permits. Each operation names the grant that it needs in `x-required-grant`; `all` permits every operation.";
    const VALUES: &'static [&'static str] = &{
        let mut names = [""; Grant::ALL.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = Grant::ALL[i].name();
            i += 1;
        }
        names
    };
}

/// The session or token of the caller, and the user to whom it was given.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The store whose settings the session or token gives access to.
    store_id: String,
    /// The `userId` of the person to whom the link or token was given.
    user_id: UserIdText,
    /// The role by which the user may manage settings: `owner` or `admin`.
    role: String,
    /// When the session or the token ends.
    expires_at: Timestamp,
    /// What the session or the token permits; a session permits `all`.
    can: Vec<EnumValue<Grants>>,
}

impl From<Manager> for Session {
    fn from(manager: Manager) -> Self {
        Self {
            store_id: manager.store_id.into_string(),
            user_id: manager.user_id.into(),
            role: manager.role.unwrap_or_default(),
            expires_at: manager.expires_at,
            can: manager.can.names().into_iter().map(|name| name.to_owned().into()).collect(),
        }
    }
}

/// The response of the operation that opens a session, with the header that sets the session cookie.
#[derive(Debug)]
pub struct SessionOpenedReply;

impl ReplyShape for SessionOpenedReply {
    const DATA: &'static str = One::<Session>::DATA;

    fn envelope() -> String {
        One::<Session>::envelope()
    }

    fn data() -> MetaSchemaRef {
        One::<Session>::data()
    }

    fn headers() -> Vec<MetaHeader> {
        let description = "Sets the cookie of the session: `HttpOnly`, `SameSite=Strict`, only for /settings.";
        vec![envelope_schema::header("set-cookie", description, true, MetaSchema::new("string"))]
    }

    fn register(registry: &mut Registry) {
        Session::register(registry);
    }
}

/// The response of the operation that ends a session, with the header that deletes the session cookie.
#[derive(Debug)]
pub struct Ended;

impl ReplyShape for Ended {
    const DATA: &'static str = One::<Acknowledgement>::DATA;

    fn envelope() -> String {
        One::<Acknowledgement>::envelope()
    }

    fn data() -> MetaSchemaRef {
        One::<Acknowledgement>::data()
    }

    fn headers() -> Vec<MetaHeader> {
        vec![envelope_schema::header("set-cookie", "Deletes the cookie of the session from the browser.", true, MetaSchema::new("string"))]
    }

    fn register(registry: &mut Registry) {
        Acknowledgement::register(registry);
    }
}

/// A request whose caller is not authenticated.
#[derive(Debug)]
pub struct UnauthenticatedRequest {
    state: Arc<SharedState>,
    context: Context,
    from: RemoteAddr,
    /// Whether the request came over TLS, according to the proxy in front of the server.
    secure: bool,
}

impl<'a> ApiExtractor<'a> for UnauthenticatedRequest {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::PoemExtractor];
    type ParamType = ();
    type ParamRawType = ();

    fn register(_: &mut Registry) {}

    async fn from_request(request: &'a poem::Request, _: &mut RequestBody, _: ExtractParamOptions<()>) -> poem::Result<Self> {
        let RequestData { state, context, .. } = RequestData::of(request)?;
        // Prevents login CSRF: a page of another origin must not sign the user in with the link of an attacker. The user could then enter
        // data into the attacker's store without noticing.
        own_origin(request, true)?;
        let secure = is_secure(request);
        Ok(Self { state: state.clone(), context: context.clone(), from: request.remote_addr().clone(), secure })
    }
}

fn cookie(secret: &str, seconds: i64, secure: bool) -> Option<HeaderValue> {
    let secure = if secure { "; Secure" } else { "" };
    HeaderValue::from_str(&format!("{COOKIE}={secret}; Path=/settings; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")).ok()
}

/// The operations that open, read and end sessions, and that send sign-in links.
#[derive(Debug)]
pub struct SessionOperations;

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Session")]
impl SessionOperations {
    /// Open a session
    ///
    /// Exchanges a link for a session of 12 hours, whose cookie the answer sets. The link cannot be used again.
    #[oai(path = "/session", method = "post", operation_id = "openSession")]
    async fn open_session(
        &self,
        stranger: UnauthenticatedRequest,
        body: Body<SessionOpening>,
    ) -> Result<Reply<SessionOpenedReply>, Failure<SettingsCreation>> {
        let link = body.parse()?.link;
        let unknown = || {
            ApiError::unauthorized(
                "`body.link` is unknown, used up or older than 15 minutes; get a new one with `counterpart settings link`",
            )
        };
        let service = &stranger.state.service;
        let Some(manager) = service.manager(&link, CredentialKind::Link).await? else {
            refused(&stranger.state, &stranger.context, &stranger.from)?;
            return Err(unknown().into());
        };
        stranger.context.authenticated(Recipient::Manager(manager.store_id.clone(), manager.user_id.clone()), None, false);
        if !manager.may_manage() {
            return Err(not_a_manager().into());
        }
        let (secret, manager) = service.open_session(&link, &manager, stranger.context.request_id()).await?.ok_or_else(unknown)?;
        let cookie = cookie(secret.reveal(), CredentialKind::Session.lifetime() / 1000, stranger.secure);
        let headers = cookie.map(|cookie| (header::SET_COOKIE.as_str(), cookie)).into_iter().collect();
        Ok(Reply::of(&stranger.context, &Session::from(manager), headers))
    }

    /// Send links by e-mail
    ///
    /// Sends a link to an e-mail address, for each store of which an owner or admin has the address. The server answers before it looks the
    /// address up. A link opens one session within 15 minutes, and only while the address is the user's. Within 15 minutes at most 3
    /// requests are accepted for an address, and at most 60 from one client. The second limit does not apply to a client on the
    /// server's own machine, such as a proxy.
    #[oai(path = "/session/link", method = "post", operation_id = "sendLink")]
    async fn send_link(
        &self,
        stranger: UnauthenticatedRequest,
        body: Body<LinkRequest>,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<SettingsMail>> {
        let AddressText(email) = body.parse()?.email;
        if !is_email(&email) {
            return Err(Error::invalid("body.email", "must be an e-mail address, such as ann@example.com").into());
        }
        let Some(requests) = &stranger.state.sign_in_requests else {
            let message =
                "this server sends no e-mail; the operator starts it with `--smtp-url`, or prints a link with `counterpart settings link`";
            return Err(ApiError::new(StatusCode::CONFLICT, message).into());
        };
        requests.accept(email, &stranger.from)?;
        Ok(Reply::of(&stranger.context, &Acknowledgement::from(()), vec![]))
    }

    /// Get the session
    ///
    /// Returns the user behind the session or the token, and what the session or token permits.
    #[oai(path = "/session", method = "get", operation_id = "getSession")]
    async fn get_session(&self, managed: GrantedRequest<AnyGrant>) -> Result<Reply<One<Session>>, Failure<SettingsCatalog>> {
        Ok(Reply::of(&managed.context, &Session::from(managed.manager.clone()), vec![]))
    }

    /// End the session
    ///
    /// Ends the session or the token with which the request is authenticated.
    #[oai(path = "/session", method = "delete", operation_id = "endSession")]
    async fn end_session(&self, managed: GrantedRequest<AnyGrant>) -> Result<Reply<Ended>, Failure<SettingsCatalog>> {
        managed.state.service.end_session(&managed.editor, &managed.secret).await?;
        let headers = cookie("", 0, false).map(|cookie| (header::SET_COOKIE.as_str(), cookie)).into_iter().collect();
        Ok(Reply::of(&managed.context, &Acknowledgement::from(()), headers))
    }
}
