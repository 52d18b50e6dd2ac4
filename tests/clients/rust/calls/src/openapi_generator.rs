//! Typed calls with the clients that openapi-generator generates. These clients return only the body, so a middleware reads the headers of
//! pages. An option of the generator makes the middleware possible.

use std::sync::{Arc, Mutex};

use reqwest::{Request, Response, header::HeaderMap};
use reqwest_middleware::{Middleware, Next, Result};

/// A middleware that keeps the headers of the latest response.
#[derive(Clone, Default)]
pub struct Latest(Arc<Mutex<HeaderMap>>);

impl Latest {
    fn header(&self, name: &str) -> Option<String> {
        self.0.lock().unwrap().get(name).map(|value| value.to_str().expect("a header is text").to_owned())
    }
}

#[async_trait::async_trait]
impl Middleware for Latest {
    async fn handle(&self, request: Request, extensions: &mut http::Extensions, next: Next<'_>) -> Result<Response> {
        let response = next.run(request, extensions).await?;
        *self.0.lock().unwrap() = response.headers().clone();
        Ok(response)
    }
}

/// Calls `list_tickets`. The generated function takes each parameter of the operation as an argument, and in revision A the operation has
/// one parameter more.
macro_rules! page {
    (a, $to:expr, $cursor:expr, $filters:expr) => {
        list_tickets($to, Some(2), $cursor, None, None, Some($filters))
    };
    (b, $to:expr, $cursor:expr, $filters:expr) => {
        list_tickets($to, Some(2), $cursor, None, Some($filters))
    };
}

macro_rules! calls {
    ($name:ident, $client:ident) => {
        pub mod $name {
            use $client::{
                apis::{
                    Error,
                    configuration::{ApiKey, Configuration},
                    messages_api::send_text_message,
                    tickets_api::{UpdateTicketFieldError, get_ticket, list_tickets, update_ticket_field},
                },
                models::{Channel, KnownChannel, TextInput, Ticket, TicketExpand, TicketFieldUpdate, TicketFilters, TicketStatus},
            };

            use super::Latest;

            async fn page(to: &Configuration, cursor: Option<&str>) -> Vec<String> {
                let filters = TicketFilters { statuses: Some(Some(vec![TicketStatus::Open])), ..TicketFilters::default() };
                let page = page!($name, to, cursor, filters).await.expect("a page");
                page.data.into_iter().map(|ticket| ticket.id).collect()
            }

            async fn get(to: &Configuration, expand: Vec<TicketExpand>) -> Ticket {
                *get_ticket(to, "ticket-3", Some(expand)).await.expect("the ticket is read").data
            }

            fn items(ticket: &Ticket) -> Option<i64> {
                ticket.ticket_fields.as_ref()?.get("items")?.as_i64()
            }

            pub fn configuration(url: &str, key: &str, latest: &Latest) -> Configuration {
                Configuration {
                    base_path: url.to_owned(),
                    api_key: Some(ApiKey { prefix: None, key: key.to_owned() }),
                    client: reqwest_middleware::ClientBuilder::new(reqwest::Client::new()).with(latest.clone()).build(),
                    ..Configuration::default()
                }
            }

            /// Makes the calls that both revisions have. `total` is the expected value of the header `x-pagination-total`.
            pub async fn calls(url: &str, key: &str, total: Option<&str>) {
                let latest = Latest::default();
                let to = configuration(url, key, &latest);
                assert_eq!(page(&to, None).await, ["ticket-5", "ticket-4"]);
                assert_eq!(latest.header("x-pagination-total").as_deref(), total);
                let cursor = latest.header("x-pagination-next-cursor").expect("there is another page");
                assert_eq!(page(&to, Some(&cursor)).await, ["ticket-3", "ticket-2"]);

                let ticket = get(&to, vec![TicketExpand::Account, TicketExpand::Assignee]).await;
                assert_eq!(ticket.account.as_ref().map(|account| account.name.as_str()), Some("Shop on gmail"));
                assert_eq!(ticket.assignee.as_ref().map(|assignee| assignee.name.as_str()), Some("Linh Nguyễn"));
                assert_eq!(items(&ticket), Some(2));
                let stamp = ticket.ticket_fields_updated_at.expect("the ticket has a stamp");

                let write = async |value: serde_json::Value| {
                    let update = TicketFieldUpdate {
                        ticket_id: "ticket-3".to_owned(),
                        ticket_field_id: "items".to_owned(),
                        new_value: Some(value),
                        ticket_fields_updated_at: Some(stamp),
                    };
                    update_ticket_field(&to, update, None, None).await
                };
                let written = write(7.into()).await.expect("the field is written").data;
                assert_eq!(items(&written), Some(7));
                assert!(written.ticket_fields_updated_at > Some(stamp));

                for (value, status, member) in [("seven".into(), 400, "`body.newValue`"), (8.into(), 409, "`body.ticketFieldsUpdatedAt`")] {
                    let Err(Error::ResponseError(refused)) = write(value).await else { panic!("no failure of the API") };
                    // All failures have the same schema, and the client uses the first status whose schema fits. So `Status400` stands for
                    // every status.
                    let Some(UpdateTicketFieldError::Status400(failure)) = refused.entity else { panic!("{refused:?}") };
                    assert_eq!((i32::from(refused.status.as_u16()), failure.error.status_code), (status, status));
                    assert!(failure.error.message.starts_with(member), "{failure:?}");
                }
                assert_eq!(items(&get(&to, vec![]).await), Some(7));

                let channel = ticket.account.map(|account| *account.channel);
                assert_eq!(channel, Some(Channel::KnownChannel(KnownChannel::Gmail)));
                let message = TextInput { conversation_id: "conv-4".to_owned(), text: "Hello!".to_owned() };
                let sent = send_text_message(&to, message, None).await.expect("the message is sent");
                assert_eq!(sent.data.message.to_string(), "OK");
            }
        }
    };
}

calls!(a, rev_a);
calls!(b, rev_b);

/// Makes the calls that only the newer revision has.
pub async fn newer(url: &str, key: &str) {
    use rev_b::{
        apis::{
            Error,
            messages_api::search_messages,
            tickets_api::{AssignTicketsError, assign_tickets},
        },
        models::{TicketAssignment, TicketExpand},
    };

    let to = b::configuration(url, key, &Latest::default());
    let found = search_messages(&to, "talk 3", None).await.expect("a search").data;
    assert_eq!((found[0].id.as_str(), found[0].sent_by_recipient), ("message-3-1", true));

    let assign = async |tickets: [&str; 2]| {
        let user = uuid::uuid!("5eed0000-0000-4000-8000-000000000002");
        let items = tickets.map(|ticket| TicketAssignment { ticket_id: ticket.to_owned(), assignee_user_id: user });
        assign_tickets(&to, items.to_vec(), Some(vec![TicketExpand::Assignee]), None).await
    };
    let assigned = assign(["ticket-4", "ticket-1"]).await.expect("the tickets are assigned").data;
    let names = assigned.iter().map(|ticket| (ticket.id.as_str(), ticket.assignee.as_ref().map(|user| user.name.as_str())));
    assert_eq!(names.collect::<Vec<_>>(), [("ticket-4", Some("Ken Tanaka")), ("ticket-1", Some("Ken Tanaka"))]);
    let Err(Error::ResponseError(twice)) = assign(["ticket-5", "ticket-5"]).await else { panic!("no failure of the API") };
    assert!(matches!(twice.entity, Some(AssignTicketsError::Status400(failure)) if failure.error.status_code == 400));
}
