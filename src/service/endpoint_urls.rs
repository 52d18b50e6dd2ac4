//! Validation of the endpoint URLs of webhooks and bridges, and generation of their signing secrets. A bridge is an endpoint that delivers
//! messages to their channel. Called by `webhooks` and `channel_bridges`. The addresses to which a DNS name resolves are checked later,
//! when `delivery` connects.

use url::{Host, Url};

use super::{Error, Result};
use crate::domain::{
    ssrf_policy::Targets,
    webhooks::{SECRET_BYTES, SigningSecret},
};

/// The maximum length of a URL, in characters.
const MAX_URL_CHARS: usize = 2048;

pub(super) fn fresh_secret() -> Result<SigningSecret> {
    let mut bytes = vec![0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| Error::Internal(format!("the system gives no random bytes: {error}")))?;
    Ok(SigningSecret(bytes))
}

pub(super) fn checked_url(text: &str, targets: Targets) -> Result<Url> {
    let refuse = |reason: &str| Err(Error::invalid("url", reason.to_owned()));
    if text.chars().count() > MAX_URL_CHARS {
        return refuse("must be at most 2048 characters long");
    }
    let Ok(url) = Url::parse(text) else { return refuse("must be an address such as https://example.com/hooks") };
    if !matches!(url.scheme(), "https" | "http") {
        return refuse("must begin with https:// or http://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("must not hold a name or a password; deliveries are signed");
    }
    match url.host() {
        Some(Host::Domain("")) | None => refuse("must name a host"),
        Some(host) if targets.check_entered(&url).is_err() => {
            let reason = format!(
                "must not lead to `{host}`, which is not a public address; nothing is delivered to it unless the server is started with \
                 `--allow-private-targets`"
            );
            refuse(&reason)
        }
        Some(_) => Ok(url),
    }
}
