//! API keys (sections 3.2 and 5).

use super::{Result, Service};
use crate::domain::keys::{Caller, SecretHash};

impl Service {
    /// Who presents this secret. Looked up on every call, so that a change of a key is seen at once by every process.
    pub async fn authenticate(&self, secret: &str) -> Result<Option<Caller>> {
        Ok(self.db().find_caller(&SecretHash::of(secret), self.world().now()).await?)
    }
}
