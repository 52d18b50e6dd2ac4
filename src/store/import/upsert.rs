//! Bulk upsert: writes batches into the tables. A record with an existing id is replaced.

use std::collections::{BTreeSet, HashMap};

use sea_orm::{ActiveModelTrait, DbBackend, EntityTrait, IntoActiveModel, Iterable, PrimaryKeyToColumn, Value};

use crate::{
    domain::{
        ndjson_records::{Account, Conversation, ImportedTicket, Line, Message, RecordKind, Team},
        time::Timestamp,
    },
    store::{
        Result,
        change_log::reader::{BETWEEN_IDS, RETITLED},
        entity::{
            account_users, accounts, contact_field_definitions, contacts, conversation_labels, conversations, internal_comments, labels,
            messages, roles, team_members, teams, templates, ticket_field_definitions, ticket_field_values, tickets, users,
        },
        import::{
            Batch, Import, ImportResult, PLACEHOLDER_PREFIX,
            bulk_statements::{self, Bulk},
            row_mapping, table, text,
            unique_value_conflicts::UniqueValues,
        },
        ndjson_record_columns::NdjsonRecord,
        row_decoding::Cells,
    },
};

/// The most records that share one row of the change log. With a row for each record, writing the log would be a large part of the work of
/// an import.
const IDS_PER_LOG_ROW: usize = 50;

impl Import {
    /// Writes a batch. Each id of a record kind may occur only once in all batches of the import.
    pub async fn put(&mut self, batch: Batch) -> ImportResult {
        self.build_referencing_indexes(&batch).await?;
        let store = self.store.clone();
        self.put_rows::<roles::Entity>(RecordKind::Role, batch.roles.into_iter().map(|line| line.record.into_row(&store))).await?;
        self.put_rows::<contact_field_definitions::Entity>(
            RecordKind::ContactField,
            batch.contact_fields.into_iter().map(|line| line.record.into_row(&store)),
        )
        .await?;
        self.put_rows::<ticket_field_definitions::Entity>(
            RecordKind::TicketField,
            batch.ticket_fields.into_iter().map(|line| line.record.into_row(&store)),
        )
        .await?;

        let ids =
            UniqueValues::new("userId", "user_id", &batch.users, |user| Some((user.id.as_str(), vec![user.user_id.as_ref()?.to_string()])));
        let ages = self.creation_times(RecordKind::User, &batch.users, |user| (user.id.as_str(), user.created_at)).await?;
        let users = batch.users.into_iter().zip(ages).map(|(line, age)| row_mapping::user(&store, line.record, age));
        self.put_claimed::<users::Entity>(RecordKind::User, users, [ids]).await?;

        let ages = self.creation_times(RecordKind::Label, &batch.labels, |label| (label.id.as_str(), label.created_at)).await?;
        self.put_rows::<labels::Entity>(
            RecordKind::Label,
            batch.labels.into_iter().zip(ages).map(|(line, age)| row_mapping::label(&store, line.record, age)),
        )
        .await?;

        self.put_teams(batch.teams).await?;
        self.put_accounts(batch.accounts).await?;
        self.put_rows::<templates::Entity>(
            RecordKind::Template,
            batch.templates.into_iter().map(|line| row_mapping::template(&store, line.record)),
        )
        .await?;

        let emails = UniqueValues::new("email", "email_key", &batch.contacts, |contact| {
            Some((contact.id.as_str(), vec![contact.email.as_deref()?.to_lowercase()]))
        });
        let phones =
            UniqueValues::new("phone", "phone", &batch.contacts, |contact| Some((contact.id.as_str(), vec![contact.phone.clone()?])));
        self.change(RecordKind::Contact.name(), batch.contacts.iter().map(|line| line.record.id.as_str())).await?;
        let contacts = batch.contacts.into_iter().map(|line| row_mapping::contact(&store, line.record));
        self.put_claimed::<contacts::Entity>(RecordKind::Contact, contacts, [emails, phones]).await?;

        self.put_conversations(batch.conversations).await?;
        self.put_tickets(batch.tickets).await?;
        self.put_messages(batch.messages).await?;
        self.touch(batch.comments.iter().map(|line| line.record.conversation_id.as_str())).await?;
        self.put_rows::<internal_comments::Entity>(
            RecordKind::Comment,
            batch.comments.into_iter().map(|line| row_mapping::comment(&store, line.record)),
        )
        .await?;
        Ok(())
    }

    async fn put_teams(&mut self, lines: Vec<Line<Team>>) -> Result<()> {
        let ages = self.creation_times(RecordKind::Team, &lines, |team| (team.id.as_str(), team.created_at)).await?;
        self.clear(RecordKind::Team, "team_members", "team_id", lines.iter().map(|line| line.record.id.as_str())).await?;
        let store = self.store.clone();
        let members = lines.iter().flat_map(|line| {
            line.record.users.iter().zip(0..).map(|(user, position)| team_members::Model {
                store_id: store.clone(),
                team_id: line.record.id.to_string(),
                position,
                user_id: user.to_string(),
            })
        });
        let members: Vec<_> = members.collect();
        let teams = lines.into_iter().zip(ages).map(|(line, age)| row_mapping::team(&store, line.record, age));
        self.put_rows::<teams::Entity>(RecordKind::Team, teams).await?;
        self.put_rows::<team_members::Entity>(RecordKind::Team, members.into_iter()).await
    }

    async fn put_accounts(&mut self, lines: Vec<Line<Account>>) -> Result<()> {
        self.accounts_came |= !lines.is_empty();
        let ages = self.creation_times(RecordKind::Account, &lines, |account| (account.id.as_str(), account.created_at)).await?;
        self.clear(RecordKind::Account, "account_users", "account_id", lines.iter().map(|line| line.record.id.as_str())).await?;
        let store = self.store.clone();
        let users = lines.iter().flat_map(|line| {
            line.record.user_ids.iter().flatten().map(|user| account_users::Model {
                store_id: store.clone(),
                account_id: line.record.id.to_string(),
                user_id: user.to_string(),
            })
        });
        let users: Vec<_> = users.collect();
        let accounts = lines.into_iter().zip(ages).map(|(line, age)| row_mapping::account(&store, line.record, age));
        self.put_rows::<accounts::Entity>(RecordKind::Account, accounts).await?;
        self.put_rows::<account_users::Entity>(RecordKind::Account, users.into_iter()).await
    }

    async fn put_conversations(&mut self, lines: Vec<Line<Conversation>>) -> ImportResult {
        let threads = UniqueValues::new("referenceId", "account_id, reference_id", &lines, |conversation| {
            Some((conversation.id.as_str(), vec![conversation.account_id.to_string(), conversation.reference_id.clone()]))
        });
        if self.had_records(RecordKind::Conversation) {
            self.cache_accounts(lines.iter().map(|line| line.record.id.as_str())).await?;
            self.realign |= lines
                .iter()
                .any(|line| self.known.account(line.record.id.as_str()).is_some_and(|account| *account != line.record.account_id));
        }
        self.clear(RecordKind::Conversation, "conversation_labels", "conversation_id", lines.iter().map(|line| line.record.id.as_str()))
            .await?;
        self.touch(lines.iter().map(|line| line.record.id.as_str())).await?;
        if self.had_records(RecordKind::Conversation) {
            let retitled = self.retitled(&lines).await?;
            self.change(RETITLED, retitled.iter().copied()).await?;
        }
        self.known.came(lines.iter().map(|line| (line.record.id.to_string(), line.record.account_id.clone())));
        let store = self.store.clone();
        let labels = lines.iter().flat_map(|line| {
            line.record.label_ids.iter().map(|label| conversation_labels::Model {
                store_id: store.clone(),
                conversation_id: line.record.id.to_string(),
                label_id: label.to_string(),
            })
        });
        let labels: Vec<_> = labels.collect();
        let conversations = lines.into_iter().map(|line| row_mapping::conversation(&store, line.record));
        self.put_claimed::<conversations::Entity>(RecordKind::Conversation, conversations, [threads]).await?;
        self.put_rows::<conversation_labels::Entity>(RecordKind::Conversation, labels.into_iter()).await?;
        Ok(())
    }

    async fn put_tickets(&mut self, lines: Vec<Line<ImportedTicket>>) -> ImportResult {
        let numbers = UniqueValues::new("ticketNumber", "ticket_number", &lines, |ImportedTicket { ticket, .. }| {
            Some((ticket.id.as_str(), vec![ticket.ticket_number.clone()?]))
        });
        let open = UniqueValues {
            // The condition is a literal: with a bound value the database would never use the partial index.
            only: " AND is_open = TRUE",
            rule: "a conversation has at most one open ticket: ",
            ..UniqueValues::new("isOpen", "conversation_id", &lines, |ImportedTicket { ticket, .. }| {
                ticket.is_open.then(|| (ticket.id.as_str(), vec![ticket.conversation_id.to_string()]))
            })
        };
        if self.had_records(RecordKind::Ticket) {
            self.touch_former(RecordKind::Ticket, lines.iter().map(|line| line.record.ticket.id.as_str())).await?;
        }
        self.clear(RecordKind::Ticket, "ticket_field_values", "ticket_id", lines.iter().map(|line| line.record.ticket.id.as_str())).await?;
        self.touch(lines.iter().map(|line| line.record.ticket.conversation_id.as_str())).await?;
        let line = |number: u64| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
        let rows = lines.iter().map(|one| vec![one.record.ticket.id.as_str().into(), line(one.number)]);
        let Bulk { sql, runs } = bulk_statements::rows(self.way.backend(), rows.collect());
        let sql = format!("INSERT INTO import_tickets (id, line) {sql} ON CONFLICT (id) DO UPDATE SET line = excluded.line");
        self.way.run(&sql, &[], runs, &[]).await?;
        let store = self.store.clone();
        let values: Vec<_> = lines.iter().flat_map(|line| row_mapping::field_values(&store, &line.record)).collect();
        let tickets = lines.into_iter().map(|line| row_mapping::ticket(&store, line.record));
        self.put_claimed::<tickets::Entity>(RecordKind::Ticket, tickets, [numbers, open]).await?;
        self.put_rows::<ticket_field_values::Entity>(RecordKind::Ticket, values.into_iter()).await?;
        Ok(())
    }

    async fn put_messages(&mut self, lines: Vec<Line<Message>>) -> ImportResult {
        if lines.is_empty() {
            return Ok(());
        }
        let conversations: BTreeSet<&str> = lines.iter().map(|line| line.record.conversation_id.as_str()).collect();
        self.message_batches += 1;
        if self.way.backend() == DbBackend::Postgres && self.message_batches.is_power_of_two() {
            // PostgreSQL has no statistics on the conversations that this transaction wrote. Without statistics it would expect a handful
            // of rows, and read all conversations for every batch.
            self.run("ANALYZE conversations", []).await?;
        }
        self.cache_accounts(conversations.iter().copied()).await?;
        let come = conversations.iter().all(|id| self.known.account(id).is_some());
        // A message may come before its conversation. Such a message gets a placeholder account; at the end, `derived_columns` replaces it
        // by the account of the conversation.
        self.realign |= !come;
        self.test_conversations(come).await?;
        let accounts: Vec<String> = lines
            .iter()
            .map(|line| {
                let conversation = line.record.conversation_id.as_str();
                self.known.account(conversation).map_or_else(|| format!("{PLACEHOLDER_PREFIX}{conversation}"), ToString::to_string)
            })
            .collect();
        let mut account_of_line = accounts.iter();
        let deliveries = UniqueValues {
            only: " AND external_id IS NOT NULL",
            ..UniqueValues::new("externalId", "account_id, external_id", &lines, |message| {
                let account = account_of_line.next()?;
                Some((message.id.as_str(), vec![account.clone(), message.external_id.clone()?]))
            })
        };
        if self.had_records(RecordKind::Message) {
            self.touch_former(RecordKind::Message, lines.iter().map(|line| line.record.id.as_str())).await?;
        }
        self.touch(conversations.iter().copied()).await?;
        self.change(RecordKind::Message.name(), lines.iter().map(|line| line.record.id.as_str())).await?;
        let (store, now) = (self.store.clone(), self.now);
        let messages = lines.into_iter().zip(accounts).map(|(line, account)| row_mapping::message(&store, line.record, account, now));
        self.put_claimed::<messages::Entity>(RecordKind::Message, messages, [deliveries]).await
    }

    /// Sets when PostgreSQL checks the foreign key from messages to conversations. PostgreSQL checks the key immediately as long as all
    /// messages so far came after their conversations. From the first batch on that contains a message before its conversation (`known` is
    /// false), PostgreSQL checks the key at the commit. A check at the commit takes longer, since it searches among row versions that later
    /// statements have replaced.
    async fn test_conversations(&mut self, known: bool) -> Result<()> {
        let first = self.message_batches == 1;
        let mode = match (self.after_conversation, known) {
            (true, true) if first => "IMMEDIATE",
            (true, false) => "DEFERRED",
            _ => return Ok(()),
        };
        self.after_conversation = known;
        if self.way.backend() == DbBackend::Postgres {
            self.run(&format!("SET CONSTRAINTS messages_store_id_conversation_id_fkey {mode}"), []).await?;
        }
        Ok(())
    }

    /// Writes rows of one table, made from records of a kind. A row with an existing key is replaced.
    pub(super) async fn put_rows<E>(
        &self,
        kind: RecordKind,
        models: impl Iterator<Item = impl IntoActiveModel<E::ActiveModel>>,
    ) -> Result<()>
    where
        E: EntityTrait,
        E::ActiveModel: Send,
    {
        let models: Vec<E::ActiveModel> = models.map(IntoActiveModel::into_active_model).collect();
        let Some(first) = models.first() else { return Ok(()) };
        let name = |column: &E::Column| format!("\"{}\"", sea_orm::IdenStatic::as_str(column));
        // All rows set the same columns as the first row.
        let columns: Vec<E::Column> = E::Column::iter().filter(|column| !first.get(*column).is_not_set()).collect();
        let keys: Vec<String> = E::PrimaryKey::iter().map(PrimaryKeyToColumn::into_column).map(|key| name(&key)).collect();
        let names: Vec<String> = columns.iter().map(name).collect();
        let replaced: Vec<String> =
            names.iter().filter(|name| !keys.contains(name)).map(|name| format!("{name} = excluded.{name}")).collect();
        let replace = match (self.had_records(kind), replaced.is_empty()) {
            // The store had no records of this kind, and the import contains each id once, so there is nothing to replace. With an ON
            // CONFLICT clause PostgreSQL would search for an existing row before each insertion.
            (false, _) => String::new(),
            (true, true) => format!(" ON CONFLICT ({}) DO NOTHING", keys.join(", ")),
            (true, false) => format!(" ON CONFLICT ({}) DO UPDATE SET {}", keys.join(", "), replaced.join(", ")),
        };
        let (table, names) = (E::default().table_name().to_owned(), names.join(", "));
        let rows = models
            .into_iter()
            .map(|mut model| columns.iter().map(|column| model.take(*column).into_value().unwrap_or(Value::String(None))).collect());
        let Bulk { sql, runs } = bulk_statements::rows(self.way.backend(), rows.collect());
        self.way.run(&format!("INSERT INTO {table} ({names}) {sql}{replace}"), &[], runs, &[]).await
    }

    /// Returns the creation time of each record in milliseconds, in the order of lines. It is the time that the record states, else the
    /// stored time, else a new time that is not before the import and is later than all stored creation times. `stated` returns the id of
    /// a record, and the time that the record states.
    async fn creation_times<R>(
        &mut self,
        kind: RecordKind,
        lines: &[Line<R>],
        stated: impl Fn(&R) -> (&str, Option<Timestamp>),
    ) -> Result<Vec<i64>> {
        let records: Vec<(&str, Option<Timestamp>)> = lines.iter().map(|line| stated(&line.record)).collect();
        let bare: Vec<&str> = records.iter().filter(|(_, at)| at.is_none()).map(|(id, _)| *id).collect();
        let mut stored: HashMap<String, i64> = HashMap::new();
        if !bare.is_empty() && self.had_records(kind) {
            let Bulk { sql, runs } = bulk_statements::among(self.way.backend(), bare.iter().copied());
            let sql = format!("SELECT id, created_at FROM {} WHERE store_id = ? AND id {sql}", table(kind));
            stored.extend(self.of_store(&sql, runs, |cells| Ok((text(cells)?, cells.take()?))).await?);
        }
        if !bare.is_empty() && !self.ages.contains_key(&kind) {
            let sql = format!("SELECT MAX(created_at) FROM {} WHERE store_id = ?", table(kind));
            let newest: Option<i64> = self.first(&sql, [self.store.as_str().into()], |cells| cells.take()).await?.flatten();
            self.ages.insert(kind, newest.map_or(i64::MIN, |at| at.saturating_add(1)).max(self.now.millis()));
        }
        let next = self.ages.entry(kind).or_insert(self.now.millis());
        Ok(records
            .into_iter()
            .map(|(id, at)| {
                at.map(Timestamp::millis).or_else(|| stored.get(id).copied()).unwrap_or_else(|| {
                    *next += 1;
                    *next - 1
                })
            })
            .collect())
    }

    /// Returns the ids of the conversations that are already stored with another e-mail subject. The messages of these conversations have
    /// to be indexed again, since the search index contains the subject with each message.
    async fn retitled<'a>(&self, lines: &'a [Line<Conversation>]) -> Result<Vec<&'a str>> {
        let Bulk { sql, runs } = bulk_statements::among(self.way.backend(), lines.iter().map(|line| line.record.id.as_str()));
        let sql = format!("SELECT id, email_subject FROM conversations WHERE store_id = ? AND id {sql}");
        let former = self.of_store(&sql, runs, |cells| Ok((text(cells)?, cells.take()?))).await?;
        let former: HashMap<String, Option<String>> = former.into_iter().collect();
        let differs = |line: &&Line<Conversation>| former.get(line.record.id.as_str()).is_some_and(|old| *old != line.record.email_subject);
        Ok(lines.iter().filter(differs).map(|line| line.record.id.as_str()).collect())
    }

    /// Deletes the rows of `table` that belong to records which are about to be replaced, such as the members of a team.
    async fn clear(&self, kind: RecordKind, table: &str, column: &str, ids: impl Iterator<Item = &str>) -> Result<()> {
        if !self.had_records(kind) {
            return Ok(());
        }
        let Bulk { sql, runs } = bulk_statements::among(self.way.backend(), ids);
        let sql = format!("DELETE FROM {table} WHERE store_id = ? AND {column} {sql}");
        self.way.run(&sql, &[self.store.as_str().into()], runs, &[]).await
    }

    /// Runs a statement whose first parameter is the id of the store, and returns its rows.
    pub(super) async fn of_store<T>(
        &self,
        sql: &str,
        runs: Vec<Vec<Value>>,
        decode: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.way.all(sql, &[self.store.as_str().into()], runs, &[], decode).await
    }

    /// Adds these records to the change log, which the search index follows.
    pub(super) async fn change(&self, kind: &str, ids: impl Iterator<Item = &str>) -> Result<()> {
        let ids: Vec<&str> = ids.collect();
        let rows = ids.chunks(IDS_PER_LOG_ROW).map(|ids| vec![ids.join(BETWEEN_IDS).into()]).collect();
        let Bulk { sql, runs } = bulk_statements::table(self.way.backend(), rows);
        let sql = format!(
            "INSERT INTO changes (store_id, kind, record_ids, changed_at, transaction_id) \
             SELECT ?, ?, column1, CAST(? AS BIGINT), CAST(? AS BIGINT) FROM {sql}"
        );
        let head: [Value; 4] = [self.store.as_str().into(), kind.into(), self.now.millis().into(), self.transaction.into()];
        self.way.run(&sql, &head, runs, &[]).await
    }
}
