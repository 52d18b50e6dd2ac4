//! SSRF guard: a DNS resolver that refuses addresses that are not permitted as targets.
//!
//! The guard runs in the resolver of the HTTP client: it filters the addresses of each look-up, and the connection uses only the permitted
//! addresses. So DNS rebinding (a name that resolves to another address at the next look-up) does not get around the guard. A literal IP
//! address is not looked up: [`Targets::check`] checks it.

use std::{net::SocketAddr, sync::Arc};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::domain::ssrf_policy::Targets;

/// The error of a name without a permitted address. It is the same whether or not the name exists, since users who may set
/// an endpoint must not be able to probe internal names.
#[derive(Debug, thiserror::Error)]
#[error("the name cannot be resolved, or does not lead to a public address")]
struct NoPermittedAddress;

/// The system resolver.
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// A resolver that returns only permitted addresses.
pub(super) struct Guard {
    pub targets: Targets,
    pub names: Arc<dyn Resolve>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (targets, found) = (self.targets, self.names.resolve(name));
        Box::pin(async move {
            let allowed: Vec<SocketAddr> = match found.await {
                Ok(found) => found.filter(|address| targets.allow(address.ip())).collect(),
                Err(error) => {
                    tracing::debug!(error, "a DNS look-up failed");
                    return Err(NoPermittedAddress.into());
                }
            };
            if allowed.is_empty() { Err(NoPermittedAddress.into()) } else { Ok(Box::new(allowed.into_iter()) as Addrs) }
        })
    }
}
