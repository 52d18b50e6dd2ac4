//! User operations: the handler that lists users (contract, sections 2.10 and 4.1). The schema of a user depends on the revision of the
//! contract (A or B): see [`crate::revision::wire`].

use poem_openapi::OpenApi;

use crate::{
    domain::ids::UserId,
    http::machinery::{
        auth::{Authorised, UsersRead},
        error_responses::{Failure, Listing},
        expand_parameter::{Expand, UserExpand},
        params::Query,
        success_responses::{All, Reply},
    },
    revision::wire::User,
};

/// Read operations on users.
#[derive(Debug)]
pub struct UserReads;

#[OpenApi(tag = "crate::http::openapi::openapi_tags::Tag::Users")]
impl UserReads {
    /// List users
    ///
    /// Lists the store's users, the oldest first, without pagination. With an unknown `userId`, the list is empty.
    #[oai(path = "/users", method = "get", operation_id = "listUsers")]
    async fn list_users(
        &self,
        request: Authorised<UsersRead>,
        /// Only this user.
        #[oai(name = "userId")]
        user_id: Query<Option<UserId>>,
        /// Returns the role as an object in place of `roleId`.
        expand: Query<Expand<UserExpand>>,
    ) -> Result<Reply<All<User>>, Failure<Listing>> {
        let users = request.reads_many().await?.users(request.store(), user_id.0.as_ref(), expand.0.0.0).await?;
        Ok(Reply::all(&request, users))
    }
}
