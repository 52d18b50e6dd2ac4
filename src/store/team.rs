//! Users with their roles, teams with their members, and labels.

use std::collections::HashMap;

use crate::{
    domain::{
        ids::{StoreId, TeamId, UserId},
        paging::{Page, PageRequest, Position},
        team::{Label, Role, Team, User},
    },
    store::{
        Db, Result,
        rows::{Cells, Row},
        sql::{Sql, batches},
        statement::pages::Listed,
    },
};

impl Row for User {
    const COLUMNS: &'static str = "u.id, u.user_id, u.name, u.email, u.role_id, u.created_at";

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self {
            id: cells.id()?,
            user_id: cells.optional_id()?,
            name: cells.take()?,
            email: cells.take()?,
            role_id: cells.optional_id()?,
            created_at: cells.time()?,
        })
    }
}

impl Row for Team {
    const COLUMNS: &'static str = "id, name, description, created_at";

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self { id: cells.id()?, name: cells.take()?, description: cells.take()?, created_at: cells.time()? })
    }
}

impl Listed for Team {
    const TABLE: &'static str = "teams";
    const SORT: &'static str = "created_at";
    const NEWEST_FIRST: bool = false;

    fn position(&self) -> Position {
        Position::new(self.created_at, self.id.as_str())
    }
}

impl Row for Label {
    const COLUMNS: &'static str = "id, label, color, updated_at";

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self { id: cells.id()?, label: cells.take()?, color: cells.take()?, updated_at: cells.time()? })
    }
}

impl Listed for Label {
    const TABLE: &'static str = "labels";
    const SORT: &'static str = "updated_at";

    fn position(&self) -> Position {
        Position::new(self.updated_at, self.id.as_str())
    }
}

impl Db {
    /// Every user, or the one with that `userId`, oldest first; each with the role when it is known.
    pub async fn users(&self, store: &StoreId, user: Option<&UserId>) -> Result<Vec<(User, Option<Role>)>> {
        let mut sql = Sql::of(store, "SELECT ");
        sql.push(User::COLUMNS);
        sql.push(", r.id, r.name FROM users u LEFT JOIN roles r ON r.store_id = u.store_id AND r.id = u.role_id WHERE u.store_id = $1");
        if let Some(user) = user {
            sql.push(" AND u.user_id = ").text(user.as_str());
        }
        sql.push(" ORDER BY u.created_at, u.id");
        self.all(sql, |cells| {
            let user = User::decode(cells)?;
            let role = match (cells.optional_id()?, cells.take()?) {
                (Some(id), Some(name)) => Some(Role { id, name }),
                _ => None,
            };
            Ok((user, role))
        })
        .await
    }

    /// The users among `ids` that are in the store, in any order.
    pub async fn users_by_id(&self, store: &StoreId, ids: Vec<&UserId>) -> Result<Vec<User>> {
        let mut users = Vec::new();
        for ids in batches(ids.into_iter().map(UserId::as_str)) {
            let mut sql = Sql::of(store, "SELECT ");
            sql.push(User::COLUMNS).push(" FROM users u WHERE u.store_id = $1 AND u.user_id IN ").texts(ids);
            users.append(&mut self.all(sql, User::decode).await?);
        }
        Ok(users)
    }

    /// A page of the teams, or of those with that member, oldest first.
    pub async fn teams(&self, store: &StoreId, user: Option<&UserId>, page: &PageRequest) -> Result<Page<Team>> {
        let mut sql = Sql::of(store, "store_id = $1");
        if let Some(user) = user {
            sql.push(" AND EXISTS (SELECT 1 FROM team_members m WHERE m.store_id = $1 AND m.team_id = teams.id AND m.user_id = ");
            sql.text(user.as_str()).push(")");
        }
        self.page(sql, page).await
    }

    /// The members of these teams in their order, each with the user when the store has it.
    pub async fn team_members(&self, store: &StoreId, teams: Vec<&TeamId>) -> Result<HashMap<TeamId, Vec<(UserId, Option<User>)>>> {
        let mut members: HashMap<TeamId, Vec<(UserId, Option<User>)>> = HashMap::new();
        for ids in batches(teams.into_iter().map(TeamId::as_str)) {
            let mut sql = Sql::of(store, "SELECT m.team_id, m.user_id, CASE WHEN u.id IS NULL THEN 0 ELSE 1 END, ");
            sql.push(User::COLUMNS);
            sql.push(" FROM team_members m LEFT JOIN users u ON u.store_id = m.store_id AND u.user_id = m.user_id");
            sql.push(" WHERE m.store_id = $1 AND m.team_id IN ").texts(ids).push(" ORDER BY m.team_id, m.position");
            let rows = self
                .all(sql, |cells| {
                    let (team, id, known): (TeamId, UserId, i32) = (cells.id()?, cells.id()?, cells.take()?);
                    let user = if known == 1 { Some(User::decode(cells)?) } else { None };
                    Ok((team, id, user))
                })
                .await?;
            for (team, id, user) in rows {
                members.entry(team).or_default().push((id, user));
            }
        }
        Ok(members)
    }

    /// A page of labels, most recently updated first; `search` is folded.
    pub async fn labels(&self, store: &StoreId, search: Option<&str>, page: &PageRequest) -> Result<Page<Label>> {
        let mut sql = Sql::of(store, "store_id = $1");
        if let Some(search) = search {
            sql.push(" AND ");
            self.push_contains(&mut sql, "folded", search);
        }
        self.page(sql, page).await
    }
}
