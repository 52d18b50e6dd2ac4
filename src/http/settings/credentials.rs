//! Credentials of the settings API: operations that list and end the sign-in links, sessions and tokens of the store.

use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use super::{
    auth::{GrantedRequest, SettingsRequest},
    required_grants,
    session::Grants,
};
use crate::{
    domain::{
        api_keys::SecretHash,
        ids::CredentialId,
        settings_access::{CredentialKind, ListedCredential},
        time::Timestamp,
    },
    http::{
        machinery::{
            error_responses::{Failure, SettingsCatalog, SettingsLookup},
            idempotency::Acknowledgement,
            params::{Id, Query, Required},
            success_responses::{All, One, Reply},
        },
        schemas::value_types::{AddressText, EnumValue, UserIdText, ValueSet},
    },
};

/// The kinds of credentials.
#[derive(Debug)]
pub struct CredentialKinds;

impl ValueSet for CredentialKinds {
    const NAME: &'static str = "CredentialKind";
    const DESCRIPTION: &'static str = "`link` opens one session, `session` belongs to a browser, `token` to a program.";
    const VALUES: &'static [&'static str] = &[CredentialKind::Link.name(), CredentialKind::Session.name(), CredentialKind::Token.name()];
}

/// A link, session or token that has not ended. Its secret is not shown.
#[derive(Debug, Object, Serialize)]
#[oai(rename = "Credential", rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct CredentialView {
    /// Identifies the credential: the hash of its secret.
    credential_id: String,
    /// What the credential is used for.
    kind: EnumValue<CredentialKinds>,
    /// The `userId` of the person to whom the credential was given.
    user_id: UserIdText,
    /// What the credential permits; a link or a session permits `all`.
    can: Vec<EnumValue<Grants>>,
    /// When the credential was made.
    created_at: Timestamp,
    /// When the credential ends.
    expires_at: Timestamp,
    /// The e-mail address to which the link was sent; absent if it was not sent by e-mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_to: Option<AddressText>,
    /// Whether the request was authenticated with this credential.
    is_current: bool,
}

impl CredentialView {
    fn of(credential: ListedCredential, managed: &SettingsRequest) -> Self {
        let ListedCredential { id, user_id, kind, can, created_at, expires_at, sent_to, is_owners: _ } = credential;
        Self {
            is_current: id == SecretHash::of(&managed.secret).credential_id(),
            credential_id: id.into_string(),
            kind: kind.name().to_owned().into(),
            user_id: user_id.into(),
            can: can.names().into_iter().map(|name| name.to_owned().into()).collect(),
            created_at,
            expires_at,
            sent_to: sent_to.map(AddressText),
        }
    }
}

/// The operations that list and end credentials.
#[derive(Debug)]
pub struct CredentialOperations;

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Session")]
impl CredentialOperations {
    /// List links, sessions and tokens
    ///
    /// Lists the links, sessions and tokens of the store that have not ended, the newest first. Each gives access only while its user is an
    /// owner or admin.
    #[oai(path = "/credentials", method = "get", operation_id = "listCredentials")]
    async fn list_credentials(
        &self,
        managed: GrantedRequest<required_grants::Team>,
    ) -> Result<Reply<All<CredentialView>>, Failure<SettingsCatalog>> {
        let found = managed.state.service.credentials(managed.store()).await?;
        let views: Vec<CredentialView> = found.into_iter().map(|credential| CredentialView::of(credential, &managed)).collect();
        Ok(Reply::of(&managed.context, &views, vec![]))
    }

    /// Revoke a link, session or token
    ///
    /// Ends a credential of any user of the store, at once. An admin cannot end an owner's.
    #[oai(path = "/credentials", method = "delete", operation_id = "endCredential")]
    async fn end_credential(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        /// The credential to end.
        #[oai(name = "credentialId")]
        credential_id: Query<Required<Id<CredentialId>>>,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<SettingsLookup>> {
        managed.state.service.end_credential(&managed.editor, &credential_id.0.0.0).await?;
        Ok(Reply::of(&managed.context, &Acknowledgement::from(()), vec![]))
    }
}
