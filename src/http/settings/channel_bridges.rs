//! Operations of the settings API on bridges: HTTP endpoints that pass a channel account's outgoing messages on to its channel.

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::{
    auth::{GrantedRequest, SettingsRequest},
    required_grants,
};
use crate::{
    domain::{channel_bridges, ids::AccountId, settings_access::FormerSecrets, time::Timestamp, webhooks::SigningSecret},
    http::machinery::{
        body::Body,
        error_responses::{ApiError, Failure, SettingsCatalog, SettingsEdit, SettingsLookup},
        idempotency::Acknowledgement,
        params::{Id, Query, Required},
        success_responses::{All, One, Reply},
    },
};

/// An account's bridge, without its secret.
#[derive(Debug, Object, Serialize)]
#[oai(rename = "Bridge", rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct BridgeView {
    /// The channel account whose outgoing messages are posted to the bridge; an account has at most one bridge.
    account_id: String,
    /// The address that the account's outgoing messages are posted to.
    url: String,
    /// When the bridge was created.
    created_at: Timestamp,
    /// When the address of the bridge was last changed or its secret rotated.
    updated_at: Timestamp,
}

impl From<channel_bridges::Bridge> for BridgeView {
    fn from(bridge: channel_bridges::Bridge) -> Self {
        Self { account_id: bridge.account_id.into_string(), url: bridge.url, created_at: bridge.created_at, updated_at: bridge.updated_at }
    }
}

/// A bridge, with its secret if the operation created one.
#[derive(Debug, Object, Serialize)]
#[oai(skip_serializing_if_is_none)]
pub struct BridgeWithSecret {
    /// The bridge as it is after the change.
    bridge: BridgeView,
    /// The secret that messages are signed with, in the form that the libraries of Standard Webhooks accept. It is not shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// The bridge that an account has from now on.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BridgeSetting {
    /// The channel account that gets the bridge; an account of the channel `widget` cannot have a bridge.
    #[oai(validator(max_length = 64))]
    account_id: String,
    /// The address that messages are posted to; it begins with `https://`, or with `http://` for `127.0.0.1` and `[::1]`.
    #[oai(validator(max_length = 2048))]
    url: String,
}

/// A bridge whose secret is rotated.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BridgeRotation {
    /// The channel account of the bridge.
    #[oai(validator(max_length = 64))]
    account_id: String,
    /// Whether the former secrets end at once, for example after a leak; omitted: messages are also signed with them for 24 hours.
    end_former_secrets: Option<bool>,
}

/// The operations on bridges of channel accounts.
#[derive(Debug)]
pub struct BridgeOperations;

impl BridgeOperations {
    fn with_secret(
        managed: &SettingsRequest,
        bridge: channel_bridges::Bridge,
        secret: Option<&SigningSecret>,
    ) -> Reply<One<BridgeWithSecret>> {
        let bridge = BridgeWithSecret { bridge: bridge.into(), secret: secret.map(SigningSecret::reveal) };
        Reply::of(&managed.context, &bridge, vec![])
    }
}

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Bridges")]
impl BridgeOperations {
    /// List bridges
    ///
    /// Lists the accounts that have a bridge, without the secrets.
    #[oai(path = "/accounts/bridge", method = "get", operation_id = "listBridges")]
    async fn list_bridges(
        &self,
        managed: GrantedRequest<required_grants::Webhooks>,
    ) -> Result<Reply<All<BridgeView>>, Failure<SettingsCatalog>> {
        let bridges: Vec<BridgeView> = managed.state.service.bridges(managed.store()).await?.into_iter().map(Into::into).collect();
        Ok(Reply::of(&managed.context, &bridges, vec![]))
    }

    /// Set an account's bridge
    ///
    /// Creates an account's bridge, or changes the address of the existing one. The secret of a new bridge is in this answer and is not
    /// shown again.
    #[oai(path = "/accounts/bridge", method = "put", operation_id = "setBridge")]
    async fn set_bridge(
        &self,
        managed: GrantedRequest<required_grants::Webhooks>,
        body: Body<BridgeSetting>,
    ) -> Result<Reply<One<BridgeWithSecret>>, Failure<SettingsEdit>> {
        let BridgeSetting { account_id, url } = body.parse()?;
        let set = managed.state.service.set_bridge(&managed.editor, &account_id.into(), &url).await;
        let (bridge, secret) = set.map_err(ApiError::in_body)?;
        Ok(Self::with_secret(&managed, bridge, secret.as_ref()))
    }

    /// Rotate a bridge's secret
    ///
    /// Gives a bridge a new secret, which is in this answer and is not shown again. For 24 hours messages are signed with both the new and
    /// the former secret, unless the request ends the former one.
    #[oai(path = "/accounts/bridge/rotate", method = "post", operation_id = "rotateBridge")]
    async fn rotate_bridge(
        &self,
        managed: GrantedRequest<required_grants::Webhooks>,
        body: Body<BridgeRotation>,
    ) -> Result<Reply<One<BridgeWithSecret>>, Failure<SettingsEdit>> {
        let BridgeRotation { account_id, end_former_secrets } = body.parse()?;
        let former = FormerSecrets::of(end_former_secrets.unwrap_or_default());
        let rotated = managed.state.service.rotate_bridge(&managed.editor, &account_id.into(), former).await;
        let (bridge, secret) = rotated.map_err(ApiError::in_body)?;
        Ok(Self::with_secret(&managed, bridge, Some(&secret)))
    }

    /// Remove an account's bridge
    ///
    /// Removes an account's bridge. Messages that are still queued fail at their next attempt, unless the account has a new bridge by then.
    #[oai(path = "/accounts/bridge", method = "delete", operation_id = "removeBridge")]
    async fn remove_bridge(
        &self,
        managed: GrantedRequest<required_grants::Webhooks>,
        /// The account whose bridge is removed.
        #[oai(name = "accountId")]
        account_id: Query<Required<Id<AccountId>>>,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<SettingsLookup>> {
        managed.state.service.remove_bridge(&managed.editor, &account_id.0.0.0).await?;
        Ok(Reply::of(&managed.context, &Acknowledgement::from(()), vec![]))
    }
}
