//! The HTTP client of commands that call other servers.

use std::time::Duration;

use reqwest::{Client, redirect::Policy};

/// Returns the text of an error with all its causes.
pub(super) fn explained(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |all, cause| format!("{all}: {cause}"))
}

/// Returns an HTTP client that follows redirects as the policy says.
pub(super) fn client(redirects: Policy) -> Result<Client, String> {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(redirects)
        .timeout(Duration::from_secs(60))
        .user_agent(concat!("counterpart/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| error.to_string())
}
