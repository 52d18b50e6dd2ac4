//! `counterpart message`: receives inbound messages, lists undelivered outbound messages, and sends undelivered messages again.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, stdin},
    path::PathBuf,
};

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::{CliResult, Failed, print};
use crate::{
    app,
    config::Config,
    domain::{
        ids::{AccountId, ConversationId, MessageId, StoreId, TicketId},
        inbound_messages::{Ignored, Inbound, InboundContact, RawProperty},
        ordered_object::Object,
        settings_access::Editor,
        time::Timestamp,
        unicode_text::whole_characters,
    },
    service::{Service, import::MAX_LINE_BYTES},
};

#[derive(Debug, Subcommand)]
pub enum MessageCommand {
    /// Receive inbound messages, one per line; each is stored before the next is read. The output has one line per message, which lists
    /// under `ignored` the optional values that could not be stored
    Receive(Receive),
    /// List the messages that their channel has not accepted, with the reason, one JSON object per line. These are messages that wait for
    /// an attempt, and messages that failed. Failed messages are listed for at least 30 days
    Undelivered(UndeliveredArgs),
    /// Queue a failed message again, or make the next attempt for a waiting message due now; a running server makes the attempt
    Retry(RetryArgs),
}

#[derive(Args, Debug)]
pub struct Receive {
    /// The receiving store
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID")]
    store: String,
    /// The input file, one JSON object per line, or `-` for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

#[derive(Args, Debug)]
pub struct UndeliveredArgs {
    /// The sending store
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID")]
    store: String,
}

#[derive(Args, Debug)]
pub struct RetryArgs {
    /// The sending store
    #[arg(long, env = "COUNTERPART_STORE", value_name = "ID")]
    store: String,
    /// The messageId, as `message undelivered` shows it
    #[arg(long, env = "COUNTERPART_MESSAGE", value_name = "ID")]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InboundLine {
    account_id: String,
    reference_id: String,
    external_id: String,
    sender: Object<InboundSender>,
    text: Option<String>,
    images: Option<Vec<String>>,
    sent_at: Option<Timestamp>,
    email_subject: Option<RawProperty>,
    contact: Option<Object<ContactDetails>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InboundSender {
    id: String,
    name: Option<RawProperty>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ContactDetails {
    first_name: Option<RawProperty>,
    last_name: Option<RawProperty>,
    email: Option<RawProperty>,
    phone: Option<RawProperty>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReceivedLine {
    external_id: String,
    message_id: MessageId,
    conversation_id: ConversationId,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket_id: Option<TicketId>,
    duplicate: bool,
    /// Properties that could not be stored; the message was accepted without them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignored: Vec<LeftOut>,
}

#[derive(Serialize)]
struct LeftOut {
    member: &'static str,
    reason: String,
}

impl MessageCommand {
    pub async fn run(self, config: &Config) -> CliResult {
        match self {
            Self::Receive(command) => command.run(config).await,
            Self::Undelivered(command) => command.run(config).await,
            Self::Retry(command) => command.run(config).await,
        }
    }
}

impl Receive {
    async fn run(self, config: &Config) -> CliResult {
        let input: Box<dyn BufRead> = if self.file.as_os_str() == "-" {
            Box::new(BufReader::new(stdin()))
        } else {
            let file = File::open(&self.file).map_err(|error| Failed(format!("`{}` cannot be read: {error}", self.file.display())))?;
            Box::new(BufReader::new(file))
        };
        let (db, clocks_and_ids) = app::open_migrated(config).await?;
        let store = StoreId::from(self.store);
        let outcome = match db.store_exists(&store).await? {
            true => receive(&app::service(db.clone(), clocks_and_ids), &store, input).await,
            false => Err(Failed(format!("there is no store `{store}`"))),
        };
        let closed = db.close().await;
        outcome?;
        Ok(closed?)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UndeliveredLine {
    message_id: MessageId,
    conversation_id: ConversationId,
    account_id: AccountId,
    sent_at: Timestamp,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<Timestamp>,
}

impl UndeliveredArgs {
    async fn run(self, config: &Config) -> CliResult {
        let (db, clocks_and_ids) = app::open_migrated(config).await?;
        let store = StoreId::from(self.store);
        if !db.store_exists(&store).await? {
            return Err(Failed(format!("there is no store `{store}`")));
        }
        for one in app::service(db.clone(), clocks_and_ids).all_undelivered(&store).await? {
            let line = UndeliveredLine {
                message_id: one.message_id,
                conversation_id: one.conversation_id,
                account_id: one.account_id,
                sent_at: one.sent_at,
                state: one.state.as_str(),
                reason: one.reason,
                attempts: one.attempts,
                next_attempt_at: one.due_at,
            };
            print(&serde_json::to_string(&line)?)?;
        }
        Ok(db.close().await?)
    }
}

impl RetryArgs {
    async fn run(self, config: &Config) -> CliResult {
        let (db, clocks_and_ids) = app::open_migrated(config).await?;
        let store = StoreId::from(self.store);
        if !db.store_exists(&store).await? {
            return Err(Failed(format!("there is no store `{store}`")));
        }
        let retried = app::service(db.clone(), clocks_and_ids).retry_message(&Editor::command_line(store), &self.message.into()).await;
        let closed = db.close().await;
        retried?;
        Ok(closed?)
    }
}

async fn receive(service: &Service, store: &StoreId, mut input: Box<dyn BufRead>) -> CliResult {
    let (mut bytes, mut number, mut taken) = (Vec::new(), 0_u64, 0_u64);
    loop {
        bytes.clear();
        number += 1;
        let stop = |reason: String| Failed(format!("line {number}: {reason}\nmessages accepted before it: {taken}"));
        let read = (&mut input).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut bytes).map_err(|error| stop(error.to_string()))? as u64;
        if read == 0 {
            return Ok(());
        }
        if read > MAX_LINE_BYTES && !bytes.ends_with(b"\n") {
            return Err(stop(format!("is longer than {} MiB", MAX_LINE_BYTES / 1024 / 1024)));
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let inbound = parse(&whole_characters(&bytes)).map_err(stop)?;
        let external_id = inbound.external_id.clone();
        let received = service.receive(store, inbound).await.map_err(|error| stop(error.to_string()))?;
        taken += 1;
        let answer = ReceivedLine {
            external_id,
            message_id: received.message_id,
            conversation_id: received.conversation_id,
            ticket_id: received.ticket_id,
            duplicate: received.duplicate,
            ignored: received.ignored.into_iter().map(|Ignored { member, reason }| LeftOut { member, reason }).collect(),
        };
        print(&serde_json::to_string(&answer)?)?;
    }
}

/// Parses a line as a message. An error about a property names the property.
fn parse(bytes: &[u8]) -> Result<Inbound, String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let Object(line) = serde_path_to_error::deserialize::<_, Object<InboundLine>>(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.inner().to_string();
        // serde_json appends a position within this line. It is removed, since a user would take it for a position in the file.
        let reason = reason.rfind(" at line ").map_or(reason.as_str(), |end| &reason[..end]);
        if path == "." { reason.to_owned() } else { format!("`{path}` {reason}") }
    })?;
    reader.end().map_err(|_| "more than one JSON object on a line".to_owned())?;
    let Object(sender) = line.sender;
    let mut not_texts = Vec::new();
    let mut text = |detail, member| RawProperty::text(detail, member, &mut not_texts);
    Ok(Inbound {
        account_id: line.account_id.into(),
        reference_id: line.reference_id,
        external_id: line.external_id,
        sender_id: sender.id,
        sender_name: text(sender.name, "sender.name"),
        text: line.text,
        images: line.images,
        sent_at: line.sent_at,
        email_subject: text(line.email_subject, "emailSubject"),
        contact: line.contact.map(|Object(contact)| InboundContact {
            first_name: text(contact.first_name, "contact.firstName"),
            last_name: text(contact.last_name, "contact.lastName"),
            email: text(contact.email, "contact.email"),
            phone: text(contact.phone, "contact.phone"),
        }),
        not_texts,
    })
}
