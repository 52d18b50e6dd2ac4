//! Tests of API key lifetimes (API contract, section 3.2), with a fake clock, and tests of the audit log.

use std::sync::Arc;

use super::{
    Error, Service,
    keys::NewKey,
    test_service::{Silent, service},
};
use crate::{
    domain::{
        api_key_scopes::{Scope, ScopeSet},
        api_keys::{ApiKey, OVERLAP_MILLIS, Secret},
        clock::Clock,
        fake_clock_and_test_rules::MovableClock,
        ids::KeyId,
        settings_access::{Editor, FormerSecrets},
        time::Timestamp,
    },
    store::{Db, fixture::Fixture},
};

/// A store, and two services on its database, as in two processes.
struct Keyring {
    fixture: Fixture,
    clock: Arc<MovableClock>,
    one: Service,
    other: Service,
    _db: Db,
}

const HOUR: i64 = 60 * 60 * 1000;

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

impl Keyring {
    async fn at(now: &str) -> Self {
        let fixture = Fixture::new().await;
        let clock = MovableClock::at(instant(now).millis());
        let second = Db::open(&fixture.url, 1, None).await.unwrap();
        let one = service(fixture.db.clone(), clock.clone(), Silent);
        let other = service(second.clone(), clock.clone(), Silent);
        Self { fixture, clock: clock.clone(), one, other, _db: second }
    }

    fn editor(&self) -> Editor {
        Editor::command_line(self.fixture.store.clone())
    }

    async fn key(&self, scopes: &[Scope]) -> (ApiKey, Secret) {
        let new = NewKey { name: "Sync".to_owned(), scopes: scopes.iter().copied().collect(), owner: None };
        self.one.create_key(&self.editor(), new).await.unwrap()
    }

    async fn rotate(&self, id: &KeyId) -> Secret {
        self.one.rotate_key(&self.editor(), id, FormerSecrets::Overlap).await.unwrap().1
    }

    fn go_to(&self, instant: Timestamp) {
        self.clock.pass(instant.millis() - self.clock.now().millis());
    }

    /// Asserts that a secret has the same scopes in both services, and returns them; `None` if the secret is invalid.
    async fn scopes(&self, secret: &Secret) -> Option<ScopeSet> {
        let one = self.one.authenticate(secret.reveal()).await.unwrap().map(|known| known.caller.scopes);
        let other = self.other.authenticate(secret.reveal()).await.unwrap().map(|known| known.caller.scopes);
        assert_eq!(one, other, "two processes differ over a key");
        one
    }

    async fn opens(&self, secret: &Secret) -> bool {
        self.scopes(secret).await.is_some()
    }

    async fn shown(&self, id: &KeyId) -> ApiKey {
        self.other.keys(&self.fixture.store).await.unwrap().into_iter().find(|key| key.id == *id).unwrap()
    }

    /// Asserts that a secret is valid a millisecond before this instant, and invalid at this instant.
    async fn opens_until(&self, secret: &Secret, end: Timestamp) {
        self.go_to(end.plus_millis(-1));
        assert!(self.opens(secret).await, "it should open a millisecond before {end}");
        self.go_to(end);
        assert!(!self.opens(secret).await, "it should not open at {end}");
    }

    async fn actions(&self) -> Vec<String> {
        let audited = self.one.audited(&self.fixture.store, None, None, 100).await.unwrap();
        audited.into_iter().rev().map(|entry| entry.action).collect()
    }
}

#[tokio::test]
async fn a_rotation_can_end_all_former_secrets_at_once() {
    let ring = Keyring::at("2026-01-31T09:05:00.123Z").await;
    let (key, first) = ring.key(&[Scope::TicketsRead]).await;
    let second = ring.rotate(&key.id).await;
    assert!(ring.opens(&first).await && ring.opens(&second).await);
    let third = ring.one.rotate_key(&ring.editor(), &key.id, FormerSecrets::End).await.unwrap().1;
    assert_eq!((ring.opens(&first).await, ring.opens(&second).await, ring.opens(&third).await), (false, false, true));
}

#[tokio::test]
async fn a_key_ends_six_calendar_months_after_it_was_made() {
    for (made, end) in [
        ("2026-01-31T09:05:00.123Z", "2026-07-31T09:05:00.123Z"),
        ("2025-08-31T00:00:00.000Z", "2026-02-28T00:00:00.000Z"),
        ("2027-08-31T23:59:59.999Z", "2028-02-29T23:59:59.999Z"),
    ] {
        let ring = Keyring::at(made).await;
        let (key, secret) = ring.key(&[Scope::LabelsRead]).await;
        assert_eq!((key.expires_at, key.status(ring.clock.now())), (instant(end), "active"));
        ring.opens_until(&secret, instant(end)).await;
        assert_eq!(ring.shown(&key.id).await.status(ring.clock.now()), "expired");
        assert!(
            matches!(ring.one.rotate_key(&ring.editor(), &key.id, FormerSecrets::Overlap).await, Err(Error::Conflict { .. })),
            "an expired key was rotated"
        );
    }
}

#[tokio::test]
async fn rotation_restarts_the_six_months_and_leaves_the_former_secret_two_hours() {
    let ring = Keyring::at("2026-03-31T12:00:00.000Z").await;
    let (key, first) = ring.key(&[Scope::TicketsWrite]).await;
    ring.go_to(instant("2026-08-31T12:00:00.000Z"));
    let second = ring.rotate(&key.id).await;
    let rotated = ring.shown(&key.id).await;
    assert_eq!(rotated.expires_at, instant("2027-02-28T12:00:00.000Z"));
    assert_eq!((&rotated.name, rotated.scopes, rotated.created_at), (&key.name, key.scopes, key.created_at));
    assert_eq!(rotated.last_four, second.last_four());
    assert!(ring.opens(&first).await && ring.opens(&second).await);
    ring.opens_until(&first, instant("2026-08-31T14:00:00.000Z")).await;
    assert!(ring.opens(&second).await);
    ring.opens_until(&second, instant("2027-02-28T12:00:00.000Z")).await;
}

#[tokio::test]
async fn each_superseded_secret_keeps_its_own_two_hours() {
    let ring = Keyring::at("2026-03-01T00:00:00.000Z").await;
    let (key, first) = ring.key(&[Scope::LabelsRead]).await;
    let mut secrets = vec![first];
    for minutes in [30, 60, 90] {
        ring.go_to(instant("2026-03-01T00:00:00.000Z").plus_millis(minutes * 60_000));
        secrets.push(ring.rotate(&key.id).await);
    }
    for secret in &secrets {
        assert!(ring.opens(secret).await);
    }
    for (secret, minutes) in secrets.iter().zip([30, 60, 90]) {
        ring.opens_until(secret, instant("2026-03-01T00:00:00.000Z").plus_millis(minutes * 60_000 + OVERLAP_MILLIS)).await;
    }
    assert!(ring.opens(&secrets[3]).await);
}

#[tokio::test]
async fn secrets_of_one_millisecond_are_distinct() {
    let ring = Keyring::at("2026-03-01T00:00:00.000Z").await;
    let (key, first) = ring.key(&[Scope::LabelsRead]).await;
    let second = ring.rotate(&key.id).await;
    let third = ring.rotate(&key.id).await;
    assert_eq!(ring.shown(&key.id).await.last_four, third.last_four());
    ring.opens_until(&first, instant("2026-03-01T02:00:00.000Z")).await;
    assert!(!ring.opens(&second).await && ring.opens(&third).await);
}

#[tokio::test]
async fn a_former_secret_does_not_outlive_its_original_expiry() {
    let ring = Keyring::at("2026-03-01T00:00:00.000Z").await;
    let (key, first) = ring.key(&[Scope::LabelsRead]).await;
    // The key is rotated an hour before its expiry.
    ring.go_to(key.expires_at.plus_millis(-HOUR));
    let second = ring.rotate(&key.id).await;
    ring.opens_until(&first, key.expires_at).await;
    assert!(ring.opens(&second).await);
}

#[tokio::test]
async fn a_suspended_key_is_refused_and_its_expiry_runs_on() {
    let ring = Keyring::at("2026-03-01T00:00:00.000Z").await;
    let (key, first) = ring.key(&[Scope::LabelsRead]).await;
    let second = ring.rotate(&key.id).await;
    ring.one.set_key_active(&ring.editor(), &key.id, false).await.unwrap();
    assert!(!ring.opens(&first).await && !ring.opens(&second).await);
    assert_eq!(ring.shown(&key.id).await.status(ring.clock.now()), "inactive");
    let refused = ring.one.rotate_key(&ring.editor(), &key.id, FormerSecrets::Overlap).await.unwrap_err();
    assert!(matches!(&refused, Error::Conflict { reason, .. } if reason.contains("inactive")), "{refused}");
    ring.go_to(instant("2026-03-01T01:59:59.999Z"));
    ring.one.set_key_active(&ring.editor(), &key.id, true).await.unwrap();
    assert!(ring.opens(&first).await && ring.opens(&second).await);
    ring.opens_until(&first, instant("2026-03-01T02:00:00.000Z")).await;
    ring.one.set_key_active(&ring.editor(), &key.id, false).await.unwrap();
    ring.go_to(instant("2026-09-01T00:00:00.000Z"));
    ring.one.set_key_active(&ring.editor(), &key.id, true).await.unwrap();
    assert!(!ring.opens(&second).await);
    assert_eq!(ring.shown(&key.id).await.status(ring.clock.now()), "expired");
}

#[tokio::test]
async fn an_edit_applies_to_every_secret_at_once() {
    let ring = Keyring::at("2026-03-01T00:00:00.000Z").await;
    let (key, first) = ring.key(&[Scope::TicketsWrite, Scope::LabelsRead]).await;
    let second = ring.rotate(&key.id).await;
    let all = ScopeSet::from_iter([Scope::TicketsRead, Scope::TicketsWrite, Scope::LabelsRead]);
    assert_eq!((ring.scopes(&first).await, ring.scopes(&second).await), (Some(all), Some(all)));
    let less = ScopeSet::from_iter([Scope::LabelsRead]);
    let edited = ring.one.edit_key(&ring.editor(), &key.id, Some("Labels".to_owned()), Some(less)).await.unwrap();
    assert_eq!((edited.name.as_str(), edited.expires_at, edited.last_four.as_str()), ("Labels", key.expires_at, second.last_four()));
    assert_eq!((ring.scopes(&first).await, ring.scopes(&second).await), (Some(less), Some(less)));
    for (name, scopes) in [(Some(" "), None), (Some("a\0b"), None), (None, Some(ScopeSet::default()))] {
        let refused = ring.one.edit_key(&ring.editor(), &key.id, name.map(str::to_owned), scopes).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })));
    }
    assert_eq!(ring.shown(&key.id).await.name, "Labels");
}

#[tokio::test]
async fn deletion_ends_every_secret_at_once_and_for_good() {
    let ring = Keyring::at("2026-03-01T00:00:00.000Z").await;
    let (key, first) = ring.key(&[Scope::LabelsRead]).await;
    let second = ring.rotate(&key.id).await;
    ring.one.delete_key(&ring.editor(), &key.id).await.unwrap();
    assert!(!ring.opens(&first).await && !ring.opens(&second).await);
    let gone = |result: Result<(), Error>| assert!(matches!(result, Err(Error::NotFound { .. })));
    gone(ring.one.delete_key(&ring.editor(), &key.id).await);
    gone(ring.one.set_key_active(&ring.editor(), &key.id, true).await.map(drop));
    gone(ring.one.rotate_key(&ring.editor(), &key.id, FormerSecrets::Overlap).await.map(drop));
    gone(ring.one.edit_key(&ring.editor(), &key.id, Some("x".to_owned()), None).await.map(drop));
    assert_eq!(ring.actions().await, ["key.created", "key.rotated", "key.deleted"]);
}

#[tokio::test]
async fn after_concurrent_rotations_only_the_last_secret_outlives_the_overlap() {
    let ring = Keyring::at("2026-03-01T00:00:00.000Z").await;
    let (key, first) = ring.key(&[Scope::LabelsRead]).await;
    let editor = ring.editor();
    let (one, other) = tokio::join!(
        ring.one.rotate_key(&editor, &key.id, FormerSecrets::Overlap),
        ring.other.rotate_key(&editor, &key.id, FormerSecrets::Overlap)
    );
    let (one, other) = (one.unwrap().1, other.unwrap().1);
    ring.opens_until(&first, instant("2026-03-01T02:00:00.000Z")).await;
    let left = [ring.opens(&one).await, ring.opens(&other).await];
    assert_eq!(left.iter().filter(|open| **open).count(), 1, "one of two rotations is the last: {left:?}");
}

#[tokio::test]
async fn the_last_use_of_a_key_reaches_other_processes_once_saved() {
    let ring = Keyring::at("2026-03-01T00:00:00.000Z").await;
    let (key, secret) = ring.key(&[Scope::LabelsRead]).await;
    let last = async |service: &Service| service.keys(&ring.fixture.store).await.unwrap()[0].last_used_at;
    assert_eq!(last(&ring.one).await, None);
    ring.clock.pass(5);
    ring.one.authenticate(secret.reveal()).await.unwrap().unwrap();
    let used = ring.clock.now();
    assert_eq!((last(&ring.one).await, last(&ring.other).await), (Some(used), None));
    ring.one.save_key_uses().await.unwrap();
    assert_eq!((last(&ring.one).await, last(&ring.other).await), (Some(used), Some(used)));
    // A use that is saved later, but is older than the saved use, changes nothing.
    ring.clock.pass(10);
    ring.other.authenticate(secret.reveal()).await.unwrap().unwrap();
    ring.clock.pass(-3);
    ring.one.authenticate(secret.reveal()).await.unwrap().unwrap();
    ring.other.save_key_uses().await.unwrap();
    ring.one.save_key_uses().await.unwrap();
    assert_eq!((last(&ring.one).await, last(&ring.other).await), (Some(used.plus_millis(10)), Some(used.plus_millis(10))));
    // An unknown secret records no use, and saving the use of a deleted key does not fail.
    assert!(ring.one.authenticate("cp_nonsense").await.unwrap().is_none());
    ring.one.authenticate(secret.reveal()).await.unwrap().unwrap();
    ring.one.delete_key(&ring.editor(), &key.id).await.unwrap();
    ring.one.save_key_uses().await.unwrap();
}

#[tokio::test]
async fn refused_key_changes_are_not_audited_and_the_audit_log_is_immutable() {
    let ring = Keyring::at("2026-03-01T00:00:00.000Z").await;
    let (key, _) = ring.key(&[Scope::LabelsRead]).await;
    ring.one.set_key_active(&ring.editor(), &key.id, true).await.unwrap();
    ring.one.set_key_active(&ring.editor(), &key.id, false).await.unwrap();
    ring.one.rotate_key(&ring.editor(), &key.id, FormerSecrets::Overlap).await.unwrap_err();
    assert_eq!(ring.actions().await, ["key.created", "key.deactivated"]);
    let on_sqlite = ring.fixture.url.starts_with("sqlite");
    let other = if on_sqlite { "INSERT OR REPLACE INTO audit SELECT * FROM audit" } else { "TRUNCATE audit" };
    for statement in ["UPDATE audit SET action = 'x'", "DELETE FROM audit", other] {
        let refused = ring.fixture.execute(statement).await.unwrap_err().to_string();
        assert!(refused.contains("stay as they are"), "{refused}");
    }
    assert_eq!(ring.actions().await.len(), 2);
}
