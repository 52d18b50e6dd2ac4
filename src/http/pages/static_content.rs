//! Static content: documents and pages that do not change while the server runs. They have a strong ETag, and are sent in gzip if the
//! client accepts it.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use moka::sync::Cache;
use poem::{
    Endpoint, Request, Response,
    http::{HeaderValue, StatusCode, header},
    web::headers::{ETag, HeaderMapExt, IfNoneMatch},
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;

use crate::http::{
    machinery::{
        compression::{accepts_gzip, gzip},
        context::is_secure,
    },
    openapi::contract_document,
};

/// How many versions of the content at one path the cache holds at most. Content that contains the base URL of this server has one version
/// for each base URL that clients use.
const ADDRESSES: u64 = 4;

/// The content at one path. It is rendered when it is first requested, and then cached.
pub struct Download {
    media_type: &'static str,
    /// The content security policy of an HTML page; absent for other content.
    policy: Option<HeaderValue>,
    /// Renders the content. The argument is the base URL of the server, such as `https://example.com`.
    write: Box<dyn Fn(&str) -> String + Send + Sync>,
    address: PublicAddress,
    written: Cache<String, Arc<RenderedContent>>,
}

/// The base URL of this server, which some content contains.
#[derive(Clone, Debug)]
enum PublicAddress {
    /// The content does not contain the base URL.
    Unused,
    /// The configured base URL. If there is none, the base URL to which the request was sent is used.
    Public(Option<String>),
}

struct RenderedContent {
    plain: Bytes,
    /// Absent if compression failed.
    gzip: Option<Bytes>,
    hash: String,
}

impl Download {
    /// Makes a download of an OpenAPI document as JSON. The server URL in the document begins with `public_url`, or else with the address
    /// to which the request was sent.
    pub fn json(contract: fn() -> Value, public_url: Option<String>) -> Self {
        Self::document("application/json", contract, public_url, contract_document::json)
    }

    /// Makes a download of an OpenAPI document as YAML, like [`Self::json`].
    pub fn yaml(contract: fn() -> Value, public_url: Option<String>) -> Self {
        Self::document("application/yaml", contract, public_url, contract_document::yaml)
    }

    fn document(media_type: &'static str, contract: fn() -> Value, public_url: Option<String>, text: fn(&Value) -> String) -> Self {
        let contract = LazyLock::new(contract);
        let write = move |address: &str| {
            let mut contract = contract.clone();
            if let Some(server) = contract.pointer_mut("/servers/0/url") {
                *server = format!("{address}{}", server.as_str().unwrap_or_default()).into();
            }
            text(&contract)
        };
        Self { address: PublicAddress::Public(public_url), ..Self::new(media_type, None, write) }
    }

    /// Makes a download of text that does not contain the base URL of the server.
    pub fn text(media_type: &'static str, text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self::new(media_type, None, move |_| text())
    }

    /// Makes a download of a page with its content security policy.
    pub fn page(html: impl Fn() -> String + Send + Sync + 'static, policy: HeaderValue) -> Self {
        Self::new("text/html; charset=utf-8", Some(policy), move |_| html())
    }

    fn new(media_type: &'static str, policy: Option<HeaderValue>, write: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { media_type, policy, write: Box::new(write), address: PublicAddress::Unused, written: Cache::new(ADDRESSES) }
    }

    fn response(&self, request: &Request) -> Response {
        let address = match &self.address {
            PublicAddress::Unused => String::new(),
            PublicAddress::Public(Some(url)) => url.trim_end_matches('/').to_owned(),
            PublicAddress::Public(None) => asked_at(request).unwrap_or_default(),
        };
        let written = self.written.get_with(address.clone(), || Arc::new(RenderedContent::new((self.write)(&address))));
        let packed = written.gzip.as_ref().filter(|_| accepts_gzip(request.headers()));
        let tag = format!("\"{}{}\"", written.hash, if packed.is_some() { "-gzip" } else { "" });
        let mut response = Response::default();
        let headers = response.headers_mut();
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if let Some(policy) = &self.policy {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
            headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        }
        if let Ok(tag) = tag.parse::<ETag>() {
            headers.typed_insert(tag.clone());
            if request.headers().typed_get::<IfNoneMatch>().is_some_and(|known| !known.precondition_passes(&tag)) {
                response.set_status(StatusCode::NOT_MODIFIED);
                return response;
            }
        }
        if packed.is_some() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        response.set_body(packed.unwrap_or(&written.plain).clone());
        response
    }
}

impl RenderedContent {
    fn new(text: String) -> Self {
        let plain = Bytes::from(text);
        let hash = Sha256::digest(&plain).iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        Self { gzip: gzip(&plain).ok().map(Bytes::from), plain, hash }
    }
}

impl Endpoint for Download {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        Ok(self.response(&request))
    }
}

/// Returns the address of this server as the request names it: the scheme that a proxy in front of the server reports, and the `Host`.
/// `None` if these do not make a valid URL.
fn asked_at(request: &Request) -> Option<String> {
    let host = request.header(header::HOST).or(request.uri().authority().map(|authority| authority.as_str()))?;
    let scheme = if is_secure(request) { "https" } else { "http" };
    let url = Url::parse(&format!("{scheme}://{host}")).ok()?;
    // The `Host` header must be a host and a port, without a path or user name.
    let known = host.len() <= 255 && !host.contains(['/', '\\', '@', '?', '#']);
    known.then(|| url.as_str().trim_end_matches('/').to_owned())
}
