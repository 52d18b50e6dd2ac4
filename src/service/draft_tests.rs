//! Tests of drafts: which drafts are refused, and that each draft is released (approved and sent) at most once, whatever is written
//! concurrently.

use std::sync::Arc;

use super::{
    Error, IdempotentRequest, Service, WriteContext, WriteOutcome,
    test_service::{Silent, service},
};
use crate::{
    domain::{
        drafts::{DRAFT_KEPT_MILLIS, DRAFT_LIFETIME_MILLIS, Draft, DraftState, MAX_PENDING_DRAFTS},
        events::Actor,
        fake_clock_and_test_rules::MovableClock,
        ids::{ConversationId, DraftId, KeyId, MessageId, UserId},
        inbound_messages::{Inbound, Received},
        messages::Message,
        outbound_messages::Mailbox,
        send_requests::{EmailContent, FilledTemplate, Send},
        settings_access::{AuditLogEntry, Editor, Subject, Via},
        tickets::TicketWindow,
        time::Timestamp,
    },
    store::fixture::{Fixture, first},
};

const START: i64 = 1_800_000_000_000;
const DAY: i64 = 24 * 60 * 60 * 1000;

/// A store with a LINE account that has a conversation (`c0`), a WhatsApp account (`w1`) with a template, and a Gmail account (`m1`).
struct Bench {
    fixture: Arc<Fixture>,
    clock: Arc<MovableClock>,
    service: Service,
    editor: Editor,
    key: (KeyId, String),
}

fn inbound(account: &str, reference: &str, external_id: &str) -> Inbound {
    Inbound {
        account_id: account.into(),
        reference_id: reference.to_owned(),
        external_id: external_id.to_owned(),
        sender_id: reference.to_owned(),
        sender_name: Some("Ada".to_owned()),
        text: Some("hello".to_owned()),
        images: None,
        sent_at: None,
        email_subject: None,
        contact: None,
        not_texts: vec![],
    }
}

fn text(conversation: &ConversationId, text: &str) -> Send {
    Send::Text { conversation_id: conversation.clone(), text: text.to_owned() }
}

fn of_template(account: &str, phone: &str) -> Send {
    let filling = FilledTemplate { template_id: "tpl".into(), variables: vec![] };
    Send::TemplateToPhone { account_id: account.into(), phone_number: phone.to_owned(), filling }
}

impl Bench {
    async fn new() -> Self {
        let fixture = Arc::new(Fixture::new().await);
        fixture.account("w1", "whatsapp").await;
        fixture.account("m1", "gmail").await;
        fixture.template("tpl", "w1", "Hello").await;
        let store = &fixture.store;
        let body = r#"[{"type":"BODY","text":"Hello!"}]"#;
        fixture.execute(&format!("UPDATE templates SET components = '{body}' WHERE store_id = '{store}'")).await.unwrap();
        let clock = MovableClock::at(START);
        let service = service(fixture.db.clone(), clock.clone(), Silent);
        let editor = Editor {
            store_id: fixture.store.clone(),
            user_id: Some("0a000000-0000-4000-8000-000000000001".into()),
            via: Via::Session,
            is_owner: true,
            request_id: None,
        };
        let (id, _) = fixture.key("assistant", true, START + 90 * DAY).await;
        Self { fixture, clock, service, editor, key: (id, "Assistant".to_owned()) }
    }

    fn by(&self) -> WriteContext<'_, Draft> {
        WriteContext::alone(&self.fixture.store, Actor::ApiKey(self.key.0.clone()))
    }

    async fn try_make(&self, send: Send) -> Result<Draft, Error> {
        match self.service.make_draft(&self.by(), &self.key.0, &self.key.1, send).await? {
            WriteOutcome::New(draft) => Ok(draft),
            WriteOutcome::Replayed(_) => panic!("there was no key"),
        }
    }

    async fn make(&self, send: Send) -> Draft {
        self.try_make(send).await.unwrap()
    }

    async fn release(&self, id: &DraftId) -> Result<Draft, Error> {
        self.service.release_draft(&self.editor, id, None).await
    }

    async fn receive(&self, account: &str, reference: &str, external_id: &str) -> Received {
        self.clock.pass(1);
        self.service.receive(&self.fixture.store, inbound(account, reference, external_id)).await.unwrap()
    }

    /// Returns the outbound messages of a conversation, the newest first.
    async fn sent(&self, conversation: &ConversationId) -> Vec<Message> {
        let window = TicketWindow { conversation_id: conversation.clone(), after: None, until: None };
        let page = self.fixture.db.messages(&self.fixture.store, &window, &first(100)).await.unwrap();
        page.rows.into_iter().filter(|message| !message.inbound).collect()
    }

    async fn listed(&self, state: DraftState) -> Vec<DraftId> {
        self.service.drafts(&self.fixture.store, state, None, 500).await.unwrap().into_iter().map(|draft| draft.id).collect()
    }

    /// Returns the audit log of drafts, oldest first.
    async fn audit_entries(&self) -> Vec<AuditLogEntry> {
        let mut got = self.service.audited(&self.fixture.store, Some(Subject::Draft), None, 500).await.unwrap();
        got.reverse();
        got
    }
}

#[track_caller]
fn conflict<T: std::fmt::Debug>(result: Result<T, Error>, texts: &[&str]) {
    let Err(Error::Conflict { reason, .. }) = &result else { panic!("not a conflict: {result:?}") };
    assert!(texts.iter().all(|text| reason.contains(text)), "{reason}");
}

#[tokio::test]
async fn a_released_draft_is_sent_in_the_name_of_the_releasing_user() {
    let bench = Bench::new().await;
    let thread = bench.receive("a1", "thread", "1").await;
    let made = bench.make(text(&thread.conversation_id, "hi")).await;
    assert_eq!((made.seen_message_id.as_ref(), made.state), (Some(&thread.message_id), DraftState::Pending));
    assert_eq!(made.expires_at.millis() - made.created_at.millis(), DRAFT_LIFETIME_MILLIS);
    assert!(bench.sent(&thread.conversation_id).await.is_empty());
    assert!(bench.service.all_undelivered(&bench.fixture.store).await.unwrap().is_empty());
    assert_eq!(bench.service.draft(&bench.fixture.store, &made.id).await.unwrap(), made);

    bench.clock.pass(1000);
    let released = bench.release(&made.id).await.unwrap();
    let now = Timestamp::from_millis(START + 1001);
    assert_eq!((released.state, released.settled_at, &released.settled_by), (DraftState::Released, Some(now), &bench.editor.user_id));
    let sent = bench.sent(&thread.conversation_id).await;
    assert_eq!((sent.len(), sent[0].text.as_deref(), &sent[0].author_user_id), (1, Some("hi"), &bench.editor.user_id));
    conflict(bench.release(&made.id).await, &["released at 2027-", bench.editor.user_id.as_ref().map_or("", UserId::as_str)]);
    conflict(bench.service.discard_draft(&bench.editor, &made.id).await, &["released"]);
    conflict(bench.service.edit_draft(&bench.editor, &made.id, made.send).await, &["released"]);
    let got = bench.audit_entries().await;
    assert_eq!(
        got.iter().map(|entry| (entry.action.as_str(), entry.subject_id.as_str())).collect::<Vec<_>>(),
        [("draft.released", made.id.as_str())]
    );
    assert!(!got[0].detail.contains("hi\""), "{}", got[0].detail);
    assert_eq!(bench.fixture.assert_conversation_is_consistent(&thread.conversation_id).await, 2);
}

#[tokio::test]
async fn a_draft_is_refused_if_its_send_would_be_refused() {
    let bench = Bench::new().await;
    let chat = bench.receive("w1", "+66812345678", "1").await.conversation_id;
    bench.make(text(&chat, "in the window")).await;
    bench.clock.pass(DAY + 1);
    let email = EmailContent {
        to: vec![Mailbox { email: "a@example.com".to_owned(), name: None }],
        cc: vec![],
        bcc: vec![],
        subject: None,
        text: Some("x".to_owned()),
        html: None,
    };
    let filling = |template: &str, variables: Vec<String>| FilledTemplate { template_id: template.into(), variables };
    for (send, field) in [
        (text(&chat, "too late"), "body.conversationId"),
        (text(&"nope".into(), "x"), "body.conversationId"),
        (Send::EmailReply { conversation_id: chat.clone(), email: email.clone() }, "body.conversationId"),
        (Send::EmailNew { account_id: "w1".into(), email: email.clone() }, "body.accountId"),
        (Send::TemplateReply { conversation_id: chat.clone(), filling: filling("nope", vec![]) }, "body.templateId"),
        (Send::TemplateReply { conversation_id: chat.clone(), filling: filling("tpl", vec!["x".to_owned()]) }, "body.variables"),
        (of_template("nope", "+66812345678"), "body.accountId"),
    ] {
        let refused = bench.try_make(send).await.unwrap_err();
        assert!(
            matches!(&refused, Error::Invalid { field: found, .. } | Error::NotFound { field: found, .. } if found == field),
            "{refused:?}"
        );
    }
    assert_eq!(bench.listed(DraftState::Pending).await.len(), 1);
    // A draft whose message could be sent is stored without a new contact, conversation, message or event.
    let counts = async || {
        let mut counts = Vec::new();
        for table in ["contacts", "conversations", "messages", "outbound", "events", "changes"] {
            counts.push(bench.fixture.rows_of(table).await);
        }
        counts
    };
    let before = counts().await;
    bench.make(Send::EmailNew { account_id: "m1".into(), email }).await;
    bench.make(of_template("w1", "+66899999999")).await;
    bench.make(Send::TemplateReply { conversation_id: chat, filling: filling("tpl", vec![]) }).await;
    let after = counts().await;
    // The change log (table `changes`) is not compared: on PostgreSQL every write adds a row to it.
    assert_eq!(before[..5], after[..5]);
}

#[tokio::test]
async fn a_message_of_the_contact_after_the_draft_stops_its_release_until_it_is_confirmed() {
    let bench = Bench::new().await;
    let conversation = bench.receive("a1", "thread", "1").await.conversation_id;
    let made = bench.make(text(&conversation, "hi")).await;
    let second = bench.receive("a1", "thread", "2").await.message_id;
    conflict(bench.release(&made.id).await, &[second.as_str(), "confirmedMessageId"]);
    // The third message arrives last, but its `sent_at` is before that of the other messages.
    bench.clock.pass(1);
    let late = Inbound { sent_at: Some(Timestamp::from_millis(START - 1000)), ..inbound("a1", "thread", "3") };
    let third = bench.service.receive(&bench.fixture.store, late).await.unwrap().message_id;
    conflict(bench.release(&made.id).await, &[third.as_str()]);
    conflict(bench.service.release_draft(&bench.editor, &made.id, Some(second)).await, &[third.as_str()]);
    assert_eq!((bench.sent(&conversation).await.len(), bench.audit_entries().await.len()), (0, 0));
    let released = bench.service.release_draft(&bench.editor, &made.id, Some(third)).await.unwrap();
    assert_eq!((released.state, bench.sent(&conversation).await.len()), (DraftState::Released, 1));
}

#[tokio::test]
async fn a_first_message_of_the_contact_stops_a_template_draft_until_confirmed() {
    let bench = Bench::new().await;
    let made = bench.make(of_template("w1", "+66812345678")).await;
    assert_eq!((made.conversation_id.as_ref(), made.account_id.as_ref().map(|id| id.as_str())), (None, Some("w1")));
    let first = bench.receive("w1", "+66812345678", "1").await;
    conflict(bench.release(&made.id).await, &[first.message_id.as_str()]);
    let edited = bench.service.edit_draft(&bench.editor, &made.id, of_template("w1", "+66812345678")).await.unwrap();
    // An edit does not confirm a message that arrived after the draft was made: the editor may not have read it.
    assert_eq!(edited.seen_message_id, None);
    conflict(bench.release(&made.id).await, &[first.message_id.as_str()]);
    bench.service.release_draft(&bench.editor, &made.id, Some(first.message_id)).await.unwrap();
    assert_eq!(bench.sent(&first.conversation_id).await.len(), 1);
    // A template to a phone number without a conversation needs no confirmation.
    let other = bench.make(of_template("w1", "+66899999999")).await;
    assert_eq!(bench.release(&other.id).await.unwrap().state, DraftState::Released);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_concurrent_releases_of_a_draft_send_it_once() {
    const DRAFTS: usize = 1000;
    let bench = Arc::new(Bench::new().await);
    let conversation = bench.receive("a1", "thread", "1").await.conversation_id;
    let mut ids = Vec::new();
    for i in 0..DRAFTS {
        ids.push(bench.make(text(&conversation, &i.to_string())).await.id);
    }
    let release = |id: &DraftId| {
        let (bench, id) = (bench.clone(), id.clone());
        tokio::spawn(async move { bench.release(&id).await })
    };
    // At most 100 releases run at a time. Of more releases, some would not get a database connection in time and would be refused.
    for some in ids.chunks(50) {
        let pairs: Vec<_> = some.iter().map(|id| [release(id), release(id)]).collect();
        for [one, two] in pairs {
            let (one, two) = (one.await.unwrap(), two.await.unwrap());
            let (good, bad) = if one.is_ok() { (one, two) } else { (two, one) };
            assert_eq!(good.unwrap().state, DraftState::Released);
            conflict(bad, &["released at"]);
        }
    }
    assert_eq!(bench.fixture.assert_conversation_is_consistent(&conversation).await, DRAFTS as i64 + 1);
    let mut seen = std::collections::BTreeSet::new();
    let window = TicketWindow { conversation_id: conversation.clone(), after: None, until: None };
    let page = bench.fixture.db.messages(&bench.fixture.store, &window, &first(2 * DRAFTS as u32)).await.unwrap();
    assert!(page.rows.into_iter().all(|message| seen.insert(message.text)), "a draft was sent twice");
    // `audit_entries` and `listed` return at most 500 entries.
    assert_eq!((bench.audit_entries().await.len(), bench.listed(DraftState::Released).await.len()), (500, 500));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_messages_releases_and_edits_of_a_draft_are_serialized() {
    const ROUNDS: usize = 40;
    let bench = Arc::new(Bench::new().await);
    for round in 0..ROUNDS {
        let thread = format!("thread {round}");
        let conversation = bench.receive("a1", &thread, &format!("{round} first")).await.conversation_id;
        let made = bench.make(text(&conversation, "hi")).await;
        let receiving = {
            let (bench, thread) = (bench.clone(), thread.clone());
            tokio::spawn(async move { bench.receive("a1", &thread, &format!("{round} second")).await.message_id })
        };
        let editing = {
            let (bench, id, send) = (bench.clone(), made.id.clone(), text(&conversation, "edited"));
            tokio::spawn(async move { bench.service.edit_draft(&bench.editor, &id, send).await })
        };
        let released = bench.release(&made.id).await;
        let (second, edited): (MessageId, _) = (receiving.await.unwrap(), editing.await.unwrap());
        let sent: Vec<_> = bench.sent(&conversation).await.into_iter().filter_map(|message| message.text).collect();
        let draft = bench.service.draft(&bench.fixture.store, &made.id).await.unwrap();
        match released {
            Ok(_) => {
                assert_eq!(draft.send.body()["text"], sent[0].as_str());
                assert_eq!((draft.state, sent.len(), edited.is_ok()), (DraftState::Released, 1, sent[0] == "edited"));
            }
            Err(error) => {
                conflict::<()>(Err(error), &[]);
                assert_eq!((draft.state, sent.len()), (DraftState::Pending, 0));
                bench.service.release_draft(&bench.editor, &made.id, Some(second)).await.unwrap();
            }
        }
        assert_eq!(bench.fixture.assert_conversation_is_consistent(&conversation).await, 3);
    }
}

#[tokio::test]
async fn a_draft_expires() {
    let bench = Bench::new().await;
    let made = bench.make(text(&"c0".into(), "hi")).await;
    bench.clock.pass(DRAFT_LIFETIME_MILLIS - 1);
    assert_eq!(bench.listed(DraftState::Pending).await, std::slice::from_ref(&made.id));
    bench.clock.pass(1);
    assert_eq!((bench.listed(DraftState::Pending).await, bench.listed(DraftState::Expired).await), (vec![], vec![made.id.clone()]));
    conflict(bench.release(&made.id).await, &["expired at 2027-"]);
    conflict(bench.service.edit_draft(&bench.editor, &made.id, made.send).await, &["expired at"]);
    conflict(bench.service.discard_draft(&bench.editor, &made.id).await, &["expired at"]);
    assert!(bench.sent(&"c0".into()).await.is_empty());
}

#[tokio::test]
async fn a_draft_outlives_its_key() {
    let bench = Bench::new().await;
    let made = bench.make(text(&"c0".into(), "hi")).await;
    bench.service.delete_key(&bench.editor, &bench.key.0).await.unwrap();
    let listed = bench.service.drafts(&bench.fixture.store, DraftState::Pending, None, 10).await.unwrap();
    assert_eq!((listed.len(), listed[0].key_name.as_str(), &listed[0].key_id), (1, "Assistant", &bench.key.0));
    assert_eq!(bench.release(&made.id).await.unwrap().state, DraftState::Released);
}

#[tokio::test]
async fn an_edited_draft_keeps_its_recipient_and_is_checked_again() {
    let bench = Bench::new().await;
    bench.fixture.conversation("c1", |_| {}).await;
    let made = bench.make(text(&"c0".into(), "hi")).await;
    bench.clock.pass(5);
    let edited = bench.service.edit_draft(&bench.editor, &made.id, text(&"c0".into(), "hello")).await.unwrap();
    assert_eq!(edited, Draft { send: text(&"c0".into(), "hello"), updated_at: Timestamp::from_millis(START + 5), ..made.clone() });
    let phone = bench.make(of_template("w1", "+66812345678")).await;
    for (id, send, wrong) in [
        (&made.id, text(&"c1".into(), "x"), "body.conversationId"),
        (&made.id, of_template("w1", "+66812345678"), "body"),
        (&phone.id, of_template("w2", "+66812345678"), "body.accountId"),
        (&phone.id, of_template("w1", "+66812345679"), "body.phoneNumber"),
    ] {
        let refused = bench.service.edit_draft(&bench.editor, id, send).await.unwrap_err();
        assert!(matches!(&refused, Error::Invalid { field, .. } if field == wrong), "{refused:?}");
    }
    let filling = FilledTemplate { template_id: "nope".into(), variables: vec![] };
    let send = Send::TemplateToPhone { account_id: "w1".into(), phone_number: "+66812345678".to_owned(), filling };
    let refused = bench.service.edit_draft(&bench.editor, &phone.id, send).await.unwrap_err();
    assert!(matches!(&refused, Error::NotFound { field, .. } if field == "body.templateId"), "{refused:?}");
    bench.release(&made.id).await.unwrap();
    assert_eq!(bench.sent(&"c0".into()).await[0].text.as_deref(), Some("hello"));
    let actions: Vec<_> = bench.audit_entries().await.into_iter().map(|entry| entry.action).collect();
    assert_eq!(actions, ["draft.edited", "draft.released"]);
}

#[tokio::test]
async fn a_discarded_draft_is_never_sent() {
    let bench = Bench::new().await;
    let made = bench.make(text(&"c0".into(), "hi")).await;
    bench.service.discard_draft(&bench.editor, &made.id).await.unwrap();
    let draft = bench.service.draft(&bench.fixture.store, &made.id).await.unwrap();
    assert_eq!(
        (draft.state, draft.settled_at, &draft.settled_by),
        (DraftState::Discarded, Some(Timestamp::from_millis(START)), &bench.editor.user_id)
    );
    conflict(bench.release(&made.id).await, &["discarded at 2027-"]);
    assert_eq!(bench.audit_entries().await[0].action, "draft.discarded");
    assert!(bench.sent(&"c0".into()).await.is_empty());
}

#[tokio::test]
async fn a_send_that_fails_leaves_its_draft_pending() {
    let bench = Bench::new().await;
    let chat = bench.receive("w1", "+66812345678", "1").await.conversation_id;
    let made = bench.make(text(&chat, "hi")).await;
    bench.clock.pass(DAY + 1);
    let refused = bench.release(&made.id).await.unwrap_err();
    assert!(matches!(&refused, Error::Invalid { field, .. } if field == "body.conversationId"), "{refused:?}");
    assert_eq!((bench.service.draft(&bench.fixture.store, &made.id).await.unwrap(), bench.audit_entries().await), (made.clone(), vec![]));
    let again = bench.receive("w1", "+66812345678", "2").await.message_id;
    bench.service.release_draft(&bench.editor, &made.id, Some(again)).await.unwrap();
}

#[tokio::test]
async fn a_draft_is_not_found_in_another_store() {
    let (bench, other) = (Bench::new().await, Bench::new().await);
    let made = bench.make(text(&"c0".into(), "hi")).await;
    let refused = [
        other.release(&made.id).await.map(|_| ()),
        other.service.edit_draft(&other.editor, &made.id, made.send.clone()).await.map(|_| ()),
        other.service.discard_draft(&other.editor, &made.id).await,
        other.service.draft(&other.fixture.store, &made.id).await.map(|_| ()),
    ];
    assert!(refused.iter().all(|refused| matches!(refused, Err(Error::NotFound { .. }))), "{refused:?}");
    assert!(other.listed(DraftState::Pending).await.is_empty());
    let before = other.service.drafts(&other.fixture.store, DraftState::Pending, Some(&made.id), 10).await;
    assert!(matches!(&before, Err(Error::Invalid { field, .. }) if field == "before"), "{before:?}");
}

#[tokio::test]
async fn a_repeated_request_makes_one_draft() {
    let bench = Bench::new().await;
    let chat = bench.receive("w1", "+66812345678", "1").await.conversation_id;
    let once = |hash: &str| IdempotentRequest {
        operation: "makeDraft",
        key: "k",
        request_hash: hash.to_owned(),
        render: |draft: &Draft| draft.id.to_string().into_bytes(),
    };
    let make = async |hash: &str| {
        let by = bench.by().once(Some(once(hash)));
        bench.service.make_draft(&by, &bench.key.0, &bench.key.1, text(&chat, "hi")).await
    };
    bench.clock.pass(1000);
    let WriteOutcome::New(made) = make("a").await.unwrap() else { panic!("nothing was made before") };
    // Now a new draft in this conversation is refused, since the contact has not written for a day.
    bench.clock.pass(DAY - 500);
    bench.try_make(text(&chat, "too late")).await.unwrap_err();
    let WriteOutcome::Replayed(again) = make("a").await.unwrap() else { panic!("made twice") };
    assert_eq!(again, made.id.to_string().into_bytes());
    assert!(matches!(make("b").await, Err(Error::KeyReused)));
    assert_eq!(bench.listed(DraftState::Pending).await, [made.id]);
}

#[tokio::test]
async fn lists_are_paged_and_old_drafts_are_forgotten() {
    let bench = Bench::new().await;
    let mut made = Vec::new();
    for i in 0..5 {
        // Pairs of successive drafts have the same creation time.
        bench.clock.pass(i % 2);
        made.push(bench.make(text(&"c0".into(), &i.to_string())).await);
    }
    made.sort_by(|one, two| (two.created_at, &two.id).cmp(&(one.created_at, &one.id)));
    let (mut walked, mut before) = (Vec::new(), None);
    loop {
        let page = bench.service.drafts(&bench.fixture.store, DraftState::Pending, before.as_ref(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id.clone());
        walked.extend(page);
    }
    assert_eq!(walked, made);
    bench.service.discard_draft(&bench.editor, &made[0].id).await.unwrap();
    bench.clock.pass(DRAFT_KEPT_MILLIS);
    bench.make(text(&"c0".into(), "x")).await;
    assert_eq!(bench.fixture.rows_of("drafts").await, 3, "the newest two were made less than 30 days ago");
    bench.clock.pass(DAY);
    bench.make(text(&"c0".into(), "y")).await;
    assert_eq!((bench.fixture.rows_of("drafts").await, bench.listed(DraftState::Pending).await.len()), (2, 2));
}

#[tokio::test]
async fn a_store_has_a_limit_of_pending_drafts() {
    let bench = Bench::new().await;
    let made = bench.make(text(&"c0".into(), "hi")).await;
    let store = &bench.fixture.store;
    let columns = "store_id, key_id, key_name, operation, content, created_at, updated_at, expires_at, state";
    let copies = format!(
        "INSERT INTO drafts (id, {columns}) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) \
         SELECT 'copy ' || n.i, {columns} FROM drafts, n WHERE store_id = '{store}'",
        MAX_PENDING_DRAFTS - 1
    );
    bench.fixture.execute(&copies).await.unwrap();
    let refused = bench.try_make(text(&"c0".into(), "one more")).await;
    assert!(matches!(&refused, Err(Error::Full(reason)) if reason.contains("1000")), "{refused:?}");
    bench.service.discard_draft(&bench.editor, &made.id).await.unwrap();
    bench.make(text(&"c0".into(), "one more")).await;
    bench.clock.pass(DRAFT_LIFETIME_MILLIS);
    bench.make(text(&"c0".into(), "expired ones do not count")).await;
}
