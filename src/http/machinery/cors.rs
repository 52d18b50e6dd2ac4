//! Cross-origin resource sharing (CORS): the origins whose pages may call the operations of the API contract from a browser. No origin may
//! do so unless `--cors-origin` names it.
//!
//! poem's own middleware responds with 403 to every request from an origin that is not allowed. Here such a request is handled as if CORS
//! were off: the response lacks the headers that let a page read it.

use poem::{
    Response,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
};

use super::routing::PREFIX;

/// The headers that a page may send with a request to one of the contract's operations.
const SENT: &str = "x-api-key, content-type, idempotency-key, x-request-id";

/// For how long a browser may cache the response to a preflight request, in seconds.
const MAX_AGE: u32 = 600;

/// The origins whose pages may call the contract's operations.
#[derive(Clone, Debug, Default)]
pub struct Cors(Vec<HeaderValue>);

impl Cors {
    pub fn new(origins: Vec<HeaderValue>) -> Self {
        Self(origins)
    }

    /// Returns the origins that `--cors-origin` names, without `*`.
    pub fn named(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|origin| origin.to_str().ok()).filter(|origin| *origin != "*").map(str::to_owned)
    }

    /// Returns whether responses at the path depend on the request's origin.
    pub fn concerns(&self, path: &str) -> bool {
        !self.0.is_empty() && path.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns the origin of a request to one of the contract's operations, if pages of this origin may read the response.
    pub fn allowed_origin(&self, path: &str, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        (self.concerns(path) && self.0.iter().any(|allowed| allowed == origin || allowed == "*")).then(|| origin.clone())
    }
}

/// Adds the headers that let a page of the origin read the response.
pub fn allow(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
}

/// Makes the response to a preflight request.
pub fn preflight(methods: &str) -> Response {
    let mut response = Response::builder().status(StatusCode::NO_CONTENT).finish();
    let headers = response.headers_mut();
    if let Ok(methods) = HeaderValue::from_str(methods) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(SENT));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE.into());
    response
}

/// Returns whether a request is a preflight request.
pub fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Parses an origin of `--cors-origin`: `*`, or scheme, host and port.
pub fn origin(text: &str) -> Result<HeaderValue, String> {
    let right = "write an origin such as https://app.example.com, without a path, or `*` for every origin";
    let parsed = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    if text != "*" && parsed.is_none_or(|url| url.origin().ascii_serialization() != text) {
        return Err(format!("`{text}` is no origin; {right}"));
    }
    HeaderValue::from_str(text).map_err(|_| format!("`{text}` is no origin; {right}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::machinery::{auth::API_KEY, envelope_schema::REQUEST_ID, idempotency::IDEMPOTENCY_KEY};

    #[test]
    fn the_headers_of_the_contract_may_be_sent() {
        assert_eq!(SENT, [API_KEY, "content-type", IDEMPOTENCY_KEY, REQUEST_ID].join(", "));
    }

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        for right in ["*", "https://app.example.com", "http://localhost:3000"] {
            assert_eq!(origin(right).unwrap(), right);
        }
        for wrong in
            ["", "app.example.com", "https://app.example.com/", "https://app.example.com/x", "https://A.example.com", "ftp://x", "null"]
        {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }
}
