//! Teams: sections 2.10 and 4.1.

use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use crate::{
    domain::{
        ids::UserId,
        team::{Member, TeamView},
    },
    http::{
        machinery::{
            auth::{Authorised, TeamsRead},
            error::{Failure, Listing},
            expand::{Expand, TeamExpand},
            paging::{PageStep, Paged},
            params::{CursorText, PageSize, Query},
            reply::Reply,
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
    /// The name of the team for people.
    pub name: String,
    /// What the team is for, in the store's words; absent where nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The members' user ids; with `expand=users`, the members that the store knows.
    pub users: Vec<TeamMember>,
}

crate::http::schemas::value_types::id_or_object! {
    /// A user id, or the user in its place.
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

#[OpenApi(tag = "crate::http::document::tags::Tag::Teams")]
impl TeamReads {
    /// List teams
    ///
    /// Lists the store's teams, the oldest first.
    #[oai(path = "/teams", method = "get", operation_id = "listTeams")]
    async fn list_teams(
        &self,
        request: Authorised<TeamsRead>,
        /// Only teams with this user.
        #[oai(name = "userId")]
        user_id: Query<Option<UserId>>,
        /// Teams a page.
        #[oai(name = "pageSize")]
        page_size: Query<PageSize>,
        /// Where the page begins: `x-pagination-next-cursor` of the page before.
        cursor: Query<CursorText>,
        /// Echoed in `x-pagination-page`; does not move through the collection.
        page: PageParam,
        /// Replaces the ids of members by objects.
        expand: Query<Expand<TeamExpand>>,
    ) -> Result<Reply<Paged<Team>>, Failure<Listing>> {
        let user = user_id.0;
        let walk = PageStep::step(&request, "listTeams", page_size.0.0, &cursor.0, &page, user.as_ref().map_or("", UserId::as_str))?;
        let teams = request.reads_many().await?.teams(request.store(), user.as_ref(), walk.request(), expand.0.0.0).await?;
        Ok(walk.reply(&request, teams))
    }
}
