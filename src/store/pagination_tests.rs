//! Tests of pagination over lists whose rows change their sort position while a client reads page after page: each page follows the order
//! that the list had when the pagination began.

use std::collections::BTreeSet;

use sea_orm::DbBackend;

use crate::{
    domain::{
        contacts::ContactFilter,
        fake_clock_and_test_rules::SeededRandom,
        ids::{ContactId, UserId},
        paging::{Page, PageRequest, Position},
        ticket_filters::{ShownTickets, TicketFilter},
        time::Timestamp,
    },
    store::{fixture::Fixture, parameterised_sql::Sql},
};

/// A list of the fixture's store. Its rows have the ids `r0`, `r1`, ….
#[derive(Clone, Copy, Debug)]
enum List {
    Tickets,
    Assigned,
    Conversations,
    Contacts,
}

impl List {
    const fn table(self) -> (&'static str, &'static str) {
        match self {
            Self::Tickets | Self::Assigned => ("tickets", "sort_at"),
            Self::Conversations => ("conversations", "sort_at"),
            Self::Contacts => ("contacts", "updated_at"),
        }
    }

    async fn add(self, fixture: &Fixture, id: &str, at: i64) {
        match self {
            Self::Tickets | Self::Assigned => {
                fixture
                    .ticket(id, |row| {
                        row.sort_at = at;
                        row.assignee_user_id = matches!(self, Self::Assigned).then(|| "u1".to_owned());
                    })
                    .await;
            }
            Self::Conversations => {
                fixture.conversation(id, |row| (row.sort_at, row.contact_id) = (at, "walked".to_owned())).await;
            }
            Self::Contacts => fixture.contact(id, at).await,
        }
    }

    /// Moves rows to another sort position, in one statement.
    async fn shift(self, fixture: &Fixture, ids: &[String], at: i64) {
        let (table, place) = self.table();
        let ids: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
        let set = format!("UPDATE {table} SET {place} = {at} WHERE store_id = '{}' AND id IN ({})", fixture.store, ids.join(", "));
        fixture.execute(&set).await.unwrap();
    }

    async fn remove(self, fixture: &Fixture, id: &str) {
        let table = self.table().0;
        fixture.execute(&format!("DELETE FROM {table} WHERE store_id = '{}' AND id = '{id}'", fixture.store)).await.unwrap();
    }

    async fn page(self, fixture: &Fixture, page: &PageRequest) -> Page<String> {
        let (db, store) = (&fixture.db, &fixture.store);
        match self {
            Self::Tickets | Self::Assigned => {
                let assignee_user_ids = if matches!(self, Self::Assigned) { vec![UserId::from("u1")] } else { vec![] };
                let filter = TicketFilter { assignee_user_ids, ..TicketFilter::default() };
                let now = Timestamp::from_millis(0);
                db.tickets(store, &filter, ShownTickets::Open, &[], now, page).await.unwrap().map(|row| row.id.into_string())
            }
            Self::Conversations => {
                let contact = ContactId::from("walked");
                db.conversations_of_contact(store, &contact, page).await.unwrap().map(|row| row.id.into_string())
            }
            Self::Contacts => db.contacts(store, &ContactFilter::default(), page).await.unwrap().map(|row| row.id.into_string()),
        }
    }
}

async fn fixture() -> Fixture {
    let fixture = Fixture::new().await;
    fixture.contact("walked", 0).await;
    fixture
}

fn request(size: u32, after: Option<Position>) -> PageRequest {
    PageRequest { size, after, count: false }
}

/// Between two pages some rows move up or down, rows are added, and rows are deleted.
#[tokio::test]
async fn a_pagination_shows_each_row_once_in_the_initial_order() {
    for (seed, list) in [List::Tickets, List::Assigned, List::Conversations, List::Contacts].into_iter().enumerate() {
        let fixture = fixture().await;
        let mut random = SeededRandom(seed as u64 + 1);
        let mut ids: Vec<String> = (0..30).map(|number| format!("r{number:03}")).collect();
        for id in &ids {
            list.add(&fixture, id, 1000 + random.below(40) as i64).await;
        }
        for round in 0..4 {
            let size = [7, 1, 13, 5][round];
            let whole = list.page(&fixture, &request(1000, None)).await.rows;
            let (mut shown, mut deleted, mut after) = (Vec::new(), BTreeSet::new(), None);
            loop {
                let page = list.page(&fixture, &request(size, after)).await;
                shown.extend(page.rows);
                after = page.next;
                if after.is_none() {
                    break;
                }
                for _ in 0..random.below(4) {
                    let some: Vec<String> = (0..=random.below(3)).map(|_| ids[random.below(ids.len())].clone()).collect();
                    list.shift(&fixture, &some, 980 + random.below(90) as i64).await;
                }
                if random.below(10) < 4 {
                    let id = format!("r{:03}", ids.len());
                    list.add(&fixture, &id, 980 + random.below(90) as i64).await;
                    ids.push(id);
                }
                if round == 3 && random.below(10) < 3 {
                    let id = ids[random.below(ids.len())].clone();
                    list.remove(&fixture, &id).await;
                    deleted.insert(id);
                }
            }
            let expected: Vec<&String> = whole.iter().filter(|id| !deleted.contains(*id) || shown.contains(id)).collect();
            assert_eq!(shown.iter().collect::<Vec<_>>(), expected, "{list:?}, round {round}");
        }
    }
}

#[tokio::test]
async fn a_row_that_no_longer_fulfils_the_filter_is_left_out() {
    let fixture = fixture().await;
    for number in 0..10 {
        List::Assigned.add(&fixture, &format!("r{number}"), 100 - number).await;
    }
    let first = List::Assigned.page(&fixture, &request(3, None)).await;
    let to_another = "UPDATE tickets SET sort_at = 500, assignee_user_id = 'u2' WHERE store_id = '";
    fixture.execute(&format!("{to_another}{}' AND id = 'r5'", fixture.store)).await.unwrap();
    List::Assigned.shift(&fixture, &["r6".to_owned()], 600).await;
    let rest = List::Assigned.page(&fixture, &request(100, first.next)).await;
    assert_eq!(rest.rows, ["r3", "r4", "r6", "r7", "r8", "r9"]);
}

/// A change of a sort position counts as a later change if its transaction has not committed when the pagination begins.
#[tokio::test]
async fn a_change_of_position_takes_effect_when_its_transaction_commits() {
    let fixture = fixture().await;
    if fixture.db.backend() == DbBackend::Sqlite {
        return;
    }
    for number in 0..6 {
        List::Contacts.add(&fixture, &format!("r{number}"), 1000 - number).await;
    }
    let moving = format!("UPDATE contacts SET updated_at = 5 WHERE store_id = '{}' AND id = 'r3'", fixture.store);
    let open = fixture.db.begin().await.unwrap();
    open.script(&moving).await.unwrap();
    // This change begins after that of the open transaction and is committed before the pagination begins.
    List::Contacts.shift(&fixture, &["r5".to_owned()], 2000).await;
    let first = List::Contacts.page(&fixture, &request(2, None)).await;
    assert_eq!(first.rows, ["r5", "r0"]);
    open.commit().await.unwrap();
    let rest = List::Contacts.page(&fixture, &request(100, first.next)).await;
    assert_eq!(rest.rows, ["r1", "r2", "r3", "r4", "walked", "k1"]);
}

/// A cursor without a snapshot (`as_of`) is accepted. An earlier version of the program returned such cursors; a list that is sorted by
/// relevance still does.
#[tokio::test]
async fn a_cursor_without_a_snapshot_uses_current_positions() {
    let fixture = fixture().await;
    for number in 0..4 {
        List::Contacts.add(&fixture, &format!("r{number}"), 1000 - number).await;
    }
    let after = Some(Position { at: 1000, id: "r0".to_owned(), rank: None, as_of: None });
    assert_eq!(List::Contacts.page(&fixture, &request(2, after)).await.rows, ["r1", "r2"]);
}

/// Rows that are added or moved while the migration `m0022_cheaper_sort_position_changes_on_sqlite` is reverted appear in paginations after
/// the migration was applied again. Its registered name is m0022_moves_on_sqlite.
#[tokio::test]
async fn a_pagination_is_complete_after_m0022_was_reverted_and_applied_again() {
    let fixture = Fixture::alone().await;
    let list = List::Contacts;
    for number in 0..4 {
        list.add(&fixture, &format!("r{number}"), 1000 - number).await;
    }
    fixture.migrate_back("m0022_moves_on_sqlite").await;
    list.add(&fixture, "r4", 900).await;
    list.shift(&fixture, &["r0".to_owned()], 2000).await;
    if fixture.db.backend() == DbBackend::Sqlite {
        let counted = "SELECT MAX(placed_by) <= (SELECT value FROM counters WHERE store_id = $1 AND name = 'moves') FROM contacts \
             WHERE store_id = $1";
        let counted = fixture.db.first(Sql::of(&fixture.store, counted), |cells| cells.take()).await.unwrap();
        assert_eq!(counted, Some(true), "the walks of the former form would leave rows out");
    }
    fixture.db.migrate_up().await.unwrap();
    list.add(&fixture, "r5", 800).await;
    let whole = list.page(&fixture, &request(100, None)).await.rows;
    let first = list.page(&fixture, &request(2, None)).await;
    list.shift(&fixture, &["r3".to_owned(), "r4".to_owned()], 3000).await;
    let rest = list.page(&fixture, &request(100, first.next)).await;
    assert_eq!([first.rows, rest.rows].concat(), whole);
}

/// PostgreSQL must keep one plan for the query of a page, since planning takes longer than reading the page. PostgreSQL makes a custom
/// plan, for the parameters of the call, at each of the first executions of a prepared statement. Then it keeps a generic plan, for any
/// parameters, unless the generic plan seems more costly. In this test a third of the rows come after the cursor, as PostgreSQL assumes for
/// a generic plan. So the cursor's position does not make the generic plan seem more costly. The test checks that the cursor's snapshot
/// does not either.
#[tokio::test]
async fn a_page_behind_a_cursor_is_planned_once() {
    let fixture = Fixture::alone().await;
    if fixture.db.backend() != DbBackend::Postgres {
        return;
    }
    let list = List::Contacts;
    for number in 0..2000 {
        list.add(&fixture, &format!("r{number}"), number).await;
    }
    fixture.execute("ANALYZE contacts").await.unwrap();
    let behind = list.page(&fixture, &request(1333, None)).await.next;
    for _ in 0..20 {
        list.page(&fixture, &request(100, behind.clone())).await;
    }
    let plans = "SELECT COUNT(*), CAST(SUM(custom_plans) AS BIGINT), CAST(SUM(generic_plans) AS BIGINT) FROM pg_prepared_statements \
                 WHERE statement LIKE 'SELECT id%FROM contacts%placed_by%'";
    let plans = fixture.db.first(Sql::fixed(plans), |cells| Ok([cells.take::<i64>()?, cells.take()?, cells.take()?])).await.unwrap();
    assert_eq!(plans, Some([1, 5, 15]), "statements, planned and kept");
}
