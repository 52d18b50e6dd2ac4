//! Use-cases that create stores and change their settings. Called by `cli` and the demo.

use super::{Error, Result};
use crate::{
    domain::{
        clock::ClocksAndIds,
        ids::{MAX_ID_CHARS, StoreId},
        stores_and_accounts::Store,
    },
    store::Db,
};

/// The default currency of a store.
pub const DEFAULT_CURRENCY: &str = "THB";

/// The default reopen window: the hours after the close of a ticket within which an inbound message reopens the ticket.
pub const DEFAULT_REOPEN_WINDOW_HOURS: i64 = 24;

/// The changeable settings of a store. `None` leaves a setting unchanged.
#[derive(Clone, Debug, Default)]
pub struct StoreSettings {
    pub name: Option<String>,
    /// The ISO 4217 code of the store's currency.
    pub currency: Option<String>,
    /// The number of hours after the close of a ticket within which an inbound message reopens the ticket. 0: never reopen; -1: always
    /// reopen.
    pub reopen_window_hours: Option<i64>,
}

/// Creates a store. Fails if a setting is invalid, or if another store has the id.
pub async fn create_store(db: &Db, clocks_and_ids: &ClocksAndIds, id: StoreId, settings: StoreSettings) -> Result<Store> {
    check(&settings)?;
    let length = id.as_str().chars().count();
    if !(1..=MAX_ID_CHARS).contains(&length) || id.as_str().chars().any(char::is_control) {
        return Err(Error::invalid("id", format!("must have 1 to {MAX_ID_CHARS} printable characters")));
    }
    let Some(name) = settings.name else { return Err(Error::invalid("name", "is required")) };
    let store = Store {
        id,
        name,
        currency: settings.currency.unwrap_or_else(|| DEFAULT_CURRENCY.to_owned()),
        reopen_window_hours: settings.reopen_window_hours.unwrap_or(DEFAULT_REOPEN_WINDOW_HOURS),
        created_at: clocks_and_ids.now(),
    };
    if db.insert_store(&store).await? {
        Ok(store)
    } else {
        Err(Error::conflict("id", format!("`{}` belongs to another store already", store.id)))
    }
}

/// Changes a store's settings, and returns the store with the new settings.
pub async fn edit_store(db: &Db, id: &StoreId, settings: StoreSettings) -> Result<Store> {
    check(&settings)?;
    let store = db.edit_store(id, settings.name, settings.currency, settings.reopen_window_hours).await?;
    store.ok_or_else(|| Error::not_found("store", format!("there is no store `{id}`")))
}

fn check(settings: &StoreSettings) -> Result<()> {
    if settings.name.as_deref().is_some_and(|name| name.trim().is_empty()) {
        return Err(Error::invalid("name", "must not be blank"));
    }
    if let Some(code) = settings.currency.as_deref().filter(|code| iso_currency::Currency::from_code(code).is_none()) {
        return Err(Error::invalid("currency", format!("`{code}` is not a currency code of ISO 4217, such as THB")));
    }
    if settings.reopen_window_hours.is_some_and(|hours| hours < -1) {
        return Err(Error::invalid("reopenWindowHours", "must be -1 (always), 0 (never) or a number of hours"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_store_settings_are_refused() {
        let settings = |currency: &str, hours| StoreSettings {
            currency: Some(currency.to_owned()),
            reopen_window_hours: Some(hours),
            ..Default::default()
        };
        assert!(check(&settings("USD", -1)).is_ok());
        assert!(check(&settings("usd", 0)).is_err());
        assert!(check(&settings("USD", -2)).is_err());
    }
}
