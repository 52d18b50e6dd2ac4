//! Seats of a store: the memberships of its users, with their roles (tables `users` and `roles`). `service::seats` calls these functions.

use sea_orm::{ActiveValue::Set, ColumnTrait, Condition, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};

use crate::{
    domain::{
        ids::{RoleId, SeatId, UserId},
        settings_access::OWNER,
        users_teams_labels::{Role, RoleKind, User},
    },
    store::{
        Result,
        entity::{roles, users},
        row_decoding::{Row, StoredRecord},
        sql_from_entities::{find, model},
        transaction::store_transaction::Write,
        users_teams_labels::role_kind,
    },
};

impl Write {
    /// Returns the users of the store, each with the kind of the user's role (`None`: the user has no role). Locks the seats of the store,
    /// so that transactions that add, change or remove a seat run one after the other. Then locks the rows of the users in the order of
    /// ids, as every writer of users does.
    pub async fn seats_for_update(&self) -> Result<Vec<(User, Option<String>)>> {
        self.named_lock("seats").await?;
        let query = find::<User>()
            .expr(role_kind(Some(self.store())))
            .filter(users::Column::StoreId.eq(self.store()))
            .order_by_asc(users::Column::Id);
        self.select_for_update(query, |cells| Ok((User::decode(cells)?, cells.take()?))).await
    }

    /// Returns whether a user is an owner of the store.
    pub async fn is_owner(&self, user: &UserId) -> Result<bool> {
        let query = users::Entity::find()
            .filter(users::Column::StoreId.eq(self.store()))
            .filter(users::Column::UserId.eq(user))
            .filter(Expr::from(role_kind(Some(self.store()))).eq(OWNER))
            .limit(1);
        Ok(!self.select(query, model::<users::Entity>).await?.is_empty())
    }

    /// Locks the row of a user until the end of the transaction; does nothing if there is no such user.
    pub async fn lock_user(&self, user: &UserId) -> Result<()> {
        let query = users::Entity::find().filter(users::Column::StoreId.eq(self.store())).filter(users::Column::UserId.eq(user));
        self.select_for_update(query, |_| Ok(())).await.map(|_| ())
    }

    /// Returns the role with this id. `None`: the store has no such role.
    pub async fn role(&self, id: &RoleId) -> Result<Option<Role>> {
        let by_id = roles::Entity::find().filter(roles::Column::StoreId.eq(self.store())).filter(roles::Column::Id.eq(id));
        Ok(self.select(by_id, model::<roles::Entity>).await?.pop().map(Into::into))
    }

    /// Returns the store's first role of this kind, in the order of ids. If there is none, adds a role with the id `fresh`.
    pub async fn role_of_kind(&self, kind: RoleKind, fresh: RoleId) -> Result<Role> {
        let of_kind = roles::Entity::find()
            .filter(roles::Column::StoreId.eq(self.store()))
            .filter(roles::Column::Kind.eq(kind.name()))
            .order_by_asc(roles::Column::Id)
            .limit(1);
        if let Some(role) = self.select(of_kind, model::<roles::Entity>).await?.pop() {
            return Ok(role.into());
        }
        let row = roles::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(fresh.to_string()),
            name: Set(kind.title().to_owned()),
            kind: Set(kind.name().to_owned()),
        };
        self.insert(row).await?;
        Ok(Role { id: fresh, name: kind.title().to_owned(), kind: Some(kind) })
    }

    pub async fn insert_seat(&self, user: &User) -> Result<()> {
        self.insert(user.row(self.store())).await
    }

    pub async fn set_role_of_seat(&self, id: &SeatId, role: &RoleId) -> Result<()> {
        let seat = Condition::all().add(users::Column::StoreId.eq(self.store())).add(users::Column::Id.eq(id));
        self.execute(&users::Entity::update_many().col_expr(users::Column::RoleId, Expr::value(role.as_str())).filter(seat)).await?;
        Ok(())
    }

    pub async fn delete_seat(&self, id: &SeatId) -> Result<()> {
        let seat = Condition::all().add(users::Column::StoreId.eq(self.store())).add(users::Column::Id.eq(id));
        self.execute(&users::Entity::delete_many().filter(seat)).await.map(|_| ())
    }
}
