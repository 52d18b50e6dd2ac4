//! Tests of manual retries: a user requests an immediate attempt for a message that failed, or whose next attempt is not due yet.

use super::*;
use crate::{
    domain::{settings_access::Editor, undelivered_messages::FAILED_KEPT_MILLIS},
    service::Error,
};

impl Bench {
    async fn retry(&self, id: &MessageId) -> std::result::Result<(), Error> {
        self.service.retry_message(&Editor::command_line(self.fixture.store.clone()), id).await
    }

    /// Requests a retry of a message, and returns the reason why it is refused.
    async fn refusal(&self, id: &MessageId) -> String {
        self.retry(id).await.unwrap_err().to_string()
    }

    async fn only(&self) -> MessageId {
        let mut all = self.service.all_undelivered(&self.fixture.store).await.unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0).message_id
    }
}

fn refused() -> SendFailure {
    SendFailure { class: FailureClass::Permanent, reason: "blocked".to_owned() }
}

#[tokio::test]
async fn a_message_that_failed_is_sent_again_with_new_attempts() {
    let bench = Bench::new().await;
    let open = Arc::new(Mutex::new(false));
    let channel = Channel::new({
        let open = open.clone();
        move |_, _| if *open.lock().unwrap() { Ok(Accepted::default()) } else { Err(refused()) }
    });
    let mut worker = bench.worker(channel.clone());
    bench.text("c0", "x").await;
    round(&mut worker).await;
    let id = bench.only().await;
    assert_eq!(bench.undelivered().await, [("failed".to_owned(), Some("blocked".to_owned()), Some(1))]);

    bench.retry(&id).await.unwrap();
    assert_eq!(bench.undelivered().await, [("pending".to_owned(), None, Some(0))]);
    round(&mut worker).await;
    assert_eq!(bench.undelivered().await, [("failed".to_owned(), Some("blocked".to_owned()), Some(1))]);

    *open.lock().unwrap() = true;
    // Two people retry the message at the same time.
    let (first, second) = tokio::join!(bench.retry(&id), bench.retry(&id));
    first.unwrap();
    second.unwrap();
    round(&mut worker).await;
    assert_eq!((bench.undelivered().await, bench.events().await), (vec![], 1));
    assert_eq!(*channel.handed.lock().unwrap(), [(id.clone(), 1), (id.clone(), 1), (id.clone(), 1)]);
    assert!(bench.refusal(&id).await.contains("that its channel has accepted"));
}

#[tokio::test]
async fn a_pending_message_is_attempted_at_once() {
    let bench = Bench::new().await;
    let mut worker = bench.worker(Channel::new(|_, attempt| if attempt == 1 { Err(down(None)) } else { Ok(Accepted::default()) }));
    bench.text("c0", "x").await;
    round(&mut worker).await;
    assert!(bench.service.next_message_at().await.unwrap().unwrap().millis() > bench.now());
    bench.retry(&bench.only().await).await.unwrap();
    round(&mut worker).await;
    assert_eq!((bench.undelivered().await, bench.events().await), (vec![], 1));
}

#[tokio::test]
async fn the_messages_before_a_pending_one_are_attempted_first() {
    let bench = Bench::new().await;
    let mut worker = bench.worker(Channel::new(|_, attempt| if attempt == 1 { Err(down(None)) } else { Ok(Accepted::default()) }));
    for text in ["first", "second", "third"] {
        bench.text("c0", text).await;
    }
    round(&mut worker).await;
    let second = bench.service.all_undelivered(&bench.fixture.store).await.unwrap().remove(1).message_id;
    bench.retry(&second).await.unwrap();
    round(&mut worker).await;
    // The first message is delivered. The second was attempted, and failed for the first time. The third was not attempted.
    let attempts: Vec<_> = bench.undelivered().await.into_iter().map(|(_, _, attempts)| attempts).collect();
    assert_eq!((attempts, bench.events().await), (vec![Some(1), Some(0)], 1));
}

#[tokio::test]
async fn an_attempt_in_progress_is_not_repeated() {
    let bench = Bench::new().await;
    bench.text("c0", "x").await;
    let none = HashMap::new();
    let room = AttemptLimits { all: 10, each: 10, busy: &none };
    let claimed = bench.service.claim_outbox_entries(room).await.unwrap();
    bench.retry(&claimed[0].outbox_entry.message_id).await.unwrap();
    assert!(bench.service.claim_outbox_entries(room).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_text_is_not_sent_again_after_its_reply_window_has_closed() {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let bench = Bench::new().await;
    let start = bench.now();
    bench
        .fixture
        .conversation("wa", |conversation| {
            conversation.channel = "whatsapp".to_owned();
            conversation.last_inbound_at = Some(start);
        })
        .await;
    let mut worker = bench.worker(Channel::new(|_, _| Err(refused())));
    bench.text("wa", "x").await;
    round(&mut worker).await;
    let id = bench.only().await;
    bench.pass(DAY + 1);
    assert!(bench.refusal(&id).await.contains("a WhatsApp conversation whose contact has not written for 24 hours"));
    assert_eq!(bench.undelivered().await, [("failed".to_owned(), Some("blocked".to_owned()), Some(1))]);
}

#[tokio::test]
async fn only_undelivered_messages_of_the_store_are_sent_again() {
    let bench = Bench::new().await;
    let mut worker = bench.worker(Channel::new(|_, _| Err(refused())));
    bench.text("c0", "old").await;
    round(&mut worker).await;
    let old = bench.only().await;
    assert!(bench.refusal(&"no-such".into()).await.contains("no message with id `no-such`"));
    let elsewhere = bench.service.retry_message(&Editor::command_line("elsewhere".into()), &old).await.unwrap_err();
    assert!(elsewhere.to_string().contains("no message with id"), "{elsewhere}");
    // When another message fails, the entries of messages that failed more than 30 days ago are deleted.
    bench.pass(FAILED_KEPT_MILLIS + 1);
    bench.text("c0", "new").await;
    round(&mut worker).await;
    assert_ne!(bench.only().await, old);
    assert!(bench.refusal(&old).await.contains("no longer has what a retry needs"));
}
