//! API keys (sections 3.2 and 5).

use super::{Error, Result, Service};
use crate::domain::keys::{Caller, SecretHash};

impl Service {
    /// Who presents this secret. Looked up on every call, so that a change of a key is seen at once by every process.
    pub async fn authenticate(&self, secret: &str) -> Result<Option<Caller>> {
        Ok(self.db().find_caller(&SecretHash::of(secret), self.world().now()).await?)
    }

    /// A secret of the server itself, made when it is first asked for.
    pub async fn server_secret(&self, name: &str) -> Result<Vec<u8>> {
        let mut fresh = vec![0_u8; 32];
        getrandom::fill(&mut fresh).map_err(|error| Error::Internal(format!("no randomness: {error}")))?;
        Ok(self.db().server_secret(name, fresh).await?)
    }
}
