//! Bridges: endpoints that hand a channel account's messages over.

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::auth::Managed;
use crate::{
    domain::{bridges, ids::AccountId, time::Timestamp, webhooks::SigningSecret},
    http::machinery::{
        body::Body,
        error::{ApiError, Failure, SettingsCatalog, SettingsEdit, SettingsLookup},
        idempotency::Acknowledgement,
        params::{Id, Query, Required},
        reply::{All, One, Reply},
    },
};

/// An account's bridge, without its secret.
#[derive(Debug, Object, Serialize)]
#[oai(rename = "Bridge", rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct BridgeView {
    /// The channel account whose outgoing messages are handed over; an account has at most one bridge.
    account_id: String,
    /// Where the account's messages are posted.
    url: String,
    /// When the account was given this bridge.
    created_at: Timestamp,
    /// When the address of the bridge was last changed or its secret rotated.
    updated_at: Timestamp,
}

impl From<bridges::Bridge> for BridgeView {
    fn from(bridge: bridges::Bridge) -> Self {
        Self { account_id: bridge.account_id.into_string(), url: bridge.url, created_at: bridge.created_at, updated_at: bridge.updated_at }
    }
}

/// A bridge, with its secret where that is new.
#[derive(Debug, Object, Serialize)]
#[oai(skip_serializing_if_is_none)]
pub struct BridgeWithSecret {
    /// The bridge as it is after the change.
    bridge: BridgeView,
    /// What messages are signed with, as the libraries of Standard Webhooks take it. Not shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// Where an account's messages are handed over from now on.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BridgeSetting {
    /// The channel account that gets the bridge; one of the channel `widget` cannot have any.
    account_id: String,
    /// An address that begins with https://.
    #[oai(validator(max_length = 2048))]
    url: String,
}

/// An account whose bridge something happens to.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BridgeReference {
    /// The channel account that the bridge belongs to.
    account_id: String,
}

/// Bridges of channel accounts.
#[derive(Debug)]
pub struct BridgeOperations;

impl BridgeOperations {
    fn with_secret(managed: &Managed, bridge: bridges::Bridge, secret: Option<&SigningSecret>) -> Reply<One<BridgeWithSecret>> {
        let bridge = BridgeWithSecret { bridge: bridge.into(), secret: secret.map(SigningSecret::reveal) };
        Reply::of(&managed.context, &bridge, vec![])
    }
}

#[OpenApi(tag = "crate::http::settings::tags::SettingsTag::Bridges")]
impl BridgeOperations {
    /// List bridges
    ///
    /// Lists the accounts that have a bridge, without the secrets.
    #[oai(path = "/accounts/bridge", method = "get", operation_id = "listBridges")]
    async fn list_bridges(&self, managed: Managed) -> Result<Reply<All<BridgeView>>, Failure<SettingsCatalog>> {
        let bridges: Vec<BridgeView> = managed.state.service.bridges(managed.store()).await?.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &bridges, vec![]))
    }

    /// Set an account's bridge
    ///
    /// Gives an account a bridge, or its bridge another address. The secret of a new one is in this answer and never again.
    #[oai(path = "/accounts/bridge", method = "put", operation_id = "setBridge")]
    async fn set_bridge(&self, managed: Managed, body: Body<BridgeSetting>) -> Result<Reply<One<BridgeWithSecret>>, Failure<SettingsEdit>> {
        let BridgeSetting { account_id, url } = body.parse()?;
        let set = managed.state.service.set_bridge(&managed.editor, &account_id.into(), &url).await;
        let (bridge, secret) = set.map_err(ApiError::in_body)?;
        Ok(Self::with_secret(&managed, bridge, secret.as_ref()))
    }

    /// Rotate a bridge's secret
    ///
    /// Gives a bridge a new secret, which is in this answer and never again. The former one signs beside it for 24 hours.
    #[oai(path = "/accounts/bridge/rotate", method = "post", operation_id = "rotateBridge")]
    async fn rotate_bridge(
        &self,
        managed: Managed,
        body: Body<BridgeReference>,
    ) -> Result<Reply<One<BridgeWithSecret>>, Failure<SettingsEdit>> {
        let id: AccountId = body.parse()?.account_id.into();
        let (bridge, secret) = managed.state.service.rotate_bridge(&managed.editor, &id).await.map_err(ApiError::in_body)?;
        Ok(Self::with_secret(&managed, bridge, Some(&secret)))
    }

    /// Remove an account's bridge
    ///
    /// Takes an account's bridge away. Messages that are on their way then have none.
    #[oai(path = "/accounts/bridge", method = "delete", operation_id = "removeBridge")]
    async fn remove_bridge(
        &self,
        managed: Managed,
        /// The account.
        #[oai(name = "accountId")]
        account_id: Query<Required<Id<AccountId>>>,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<SettingsLookup>> {
        managed.state.service.remove_bridge(&managed.editor, &account_id.0.0.0).await?;
        Ok(Reply::of(&managed.context, &Acknowledgement::from(()), vec![]))
    }
}
