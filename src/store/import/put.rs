//! Batches into the tables: many rows a statement, an existing id is replaced.

use std::collections::{BTreeSet, HashMap};

use sea_orm::{EntityTrait, IntoActiveModel, Iterable, PrimaryKeyToColumn, Value, sea_query::OnConflict};

use super::{At, Batch, Fault, Import, MAX_VARIABLES, Outcome, PARKED, list, rows, table, text, values_list};
use crate::{
    domain::{
        ids::AccountId,
        records::{Account, Conversation, ImportedTicket, Kind, Line, Message, Team},
        time::Timestamp,
    },
    store::{
        Result,
        entity::{
            account_users, accounts, comments, contact_fields, contacts, conversation_labels, conversations, labels, messages, roles,
            team_members, teams, templates, ticket_field_values, ticket_fields, tickets, users,
        },
        search::RETITLED,
    },
};

/// A value that a unique index guards, and the record that brings it.
struct Claim<'a> {
    line: u64,
    id: &'a str,
    key: Vec<&'a str>,
}

impl Import {
    /// Takes a batch. Ids do not repeat within a kind, here or in earlier batches.
    pub async fn put(&mut self, batch: Batch) -> Result<Outcome> {
        let store = self.store.clone();
        self.upsert::<roles::Entity>(batch.roles.into_iter().map(|line| rows::role(&store, line.record))).await?;
        self.upsert::<contact_fields::Entity>(batch.contact_fields.into_iter().map(|line| rows::contact_field(&store, line.record)))
            .await?;
        self.upsert::<ticket_fields::Entity>(batch.ticket_fields.into_iter().map(|line| rows::ticket_field(&store, line.record))).await?;

        let claims = batch.users.iter().filter_map(|line| {
            Some(Claim { line: line.number, id: line.record.id.as_str(), key: vec![line.record.user_id.as_ref()?.as_str()] })
        });
        if let Err(fault) = self.claim(Kind::User, "userId", "user_id", "", claims.collect()).await? {
            return Ok(Err(fault));
        }
        let ages =
            self.ages(Kind::User, batch.users.iter().map(|line| (line.record.id.as_str(), line.record.created_at)).collect()).await?;
        self.upsert::<users::Entity>(batch.users.into_iter().zip(ages).map(|(line, age)| rows::user(&store, line.record, age))).await?;

        let ages =
            self.ages(Kind::Label, batch.labels.iter().map(|line| (line.record.id.as_str(), line.record.created_at)).collect()).await?;
        self.upsert::<labels::Entity>(batch.labels.into_iter().zip(ages).map(|(line, age)| rows::label(&store, line.record, age))).await?;

        self.put_teams(batch.teams).await?;
        self.put_accounts(batch.accounts).await?;
        self.upsert::<templates::Entity>(batch.templates.into_iter().map(|line| rows::template(&store, line.record))).await?;

        let keys: Vec<Option<String>> = batch.contacts.iter().map(|line| line.record.email.as_deref().map(str::to_lowercase)).collect();
        let emails = batch
            .contacts
            .iter()
            .zip(&keys)
            .filter_map(|(line, key)| Some(Claim { line: line.number, id: line.record.id.as_str(), key: vec![key.as_deref()?] }));
        if let Err(fault) = self.claim(Kind::Contact, "email", "email_key", "", emails.collect()).await? {
            return Ok(Err(fault));
        }
        let phones = batch
            .contacts
            .iter()
            .filter_map(|line| Some(Claim { line: line.number, id: line.record.id.as_str(), key: vec![line.record.phone.as_deref()?] }));
        if let Err(fault) = self.claim(Kind::Contact, "phone", "phone", "", phones.collect()).await? {
            return Ok(Err(fault));
        }
        self.change(Kind::Contact.name(), batch.contacts.iter().map(|line| line.record.id.as_str())).await?;
        self.upsert::<contacts::Entity>(batch.contacts.into_iter().map(|line| rows::contact(&store, line.record))).await?;

        if let Err(fault) = self.put_conversations(batch.conversations).await? {
            return Ok(Err(fault));
        }
        if let Err(fault) = self.put_tickets(batch.tickets).await? {
            return Ok(Err(fault));
        }
        if let Err(fault) = self.put_messages(batch.messages).await? {
            return Ok(Err(fault));
        }
        self.touch(batch.comments.iter().map(|line| line.record.conversation_id.as_str())).await?;
        self.upsert::<comments::Entity>(batch.comments.into_iter().map(|line| rows::comment(&store, line.record))).await?;
        Ok(Ok(()))
    }

    async fn put_teams(&mut self, lines: Vec<Line<Team>>) -> Result<()> {
        let ages = self.ages(Kind::Team, lines.iter().map(|line| (line.record.id.as_str(), line.record.created_at)).collect()).await?;
        self.clear(Kind::Team, "team_members", "team_id", lines.iter().map(|line| line.record.id.as_str())).await?;
        let store = self.store.clone();
        self.upsert::<teams::Entity>(lines.iter().zip(ages).map(|(line, age)| rows::team(&store, &line.record, age))).await?;
        self.upsert::<team_members::Entity>(lines.iter().flat_map(|line| {
            line.record.users.iter().zip(0..).map(|(user, position)| team_members::Model {
                store_id: store.clone(),
                team_id: line.record.id.to_string(),
                position,
                user_id: user.to_string(),
            })
        }))
        .await
    }

    async fn put_accounts(&mut self, lines: Vec<Line<Account>>) -> Result<()> {
        self.accounts_came |= !lines.is_empty();
        let ages = self.ages(Kind::Account, lines.iter().map(|line| (line.record.id.as_str(), line.record.created_at)).collect()).await?;
        self.clear(Kind::Account, "account_users", "account_id", lines.iter().map(|line| line.record.id.as_str())).await?;
        let store = self.store.clone();
        self.upsert::<accounts::Entity>(lines.iter().zip(ages).map(|(line, age)| rows::account(&store, &line.record, age))).await?;
        self.upsert::<account_users::Entity>(lines.iter().flat_map(|line| {
            line.record.user_ids.iter().flatten().map(|user| account_users::Model {
                store_id: store.clone(),
                account_id: line.record.id.to_string(),
                user_id: user.to_string(),
            })
        }))
        .await
    }

    async fn put_conversations(&mut self, lines: Vec<Line<Conversation>>) -> Result<Outcome> {
        let claims = lines.iter().map(|line| Claim {
            line: line.number,
            id: line.record.id.as_str(),
            key: vec![line.record.account_id.as_str(), line.record.reference_id.as_str()],
        });
        if let Err(fault) = self.claim(Kind::Conversation, "referenceId", "account_id, reference_id", "", claims.collect()).await? {
            return Ok(Err(fault));
        }
        if self.held(Kind::Conversation) {
            let former = self.accounts_of(lines.iter().map(|line| line.record.id.as_str())).await?;
            self.realign |=
                lines.iter().any(|line| former.get(line.record.id.as_str()).is_some_and(|account| *account != line.record.account_id));
        }
        self.clear(Kind::Conversation, "conversation_labels", "conversation_id", lines.iter().map(|line| line.record.id.as_str())).await?;
        self.touch(lines.iter().map(|line| line.record.id.as_str())).await?;
        self.change(Kind::Conversation.name(), lines.iter().map(|line| line.record.id.as_str())).await?;
        if self.held(Kind::Conversation) {
            let retitled = self.retitled(&lines).await?;
            self.change(RETITLED, retitled.iter().copied()).await?;
        }
        let store = self.store.clone();
        self.upsert::<conversations::Entity>(lines.iter().map(|line| rows::conversation(&store, &line.record))).await?;
        self.upsert::<conversation_labels::Entity>(lines.iter().flat_map(|line| {
            line.record.label_ids.iter().map(|label| conversation_labels::Model {
                store_id: store.clone(),
                conversation_id: line.record.id.to_string(),
                label_id: label.to_string(),
            })
        }))
        .await?;
        Ok(Ok(()))
    }

    async fn put_tickets(&mut self, lines: Vec<Line<ImportedTicket>>) -> Result<Outcome> {
        let claims = lines.iter().filter_map(|line| {
            Some(Claim { line: line.number, id: line.record.ticket.id.as_str(), key: vec![line.record.ticket.ticket_number.as_deref()?] })
        });
        if let Err(fault) = self.claim(Kind::Ticket, "ticketNumber", "ticket_number", "", claims.collect()).await? {
            return Ok(Err(fault));
        }
        let claims = lines.iter().filter(|line| line.record.ticket.is_open).map(|line| Claim {
            line: line.number,
            id: line.record.ticket.id.as_str(),
            key: vec![line.record.ticket.conversation_id.as_str()],
        });
        // The condition as a literal: a bound value would never select the partial index.
        if let Err(mut fault) = self.claim(Kind::Ticket, "isOpen", "conversation_id", " AND is_open = TRUE", claims.collect()).await? {
            fault.reason = format!("a conversation has at most one open ticket: {}", fault.reason);
            return Ok(Err(fault));
        }
        if self.held(Kind::Ticket) {
            self.touch_former(Kind::Ticket, lines.iter().map(|line| line.record.ticket.id.as_str()).collect()).await?;
        }
        self.clear(Kind::Ticket, "ticket_field_values", "ticket_id", lines.iter().map(|line| line.record.ticket.id.as_str())).await?;
        self.touch(lines.iter().map(|line| line.record.ticket.conversation_id.as_str())).await?;
        for chunk in lines.chunks(MAX_VARIABLES / 2) {
            let sql = format!(
                "INSERT INTO import_tickets (id, line) VALUES {} ON CONFLICT (id) DO UPDATE SET line = excluded.line",
                values_list(chunk.len(), 2)
            );
            let line = |number: u64| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
            self.run(&sql, chunk.iter().flat_map(|one| [one.record.ticket.id.as_str().into(), line(one.number)])).await?;
        }
        let store = self.store.clone();
        self.upsert::<tickets::Entity>(lines.iter().map(|line| {
            let number = line.record.ticket.ticket_number.clone().unwrap_or_else(|| format!("{PARKED}{}", line.record.ticket.id));
            rows::ticket(&store, &line.record, number)
        }))
        .await?;
        self.upsert::<ticket_field_values::Entity>(lines.iter().flat_map(|line| rows::field_values(&store, &line.record))).await?;
        Ok(Ok(()))
    }

    async fn put_messages(&mut self, lines: Vec<Line<Message>>) -> Result<Outcome> {
        if lines.is_empty() {
            return Ok(Ok(()));
        }
        let conversations: BTreeSet<&str> = lines.iter().map(|line| line.record.conversation_id.as_str()).collect();
        let known = self.accounts_of(conversations.iter().copied()).await?;
        // A conversation that comes later: its messages get a stand-in of their own, and their account at the end.
        self.realign |= known.len() < conversations.len();
        let accounts: Vec<String> = lines
            .iter()
            .map(|line| {
                let conversation = line.record.conversation_id.as_str();
                known.get(conversation).map_or_else(|| format!("{PARKED}{conversation}"), ToString::to_string)
            })
            .collect();
        let claims = lines.iter().zip(&accounts).filter_map(|(line, account)| {
            Some(Claim { line: line.number, id: line.record.id.as_str(), key: vec![account, line.record.external_id.as_deref()?] })
        });
        let only = " AND external_id IS NOT NULL";
        if let Err(fault) = self.claim(Kind::Message, "externalId", "account_id, external_id", only, claims.collect()).await? {
            return Ok(Err(fault));
        }
        if self.held(Kind::Message) {
            self.touch_former(Kind::Message, lines.iter().map(|line| line.record.id.as_str()).collect()).await?;
        }
        self.touch(conversations.iter().copied()).await?;
        self.change(Kind::Message.name(), lines.iter().map(|line| line.record.id.as_str())).await?;
        let store = self.store.clone();
        self.upsert::<messages::Entity>(lines.into_iter().zip(accounts).map(|(line, account)| rows::message(&store, line.record, account)))
            .await?;
        Ok(Ok(()))
    }

    /// Many rows of one table; a row whose key is there is replaced.
    async fn upsert<E>(&self, models: impl Iterator<Item = E::Model>) -> Result<()>
    where
        E: EntityTrait,
        E::Model: IntoActiveModel<E::ActiveModel>,
        E::ActiveModel: Send,
    {
        let mut models = models.peekable();
        let keys: Vec<E::Column> = E::PrimaryKey::iter().map(PrimaryKeyToColumn::into_column).collect();
        let columns: Vec<E::Column> = E::Column::iter().collect();
        let is_key = |column: &E::Column| keys.iter().any(|key| sea_orm::IdenStatic::as_str(key) == sea_orm::IdenStatic::as_str(column));
        let values: Vec<E::Column> = columns.iter().copied().filter(|column| !is_key(column)).collect();
        let mut on_conflict = OnConflict::columns(keys.iter().copied());
        if values.is_empty() {
            on_conflict.do_nothing();
        } else {
            on_conflict.update_columns(values);
        }
        while models.peek().is_some() {
            let chunk: Vec<E::ActiveModel> =
                models.by_ref().take(MAX_VARIABLES / columns.len().max(1)).map(IntoActiveModel::into_active_model).collect();
            E::insert_many(chunk).on_conflict(on_conflict.clone()).exec_without_returning(&*self.tx).await?;
        }
        Ok(())
    }

    /// Refuses a key that two records of the batch bring, or that a record in the store holds: those that the import
    /// replaces were parked, so that whoever holds it keeps it.
    async fn claim(&self, kind: Kind, property: &'static str, columns: &str, only: &str, claims: Vec<Claim<'_>>) -> Result<Outcome> {
        let mut owners: HashMap<&[&str], &Claim<'_>> = HashMap::with_capacity(claims.len());
        let fault = |claim: &Claim<'_>, holder: &str| Fault {
            at: At::Line { number: claim.line, kind },
            property,
            reason: format!("`{}` belongs to the {} `{holder}` already", claim.key.last().copied().unwrap_or_default(), kind.name()),
        };
        for claim in &claims {
            if let Some(other) = owners.insert(&claim.key, claim) {
                return Ok(Err(fault(claim, other.id)));
            }
        }
        let width = claims.first().map_or(1, |claim| claim.key.len());
        for chunk in claims.chunks(MAX_VARIABLES / width - 1) {
            let sql = format!(
                "SELECT id, {columns} FROM {} WHERE store_id = ? AND ({columns}) IN ({}){only} LIMIT 1",
                table(kind),
                if width == 1 { list(chunk.len()) } else { format!("VALUES {}", values_list(chunk.len(), width)) }
            );
            let keys = chunk.iter().flat_map(|claim| claim.key.iter().map(|part| Value::from(*part)));
            let Some(row) = self.rows(&sql, std::iter::once(self.store.as_str().into()).chain(keys)).await?.into_iter().next() else {
                continue;
            };
            let key: Vec<String> = (1..=width).map(|index| text(&row, index)).collect::<Result<_>>()?;
            let key: Vec<&str> = key.iter().map(String::as_str).collect();
            if let Some(claim) = owners.get(key.as_slice()) {
                return Ok(Err(fault(claim, &text(&row, 0)?)));
            }
        }
        Ok(Ok(()))
    }

    /// When each record came into being: as it says, as it was stored, or now and in the order of lines.
    async fn ages(&mut self, kind: Kind, records: Vec<(&str, Option<Timestamp>)>) -> Result<Vec<i64>> {
        let bare: Vec<&str> = records.iter().filter(|(_, at)| at.is_none()).map(|(id, _)| *id).collect();
        let mut stored: HashMap<String, i64> = HashMap::new();
        if !bare.is_empty() && self.held(kind) {
            for chunk in bare.chunks(MAX_VARIABLES - 1) {
                let sql = format!("SELECT id, created_at FROM {} WHERE store_id = ? AND id IN ({})", table(kind), list(chunk.len()));
                for row in self.rows(&sql, self.scoped(chunk.iter().copied())).await? {
                    stored.insert(text(&row, 0)?, row.try_get_by_index(1)?);
                }
            }
        }
        if !bare.is_empty() && !self.ages.contains_key(&kind) {
            let newest =
                self.rows(&format!("SELECT MAX(created_at) FROM {} WHERE store_id = ?", table(kind)), [self.store.as_str().into()]).await?;
            let newest: Option<i64> = newest.first().map_or(Ok(None), |row| row.try_get_by_index(0))?;
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

    /// The accounts of those of these conversations that are there.
    async fn accounts_of(&self, conversations: impl Iterator<Item = &str>) -> Result<HashMap<String, AccountId>> {
        let ids: Vec<&str> = conversations.collect();
        let mut accounts = HashMap::with_capacity(ids.len());
        for chunk in ids.chunks(MAX_VARIABLES - 1) {
            let sql = format!("SELECT id, account_id FROM conversations WHERE store_id = ? AND id IN ({})", list(chunk.len()));
            for row in self.rows(&sql, self.scoped(chunk.iter().copied())).await? {
                accounts.insert(text(&row, 0)?, text(&row, 1)?.into());
            }
        }
        Ok(accounts)
    }

    /// The conversations that are there under another subject.
    async fn retitled<'a>(&self, lines: &'a [Line<Conversation>]) -> Result<Vec<&'a str>> {
        let mut retitled = Vec::new();
        for chunk in lines.chunks(MAX_VARIABLES - 1) {
            let sql = format!("SELECT id, email_subject FROM conversations WHERE store_id = ? AND id IN ({})", list(chunk.len()));
            let mut former: HashMap<String, Option<String>> = HashMap::with_capacity(chunk.len());
            for row in self.rows(&sql, self.scoped(chunk.iter().map(|line| line.record.id.as_str()))).await? {
                former.insert(text(&row, 0)?, row.try_get_by_index(1)?);
            }
            let differs =
                |line: &&Line<Conversation>| former.get(line.record.id.as_str()).is_some_and(|old| *old != line.record.email_subject);
            retitled.extend(chunk.iter().filter(differs).map(|line| line.record.id.as_str()));
        }
        Ok(retitled)
    }

    /// Removes the dependent rows of records that are about to be replaced.
    async fn clear(&self, kind: Kind, table: &str, column: &str, ids: impl Iterator<Item = &str>) -> Result<()> {
        if !self.held(kind) {
            return Ok(());
        }
        let ids: Vec<&str> = ids.collect();
        for chunk in ids.chunks(MAX_VARIABLES - 1) {
            let sql = format!("DELETE FROM {table} WHERE store_id = ? AND {column} IN ({})", list(chunk.len()));
            self.run(&sql, self.scoped(chunk.iter().copied())).await?;
        }
        Ok(())
    }

    /// Marks conversations as touched: what is derived for them is made again at the end.
    pub(super) async fn touch(&self, conversations: impl Iterator<Item = &str>) -> Result<()> {
        let ids: Vec<&str> = conversations.collect::<BTreeSet<_>>().into_iter().collect();
        for chunk in ids.chunks(MAX_VARIABLES) {
            let sql = format!("INSERT INTO import_touched (id) VALUES {} ON CONFLICT (id) DO NOTHING", values_list(chunk.len(), 1));
            self.run(&sql, chunk.iter().map(|id| Value::from(*id))).await?;
        }
        Ok(())
    }

    /// Touches the conversations that records belong to before they are replaced.
    pub(super) async fn touch_former(&self, kind: Kind, ids: Vec<&str>) -> Result<()> {
        for chunk in ids.chunks(MAX_VARIABLES - 1) {
            let sql = format!(
                "INSERT INTO import_touched (id) SELECT DISTINCT conversation_id FROM {} WHERE store_id = ? AND id IN ({}) \
                 ON CONFLICT (id) DO NOTHING",
                table(kind),
                list(chunk.len())
            );
            self.run(&sql, self.scoped(chunk.iter().copied())).await?;
        }
        Ok(())
    }

    /// Writes the change log that search follows.
    async fn change(&self, kind: &str, ids: impl Iterator<Item = &str>) -> Result<()> {
        let ids: Vec<&str> = ids.collect();
        for chunk in ids.chunks(MAX_VARIABLES - 4) {
            let sql = format!(
                "INSERT INTO changes (store_id, kind, record_id, changed_at, transaction_id) \
                 SELECT ?, ?, v.column1, CAST(? AS BIGINT), CAST(? AS BIGINT) FROM (VALUES {}) AS v",
                values_list(chunk.len(), 1)
            );
            let head: [Value; 4] = [self.store.as_str().into(), kind.into(), self.now.millis().into(), self.transaction.into()];
            self.run(&sql, head.into_iter().chain(chunk.iter().map(|id| Value::from(*id)))).await?;
        }
        Ok(())
    }

    fn scoped<'a>(&'a self, ids: impl Iterator<Item = &'a str>) -> impl Iterator<Item = Value> {
        std::iter::once(Value::from(self.store.as_str())).chain(ids.map(Value::from))
    }
}
