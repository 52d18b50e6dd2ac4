//! Operations of the settings API on API keys: listing, creation, change, rotation, suspension and deletion (contract, sections 3.2 and 5).

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::{
    auth::{GrantedRequest, SettingsRequest},
    required_grants,
};
use crate::{
    domain::{
        api_key_scopes::{Scope, ScopeSet},
        api_keys::{ApiKey, Secret},
        ids::KeyId,
        settings_access::FormerSecrets,
        time::Timestamp,
    },
    http::{
        machinery::{
            body::Body,
            error_responses::{ApiError, Failure, SettingsAddition, SettingsCatalog, SettingsChange, SettingsEdit, SettingsLookup},
            idempotency::Acknowledgement,
            params::{Id, Query, Required, ScalarParam},
            success_responses::{All, One, Reply},
        },
        schemas::value_types::{EnumValue, UserIdText, ValueSet},
    },
    service::keys::NewKey,
};

/// The scopes that an API key can have.
#[derive(Debug, Clone)]
pub struct Scopes;

impl ValueSet for Scopes {
    const NAME: &'static str = "Scope";
    const DESCRIPTION: &'static str = "A permission of an API key, as resource and action. A write scope includes the read scope; some are reserved for later operations.";
    const OPEN: bool = false;
    const VALUES: &'static [&'static str] = &{
        let mut names = [""; Scope::ALL.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = Scope::ALL[i].name();
            i += 1;
        }
        names
    };
}

/// The states of a key.
#[derive(Debug, Clone)]
pub struct KeyStatus;

impl ValueSet for KeyStatus {
    const NAME: &'static str = "KeyStatus";
    const DESCRIPTION: &'static str = "State of a key: `active`, suspended by an owner or admin (`inactive`), or past its `expiresAt` (`expired`). Only an active one is accepted.";
    const OPEN: bool = false;
    const VALUES: &'static [&'static str] = &["active", "inactive", "expired"];
}

/// An API key without its secret.
#[derive(Debug, Object, Serialize)]
#[oai(rename = "Key", rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct KeyView {
    /// Identifies the key, as `keyId` in the operations on it; it is not the secret and stays the same on rotation.
    pub id: String,
    /// What the key is for, in the words of its creator.
    pub name: String,
    /// The secret in masked form: its beginning and its last four characters.
    pub masked: String,
    /// What requests with the key may do; with every write scope the read scope of the same resource is listed.
    pub scopes: Vec<EnumValue<Scopes>>,
    /// Whether requests with the key are accepted, at the time of this answer.
    pub status: EnumValue<KeyStatus>,
    /// The `userId` of the user in whose name the key acts; absent: the key acts for the store's oldest owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// When the key was created; a rotation does not change this time.
    pub created_at: Timestamp,
    /// When the key expires: six calendar months after it was created or last rotated.
    pub expires_at: Timestamp,
    /// When the key was last used for a request; absent: never. The server records a use within a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
}

impl KeyView {
    pub fn of(key: ApiKey, now: Timestamp) -> Self {
        Self {
            masked: key.masked(),
            scopes: key.scopes.iter().map(|scope| scope.name().to_owned().into()).collect(),
            status: key.status(now).to_owned().into(),
            id: key.id.into_string(),
            name: key.name,
            user_id: key.owner.map(|user| user.into_string()),
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
        }
    }
}

/// An API key with its secret, which is not shown again.
#[derive(Debug, Object, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyWithSecret {
    /// The key that the secret belongs to.
    pub key: KeyView,
    /// The secret of the key, which requests send in the header `x-api-key`.
    pub secret: String,
}

/// A new key.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyCreation {
    /// What the key is for.
    #[oai(validator(min_length = 1, max_length = 100))]
    name: String,
    /// At least one scope. A write scope also grants the read scope of the same resource.
    #[oai(validator(min_items = 1))]
    scopes: Vec<EnumValue<Scopes>>,
    /// The `userId` of the user in whose name the key acts. Omitted: the store's oldest owner if an owner creates the key, else the admin
    /// who creates it. An admin cannot name an owner.
    user_id: Option<UserIdText>,
}

/// The new properties of a key. Its secret stays the same.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyChange {
    /// The key whose name or scopes change.
    #[oai(validator(max_length = 64))]
    key_id: String,
    /// The new name, 1 to 100 characters and not blank; omitted: the name stays the same.
    #[oai(validator(min_length = 1, max_length = 100))]
    name: Option<String>,
    /// All scopes of the key from now on; omitted: they stay the same. A write scope also grants the read scope of the same resource.
    #[oai(validator(min_items = 1))]
    scopes: Option<Vec<EnumValue<Scopes>>>,
}

/// The key that an operation applies to.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyReference {
    /// The key to suspend or activate.
    #[oai(validator(max_length = 64))]
    key_id: String,
}

/// A key to rotate.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyRotation {
    /// The key to rotate.
    #[oai(validator(max_length = 64))]
    key_id: String,
    /// Whether the former secrets end at once, for example after a leak; omitted: they stay valid for two hours.
    end_former_secrets: Option<bool>,
}

fn scopes(names: &[EnumValue<Scopes>]) -> Result<ScopeSet, ApiError> {
    let scope = |(i, name): (usize, &EnumValue<Scopes>)| {
        name.0.parse::<Scope>().map_err(|error| ApiError::field(&format!("body.scopes[{i}]"), error))
    };
    names.iter().enumerate().map(scope).collect()
}

/// The operations on API keys of the store.
#[derive(Debug)]
pub struct KeyOperations;

impl KeyOperations {
    fn with_secret(managed: &SettingsRequest, (key, secret): (ApiKey, Secret)) -> Reply<One<KeyWithSecret>> {
        let key = KeyView::of(key, managed.context.received_at());
        Reply::of(&managed.context, &KeyWithSecret { key, secret: secret.reveal().to_owned() }, vec![])
    }

    fn view(managed: &SettingsRequest, key: ApiKey) -> Reply<One<KeyView>> {
        Reply::of(&managed.context, &KeyView::of(key, managed.context.received_at()), vec![])
    }
}

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Keys")]
impl KeyOperations {
    /// List keys
    ///
    /// Lists the store's API keys, the oldest first, without their secrets.
    #[oai(path = "/keys", method = "get", operation_id = "listKeys")]
    async fn list_keys(&self, managed: GrantedRequest<required_grants::Keys>) -> Result<Reply<All<KeyView>>, Failure<SettingsCatalog>> {
        let now = managed.context.received_at();
        let keys = managed.state.service.keys(managed.store()).await?;
        let keys: Vec<KeyView> = keys.into_iter().map(|key| KeyView::of(key, now)).collect();
        Ok(Reply::of(&managed.context, &keys, vec![]))
    }

    /// Create a key
    ///
    /// Creates an API key. Its secret is in this answer and is not shown again.
    #[oai(path = "/keys", method = "post", operation_id = "createKey")]
    async fn create_key(
        &self,
        managed: GrantedRequest<required_grants::Keys>,
        body: Body<KeyCreation>,
    ) -> Result<Reply<One<KeyWithSecret>>, Failure<SettingsAddition>> {
        let new = body.parse()?;
        let owner = new.user_id.map(|id| ScalarParam::parse(&id.0).map_err(|reason| ApiError::field("body.userId", reason))).transpose()?;
        let new = NewKey { scopes: scopes(&new.scopes)?, name: new.name, owner };
        Ok(Self::with_secret(&managed, managed.state.service.create_key(&managed.editor, new).await.map_err(ApiError::in_body)?))
    }

    /// Edit a key
    ///
    /// Changes a key's name or scopes. The new scopes apply from the next request on, also to requests with a former secret that is still
    /// valid after a rotation.
    #[oai(path = "/keys", method = "patch", operation_id = "editKey")]
    async fn edit_key(
        &self,
        managed: GrantedRequest<required_grants::Keys>,
        body: Body<KeyChange>,
    ) -> Result<Reply<One<KeyView>>, Failure<SettingsEdit>> {
        let change = body.parse()?;
        let scopes = change.scopes.as_deref().map(scopes).transpose()?;
        let key =
            managed.state.service.edit_key(&managed.editor, &change.key_id.into(), change.name, scopes).await.map_err(ApiError::in_body)?;
        Ok(Self::view(&managed, key))
    }

    /// Rotate a key
    ///
    /// Gives a key a new secret, and moves its expiry to six calendar months from now. The secret is in this answer and is not shown again.
    /// A former secret stays valid for two hours, or until its own expiry if that is sooner. With `endFormerSecrets: true`, every former
    /// secret ends at once.
    #[oai(path = "/keys/rotate", method = "post", operation_id = "rotateKey")]
    async fn rotate_key(
        &self,
        managed: GrantedRequest<required_grants::Keys>,
        body: Body<KeyRotation>,
    ) -> Result<Reply<One<KeyWithSecret>>, Failure<SettingsChange>> {
        let KeyRotation { key_id, end_former_secrets } = body.parse()?;
        let former = FormerSecrets::of(end_former_secrets.unwrap_or_default());
        let rotated = managed.state.service.rotate_key(&managed.editor, &key_id.into(), former).await;
        Ok(Self::with_secret(&managed, rotated.map_err(ApiError::in_body)?))
    }

    /// Suspend a key
    ///
    /// Refuses every request with this key until the key is activated again. Its expiry does not move.
    #[oai(path = "/keys/deactivate", method = "post", operation_id = "deactivateKey")]
    async fn deactivate_key(
        &self,
        managed: GrantedRequest<required_grants::Keys>,
        body: Body<KeyReference>,
    ) -> Result<Reply<One<KeyView>>, Failure<SettingsEdit>> {
        let id: KeyId = body.parse()?.key_id.into();
        Ok(Self::view(&managed, managed.state.service.set_key_active(&managed.editor, &id, false).await.map_err(ApiError::in_body)?))
    }

    /// Activate a key
    ///
    /// Ends a key's suspension.
    #[oai(path = "/keys/activate", method = "post", operation_id = "activateKey")]
    async fn activate_key(
        &self,
        managed: GrantedRequest<required_grants::Keys>,
        body: Body<KeyReference>,
    ) -> Result<Reply<One<KeyView>>, Failure<SettingsEdit>> {
        let id: KeyId = body.parse()?.key_id.into();
        Ok(Self::view(&managed, managed.state.service.set_key_active(&managed.editor, &id, true).await.map_err(ApiError::in_body)?))
    }

    /// Delete a key
    ///
    /// Deletes a key and all its secrets, at once and permanently.
    #[oai(path = "/keys", method = "delete", operation_id = "deleteKey")]
    async fn delete_key(
        &self,
        managed: GrantedRequest<required_grants::Keys>,
        /// The key to delete.
        #[oai(name = "keyId")]
        key_id: Query<Required<Id<KeyId>>>,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<SettingsLookup>> {
        managed.state.service.delete_key(&managed.editor, &key_id.0.0.0).await?;
        Ok(Reply::of(&managed.context, &Acknowledgement::from(()), vec![]))
    }
}
