//! The members of teams: one row for each user of a team, with the user's position in the team's list.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "team_members")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub team_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub position: i64,
    pub user_id: String,
}
