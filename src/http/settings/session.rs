//! Sessions of the settings page.
//!
//! A link carries its secret behind the `#`, which no browser sends and no log holds; the page takes it from there and
//! asks for the session. So neither a look-ahead of a mail program nor a proxy's log uses it up or keeps it.

use std::sync::Arc;

use poem::{
    RequestBody,
    http::{HeaderValue, header},
    web::RemoteAddr,
};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions, Object, OpenApi,
    registry::{MetaHeader, MetaSchema, MetaSchemaRef, Registry},
    types::Type,
};
use serde::{Deserialize, Serialize};

use super::auth::{COOKIE, Managed, not_a_manager, own_origin, refused};
use crate::{
    domain::{
        settings::{GrantKind, Manager},
        time::Timestamp,
    },
    http::{
        machinery::{
            arrival::Arrival,
            body::Body,
            context::{Context, Recipient, is_secure},
            envelope,
            error::{ApiError, Failure, SettingsCatalog, SettingsCreation},
            idempotency::Acknowledgement,
            reply::{One, Reply, ReplyShape},
            shared_state::SharedState,
        },
        schemas::value_types::UserIdText,
    },
};

/// What stands in front of a link's secret, behind the page's address.
pub const LINK_FRAGMENT: &str = "#link=";

/// The way in.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionOpening {
    /// The secret of a link that `counterpart settings link` printed. It opens one session.
    link: String,
}

/// Who is asking.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The store whose settings the session or token opens.
    store_id: String,
    /// The `userId` of the person to whom the link or token was given.
    user_id: UserIdText,
    /// The role by which the user may manage settings: `owner` or `admin`.
    role: String,
    /// When the session or the token ends.
    expires_at: Timestamp,
}

impl From<Manager> for Session {
    fn from(manager: Manager) -> Self {
        Self {
            store_id: manager.store_id.into_string(),
            user_id: manager.user_id.into(),
            role: manager.role.unwrap_or_default(),
            expires_at: manager.expires_at,
        }
    }
}

/// A session, with the cookie that keeps it.
#[derive(Debug)]
pub struct Opened;

impl ReplyShape for Opened {
    const DATA: &'static str = One::<Session>::DATA;

    fn envelope() -> String {
        One::<Session>::envelope()
    }

    fn data() -> MetaSchemaRef {
        One::<Session>::data()
    }

    fn headers() -> Vec<MetaHeader> {
        let description = "The session: `HttpOnly`, `SameSite=Strict`, for /settings alone.";
        vec![envelope::header("set-cookie", description, true, MetaSchema::new("string"))]
    }

    fn register(registry: &mut Registry) {
        Session::register(registry);
    }
}

/// The end of a session, with the cookie that takes the browser's away.
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
        vec![envelope::header("set-cookie", "Has the browser forget the session.", true, MetaSchema::new("string"))]
    }

    fn register(registry: &mut Registry) {
        Acknowledgement::register(registry);
    }
}

/// A request before authentication.
#[derive(Debug)]
pub struct Stranger {
    state: Arc<SharedState>,
    context: Context,
    from: RemoteAddr,
    /// Whether it came over TLS, as far as a proxy in front of us says.
    secure: bool,
}

impl<'a> ApiExtractor<'a> for Stranger {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::PoemExtractor];
    type ParamType = ();
    type ParamRawType = ();

    fn register(_: &mut Registry) {}

    async fn from_request(request: &'a poem::Request, _: &mut RequestBody, _: ExtractParamOptions<()>) -> poem::Result<Self> {
        let Arrival { state, context, .. } = Arrival::of(request)?;
        // A page of somebody else must not put its reader into a session of its choosing.
        own_origin(request, true)?;
        let secure = is_secure(request);
        Ok(Self { state: state.clone(), context: context.clone(), from: request.remote_addr().clone(), secure })
    }
}

fn cookie(secret: &str, seconds: i64, secure: bool) -> Option<HeaderValue> {
    let secure = if secure { "; Secure" } else { "" };
    HeaderValue::from_str(&format!("{COOKIE}={secret}; Path=/settings; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")).ok()
}

/// Opening, seeing and ending sessions.
#[derive(Debug)]
pub struct SessionOperations;

#[OpenApi(tag = "crate::http::settings::tags::SettingsTag::Session")]
impl SessionOperations {
    /// Open a session
    ///
    /// Uses a link up and answers with the cookie of a session of 12 hours.
    #[oai(path = "/session", method = "post", operation_id = "openSession")]
    async fn open_session(&self, stranger: Stranger, body: Body<SessionOpening>) -> Result<Reply<Opened>, Failure<SettingsCreation>> {
        let link = body.parse()?.link;
        let unknown = || ApiError::unauthorized("`body.link` is unknown, used up or older than 15 minutes; ask for a new one");
        let service = &stranger.state.service;
        let Some(manager) = service.manager(&link, GrantKind::Link).await? else {
            refused(&stranger.state, &stranger.context, &stranger.from)?;
            return Err(unknown().into());
        };
        stranger.context.authenticated(Recipient::Manager(manager.store_id.clone(), manager.user_id.clone()), None, false);
        if !manager.may_manage() {
            return Err(not_a_manager().into());
        }
        let (secret, manager) = service.open_session(&link, &manager, stranger.context.request_id()).await?.ok_or_else(unknown)?;
        let cookie = cookie(secret.reveal(), GrantKind::Session.lifetime() / 1000, stranger.secure);
        let headers = cookie.map(|cookie| (header::SET_COOKIE.as_str(), cookie)).into_iter().collect();
        Ok(Reply::of(&stranger.context, &Session::from(manager), headers))
    }

    /// See who is asking
    ///
    /// The user behind the session or the token.
    #[oai(path = "/session", method = "get", operation_id = "getSession")]
    async fn get_session(&self, managed: Managed) -> Result<Reply<One<Session>>, Failure<SettingsCatalog>> {
        Ok(Reply::of(&managed.context, &Session::from(managed.manager.clone()), vec![]))
    }

    /// End the session
    ///
    /// Ends the session or the token that the request is made with.
    #[oai(path = "/session", method = "delete", operation_id = "endSession")]
    async fn end_session(&self, managed: Managed) -> Result<Reply<Ended>, Failure<SettingsCatalog>> {
        managed.state.service.end_session(&managed.editor, &managed.secret).await?;
        let headers = cookie("", 0, false).map(|cookie| (header::SET_COOKIE.as_str(), cookie)).into_iter().collect();
        Ok(Reply::of(&managed.context, &Acknowledgement::from(()), headers))
    }
}
