//! Idempotency of writes: the header `Idempotency-Key`, and the stored responses that repeated requests get.

use poem::RequestBody;
use poem_openapi::{
    ApiExtractor, ApiExtractorType, Enum, ExtractParamOptions, Object,
    registry::{MetaParamIn, MetaSchema, MetaSchemaRef, Registry},
    types,
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{auth::AuthenticatedRequest, body::Body, error_responses::ApiError};
use crate::{
    domain::{api_keys::hexadecimal, events::Actor},
    service::{IdempotentRequest, WriteContext},
};

/// The optional header `Idempotency-Key`.
#[derive(Debug)]
pub struct IdempotencyKey(Option<String>);

/// The name of the header that carries the idempotency key.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";

pub const MAX_KEY_CHARS: usize = 255;

impl<'a> ApiExtractor<'a> for IdempotencyKey {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::Parameter];
    type ParamType = ();
    type ParamRawType = ();

    fn register(_: &mut Registry) {}

    fn param_in() -> Option<MetaParamIn> {
        Some(MetaParamIn::Header)
    }

    fn param_schema_ref() -> Option<MetaSchemaRef> {
        Some(MetaSchemaRef::Inline(Box::new(MetaSchema {
            min_length: Some(1),
            max_length: Some(MAX_KEY_CHARS),
            // The pattern permits visible ASCII characters.
            pattern: Some("^[!-~]+$".to_owned()),
            ..MetaSchema::new("string")
        })))
    }

    async fn from_request(request: &'a poem::Request, _: &mut RequestBody, _: ExtractParamOptions<()>) -> poem::Result<Self> {
        let mut sent = request.headers().get_all(IDEMPOTENCY_KEY).iter();
        let Some(first) = sent.next() else { return Ok(Self(None)) };
        let key =
            first.to_str().ok().filter(|key| (1..=MAX_KEY_CHARS).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()));
        match key {
            Some(key) if sent.next().is_none() => Ok(Self(Some(key.to_owned()))),
            _ => {
                Err(ApiError::field(IDEMPOTENCY_KEY, format!("must be sent once, as 1 to {MAX_KEY_CHARS} visible ASCII characters")).into())
            }
        }
    }
}

impl AuthenticatedRequest {
    /// Returns the [`WriteContext`] of a write whose author is the caller of this request. `V` is the result type of the service, and `W`
    /// the type of `data` in the response.
    pub fn by<'a, V, W, T, const E: bool>(
        &'a self,
        operation: &'static str,
        key: &'a IdempotencyKey,
        body: &Body<T, E>,
    ) -> WriteContext<'a, V>
    where
        V: Clone,
        W: From<V> + Serialize,
        T: types::Type + serde::de::DeserializeOwned + 'static,
    {
        let once = once::<V, W, T, E>(operation, key, body);
        WriteContext::alone(self.store(), Actor::ApiKey(self.caller.key_id.clone())).once(once)
    }
}

/// Returns the data by which a repetition of this write is recognised, and the function that renders the response that is stored for
/// repetitions. Returns `None` if the request has no idempotency key.
pub fn once<'a, V, W, T, const E: bool>(
    operation: &'static str,
    key: &'a IdempotencyKey,
    body: &Body<T, E>,
) -> Option<IdempotentRequest<'a, V>>
where
    V: Clone,
    W: From<V> + Serialize,
    T: types::Type + serde::de::DeserializeOwned + 'static,
{
    key.0.as_deref().map(|key| IdempotentRequest {
        operation,
        key,
        request_hash: hexadecimal(&Sha256::digest(body.bytes())),
        render: render::<V, W>,
    })
}

fn render<V: Clone, W: From<V> + Serialize>(answer: &V) -> Vec<u8> {
    // Serialization cannot fail for plain data with string keys. If it failed, the repeated request would get `null` as `data`.
    serde_json::to_vec(&W::from(answer.clone())).unwrap_or_default()
}

/// The `data` of the response to a write that returns no record.
#[derive(Debug, Object, Serialize)]
pub struct Acknowledgement {
    /// Always `OK`: the request was carried out, and there is no record to show.
    message: AcknowledgementText,
}

/// The only text of an acknowledgement; failures have an `error` instead.
#[derive(Debug, Clone, Copy, Enum, Serialize)]
#[serde(rename_all = "UPPERCASE")]
#[oai(rename_all = "UPPERCASE")]
enum AcknowledgementText {
    Ok,
}

impl From<()> for Acknowledgement {
    fn from((): ()) -> Self {
        Self { message: AcknowledgementText::Ok }
    }
}
