//! Label operations: the schema of a label, and the handler that lists labels (API contract, sections 2.10 and 4.1).

use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use crate::{
    domain::users_teams_labels as domain,
    http::machinery::{
        auth::{Authorised, LabelsRead},
        error_responses::{Failure, Listing},
        expand_parameter::NoExpand,
        paging::{PageStep, Paged},
        params::{CursorText, PageSize, Query, SearchTerm},
        success_responses::Reply,
    },
    revision::wire::PageParam,
};

/// A label.
#[derive(Debug, Object, Serialize)]
pub struct Label {
    /// Identifies the label, as in `labelIds` of conversations and in label updates.
    pub id: String,
    /// The text of the label.
    pub label: String,
    /// The colour of the label in hexadecimal, `#rrggbb`.
    pub color: String,
}

impl From<domain::Label> for Label {
    fn from(label: domain::Label) -> Self {
        Self { id: label.id.into_string(), label: label.label, color: label.color }
    }
}

/// Read operations on labels.
#[derive(Debug)]
pub struct LabelReads;

#[OpenApi(tag = "crate::http::openapi::openapi_tags::Tag::Labels")]
impl LabelReads {
    /// List labels
    ///
    /// Lists the store's labels, the most recently updated first.
    #[oai(path = "/labels", method = "get", operation_id = "listLabels")]
    async fn list_labels(
        &self,
        request: Authorised<LabelsRead>,
        /// A part of the label's text, in upper or lower case; 3 to 100 characters after trimming. A blank term does not filter.
        #[oai(name = "searchTerm")]
        search_term: Query<SearchTerm>,
        /// Labels per page.
        #[oai(name = "pageSize")]
        page_size: Query<PageSize>,
        /// The `x-pagination-next-cursor` header of the previous page; absent for the first page.
        cursor: Query<CursorText>,
        /// A page number that the answer repeats in `x-pagination-page`. It does not select records; `cursor` does.
        page: PageParam,
        _expand: NoExpand,
    ) -> Result<Reply<Paged<Label>>, Failure<Listing>> {
        let search = search_term.0.0;
        let walk = PageStep::step(&request, "listLabels", page_size.0.0, &cursor.0, &page, search.as_deref().unwrap_or(""))?;
        let labels = request.reads_many().await?.labels(request.store(), search.as_deref(), walk.request()).await?;
        Ok(walk.reply(&request, labels))
    }
}
