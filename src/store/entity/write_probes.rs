//! The row that the readiness check (`/readyz`) updates to prove that the database accepts writes.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "write_probes")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub written_at: i64,
}
