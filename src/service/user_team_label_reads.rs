//! Use-cases that read users, labels and teams.

use std::collections::HashMap;

use super::{Result, Service};
use crate::domain::{
    ids::{StoreId, UserId},
    paging::{Page, PageRequest},
    unicode_text::fold,
    users_teams_labels::{Label, Member, Team, TeamView, User, UserRef, UserView},
};

impl Service {
    /// Returns the users, oldest first, or only the user with the id `user`. The list is empty if that id is unknown.
    pub async fn users(&self, store: &StoreId, user: Option<&UserId>, with_role: bool) -> Result<Vec<UserView>> {
        let users = self.db().users(store, user).await?;
        Ok(users.into_iter().map(|(user, role)| UserView { user, role: role.filter(|_| with_role) }).collect())
    }

    /// Returns the labels, most recently updated first. With `search`, only labels whose text contains `search`, in upper or lower case.
    pub async fn labels(&self, store: &StoreId, search: Option<&str>, page: PageRequest) -> Result<Page<Label>> {
        Ok(self.db().labels(store, search.map(fold).as_deref(), &page).await?)
    }

    /// Returns the teams, oldest first. With `user`, returns only the teams to which this user belongs.
    pub async fn teams(&self, store: &StoreId, user: Option<&UserId>, page: PageRequest, with_users: bool) -> Result<Page<TeamView>> {
        let page = self.db().teams(store, user, &page).await?;
        let mut members = self.db().team_members(store, page.rows.iter().map(|team| &team.id).collect()).await?;
        let member = |(id, user): (UserId, Option<User>)| match user.filter(|_| with_users).and_then(|user| self.user_ref(user)) {
            Some(user) => Member::User(user),
            None => Member::Id(id),
        };
        Ok(page
            .map(|team: Team| TeamView { members: members.remove(&team.id).unwrap_or_default().into_iter().map(member).collect(), team }))
    }

    /// Returns those users in `ids` that have joined the store and have a name to show, by user id. Runs no statement if `ids` is empty.
    pub(super) async fn user_refs(&self, store: &StoreId, ids: Vec<&UserId>) -> Result<HashMap<UserId, UserRef>> {
        let users = self.db().users_by_id(store, ids).await?;
        Ok(users.into_iter().filter_map(|user| self.user_ref(user)).map(|user| (user.user_id.clone(), user)).collect())
    }

    /// Returns a user as other records show it. `None` if the user has not accepted the invitation to the store, or has no name to show.
    fn user_ref(&self, user: User) -> Option<UserRef> {
        let name = user.shown_name(self.rules().user_name_fallback)?.to_owned();
        Some(UserRef { user_id: user.user_id?, name, role_id: user.role_id })
    }
}
