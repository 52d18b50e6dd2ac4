//! Queries of users with their roles, teams with their members, and labels.

use std::collections::HashMap;

use sea_orm::{
    ColumnTrait, Condition, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Order, Query, SelectStatement},
};

use crate::{
    domain::{
        ids::{RoleId, StoreId, TeamId, UserId},
        paging::{Page, PageRequest, Position},
        users_teams_labels::{Label, Role, RoleKind, Team, User},
    },
    store::{
        Db, Result,
        entity::{labels, roles, team_members, teams, users},
        parameterised_sql::{Sql, batches},
        row_decoding::{Row, stored_record},
        sql_from_entities::{equal_columns, find},
        statement::pages::PagedRow,
    },
};

stored_record! {
    User in users: id, user_id, name, email, role_id, created_at
}

stored_record! {
    Team in teams: id, name, description, created_at
}

impl PagedRow for Team {
    const SORT: teams::Column = teams::Column::CreatedAt;
    const NEWEST_FIRST: bool = false;

    fn position(&self) -> Position {
        Position::new(self.created_at, self.id.as_str())
    }
}

stored_record! {
    Label in labels: id, label, color, updated_at
}

impl PagedRow for Label {
    const SORT: labels::Column = labels::Column::UpdatedAt;

    fn position(&self) -> Position {
        Position::new(self.updated_at, self.id.as_str())
    }
}

/// Returns a subquery for a column of a user's role. The subquery returns NULL if the store has no such role. `of`: the store, if it is
/// known. The subquery then names the store, so that a distributed database (Citus) reads only the node that has the store.
fn role(column: roles::Column, of: Option<&StoreId>) -> SelectStatement {
    let mut query = Query::select();
    query
        .column((roles::Entity, column))
        .from(roles::Entity)
        .and_where(match of {
            Some(store) => roles::Column::StoreId.eq(store),
            None => equal_columns(roles::Column::StoreId, users::Column::StoreId),
        })
        .and_where(equal_columns(roles::Column::Id, users::Column::RoleId));
    query
}

/// Returns a subquery for the kind of a user's role. `of`: the store, if it is known.
pub(in crate::store) fn role_kind(of: Option<&StoreId>) -> SelectStatement {
    role(roles::Column::Kind, of)
}

impl From<roles::Model> for Role {
    fn from(row: roles::Model) -> Self {
        Self { id: row.id.into(), name: row.name, kind: RoleKind::of(&row.kind) }
    }
}

impl Db {
    /// Returns all users, or only the user with this `userId`, oldest first. Each user comes with the user's role, if the store has that
    /// role.
    pub async fn users(&self, store: &StoreId, user: Option<&UserId>) -> Result<Vec<(User, Option<Role>)>> {
        let query = find::<User>()
            .expr(role(roles::Column::Id, Some(store)))
            .expr(role(roles::Column::Name, Some(store)))
            .expr(role(roles::Column::Kind, Some(store)))
            .filter(users::Column::StoreId.eq(store))
            .apply_if(user, |query, user| query.filter(users::Column::UserId.eq(user)))
            .order_by_asc(users::Column::CreatedAt)
            .order_by_asc(users::Column::Id);
        self.select(query, |cells| {
            let user = User::decode(cells)?;
            let (id, name, kind): (Option<RoleId>, _, Option<String>) = (cells.take()?, cells.take()?, cells.take()?);
            let kind = kind.and_then(|kind| RoleKind::of(&kind));
            let role = id.zip(name).map(|(id, name)| Role { id, name, kind });
            Ok((user, role))
        })
        .await
    }

    /// Returns the users with these `userId`s that the store has, in any order.
    pub async fn users_by_id(&self, store: &StoreId, ids: Vec<&UserId>) -> Result<Vec<User>> {
        let mut users = Vec::new();
        for ids in batches(ids.into_iter().map(UserId::as_str)) {
            let query = find::<User>().filter(users::Column::StoreId.eq(store)).filter(users::Column::UserId.is_in(ids));
            users.append(&mut self.select(query, User::decode).await?);
        }
        Ok(users)
    }

    /// Returns a page of all teams, or of the teams with this member, oldest first.
    pub async fn teams(&self, store: &StoreId, user: Option<&UserId>, page: &PageRequest) -> Result<Page<Team>> {
        let mut sql = Sql::of(store, "store_id = $1");
        if let Some(user) = user {
            sql.push(" AND EXISTS (SELECT 1 FROM team_members m WHERE m.store_id = $1 AND m.team_id = teams.id AND m.user_id = ");
            sql.text(user.as_str()).push(")");
        }
        self.page(sql, page).await
    }

    /// Returns the members of these teams, by team, in the team's order. A member is a user id, and the user with that id if the store has
    /// one.
    pub async fn team_members(&self, store: &StoreId, teams: Vec<&TeamId>) -> Result<HashMap<TeamId, Vec<(UserId, Option<User>)>>> {
        let mut members: HashMap<TeamId, Vec<(UserId, Option<User>)>> = HashMap::new();
        for ids in batches(teams.into_iter().map(TeamId::as_str)) {
            let of_member = Condition::all()
                .add(equal_columns(users::Column::StoreId, team_members::Column::StoreId))
                .add(equal_columns(users::Column::UserId, team_members::Column::UserId));
            let mut query = Query::select();
            query
                .columns([(team_members::Entity, team_members::Column::TeamId), (team_members::Entity, team_members::Column::UserId)])
                .expr(users::Column::Id.is_not_null())
                .columns(User::columns().split(", ").map(|column| (users::Entity, column)))
                .from(team_members::Entity)
                .left_join(users::Entity, of_member)
                .and_where(team_members::Column::StoreId.eq(store))
                .and_where(team_members::Column::TeamId.is_in(ids))
                .order_by((team_members::Entity, team_members::Column::TeamId), Order::Asc)
                .order_by((team_members::Entity, team_members::Column::Position), Order::Asc);
            let rows = self.select(query, |cells| {
                let (team, id): (TeamId, UserId) = (cells.take()?, cells.take()?);
                let user = if cells.take()? { Some(User::decode(cells)?) } else { None };
                Ok((team, id, user))
            });
            for (team, id, user) in rows.await? {
                members.entry(team).or_default().push((id, user));
            }
        }
        Ok(members)
    }

    /// Returns a page of labels, most recently updated first. `search` must be folded (see [`fold`](crate::domain::unicode_text::fold)).
    pub async fn labels(&self, store: &StoreId, search: Option<&str>, page: &PageRequest) -> Result<Page<Label>> {
        let mut sql = Sql::of(store, "store_id = $1");
        if let Some(search) = search {
            sql.push(" AND ");
            self.push_contains(&mut sql, "folded", search);
        }
        self.page(sql, page).await
    }
}
