//! Typed calls with the clients that progenitor generates (build.rs).

macro_rules! calls {
    ($name:ident, $file:literal) => {
        pub mod $name {
            #[allow(warnings, reason = "generated")]
            pub mod generated {
                include!(concat!(env!("OUT_DIR"), $file));
            }

            use generated::{
                Client,
                types::{Channel, KnownChannel, TextInput, Ticket, TicketExpand, TicketFieldUpdate, TicketFilters, TicketListEnvelope, TicketStatus},
            };
            use progenitor_client::{Error, ResponseValue};
            use reqwest::{StatusCode, header::HeaderMap};

            fn ids(page: &ResponseValue<TicketListEnvelope>) -> Vec<&str> {
                page.data.iter().map(|ticket| ticket.id.as_str()).collect()
            }

            async fn get(client: &Client, expand: Vec<TicketExpand>) -> Ticket {
                let answer = client.get_ticket().ticket_id("ticket-3").expand(expand).send().await.expect("the ticket is read");
                answer.into_inner().data
            }

            fn items(ticket: &Ticket) -> Option<i64> {
                ticket.ticket_fields.as_ref()?.extra.get("items")?.as_i64()
            }

            pub fn client(url: &str, key: &str) -> Client {
                let mut headers = HeaderMap::new();
                headers.insert("x-api-key", key.parse().expect("a key is a header"));
                let http = reqwest::Client::builder().default_headers(headers).build().expect("a client");
                Client::new_with_client(url, http)
            }

            /// Makes the calls that both revisions have. `total` is the expected value of the header `x-pagination-total`.
            pub async fn calls(url: &str, key: &str, total: Option<&str>) {
                let client = client(url, key);
                let filters = || TicketFilters::builder().statuses(vec![TicketStatus::Open]);
                let first = client
                    .list_tickets()
                    .page_size(std::num::NonZeroU64::new(2).unwrap())
                    .body(filters())
                    .send()
                    .await
                    .expect("the first page");
                assert_eq!(ids(&first), ["ticket-5", "ticket-4"]);
                assert_eq!(first.headers().get("x-pagination-total").map(|total| total.to_str().unwrap()), total);
                let cursor = first.headers()["x-pagination-next-cursor"].to_str().expect("a cursor is text");
                let second = client
                    .list_tickets()
                    .page_size(std::num::NonZeroU64::new(2).unwrap())
                    .cursor(cursor)
                    .body(filters())
                    .send()
                    .await
                    .expect("the second page");
                assert_eq!(ids(&second), ["ticket-3", "ticket-2"]);

                let ticket = get(&client, vec![TicketExpand::Account, TicketExpand::Assignee]).await;
                assert_eq!(ticket.account.as_ref().map(|account| account.name.as_str()), Some("Shop on gmail"));
                assert_eq!(ticket.assignee.as_ref().map(|assignee| assignee.name.as_str()), Some("Linh Nguyễn"));
                assert_eq!(items(&ticket), Some(2));
                let stamp = ticket.ticket_fields_updated_at.expect("the ticket has a stamp");

                let write = |value: serde_json::Value| {
                    let update = TicketFieldUpdate::builder()
                        .ticket_id("ticket-3")
                        .ticket_field_id("items")
                        .new_value(value)
                        .ticket_fields_updated_at(stamp);
                    client.update_ticket_field().body(update).send()
                };
                let written = write(7.into()).await.expect("the field is written").into_inner().data;
                assert_eq!(items(&written), Some(7));
                assert!(written.ticket_fields_updated_at > Some(stamp));

                for (value, status, member) in [
                    ("seven".into(), StatusCode::BAD_REQUEST, "`body.newValue`"),
                    (8.into(), StatusCode::CONFLICT, "`body.ticketFieldsUpdatedAt`"),
                ] {
                    let Err(Error::ErrorResponse(refused)) = write(value).await else { panic!("no typed failure of {status}") };
                    assert_eq!((refused.status(), refused.error.status_code), (status, i32::from(status.as_u16())));
                    assert!(refused.error.message.starts_with(member), "{refused:?}");
                }
                assert_eq!(items(&get(&client, vec![]).await), Some(7));

                let channel = ticket.account.map(|account| account.channel);
                assert!(matches!(channel, Some(Channel::KnownChannel(KnownChannel::Gmail))), "{channel:?}");
                let message = TextInput::builder().conversation_id("conv-4").text("Hello!");
                let sent = client.send_text_message().body(message).send().await.expect("the message is sent");
                assert_eq!(sent.data.message.to_string(), "OK");
            }
        }
    };
}

calls!(a, "/rev-a.rs");
calls!(b, "/rev-b.rs");

/// Makes the calls that only the newer revision has.
pub async fn newer(url: &str, key: &str) {
    use b::generated::types::{TicketExpand, TicketAssignment};

    let client = b::client(url, key);
    let found = client.search_messages().query("talk 3").send().await.expect("a search");
    assert_eq!((found.data[0].id.as_str(), found.data[0].sent_by_recipient), ("message-3-1", true));

    let assign = |tickets: [&str; 2]| {
        let user = uuid::uuid!("5eed0000-0000-4000-8000-000000000002");
        let item = |ticket: &str| TicketAssignment { ticket_id: ticket.parse().expect("an id"), assignee_user_id: user };
        client.assign_tickets().expand(vec![TicketExpand::Assignee]).body(tickets.map(item).to_vec()).send()
    };
    let assigned = assign(["ticket-4", "ticket-1"]).await.expect("the tickets are assigned");
    let names = assigned.data.iter().map(|ticket| (ticket.id.as_str(), ticket.assignee.as_ref().map(|user| user.name.as_str())));
    assert_eq!(names.collect::<Vec<_>>(), [("ticket-4", Some("Ken Tanaka")), ("ticket-1", Some("Ken Tanaka"))]);
    let Err(progenitor_client::Error::ErrorResponse(twice)) = assign(["ticket-5", "ticket-5"]).await else { panic!("no typed failure") };
    assert_eq!((twice.status(), twice.error.status_code), (reqwest::StatusCode::BAD_REQUEST, 400));
}
