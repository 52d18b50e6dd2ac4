//! Who may change a store's settings, and the changes that take something from users: a seat, or access to an account.

use super::{
    Db, Result,
    sql::{Param, Row, Sql, batches},
    write::Write,
};
use crate::domain::{
    ids::{AccountId, SeatId, StoreId, TicketId, UserId},
    keys::SecretHash,
    settings::{GrantKind, Manager},
    team::User,
    time::Timestamp,
};

/// The store is what this finds out.
const FIND_MANAGER: &str = "SELECT g.store_id, g.user_id, r.kind, g.expires_at FROM grants g \
     JOIN users u ON u.store_id = g.store_id AND u.user_id = g.user_id \
     LEFT JOIN roles r ON r.store_id = u.store_id AND r.id = u.role_id \
     WHERE g.hash = $1 AND g.kind = $2 AND g.expires_at > $3";

impl Db {
    /// Who holds a grant of that kind; `None` when it is unknown or has ended, or the user has left the store.
    pub async fn find_manager(&self, hash: &SecretHash, kind: GrantKind, now: Timestamp) -> Result<Option<Manager>> {
        let sql = Sql::fixed(FIND_MANAGER)
            .with(Param::Text(hash.as_str().to_owned()))
            .with(Param::Text(kind.name().to_owned()))
            .with(Param::Integer(now.millis()));
        self.first(sql, |cells| Ok(Manager { store_id: cells.id()?, user_id: cells.id()?, role: cells.take()?, expires_at: cells.time()? }))
            .await
    }

    /// The users that each account of the store lists, in the order of their ids; an account that lists none is open to all.
    pub async fn all_account_users(&self, store: &StoreId) -> Result<Vec<(AccountId, UserId)>> {
        let sql = Sql::of(store, "SELECT account_id, user_id FROM account_users WHERE store_id = $1 ORDER BY account_id, user_id");
        self.all(sql, |cells| Ok((cells.id()?, cells.id()?))).await
    }
}

impl Write {
    /// Stores a grant, and forgets the store's that have ended.
    pub async fn insert_grant(&self, hash: &SecretHash, user: &UserId, kind: GrantKind, expires_at: Timestamp) -> Result<()> {
        let now = self.now().millis();
        let mut sql = self.sql("DELETE FROM grants WHERE store_id = $1 AND expires_at <= ");
        sql.integer(now);
        self.run(sql).await?;
        let mut sql = self.sql("INSERT INTO grants (store_id, hash, user_id, kind, created_at, expires_at) VALUES ($1, ");
        sql.text(hash.as_str()).push(", ").text(user.as_str()).push(", ").text(kind.name());
        sql.push(", ").integer(now).push(", ").integer(expires_at.millis()).push(")");
        self.run(sql).await?;
        Ok(())
    }

    /// Ends a grant; `false` when it is not there, so that of two who use a link up only one does.
    pub async fn delete_grant(&self, hash: &SecretHash) -> Result<bool> {
        let mut sql = self.sql("DELETE FROM grants WHERE store_id = $1 AND hash = ");
        sql.text(hash.as_str());
        Ok(self.run(sql).await? == 1)
    }

    /// Ends every grant of a user; how many.
    pub async fn delete_grants(&self, user: &UserId) -> Result<u64> {
        let mut sql = self.sql("DELETE FROM grants WHERE store_id = $1 AND user_id = ");
        sql.text(user.as_str());
        self.run(sql).await
    }

    /// The user on a seat, and every owner who has joined the store, each with the kind of the role, held until the end of
    /// the transaction: of two removals at once the second sees what the first left. In the order in which every writer
    /// holds users.
    pub async fn seat_and_owners(&self, id: &SeatId) -> Result<Vec<(User, Option<String>)>> {
        let kind = "(SELECT r.kind FROM roles r WHERE r.store_id = u.store_id AND r.id = u.role_id)";
        let mut sql = self.sql("SELECT ");
        sql.push(User::COLUMNS).push(", ").push(kind).push(" FROM users u WHERE u.store_id = $1 AND (u.id = ").text(id.as_str());
        sql.push(" OR (u.user_id IS NOT NULL AND ").push(kind).push(" = 'owner')) ORDER BY u.id");
        self.hold(&mut sql);
        self.all(sql, |cells| Ok((User::decode(cells)?, cells.take()?))).await
    }

    /// How many rows of a table the store has. Two that are made at the same moment do not count each other.
    pub async fn count_of_store(&self, table: &'static str) -> Result<i64> {
        let mut sql = self.sql("SELECT COUNT(*) FROM ");
        sql.push(table).push(" WHERE store_id = $1");
        Ok(self.first(sql, |cells| cells.take()).await?.unwrap_or_default())
    }

    /// Whether a user is an owner of the store.
    pub async fn is_owner(&self, user: &UserId) -> Result<bool> {
        let mut sql = self.sql("SELECT 1 FROM users u JOIN roles r ON r.store_id = u.store_id AND r.id = u.role_id WHERE u.store_id = $1");
        sql.push(" AND r.kind = 'owner' AND u.user_id = ").text(user.as_str()).push(" LIMIT 1");
        Ok(self.first(sql, |cells| cells.take::<i32>()).await?.is_some())
    }

    /// Holds a user until the end of the transaction, whether there is one or not.
    pub async fn hold_user(&self, user: &UserId) -> Result<()> {
        let mut sql = self.sql("SELECT id FROM users WHERE store_id = $1 AND user_id = ");
        sql.text(user.as_str());
        self.hold(&mut sql);
        self.all(sql, |cells| cells.id::<SeatId>()).await?;
        Ok(())
    }

    /// Holds the conversations of these tickets, in the order of their ids.
    pub async fn hold_conversations_of(&self, tickets: &[TicketId]) -> Result<()> {
        if !self.on_postgres() {
            return Ok(());
        }
        let mut conversations = std::collections::BTreeSet::new();
        for ids in batches(tickets.iter().map(TicketId::as_str)) {
            let mut sql = self.sql("SELECT conversation_id FROM tickets WHERE store_id = $1 AND id IN ");
            sql.texts(ids);
            conversations.extend(self.all(sql, |cells| cells.take::<String>()).await?);
        }
        for ids in batches(conversations.iter().map(String::as_str)) {
            let mut sql = self.sql("SELECT id FROM conversations WHERE store_id = $1 AND id IN ");
            sql.texts(ids).push(" ORDER BY id");
            self.hold(&mut sql);
            self.all(sql, |cells| cells.take::<String>()).await?;
        }
        Ok(())
    }

    /// Removes a seat.
    pub async fn delete_seat(&self, id: &SeatId) -> Result<()> {
        let mut sql = self.sql("DELETE FROM users WHERE store_id = $1 AND id = ");
        sql.text(id.as_str());
        self.run(sql).await?;
        Ok(())
    }

    /// Has the keys that act in a user's name act in that of the store's oldest owner; how many there are.
    pub async fn disown_keys(&self, user: &UserId) -> Result<u64> {
        let mut sql = self.sql("UPDATE api_keys SET owner_user_id = NULL WHERE store_id = $1 AND owner_user_id = ");
        sql.text(user.as_str());
        self.run(sql).await
    }

    /// The tickets that are assigned to a user, on whatever account, in the order of their ids.
    pub async fn tickets_of_assignee(&self, user: &UserId) -> Result<Vec<TicketId>> {
        let mut sql = self.sql("SELECT id FROM tickets");
        if !self.on_postgres() {
            // SQLite has no statistics, and would rather walk all tickets than sort some.
            sql.push(" INDEXED BY tickets_by_assignee");
        }
        sql.push(" WHERE store_id = $1 AND assignee_user_id = ").text(user.as_str()).push(" ORDER BY id");
        self.all(sql, |cells| cells.id()).await
    }

    /// The tickets of an account that lists users which are assigned to somebody else, in the order of their ids.
    pub async fn tickets_of_others(&self, account: &AccountId) -> Result<Vec<TicketId>> {
        let mut sql = self.sql("SELECT t.id FROM tickets t WHERE t.store_id = $1 AND t.assignee_user_id IS NOT NULL AND t.account_id = ");
        sql.text(account.as_str()).push(" AND t.assignee_user_id NOT IN (SELECT a.user_id FROM account_users a WHERE a.store_id = $1");
        sql.push(" AND a.account_id = ").text(account.as_str()).push(") ORDER BY t.id");
        self.all(sql, |cells| cells.id()).await
    }

    /// Replaces the users that an account lists.
    pub async fn save_account_users(&self, account: &AccountId, users: &[UserId]) -> Result<()> {
        let mut sql = self.sql("DELETE FROM account_users WHERE store_id = $1 AND account_id = ");
        sql.text(account.as_str());
        self.run(sql).await?;
        for user in users {
            let mut sql = self.sql("INSERT INTO account_users (store_id, account_id, user_id) VALUES ($1, ");
            sql.text(account.as_str()).push(", ").text(user.as_str()).push(")");
            self.run(sql).await?;
        }
        Ok(())
    }
}
