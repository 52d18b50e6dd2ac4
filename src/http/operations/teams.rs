//! Team operations: the schema of a team, and the handler that lists teams (contract, sections 2.10 and 4.1).

use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use crate::{
    domain::{
        ids::UserId,
        users_teams_labels::{Member, TeamView},
    },
    http::{
        machinery::{
            auth::{Authorised, TeamsRead},
            error_responses::{Failure, Listing},
            expand_parameter::{Expand, TeamExpand},
            paging::{PageStep, Paged},
            params::{CursorText, PageSize, Query},
            success_responses::Reply,
        },
        schemas::related_objects::RelatedUser,
    },
    revision::wire::PageParam,
};

/// A team.
#[derive(Debug, Object, Serialize)]
#[oai(skip_serializing_if_is_none)]
pub struct Team {
    /// Identifies the team.
    pub id: String,
    /// The display name of the team.
    pub name: String,
    /// The store's description of the team; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The user ids of the members. With `expand=users`, a member that the store knows by name is an object instead.
    pub users: Vec<TeamMember>,
}

crate::http::schemas::value_types::id_or_object! {
    /// A user id, or the user as an object.
    TeamMember(RelatedUser)
}

impl From<TeamView> for Team {
    fn from(view: TeamView) -> Self {
        let member = |member| match member {
            Member::Id(id) => TeamMember::Id(UserId::into_string(id)),
            Member::User(user) => TeamMember::Object(user.into()),
        };
        Self {
            id: view.team.id.into_string(),
            name: view.team.name,
            description: view.team.description,
            users: view.members.into_iter().map(member).collect(),
        }
    }
}

/// Read operations on teams.
#[derive(Debug)]
pub struct TeamReads;

#[OpenApi(tag = "crate::http::openapi::openapi_tags::Tag::Teams")]
impl TeamReads {
    /// List teams
    ///
    /// Lists the store's teams, the oldest first.
    #[oai(path = "/teams", method = "get", operation_id = "listTeams")]
    async fn list_teams(
        &self,
        request: Authorised<TeamsRead>,
        /// Only teams of which this user is a member.
        #[oai(name = "userId")]
        user_id: Query<Option<UserId>>,
        /// Teams per page.
        #[oai(name = "pageSize")]
        page_size: Query<PageSize>,
        /// The `x-pagination-next-cursor` header of the previous page; absent for the first page.
        cursor: Query<CursorText>,
        /// A page number that the answer repeats in `x-pagination-page`. It does not select records; `cursor` does.
        page: PageParam,
        /// Returns the members as objects in place of their ids.
        expand: Query<Expand<TeamExpand>>,
    ) -> Result<Reply<Paged<Team>>, Failure<Listing>> {
        let user = user_id.0;
        let walk = PageStep::step(&request, "listTeams", page_size.0.0, &cursor.0, &page, user.as_ref().map_or("", UserId::as_str))?;
        let teams = request.reads_many().await?.teams(request.store(), user.as_ref(), walk.request(), expand.0.0.0).await?;
        Ok(walk.reply(&request, teams))
    }
}
