//! SSRF protection: name look-ups that give only the addresses that are delivered to.
//!
//! A name is judged by the addresses that it has at the moment of the connection, and the connection goes to those very
//! addresses; so neither a name that changes between the look and the connection nor another spelling of an address gets
//! around it.

use std::{net::SocketAddr, sync::Arc};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::domain::targets::Targets;

/// What a connection to a name fails with that has no allowed address. It does not tell whether the name exists: the names of an
/// internal network are not for those who set the address of an endpoint.
#[derive(Debug, thiserror::Error)]
#[error("the name does not lead to a public address")]
struct NoTarget;

/// Names as the machine knows them.
pub(super) struct MachineNames;

impl Resolve for MachineNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Names, with those of their addresses that are allowed.
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
                    tracing::debug!(error, "a name was not found");
                    return Err(NoTarget.into());
                }
            };
            if allowed.is_empty() { Err(NoTarget.into()) } else { Ok(Box::new(allowed.into_iter()) as Addrs) }
        })
    }
}
