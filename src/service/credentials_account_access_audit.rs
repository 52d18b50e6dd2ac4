//! Use-cases for three parts of a store's settings: the credentials with which users open the settings (links, sessions and tokens), the
//! users that a channel account permits, and the audit log.
//!
//! Only the hash of a credential's secret is stored. The role and the seat of the user are looked up on every request, so a user who loses
//! the role or the seat immediately loses access to the settings. Credentials expire by real time, not by the clock of a sandbox (a test
//! database whose clock can be advanced). So users stay signed in when the clock of the sandbox is advanced.

use std::collections::{HashMap, HashSet};

use serde_json::json;

use super::{Error, Result, Service, keys::fresh_secret, write_transaction::WriteTransaction};
use crate::domain::{
    api_keys::{Secret, SecretHash},
    events::EventChange,
    ids::{AccountId, CredentialId, StoreId, TicketId, UserId},
    settings_access::{
        AuditLogEntry, CREDENTIAL_PREFIX, CredentialKind, Editor, EmailLoginUser, Entry, ListedCredential, Manager, NewCredential, Subject,
        Via, manages,
    },
    stores_and_accounts::Account,
    token_grants::GrantSet,
};

/// The maximum number of permitted users of a channel account.
const MAX_ACCOUNT_USERS: usize = 1000;

/// A channel account with its permitted users. An empty list permits all users.
#[derive(Debug)]
pub struct AccountAccess {
    pub account: Account,
    pub users: Vec<UserId>,
}

/// The effects of removing access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovedAccess {
    /// The number of tickets that lost their assignee.
    pub unassigned: usize,
}

impl Service {
    /// Creates a link to the settings page, or a token with the permissions `can`, for a user of the store. Only this call returns the
    /// secret.
    pub async fn issue(&self, editor: &Editor, user: &UserId, kind: CredentialKind, can: GrantSet) -> Result<(Secret, Manager)> {
        self.must_exist(&editor.store_id).await?;
        let secret = self.grant(editor, &NewCredential { user, kind, can, sent_to: None }).await?;
        let found = self.db().user_of_credential(&secret.hash(), kind, self.clocks_and_ids().real.now()).await?;
        Ok((secret, found.ok_or_else(|| Error::Internal("a credential that was made is gone".to_owned()))?))
    }

    /// Creates a link to the settings page for each store in which a user with this e-mail address is an owner or admin. A link is valid
    /// only as long as the user has this address. A store in which no link can be created is left out.
    pub async fn links_for_address(&self, email: &str) -> Result<Vec<(EmailLoginUser, Secret)>> {
        let mut links = Vec::new();
        for addressee in self.db().users_by_email(email).await? {
            if manages(addressee.role.as_deref()) {
                let sent_to = Some(addressee.email.as_str());
                let link = NewCredential { user: &addressee.user_id, kind: CredentialKind::Link, can: GrantSet::EVERYTHING, sent_to };
                match self.grant(&Editor::system(addressee.store_id.clone()), &link).await {
                    Ok(secret) => links.push((addressee, secret)),
                    Err(error) => tracing::error!(%error, store = %addressee.store_id, "no link could be made for a request by e-mail"),
                }
            }
        }
        Ok(links)
    }

    /// Deletes a link whose e-mail could not be sent.
    pub async fn withdraw_link(&self, addressee: &EmailLoginUser, secret: &Secret) -> Result<()> {
        self.end_credential(&Editor::system(addressee.store_id.clone()), &secret.hash().credential_id()).await
    }

    async fn grant(&self, editor: &Editor, credential: &NewCredential<'_>) -> Result<Secret> {
        let NewCredential { user, kind, can, sent_to } = *credential;
        let secret = fresh_secret(CREDENTIAL_PREFIX)?;
        let mut change = self.begin_edit(editor).await?;
        if change.known_users(&[user]).await?.is_empty() {
            return Err(Error::invalid("userId", format!("`{user}` is not the userId of a user of the store")));
        }
        let expires_at = change.insert_credential(&secret.hash(), credential, self.clocks_and_ids().real.now()).await?;
        let can = (kind == CredentialKind::Token).then(|| can.names());
        let detail = json!({ "kind": kind.name(), "expiresAt": expires_at, "can": can, "sentTo": sent_to });
        change.audit(Entry { action: "session.granted", subject: Subject::Session, subject_id: user.to_string(), detail });
        change.end().await?;
        Ok(secret)
    }

    /// Returns the user whose valid credential of this kind has this secret.
    pub async fn manager(&self, secret: &str, kind: CredentialKind) -> Result<Option<Manager>> {
        Ok(self.db().user_of_credential(&SecretHash::of(secret), kind, self.clocks_and_ids().real.now()).await?)
    }

    /// Exchanges a link for a session. Of concurrent requests with one link, only one gets a session. `None`: the link is no longer valid,
    /// or the user has left the store.
    pub async fn open_session(&self, link: &str, manager: &Manager, request_id: &str) -> Result<Option<(Secret, Manager)>> {
        let secret = fresh_secret(CREDENTIAL_PREFIX)?;
        let editor = Editor {
            store_id: manager.store_id.clone(),
            user_id: Some(manager.user_id.clone()),
            via: Via::Session,
            is_owner: manager.is_owner(),
            request_id: Some(request_id.to_owned()),
        };
        let mut change = self.begin_edit(&editor).await?;
        // `known_users` locks the user row. So a concurrent revocation of the user's credentials waits, and then revokes the new session,
        // too.
        if change.known_users(&[&manager.user_id]).await?.is_empty() {
            return Ok(None);
        }
        // The user's address may have changed after the link was looked up, so the link is checked again while the user row is locked.
        if self.manager(link, CredentialKind::Link).await?.is_none() {
            return Ok(None);
        }
        if !change.delete_credential(&SecretHash::of(link).credential_id()).await? {
            return Ok(None);
        }
        let now = self.clocks_and_ids().real.now();
        let user = &manager.user_id;
        let session = NewCredential { user, kind: CredentialKind::Session, can: GrantSet::EVERYTHING, sent_to: None };
        let expires_at = change.insert_credential(&secret.hash(), &session, now).await?;
        let detail = json!({ "expiresAt": expires_at });
        change.audit(Entry { action: "session.opened", subject: Subject::Session, subject_id: manager.user_id.to_string(), detail });
        change.end().await?;
        Ok(Some((secret, Manager { expires_at, ..manager.clone() })))
    }

    /// Ends the session of the request: deletes the credential with this secret.
    pub async fn end_session(&self, editor: &Editor, secret: &str) -> Result<()> {
        let mut change = self.begin_edit(editor).await?;
        change.delete_credential(&SecretHash::of(secret).credential_id()).await?;
        let subject_id = editor.user_id.as_ref().map(ToString::to_string).unwrap_or_default();
        change.audit(Entry { action: "session.ended", subject: Subject::Session, subject_id, detail: json!({}) });
        change.end().await
    }

    /// Deletes every link, session and token of a user; returns their number.
    pub async fn revoke_credentials(&self, editor: &Editor, user: &UserId) -> Result<u64> {
        self.must_exist(&editor.store_id).await?;
        let mut change = self.begin_edit(editor).await?;
        change.lock_user(user).await?;
        let count = change.delete_credentials(user).await?;
        if count > 0 {
            let detail = json!({ "count": count });
            change.audit(Entry { action: "session.revoked", subject: Subject::Session, subject_id: user.to_string(), detail });
        }
        change.end().await?;
        Ok(count)
    }

    /// Returns the credentials of the store that have not ended, the newest first.
    pub async fn credentials(&self, store: &StoreId) -> Result<Vec<ListedCredential>> {
        Ok(self.db().credentials(store, self.clocks_and_ids().real.now()).await?)
    }

    /// Ends a credential of any user of the store. Only an owner may end a credential of an owner.
    pub async fn end_credential(&self, editor: &Editor, id: &CredentialId) -> Result<()> {
        let mut change = self.begin_edit(editor).await?;
        let credential = change.credential(id, self.clocks_and_ids().real.now()).await?;
        let credential = credential.ok_or_else(|| Error::missing("credentialId", "link, session or token", id))?;
        if credential.is_owners && !editor.is_owner {
            return Err(Error::forbidden("credentialId", "names a credential of an owner, which only an owner may end"));
        }
        change.delete_credential(id).await?;
        let detail = json!({ "kind": credential.kind.name(), "count": 1 });
        change.audit(Entry { action: "session.revoked", subject: Subject::Session, subject_id: credential.user_id.to_string(), detail });
        change.end().await
    }

    /// Returns at most `limit` audit log entries before a position in the log, newest first.
    pub async fn audited(&self, store: &StoreId, subject: Option<Subject>, before: Option<i64>, limit: i64) -> Result<Vec<AuditLogEntry>> {
        Ok(self.db().audited(store, subject, before, limit).await?)
    }

    /// Returns every channel account, including disconnected ones, with its permitted users, oldest first.
    pub async fn account_access(&self, store: &StoreId) -> Result<Vec<AccountAccess>> {
        let mut users: HashMap<AccountId, Vec<UserId>> = HashMap::new();
        for (account, user) in self.db().all_account_users(store).await? {
            users.entry(account).or_default().push(user);
        }
        let accounts = self.db().every_account(store).await?;
        Ok(accounts.into_iter().map(|account| AccountAccess { users: users.remove(&account.id).unwrap_or_default(), account }).collect())
    }

    /// Restricts an account to `users`, or permits all users if `users` is empty. A ticket of the account that is assigned to a user who is
    /// not permitted loses its assignee.
    pub async fn set_account_users(&self, editor: &Editor, id: &AccountId, users: Vec<UserId>) -> Result<(AccountAccess, RemovedAccess)> {
        if users.len() > MAX_ACCOUNT_USERS {
            return Err(Error::invalid("body.userIds", format!("must hold at most {MAX_ACCOUNT_USERS} ids")));
        }
        let mut seen = HashSet::new();
        if let Some(i) = users.iter().position(|user| !seen.insert(user)) {
            return Err(Error::invalid(format!("body.userIds[{i}]"), "is named twice"));
        }
        let mut change = self.begin_edit(editor).await?;
        let known: HashSet<UserId> = change.known_users(&users.iter().collect::<Vec<_>>()).await?.into_iter().collect();
        let account = change.locked_account(id).await?.ok_or_else(|| Error::missing("body.accountId", "account", id))?;
        if let Some(i) = users.iter().position(|user| !known.contains(user)) {
            return Err(Error::invalid(format!("body.userIds[{i}]"), "names no user of this store"));
        }
        let former: HashSet<UserId> = change.account_users(&[id]).await?.into_iter().map(|(_, user)| user).collect();
        change.save_account_users(id, &users).await?;
        let mut taken = RemovedAccess::default();
        if !users.is_empty() {
            let tickets = change.tickets_of_unlisted_assignees(id).await?;
            taken.unassigned = unassign(&mut change, tickets, |assignee| !users.contains(assignee)).await?;
        }
        if former != users.iter().cloned().collect() || taken.unassigned > 0 {
            let detail = json!({ "userIds": users, "unassigned": taken.unassigned });
            change.audit(Entry { action: "account.users_set", subject: Subject::Account, subject_id: id.to_string(), detail });
        }
        change.end().await?;
        Ok((AccountAccess { account, users }, taken))
    }
}

/// Removes the assignee from each ticket whose assignee loses access. Returns the number of these tickets. A ticket that was reassigned
/// after `tickets` were read keeps its new assignee. To prevent deadlocks, conversations are locked before their tickets, as for an inbound
/// message.
pub(super) async fn unassign(change: &mut WriteTransaction<'_>, tickets: Vec<TicketId>, loses: impl Fn(&UserId) -> bool) -> Result<usize> {
    change.lock_conversations_of(&tickets).await?;
    let mut count = 0;
    for id in tickets {
        let Some(mut ticket) = change.ticket(&id).await? else { continue };
        if !ticket.assignee_user_id.as_ref().is_some_and(&loses) {
            continue;
        }
        if let Some(previous) = ticket.unassign(change.now()) {
            change.save_ticket(&ticket).await?;
            change.note(EventChange::TicketUnassigned { ticket, previous: Some(previous) });
            count += 1;
        }
    }
    Ok(count)
}
