//! Values of ticket fields, one row for each value, so that lists of tickets can be filtered by them.

use crate::store::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel, DeriveActiveModelBehavior)]
#[sea_orm(table_name = "ticket_field_values")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub ticket_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub field_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub position: i64,
    pub text_value: Option<String>,
    pub number_value: Option<f64>,
    pub folded: Option<String>,
}
