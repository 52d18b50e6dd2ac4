//! Signing secrets of endpoints (webhooks and bridges), in one table for each kind of endpoint. They are encrypted at rest
//! (`encryption_keys`).

use sea_orm::{
    Condition, EntityName, IdenStatic, Value,
    sea_query::{Expr, ExprTrait, Query},
};

use crate::{
    domain::{time::Timestamp, webhooks::SigningSecret},
    store::{
        Result,
        // Every table of signing secrets has these columns, with these names.
        entity::webhook_secrets::Column::{EndsAt, KeyId, Secret, StoreId},
        row_decoding::Cells,
        settings::encryption_keys::{EncryptedSecret, SecretKeys, SecretRow},
        transaction::store_transaction::Write,
    },
};

/// The description of a table of secrets: its name and columns.
#[derive(Clone, Copy)]
pub(in crate::store) struct SecretTable {
    pub table: &'static str,
    /// The column with the owner of a secret: the id of an endpoint, or the name of a secret of the server itself.
    pub owner: &'static str,
    pub value: &'static str,
    /// The column with the id of the encryption key of a secret.
    pub key_id: &'static str,
    /// The column with the id of the store (tenant), if the secrets belong to a store.
    pub store: Option<&'static str>,
}

/// A secret of an endpoint, or why it cannot be read.
pub(in crate::store) type Read = std::result::Result<SigningSecret, String>;

impl SecretTable {
    /// Returns the description of a table with signing secrets of endpoints.
    pub fn of_endpoints(table: impl EntityName, owner: impl IdenStatic) -> Self {
        Self {
            table: table.table_name(),
            owner: owner.as_str(),
            value: Secret.as_str(),
            key_id: KeyId.as_str(),
            store: Some(StoreId.as_str()),
        }
    }

    /// Returns the condition for the secrets of an owner. `store` is not used if the secrets belong to no store.
    pub fn of_owner(self, store: &str, owner: &str) -> Condition {
        let of_store = self.store.map(|column| Expr::col(column).eq(store));
        Condition::all().add_option(of_store).add(Expr::col(self.owner).eq(owner))
    }

    /// Reads and decrypts the secret in the columns `secret, key_id`.
    pub fn read(self, cells: &mut Cells<'_>, keys: &SecretKeys, store: &str, owner: &str) -> Result<Read> {
        let stored = EncryptedSecret { bytes: cells.take()?, key_id: cells.take()? };
        Ok(keys.open(stored, SecretRow { table: self.table, store, owner }).map(SigningSecret))
    }
}

/// Returns the secrets that can be read. If there are secrets but none can be read, returns the error of the first secret.
pub(in crate::store) fn readable(secrets: impl IntoIterator<Item = Read>) -> std::result::Result<Vec<SigningSecret>, String> {
    let (mut readable, mut reason) = (Vec::new(), None);
    for secret in secrets {
        match secret {
            Ok(secret) => readable.push(secret),
            Err(because) => reason = reason.or(Some(because)),
        }
    }
    match reason {
        Some(reason) if readable.is_empty() => Err(reason),
        _ => Ok(readable),
    }
}

impl Write {
    /// Adds a new signing secret of an endpoint. Messages are also signed with the endpoint's earlier secrets until `ends_at` at the
    /// latest. Deletes the secrets that have expired.
    pub(in crate::store) async fn supersede(&self, of: SecretTable, owner: &str, secret: &SigningSecret, ends_at: Timestamp) -> Result<()> {
        let of_owner = of.of_owner(self.store().as_str(), owner);
        let expired = Query::delete().from_table(of.table).cond_where(of_owner.clone()).and_where(Expr::col(EndsAt).lte(self.now())).take();
        self.execute(&expired).await?;
        let later = Condition::any().add(Expr::col(EndsAt).is_null()).add(Expr::col(EndsAt).gt(ends_at));
        let shortened = Query::update().table(of.table).value(EndsAt, Value::from(ends_at)).cond_where(of_owner.add(later)).take();
        self.execute(&shortened).await?;
        self.insert_secret(of, owner, secret).await
    }

    pub(in crate::store) async fn insert_secret(&self, of: SecretTable, owner: &str, secret: &SigningSecret) -> Result<()> {
        let sealed = self.secret_keys().seal(&secret.0, SecretRow { table: of.table, store: self.store().as_str(), owner })?;
        let insert = Query::insert()
            .into_table(of.table)
            .columns([StoreId.as_str(), of.owner, of.value, of.key_id])
            .values_panic([self.store().as_str().into(), owner.into(), sealed.bytes.into(), sealed.key_id.into()])
            .take();
        self.execute(&insert).await.map(|_| ())
    }
}
