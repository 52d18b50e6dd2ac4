//! Queries of the credentials with which users sign in to change a store's settings (table `grants`: sign-in links, sessions and tokens),
//! and of the users that may use a restricted channel account.

use std::collections::BTreeSet;

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, Condition, DbBackend, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, Order, Query, SelectStatement},
};

use crate::{
    domain::{
        api_keys::SecretHash,
        ids::{AccountId, CredentialId, StoreId, TicketId, UserId},
        settings_access::{CredentialKind, EmailLoginUser, ListedCredential, Manager, NewCredential, OWNER},
        time::Timestamp,
        token_grants::GrantSet,
    },
    store::{
        Db, Error, Result,
        entity::{account_users, api_keys, conversations, settings_credentials, stores, tickets, users, webhooks},
        parameterised_sql::batches,
        row_decoding::Cells,
        sql_from_entities::{among, equal_columns},
        transaction::store_transaction::Write,
        users_teams_labels::role_kind,
    },
};

/// The stored kind of a token that permits only some operations. An earlier version of the program does not know such restrictions. It
/// looks only for the kind `token`, so it refuses a restricted token instead of permitting everything.
const RESTRICTED_TOKEN: &str = "narrow_token";

/// Returns the values of the column `kind` with which credentials of this kind are stored.
fn stored_kinds(kind: CredentialKind) -> Vec<&'static str> {
    match kind {
        CredentialKind::Token => vec![kind.name(), RESTRICTED_TOKEN],
        CredentialKind::Link | CredentialKind::Session => vec![kind.name()],
    }
}

/// Returns the condition that joins credentials with their users.
fn same_user() -> Condition {
    Condition::all()
        .add(equal_columns(users::Column::StoreId, settings_credentials::Column::StoreId))
        .add(equal_columns(users::Column::UserId, settings_credentials::Column::UserId))
}

impl Db {
    /// Returns the user of a credential of this kind. `None`: the credential is unknown or has expired, the user has left the store, or the
    /// link was sent to another e-mail address than the user has now.
    pub async fn user_of_credential(&self, hash: &SecretHash, kind: CredentialKind, now: Timestamp) -> Result<Option<Manager>> {
        let credential = settings_credentials::Entity::find()
            .filter(settings_credentials::Column::Hash.eq(hash.as_str()))
            .filter(among(settings_credentials::Column::Kind, stored_kinds(kind)))
            .filter(settings_credentials::Column::ExpiresAt.gt(now));
        let Some(credential) = self.find_all(credential).await?.pop() else { return Ok(None) };
        let (store_id, user_id) = (StoreId::from(credential.store_id), UserId::from(credential.user_id));
        // A second query reads the user, when the store is known: a distributed database (Citus) then reads only the node that has the store.
        let mut query = Query::select();
        query
            .expr(Expr::from(role_kind(Some(&store_id))))
            .from(users::Entity)
            .and_where(users::Column::StoreId.eq(&store_id))
            .and_where(users::Column::UserId.eq(&user_id))
            .and_where_option(credential.sent_to.map(|address| users::Column::Email.eq(address)));
        let role = self.select(query, |cells| cells.take::<Option<String>>()).await?.pop();
        let (expires_at, can) = (Timestamp::from_millis(credential.expires_at), GrantSet::from_stored(&credential.can));
        Ok(role.map(|role| Manager { store_id, user_id, role, expires_at, can }))
    }

    /// Returns the credentials of the store that have not expired, the newest first.
    pub async fn credentials(&self, store: &StoreId, now: Timestamp) -> Result<Vec<ListedCredential>> {
        self.select(credentials(store, now), credential).await
    }

    /// Returns the users of all stores who have joined their store and have this e-mail address. The case of ASCII letters is ignored.
    pub async fn users_by_email(&self, email: &str) -> Result<Vec<EmailLoginUser>> {
        // `LOWER` changes only ASCII letters, in SQLite and, with the collation C, in PostgreSQL.
        let lower = if self.backend() == DbBackend::Sqlite { "LOWER(users.email)" } else { "LOWER(users.email COLLATE \"C\")" };
        // The query has no condition on the store: a user with this address may belong to any store.
        let mut query = Query::select();
        query
            .columns([users::Column::StoreId.as_column_ref(), stores::Column::Name.as_column_ref()])
            .columns([(users::Entity, users::Column::UserId), (users::Entity, users::Column::Email)])
            .expr(Expr::from(role_kind(None)))
            .from(users::Entity)
            .inner_join(stores::Entity, equal_columns(stores::Column::Id, users::Column::StoreId))
            .and_where(Expr::cust(lower).eq(email.to_ascii_lowercase()))
            .and_where(users::Column::UserId.is_not_null())
            .order_by((users::Entity, users::Column::StoreId), Order::Asc)
            .order_by((users::Entity, users::Column::Id), Order::Asc);
        let found = self.select(query, |cells| {
            Ok(EmailLoginUser {
                store_id: cells.take()?,
                store_name: cells.take()?,
                user_id: cells.take()?,
                email: cells.take()?,
                role: cells.take()?,
            })
        });
        found.await
    }

    /// Returns the users that may use each restricted account of the store, in the order of account and user ids. An account that is not in
    /// the result is open to all users.
    pub async fn all_account_users(&self, store: &StoreId) -> Result<Vec<(AccountId, UserId)>> {
        let rows = self.find_all(
            account_users::Entity::find()
                .filter(account_users::Column::StoreId.eq(store))
                .order_by_asc(account_users::Column::AccountId)
                .order_by_asc(account_users::Column::UserId),
        );
        Ok(rows.await?.into_iter().map(|row| (row.account_id.into(), row.user_id.into())).collect())
    }
}

/// Returns the query for the credentials of a store that have not expired, the newest first.
fn credentials(store: &StoreId, now: Timestamp) -> SelectStatement {
    use settings_credentials::{
        Column::{Can, CreatedAt, ExpiresAt, Hash, Kind, SentTo, StoreId, UserId},
        Entity,
    };
    Query::select()
        .columns([Hash, UserId, Kind, Can, CreatedAt, ExpiresAt, SentTo].map(|column| (Entity, column)))
        .expr(Expr::from(role_kind(Some(store))))
        .from(Entity)
        .inner_join(users::Entity, same_user())
        .and_where(StoreId.eq(store))
        .and_where(ExpiresAt.gt(now))
        // Leaves out credentials of kinds that only a newer version of the program knows.
        .and_where(among(Kind, CredentialKind::ALL.into_iter().flat_map(stored_kinds)))
        .order_by((Entity, CreatedAt), Order::Desc)
        .order_by((Entity, Kind), Order::Asc)
        .order_by((Entity, Hash), Order::Asc)
        .take()
}

fn credential(cells: &mut Cells<'_>) -> Result<ListedCredential> {
    let (id, user_id, stored_kind) = (cells.take()?, cells.take()?, cells.take::<String>()?);
    let kind = CredentialKind::ALL.into_iter().find(|kind| stored_kinds(*kind).contains(&stored_kind.as_str()));
    let kind = kind.ok_or_else(|| Error::Damaged(format!("`{stored_kind}` is no kind of a credential")))?;
    let can = GrantSet::from_stored(&cells.take::<String>()?);
    let (created_at, expires_at, sent_to) = (cells.take()?, cells.take()?, cells.take()?);
    let is_owners = cells.take::<Option<String>>()?.as_deref() == Some(OWNER);
    Ok(ListedCredential { id, user_id, kind, can, created_at, expires_at, sent_to, is_owners })
}

impl Write {
    /// Returns the credential with this id. `None`: it does not exist or has expired.
    pub async fn credential(&self, id: &CredentialId, now: Timestamp) -> Result<Option<ListedCredential>> {
        let mut query = credentials(self.store(), now);
        query.and_where(settings_credentials::Column::Hash.eq(id));
        Ok(self.select(query, credential).await?.pop())
    }

    /// Stores a credential, and deletes the store's expired credentials. Returns when the new credential expires. `now` is real time, also
    /// in a sandbox (a database for tests whose clock can be set ahead).
    pub async fn insert_credential(&self, hash: &SecretHash, credential: &NewCredential<'_>, now: Timestamp) -> Result<Timestamp> {
        let NewCredential { user, kind, can, sent_to } = *credential;
        let expires_at = now.plus_millis(kind.lifetime());
        let ended = Condition::all()
            .add(settings_credentials::Column::StoreId.eq(self.store()))
            .add(settings_credentials::Column::ExpiresAt.lte(now));
        self.execute(&settings_credentials::Entity::delete_many().filter(ended)).await?;
        let row = settings_credentials::ActiveModel {
            hash: Set(hash.as_str().to_owned()),
            store_id: Set(self.store().to_string()),
            user_id: Set(user.to_string()),
            kind: Set(if can.is_all() { kind.name() } else { RESTRICTED_TOKEN }.to_owned()),
            created_at: Set(now.millis()),
            expires_at: Set(expires_at.millis()),
            can: Set(can.to_string()),
            sent_to: Set(sent_to.map(str::to_owned)),
        };
        self.insert(row).await?;
        Ok(expires_at)
    }

    /// Deletes a credential. Returns `false` if it does not exist: of two concurrent requests that use a single-use link, one gets `false`.
    pub async fn delete_credential(&self, id: &CredentialId) -> Result<bool> {
        let grant =
            Condition::all().add(settings_credentials::Column::StoreId.eq(self.store())).add(settings_credentials::Column::Hash.eq(id));
        Ok(self.execute(&settings_credentials::Entity::delete_many().filter(grant)).await? == 1)
    }

    /// Deletes every credential of a user; returns their number.
    pub async fn delete_credentials(&self, user: &UserId) -> Result<u64> {
        let of_user =
            Condition::all().add(settings_credentials::Column::StoreId.eq(self.store())).add(settings_credentials::Column::UserId.eq(user));
        self.execute(&settings_credentials::Entity::delete_many().filter(of_user)).await
    }

    /// Returns the number of API keys of the store. On PostgreSQL, concurrent transactions that create keys do not count each other's keys,
    /// so together they may exceed a limit.
    pub async fn count_keys(&self) -> Result<i64> {
        self.count(api_keys::Column::StoreId).await
    }

    /// Returns the number of webhooks of the store. On PostgreSQL, concurrent transactions that create webhooks do not count each other's
    /// webhooks, so together they may exceed a limit.
    pub async fn count_webhooks(&self) -> Result<i64> {
        self.count(webhooks::Column::StoreId).await
    }

    async fn count<C: ColumnTrait>(&self, store: C) -> Result<i64> {
        let mut query = Query::select();
        query.expr(Expr::col(store).count()).from(store.entity_name()).and_where(store.eq(self.store()));
        Ok(self.select(query, |cells| cells.take()).await?.pop().unwrap_or_default())
    }

    /// Locks the rows of the conversations of these tickets on PostgreSQL, in the order of the conversation ids.
    pub async fn lock_conversations_of(&self, tickets: &[TicketId]) -> Result<()> {
        if !self.on_postgres() {
            return Ok(());
        }
        let mut conversations = BTreeSet::new();
        for ids in batches(tickets.iter().map(TicketId::as_str)) {
            let query = tickets::Entity::find()
                .select_only()
                .column(tickets::Column::ConversationId)
                .filter(tickets::Column::StoreId.eq(self.store()))
                .filter(among(tickets::Column::Id, ids));
            conversations.extend(self.select(query, |cells| cells.take::<String>()).await?);
        }
        for ids in batches(conversations.iter().map(String::as_str)) {
            let query = conversations::Entity::find()
                .select_only()
                .column(conversations::Column::Id)
                .filter(conversations::Column::StoreId.eq(self.store()))
                .filter(among(conversations::Column::Id, ids))
                .order_by_asc(conversations::Column::Id);
            self.select_for_update(query, |_| Ok(())).await?;
        }
        Ok(())
    }

    /// Removes a user as the owner of API keys. An API key without an owner acts in the name of the store's oldest owner
    /// ([`Write::oldest_owner`]). Returns the number of changed keys.
    pub async fn reassign_keys_to_owner(&self, user: &UserId) -> Result<u64> {
        let disowned = api_keys::Entity::update_many()
            .col_expr(api_keys::Column::OwnerUserId, Expr::value(None::<String>))
            .filter(api_keys::Column::StoreId.eq(self.store()))
            .filter(api_keys::Column::OwnerUserId.eq(user));
        self.execute(&disowned).await
    }

    /// Returns the tickets that are assigned to a user, on all accounts, in the order of ticket ids.
    pub async fn tickets_of_assignee(&self, user: &UserId) -> Result<Vec<TicketId>> {
        self.ticket_ids(Condition::all().add(tickets::Column::AssigneeUserId.eq(user))).await
    }

    /// Returns the tickets of a restricted account that are assigned to users who may not use the account, in the order of ticket ids.
    pub async fn tickets_of_unlisted_assignees(&self, account: &AccountId) -> Result<Vec<TicketId>> {
        let mut listed = Query::select();
        listed
            .column(account_users::Column::UserId)
            .from(account_users::Entity)
            .and_where(account_users::Column::StoreId.eq(self.store()))
            .and_where(account_users::Column::AccountId.eq(account));
        let of_others = Condition::all()
            .add(tickets::Column::AccountId.eq(account))
            .add(tickets::Column::AssigneeUserId.is_not_null())
            .add(tickets::Column::AssigneeUserId.not_in_subquery(listed));
        self.ticket_ids(of_others).await
    }

    /// Returns the sorted ids of the tickets that fulfil the conditions. The ids are sorted in Rust: with an `ORDER BY`, SQLite, which has
    /// no statistics, would scan all tickets of the store in this order instead of sorting a few.
    async fn ticket_ids(&self, conditions: Condition) -> Result<Vec<TicketId>> {
        let query = tickets::Entity::find()
            .select_only()
            .column(tickets::Column::Id)
            .filter(tickets::Column::StoreId.eq(self.store()))
            .filter(conditions);
        let mut ids: Vec<TicketId> = self.select(query, |cells| cells.take()).await?;
        ids.sort_unstable();
        Ok(ids)
    }

    /// Replaces the users that may use an account. If `users` is empty, the account is open to all users.
    pub async fn save_account_users(&self, account: &AccountId, users: &[UserId]) -> Result<()> {
        let listed =
            Condition::all().add(account_users::Column::StoreId.eq(self.store())).add(account_users::Column::AccountId.eq(account));
        self.execute(&account_users::Entity::delete_many().filter(listed)).await?;
        let rows = users.iter().map(|user| account_users::ActiveModel {
            store_id: Set(self.store().to_string()),
            account_id: Set(account.to_string()),
            user_id: Set(user.to_string()),
        });
        for row in rows {
            self.insert(row).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        domain::{clock::Clock, fake_clock_and_test_rules::MovableClock},
        store::{fixture::Fixture, parameterised_sql::Sql},
    };

    #[tokio::test]
    async fn tokens_of_earlier_versions_are_unrestricted_and_a_downgrade_deletes_restricted_ones() {
        let fixture = Fixture::alone().await;
        fixture.role("r1", "Owner").await;
        fixture.user("seat", Some("u1"), Some("Ann"), 0).await;
        let clock: Arc<dyn Clock> = MovableClock::at(0);
        let [full, narrow, old] = ["full", "narrow", "old"].map(SecretHash::of);
        let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
        let (user, ends) = (UserId::from("u1"), Timestamp::from_millis(1000));
        let few: GrantSet = "events,inbound".parse().unwrap();
        let token = |can| NewCredential { user: &user, kind: CredentialKind::Token, can, sent_to: None };
        write.insert_credential(&full, &token(GrantSet::EVERYTHING), ends).await.unwrap();
        write.insert_credential(&narrow, &token(few), ends).await.unwrap();
        write.commit().await.unwrap();
        // The statement with which an earlier version of the program, which has only unrestricted tokens, stores a token.
        let insert = format!(
            "INSERT INTO grants (hash, store_id, user_id, kind, created_at, expires_at) VALUES ('{}', '{}', 'u1', 'token', 0, 1000)",
            old.as_str(),
            fixture.store
        );
        fixture.execute(&insert).await.unwrap();
        let can = async |hash: &SecretHash, kind| {
            let found = fixture.db.user_of_credential(hash, kind, Timestamp::from_millis(1)).await.unwrap();
            found.map(|manager| manager.can.to_string())
        };
        let tokens = async || {
            [can(&full, CredentialKind::Token).await, can(&narrow, CredentialKind::Token).await, can(&old, CredentialKind::Token).await]
        };
        let of = |can: &str| Some(can.to_owned());
        assert_eq!(tokens().await, [of("all"), of("events,inbound"), of("all")]);
        assert_eq!(can(&narrow, CredentialKind::Session).await, None);
        // An earlier version of the program looks for tokens of this kind only, and so does not find the restricted token.
        let known = Sql::of(&fixture.store, "SELECT hash FROM grants WHERE store_id = $1 AND kind = 'token'");
        let known = fixture.db.all(known, |cells| cells.take::<String>()).await.unwrap();
        assert!(known.len() == 2 && !known.contains(&narrow.as_str().to_owned()), "{known:?}");
        fixture.migrate_again("m0018_narrow_tokens").await;
        assert_eq!(tokens().await, [of("all"), None, of("all")]);
    }

    #[tokio::test]
    async fn a_sign_in_link_is_valid_only_for_the_address_it_was_sent_to() {
        let fixture = Fixture::alone().await;
        fixture.role("r1", "Owner").await;
        fixture.user("seat", Some("u1"), Some("Ann"), 0).await;
        let clock: Arc<dyn Clock> = MovableClock::at(0);
        let (user, link) = (UserId::from("u1"), SecretHash::of("link"));
        let spelled = async |email: &str| {
            fixture.execute(&format!("UPDATE users SET email = '{email}' WHERE store_id = '{}'", fixture.store)).await.unwrap();
            let found = fixture.db.users_by_email("ÄNN@example.COM").await.unwrap();
            (found.len(), fixture.db.user_of_credential(&link, CredentialKind::Link, Timestamp::from_millis(1)).await.unwrap().is_some())
        };
        let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
        let sent = NewCredential { user: &user, kind: CredentialKind::Link, can: GrantSet::EVERYTHING, sent_to: Some("Änn@example.com") };
        write.insert_credential(&link, &sent, Timestamp::from_millis(0)).await.unwrap();
        write.commit().await.unwrap();
        // `spelled` gives the user an e-mail address. It returns how many users a search for `ÄNN@example.COM` then finds, and whether the
        // link that was sent to `Änn@example.com` is valid. The search ignores the case of ASCII letters; the link does not.
        assert_eq!(spelled("Änn@example.com").await, (1, true));
        assert_eq!(spelled("ÄNN@Example.com").await, (1, false));
        assert_eq!(spelled("änn@example.com").await, (0, false));
        assert_eq!(spelled("Änn@example.com").await, (1, true));
        fixture.migrate_again("m0023_links_by_email").await;
        assert_eq!(spelled("Änn@example.com").await, (1, false));
    }
}
