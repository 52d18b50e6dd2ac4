//! Use-cases for bridges. A bridge is an HTTP endpoint that delivers the messages of a channel account to the channel. The use-cases set
//! and remove a bridge, rotate its signing secret, and verify requests that the bridge signed. `outbox_processing` passes each due message
//! to `delivery`, together with the bridge of its account.

use serde_json::{Value, json};
use url::{Host, Url};

use super::{
    Error, Result, Service,
    endpoint_urls::{checked_url, fresh_secret},
    error::shown,
};
use crate::domain::{
    channel_bridges::Bridge,
    ids::{AccountId, MAX_ID_CHARS, StoreId},
    inbound_signatures::{AcceptedSignature, RequestSignature},
    outbound_messages::accepts_at_once,
    settings_access::{Editor, Entry, FormerSecrets, Subject},
    unicode_text::is_name,
    webhooks::{ROTATION_MILLIS, SECRET_BYTES, SigningSecret},
};

impl Service {
    /// Creates an account's bridge, or changes the URL of the existing one. Returns the signing secret only of a new bridge.
    pub async fn set_bridge(&self, editor: &Editor, account: &AccountId, url: &str) -> Result<(Bridge, Option<SigningSecret>)> {
        self.must_exist(&editor.store_id).await?;
        check(&checked_url(url, self.targets)?)?;
        let secret = fresh_secret()?;
        let mut change = self.begin_edit(editor).await?;
        let found = change.locked_account(account).await?.ok_or_else(|| Error::missing("accountId", "account", account))?;
        let channel = found.channel.as_str();
        if accepts_at_once(channel) {
            let reason = format!("is of the channel `{channel}`, which is our own; no message of it would go over a bridge");
            return Err(Error::invalid("accountId", reason));
        }
        let set = match change.bridge(account).await? {
            Some(bridge) if bridge.url == url => (bridge, None),
            Some(mut bridge) => {
                url.clone_into(&mut bridge.url);
                bridge.updated_at = change.now();
                change.save_bridge(&bridge).await?;
                change.audit(entry("account.bridge_moved", account, json!({ "url": url })));
                (bridge, None)
            }
            None => {
                let now = change.now();
                let bridge = Bridge { account_id: account.clone(), url: url.to_owned(), created_at: now, updated_at: now };
                change.insert_bridge(&bridge, &secret).await?;
                change.audit(entry("account.bridged", account, json!({ "url": url })));
                (bridge, Some(secret))
            }
        };
        change.end().await?;
        Ok(set)
    }

    pub async fn bridges(&self, store: &StoreId) -> Result<Vec<Bridge>> {
        self.must_exist(store).await?;
        Ok(self.db().bridges(store).await?)
    }

    /// Rotates the signing secret. With [`FormerSecrets::Overlap`], former secrets stay in use for a day in addition to the new secret.
    pub async fn rotate_bridge(&self, editor: &Editor, account: &AccountId, former: FormerSecrets) -> Result<(Bridge, SigningSecret)> {
        let secret = fresh_secret()?;
        let mut change = self.begin_edit(editor).await?;
        let mut bridge = change.bridge(account).await?.ok_or_else(|| unknown(account))?;
        bridge.updated_at = change.now();
        change.supersede_bridge_secrets(account, &secret, former.end(change.now(), ROTATION_MILLIS)).await?;
        change.save_bridge(&bridge).await?;
        change.audit(former.noted(entry("account.bridge_rotated", account, json!({ "url": bridge.url }))));
        change.end().await?;
        Ok((bridge, secret))
    }

    /// Verifies that the bridge of an account signed a request with a valid secret. Returns `None` if it did not. The work for a store or
    /// an account that does not exist equals the work for a wrong signature, so the response time does not show which of them exist.
    pub async fn signed_by_bridge(
        &self,
        store: &StoreId,
        account: &AccountId,
        signature: &RequestSignature,
        body: &[u8],
    ) -> Result<Option<AcceptedSignature>> {
        let named = is_name(store.as_str(), MAX_ID_CHARS) && is_name(account.as_str(), MAX_ID_CHARS);
        let secrets = if named { self.db().bridge_secrets(store, account, self.clocks_and_ids().now()).await? } else { Ok(vec![]) };
        let secrets = secrets.map_err(|reason| {
            tracing::error!(%store, %account, reason, "the signature of a bridge cannot be verified");
            // The secrets cannot be decrypted, so the server cannot tell whether the signature is valid. After this error, the bridge sends
            // its request again.
            Error::Unavailable { reason: "signatures cannot be verified at present; try again later".to_owned(), retry_after: 60 }
        })?;
        if secrets.is_empty() {
            signature.is_by_one_of(&[SigningSecret(vec![0; SECRET_BYTES])], body);
            return Ok(None);
        }
        Ok(signature.is_by_one_of(&secrets, body).then(|| signature.accepted(account.clone())))
    }

    /// Removes an account's bridge, even while messages of the account are queued.
    pub async fn remove_bridge(&self, editor: &Editor, account: &AccountId) -> Result<()> {
        let mut change = self.begin_edit(editor).await?;
        if !change.delete_bridge(account).await? {
            return Err(unknown(account));
        }
        change.audit(entry("account.unbridged", account, json!({})));
        change.end().await
    }
}

fn entry(action: &'static str, account: &AccountId, detail: Value) -> Entry {
    Entry { action, subject: Subject::Account, subject_id: account.to_string(), detail }
}

fn unknown(account: &AccountId) -> Error {
    Error::not_found("accountId", format!("there is no bridge on an account `{}` of the store", shown(account)))
}

/// Refuses plain HTTP except to a loopback IP address, since messages to contacts are confidential.
fn check(url: &Url) -> Result<()> {
    let stays = match url.host() {
        Some(Host::Ipv4(four)) => four.is_loopback(),
        Some(Host::Ipv6(six)) => six.is_loopback(),
        Some(Host::Domain(_)) | None => false,
    };
    if url.scheme() == "https" || stays {
        return Ok(());
    }
    Err(Error::invalid("url", "must begin with https://; http:// is for 127.0.0.1 and [::1] alone, in development"))
}
