//! Authentication of inbound messages (messages from contacts): by a token or session with the grant (permission) `inbound`, or by a
//! signature of the bridge, the program that connects the channel account to its channel.
//!
//! Guarantees: before the signature of a request is verified, only two properties of its body are used: the store, and the account whose
//! bridge must have signed the request. An unknown store or account, an account without a bridge and a wrong signature are refused with the
//! same message and after the same work, so that the response does not show which stores, accounts and bridges exist.

use std::sync::Arc;

use poem::{RequestBody, web::RemoteAddr};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaSecurityScheme, Registry},
    types::Type,
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    auth::{GrantedRequest, has_token, refused},
    required_grants,
};
use crate::{
    domain::{
        ids::StoreId,
        inbound_signatures::{AcceptedSignature, ID, RequestSignature, SIGNATURE, TIME},
    },
    http::machinery::{
        body::Body,
        context::{Context, Recipient},
        data_attached_to_requests::RequestData,
        error_responses::ApiError,
        shared_state::SharedState,
    },
};

const SIGNATURE_SCHEME: &str = "Signature";

/// The caller of a request with an inbound message. The signature is not verified yet: the verification needs the body, which is read
/// later.
#[derive(Debug)]
pub enum InboundCaller {
    Manager(GrantedRequest<required_grants::Inbound>),
    Signed(SignedRequest),
}

/// A request with the headers of a signature that is not verified yet.
#[derive(Debug)]
pub struct SignedRequest {
    state: Arc<SharedState>,
    context: Context,
    from: RemoteAddr,
    signature: RequestSignature,
}

/// The verified origin of an inbound message.
#[derive(Debug)]
pub struct InboundSource {
    pub state: Arc<SharedState>,
    pub context: Context,
    pub store: StoreId,
    /// Present if a bridge signed the request.
    pub signature: Option<AcceptedSignature>,
}

/// The properties of the body that name the account whose bridge must have signed the request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SigningAccount {
    store_id: String,
    account_id: String,
}

fn unverified(reason: &str) -> ApiError {
    ApiError::unauthorized(&format!(
        "{reason}; sign `{ID}`, `{TIME}` and the body with the secret of the account's bridge, and name `storeId` and `accountId` in the body"
    ))
}

impl<'a> ApiExtractor<'a> for InboundCaller {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::SecurityScheme];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        GrantedRequest::<required_grants::Inbound>::register(registry);
        registry.create_security_scheme(
            SIGNATURE_SCHEME,
            MetaSecurityScheme {
                ty: "apiKey",
                description: Some(
                    "The signature of a bridge over `webhook-id`, `webhook-timestamp` and the body before compression, in the form of Standard \
                     Webhooks (`v1`, HMAC-SHA256) and with the secret of the bridge. A request that has the header `authorization: Bearer` is \
                     authenticated by that token alone.",
                ),
                name: Some(SIGNATURE),
                key_in: Some("header"),
                scheme: None,
                bearer_format: None,
                flows: None,
                openid_connect_url: None,
            },
        );
    }

    fn security_schemes() -> Vec<&'static str> {
        let mut schemes = GrantedRequest::<required_grants::Inbound>::security_schemes();
        schemes.push(SIGNATURE_SCHEME);
        schemes
    }

    async fn from_request(request: &'a poem::Request, body: &mut RequestBody, options: ExtractParamOptions<()>) -> poem::Result<Self> {
        let [id, time, signature] = [ID, TIME, SIGNATURE].map(|name| request.headers().get(name));
        if has_token(request) || (id.is_none() && time.is_none() && signature.is_none()) {
            return GrantedRequest::from_request(request, body, options).await.map(Self::Manager);
        }
        let RequestData { state, context, .. } = RequestData::of(request)?;
        // A header value that is not visible ASCII is treated as an empty value, which is refused.
        let [id, time, signature] = [id, time, signature].map(|value| value.map(|value| value.to_str().unwrap_or_default()));
        let signature = RequestSignature::read(id, time, signature).and_then(|signature| {
            let now = state.service.clocks_and_ids().real.now();
            let late = || format!("`{TIME}` must be within five minutes of the server's time, which is {}", now.millis() / 1000);
            signature.is_current(now).then_some(signature).ok_or_else(late)
        });
        match signature {
            Ok(signature) => Ok(Self::Signed(SignedRequest {
                state: state.clone(),
                context: context.clone(),
                from: request.remote_addr().clone(),
                signature,
            })),
            Err(reason) => {
                refused(state, context, request.remote_addr())?;
                Err(ApiError::unauthorized(&reason).into())
            }
        }
    }
}

impl InboundCaller {
    /// Verifies the signature, if the request has one, and returns the origin of the message.
    pub async fn verified<T: Type + DeserializeOwned + 'static>(self, body: &Body<T>) -> Result<InboundSource, ApiError> {
        let SignedRequest { state, context, from, signature } = match self {
            Self::Manager(managed) => {
                let (state, context, store) = (managed.state.clone(), managed.context.clone(), managed.store().clone());
                return Ok(InboundSource { state, context, store, signature: None });
            }
            Self::Signed(request) => request,
        };
        let named = body.inbound_part::<SigningAccount>();
        let (store, account) = named.map_or_else(|| (String::new(), String::new()), |named| (named.store_id, named.account_id));
        let (store, account) = (store.into(), account.into());
        let Some(signature) = state.service.signed_by_bridge(&store, &account, &signature, body.signed_bytes()).await? else {
            refused(&state, &context, &from)?;
            return Err(unverified("the request is not signed by the bridge of an account"));
        };
        let recipient = Recipient::Bridge(store.clone(), account);
        context.authenticated(recipient.clone(), None, false);
        state.under_way.admit(&recipient)?;
        Ok(InboundSource { state, context, store, signature: Some(signature) })
    }
}

impl InboundSource {
    /// Refuses a message for a store other than the caller's store. If a bridge signed the request, also refuses a message for an account
    /// other than the bridge's account.
    pub fn must_fit(&self, store: Option<&str>, account: &str) -> Result<(), ApiError> {
        if store.is_some_and(|store| store != self.store.as_str()) {
            return Err(ApiError::field("body.storeId", format!("must be the store of the token, `{}`, or be left out", self.store)));
        }
        match &self.signature {
            Some(signature) if signature.account_id.as_str() != account => {
                Err(unverified("the request is signed by the bridge of another account"))
            }
            _ => Ok(()),
        }
    }
}
