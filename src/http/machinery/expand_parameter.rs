//! The query parameter `expand`, which adds related records to a response (API contract, section 4.5). Its values are separated by commas,
//! or the parameter is repeated. The values are compared exactly, including upper and lower case. An unknown value is refused with an error
//! message that begins with `Invalid expand value:`, as the contract requires.

use poem::{RequestBody, http::StatusCode};
use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};

use super::{data_attached_to_requests::RequestData, error_responses::ApiError, params::QueryParam};
use crate::domain::{
    messages::{CommentExpand, MessageExpand},
    tickets::TicketExpand,
};

/// The values of `expand` that an operation accepts. An instance of the type holds which of these values a request selects.
pub trait Expandable: Default + Send + 'static {
    /// The name of the schema of the values in the OpenAPI document.
    const NAME: &'static str;
    /// The description of the schema of the values in the OpenAPI document.
    const DESCRIPTION: &'static str;
    const VALUES: &'static [&'static str];

    /// Selects the value of [`Self::VALUES`] at this index.
    fn ask(&mut self, place: usize);
}

/// The query parameter `expand`.
#[derive(Debug, Default)]
pub struct Expand<T>(pub T);

impl<T: Expandable> QueryParam for Expand<T> {
    const REQUIRED: bool = false;
    const IS_LIST: bool = true;

    fn schema() -> MetaSchema {
        MetaSchema { items: Some(Box::new(MetaSchemaRef::Reference(T::NAME.to_owned()))), ..MetaSchema::new("array") }
    }

    fn register(registry: &mut Registry) {
        registry.create_schema::<T, _>(T::NAME.to_owned(), |_| MetaSchema {
            description: Some(T::DESCRIPTION),
            enum_items: T::VALUES.iter().map(|value| (*value).into()).collect(),
            ..MetaSchema::new("string")
        });
    }

    fn read(values: &[&str]) -> Result<Self, String> {
        let mut wanted = T::default();
        for value in values.iter().filter(|value| !value.is_empty()).flat_map(|value| value.split(',')) {
            let place = T::VALUES
                .iter()
                .position(|known| *known == value)
                .ok_or_else(|| format!("{value} (known here: {})", T::VALUES.join(", ")))?;
            wanted.ask(place);
        }
        Ok(Self(wanted))
    }

    fn refuse(_: &str, reason: String) -> ApiError {
        unknown(&reason)
    }
}

fn unknown(value: &str) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, format!("Invalid expand value: {value}"))
}

/// The extractor of operations without related records to add: refuses `expand` unless it is empty.
#[derive(Debug)]
pub struct NoExpand;

impl<'a> poem::FromRequest<'a> for NoExpand {
    async fn from_request(request: &'a poem::Request, _: &mut RequestBody) -> poem::Result<Self> {
        let query = &RequestData::of(request)?.query;
        query.refuse_brackets("expand")?;
        match query.values("expand").find(|value| !value.is_empty()) {
            Some(value) => Err(unknown(&format!("{value} (nothing can be expanded here)")).into()),
            None => Ok(Self),
        }
    }
}

macro_rules! expandable {
    ($($type:ident, $noun:literal { $($name:literal => $field:tt),* $(,)? })*) => {$(
        impl Expandable for $type {
            const NAME: &'static str = stringify!($type);
            const DESCRIPTION: &'static str = concat!("What `expand` can return with ", $noun, ".");
            const VALUES: &'static [&'static str] = &[$($name),*];

            fn ask(&mut self, place: usize) {
                $(if Self::VALUES[place] == $name {
                    self.$field = true;
                })*
            }
        }
    )*};
}

/// Defines types for operations whose `expand` accepts only one value.
macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default, Clone, Copy)]
        pub struct $name(pub bool);
    )*};
}

flags! {
    /// Whether `accounts` of ticket fields is expanded.
    FieldExpand
    /// Whether `account` of conversations is expanded.
    ConversationExpand
    /// Whether `role` of users is expanded.
    UserExpand
    /// Whether `users` of teams is expanded.
    TeamExpand
}

expandable! {
    TicketExpand, "tickets" { "account" => account, "conversation" => conversation, "assignee" => assignee, "handledBy" => handled_by }
    MessageExpand, "messages" { "sentBy" => sent_by, "conversation" => conversation, "account" => account }
    CommentExpand, "internal comments" { "createdBy" => created_by, "conversation" => conversation, "account" => account }
    FieldExpand, "the definitions of ticket fields" { "accounts" => 0 }
    ConversationExpand, "conversations" { "account" => 0 }
    UserExpand, "users" { "role" => 0 }
    TeamExpand, "teams" { "users" => 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<TicketExpand, String> {
        Expand::<TicketExpand>::read(values).map(|expand| expand.0)
    }

    #[test]
    fn expand_values_are_comma_separated_or_repeated_and_match_exactly() {
        let both = TicketExpand { account: true, assignee: true, ..Default::default() };
        assert_eq!(read(&["account,assignee"]), Ok(both));
        assert_eq!(read(&["account", "assignee", "account"]), Ok(both));
        assert_eq!(read(&[""]), Ok(TicketExpand::default()));
        assert_eq!(read(&[]), Ok(TicketExpand::default()));
        for bad in ["a,,b", "account,,assignee", " account", "Account", "account,", "sentBy"] {
            assert!(read(&[bad]).is_err(), "{bad}");
        }
    }
}
