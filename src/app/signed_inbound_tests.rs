//! Tests of inbound messages that are signed by a bridge, the HTTP service of a channel. Valid requests are accepted. Of thousands of
//! requests that are forged, changed, stale, replayed or signed by the bridge of another account, none is accepted.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use poem::{EndpointExt, Request, http::Method};
use serde_json::{Value, json};

use super::*;
use crate::{
    domain::{
        clock::RandomIds,
        fake_clock_and_test_rules::{MovableClock, SeededRandom},
        ids::{AccountId, StoreId},
        settings_access::{Editor, FormerSecrets},
        stores_and_accounts::Store,
        time::Timestamp,
        webhooks::SigningSecret,
    },
    store::fixture::Fixture,
};

const NOW: i64 = 1_780_300_800;
const PATH: &str = "/settings/v1/messages";
const HOUR: i64 = 60 * 60 * 1000;

/// A server in this process with two stores. Each store has the channel accounts `a1`, `a2` and `a3`. No test sets a bridge for `a3`.
struct Bench {
    fixture: Fixture,
    endpoint: Arc<poem::endpoint::BoxEndpoint<'static, Response>>,
    service: Service,
    clock: Arc<MovableClock>,
    other: StoreId,
    _index: tempfile::TempDir,
}

/// A signed request, genuine or forged.
#[derive(Clone, Debug)]
struct Signed {
    id: String,
    time: String,
    signature: String,
    body: Vec<u8>,
}

impl Bench {
    async fn new() -> Self {
        // A database of its own, since one of the tests deletes the accepted signatures of all stores.
        let fixture = Fixture::alone().await;
        let clock = MovableClock::at(NOW * 1000);
        let clocks_and_ids = ClocksAndIds::of(clock.clone(), Arc::new(RandomIds));
        let (db, index) = (fixture.db.clone(), tempfile::tempdir().unwrap());
        let (callers, folder) = (ClientSettings::default(), index.path().join("index"));
        let app = App::new(db, clocks_and_ids, Metrics::default(), callers, Connectors::none(), Targets::Any, folder).await.unwrap();
        let service = app.state.service.clone();
        let other = StoreId::from(format!("{}-other", fixture.store));
        let store = Store {
            id: other.clone(),
            name: "Other".to_owned(),
            currency: "THB".to_owned(),
            reopen_window_hours: 24,
            created_at: Timestamp::from_millis(0),
        };
        assert!(fixture.db.insert_store(&store).await.unwrap());
        fixture.account("a2", "line").await;
        fixture.account("a3", "line").await;
        let copied = "id, channel, name, status, created_at, updated_at";
        let copy = format!(
            "INSERT INTO accounts (store_id, {copied}) SELECT '{other}', {copied} FROM accounts WHERE store_id = '{}'",
            fixture.store
        );
        fixture.execute(&copy).await.unwrap();
        let endpoint = Arc::new(app.endpoint().boxed());
        Self { fixture, endpoint, service, clock, other, _index: index }
    }

    async fn bridge(&self, store: &StoreId, account: &str) -> SigningSecret {
        let (editor, account) = (Editor::command_line(store.clone()), AccountId::from(account));
        self.service.set_bridge(&editor, &account, "https://bridge.example.com/").await.unwrap().1.unwrap()
    }

    async fn rotate(&self, account: &str, former: FormerSecrets) -> SigningSecret {
        self.service.rotate_bridge(&Editor::command_line(self.fixture.store.clone()), &account.into(), former).await.unwrap().1
    }

    fn message(&self, account: &str, n: usize) -> Value {
        json!({
            "storeId": self.fixture.store, "accountId": account, "referenceId": format!("thread {}", n % 7),
            "externalId": format!("x-{n}"), "sender": {"id": "u", "name": "มะลิ"}, "text": format!("hello {n}"),
        })
    }

    async fn send(&self, signed: &Signed) -> (u16, Value) {
        send(&self.endpoint, signed, &[]).await
    }

    /// Returns the number of events of the second store, `other`.
    async fn others(&self) -> usize {
        self.service.events_after(&self.other, 0, 500).await.unwrap().len()
    }

    /// Returns the number of rows of each table to which an accepted message adds a row.
    async fn rows(&self) -> [i64; 4] {
        let mut rows = [0; 4];
        for (table, rows) in ["messages", "conversations", "events", "accepted_signatures"].iter().zip(&mut rows) {
            *rows = self.fixture.rows_of(table).await;
        }
        rows
    }
}

async fn send(endpoint: &poem::endpoint::BoxEndpoint<'static, Response>, signed: &Signed, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut request = Request::builder().method(Method::POST).uri_str(PATH).content_type("application/json");
    for (name, value) in [("webhook-id", &signed.id), ("webhook-timestamp", &signed.time), ("webhook-signature", &signed.signature)] {
        if !value.is_empty() {
            request = request.header(name, value);
        }
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = endpoint.get_response(request.body(signed.body.clone())).await;
    (response.status().as_u16(), serde_json::from_str(&response.into_body().into_string().await.unwrap()).unwrap())
}

fn sign(secret: &SigningSecret, id: &str, seconds: i64, body: impl Into<Vec<u8>>) -> Signed {
    let body = body.into();
    Signed { id: id.to_owned(), time: seconds.to_string(), signature: secret.sign(id, seconds, &body), body }
}

#[tokio::test(flavor = "multi_thread")]
async fn inbound_messages_signed_with_the_secret_of_the_bridge_are_accepted() {
    let bench = Bench::new().await;
    let store = bench.fixture.store.clone();
    let first = bench.bridge(&store, "a1").await;
    let message = bench.message("a1", 1).to_string();
    let (status, answer) = bench.send(&sign(&first, "m.1", NOW, message.clone())).await;
    assert_eq!((status, &answer["data"]["duplicate"], &answer["storeId"]), (200, &json!(false), &json!(store)), "{answer}");
    // A retry has a new signature, but the message is stored only once.
    let (status, again) = bench.send(&sign(&first, "m.1", NOW + 1, message.clone())).await;
    assert_eq!((status, &again["data"]["duplicate"]), (200, &json!(true)), "{again}");
    assert_eq!(again["data"]["messageId"], answer["data"]["messageId"]);
    // During a rotation the old and the new secret are valid, even if the header also contains signatures that the server does not know.
    let second = bench.rotate("a1", FormerSecrets::Overlap).await;
    for (n, (secret, before)) in [(&first, "v1,AAAA "), (&second, "v1a,AAAA v9,x ")].into_iter().enumerate() {
        let mut signed = sign(secret, "rotated", NOW + 10 + n as i64, bench.message("a1", 10 + n).to_string());
        signed.signature.insert_str(0, before);
        assert_eq!(bench.send(&signed).await.0, 200);
    }
    // `FormerSecrets::End` is for leaked secrets: former secrets are invalid from the rotation on.
    let third = bench.rotate("a1", FormerSecrets::End).await;
    for (n, secret, status) in [(15, &first, 401), (16, &second, 401), (17, &third, 200)] {
        assert_eq!(bench.send(&sign(secret, "leaked", NOW + n, bench.message("a1", n as usize).to_string())).await.0, status);
    }
    let second = third;
    // The timestamp of a signature may differ from the server's clock by at most five minutes.
    for (n, off, status) in [(20, 300, 200), (21, -300, 200), (22, 301, 401), (23, -301, 401)] {
        let signed = sign(&second, "time", NOW + off, bench.message("a1", n).to_string());
        let (found, answer) = bench.send(&signed).await;
        assert_eq!(found, status, "{answer}");
        assert!(status == 200 || answer["error"]["message"].as_str().unwrap().contains("`webhook-timestamp` must be within five minutes"));
    }
    // The signature covers the exact bytes of the body, even a byte order mark or half of a surrogate pair. If the body is compressed, the
    // signature covers the uncompressed body.
    let marked = format!("\u{feff}{}", bench.message("a1", 30));
    assert_eq!(bench.send(&sign(&second, "mark", NOW, marked)).await.0, 200);
    let half = bench.message("a1", 31).to_string().replace("hello", "\\ud83d");
    assert_eq!(bench.send(&sign(&second, "half", NOW, half)).await.0, 200);
    let mut packed = sign(&second, "packed", NOW, bench.message("a1", 32).to_string());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &packed.body).unwrap();
    packed.body = gzip.finish().unwrap();
    assert_eq!(send(&bench.endpoint, &packed, &[("content-encoding", "gzip")]).await.0, 200);
    // If a request has a bearer token, the server ignores its signature.
    let signed = sign(&second, "both", NOW, bench.message("a1", 33).to_string());
    assert_eq!(send(&bench.endpoint, &signed, &[("authorization", "Bearer cps_unknown")]).await.0, 401);
    assert_eq!(bench.send(&signed).await.0, 200);
    assert_eq!(bench.fixture.rows_of("audit").await, 3, "the bridge and its two rotations");
    // A day after the rotation only the new secret is valid. Once the bridge is removed, no secret is valid.
    bench.clock.pass(25 * HOUR);
    let later = NOW + 25 * 60 * 60;
    assert_eq!(bench.send(&sign(&first, "old", later, bench.message("a1", 40).to_string())).await.0, 401);
    assert_eq!(bench.send(&sign(&second, "new", later, bench.message("a1", 41).to_string())).await.0, 200);
    bench.service.remove_bridge(&Editor::command_line(store), &"a1".into()).await.unwrap();
    assert_eq!(bench.send(&sign(&second, "gone", later, bench.message("a1", 42).to_string())).await.0, 401);
    bench.service.db().prune_signatures(bench.service.clocks_and_ids().now()).await.unwrap();
    assert_eq!(bench.fixture.rows_of("accepted_signatures").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_request_that_failed_may_be_sent_again_and_one_that_succeeded_may_not() {
    let bench = Bench::new().await;
    let secret = bench.bridge(&bench.fixture.store, "a1").await;
    let before = bench.rows().await;
    let mut wrong = bench.message("a1", 1);
    wrong["referenceId"] = json!("");
    let (status, answer) = bench.send(&sign(&secret, "m", NOW, wrong.to_string())).await;
    assert_eq!(status, 400, "{answer}");
    wrong["referenceId"] = json!("a\tb");
    assert_eq!(bench.send(&sign(&secret, "m", NOW, wrong.to_string())).await.0, 400);
    assert_eq!(bench.rows().await, before);
    let signed = sign(&secret, "m", NOW, bench.message("a1", 1).to_string());
    let tries = (0..8).map(|_| {
        let (endpoint, signed) = (bench.endpoint.clone(), signed.clone());
        tokio::spawn(async move { send(&endpoint, &signed, &[]).await.0 })
    });
    let mut statuses = Vec::new();
    for one in tries.collect::<Vec<_>>() {
        statuses.push(one.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
    // A different message with the same `webhook-id` and `webhook-timestamp` also counts as a replay.
    let (status, answer) = bench.send(&sign(&secret, "m", NOW, bench.message("a1", 2).to_string())).await;
    assert_eq!(status, 409);
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("`webhook-id` and `webhook-timestamp` are those of"), "{answer}");
    assert_eq!(bench.rows().await.map(|rows| rows.min(1)), [1; 4]);
    assert_eq!(bench.fixture.rows_of("messages").await, before[0] + 1);
}

/// The number of kinds of requests that must not be accepted.
const KINDS: usize = 16;
const REQUESTS: usize = 10_000;

/// Returns a request that must be refused, of the kind `n % KINDS`, and the expected status of the response. `accepted` are requests that
/// were accepted before.
fn refused_request(bench: &Bench, dice: &mut SeededRandom, n: usize, secrets: &[SigningSecret; 3], accepted: &[Signed]) -> (Signed, u16) {
    let [own, beside, foreign] = secrets;
    let id = format!("msg_{n}");
    let time = NOW - 290 + dice.below(580) as i64;
    let body = bench.message("a1", 1_000 + n);
    let text = body.to_string();
    let good = sign(own, &id, time, text.clone());
    let in_store = |store: &StoreId, account: &str| {
        let mut body = body.clone();
        (body["storeId"], body["accountId"]) = (json!(store), json!(account));
        body.to_string()
    };
    let store = &bench.fixture.store;
    let replayed = accepted[dice.below(accepted.len())].clone();
    let signed = match n % KINDS {
        0 => Signed { signature: format!("v1,{}", BASE64.encode(dice.bytes(32))), ..good },
        1 => {
            let mut mac = BASE64.decode(&good.signature[3..]).unwrap();
            mac[dice.below(32)] ^= 1 << dice.below(8);
            Signed { signature: format!("v1,{}", BASE64.encode(mac)), ..good }
        }
        // In these requests, the secret does not belong to the account in the body. It belongs to another account, or to the account with
        // the same id in the other store.
        2 => sign(beside, &id, time, text),
        3 => sign(foreign, &id, time, text),
        4 => sign(own, &id, time, in_store(store, "a2")),
        5 => sign(own, &id, time, in_store(&bench.other, "a1")),
        // An account without a bridge, an account that does not exist, or an account id with U+0000, which PostgreSQL cannot store.
        6 => {
            let secret = SigningSecret(if dice.below(2) == 0 { vec![0; 32] } else { dice.bytes(32) });
            let account = ["a3", "a4", "", "a1\0", "A1", " a1"][dice.below(6)];
            sign(&secret, &id, time, in_store(store, account))
        }
        7 => {
            let mut changed = good.clone();
            let at = dice.below(changed.body.len());
            changed.body[at] ^= 1 << dice.below(7);
            changed
        }
        8 => Signed { body: in_store(store, "a2").into_bytes(), ..good },
        9 => Signed { id: format!("{id}x"), ..good },
        10 => Signed { time: (time + 1).to_string(), ..good },
        11 => {
            let off = 301 + dice.below(1_000_000) as i64;
            sign(own, &id, if dice.below(2) == 0 { NOW - off } else { NOW + off }, text)
        }
        12 => {
            let written = [format!("0{time}"), format!("+{time}"), format!("{time}.0"), format!("{time}000"), "soon".to_owned()];
            Signed { time: written[dice.below(5)].clone(), ..good }
        }
        13 => {
            let mut lacking = good;
            match dice.below(4) {
                0 => lacking.id.clear(),
                1 => lacking.time.clear(),
                2 => lacking.signature.clear(),
                _ => lacking.signature = lacking.signature.replace("v1,", ["v2,", "v1a,", "V1,", ""][dice.below(4)]),
            }
            lacking
        }
        // The body contains `accountId` twice, so two parsers could read different accounts.
        14 => {
            let twice = format!("{{\"accountId\":\"a2\",{}", &text[1..]);
            sign(own, &id, time, twice)
        }
        _ => {
            let signature = ["", "v1,AAAA ", "v1a,AAAA "][dice.below(3)].to_owned() + &replayed.signature;
            return (Signed { signature, ..replayed }, 409);
        }
    };
    (signed, 401)
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_forged_stale_replayed_and_foreign_requests_are_all_refused() {
    let bench = Arc::new(Bench::new().await);
    let store = bench.fixture.store.clone();
    let secrets = [bench.bridge(&store, "a1").await, bench.bridge(&store, "a2").await, bench.bridge(&bench.other, "a1").await];
    let mut accepted = Vec::new();
    for n in 0..20 {
        let signed = sign(&secrets[0], &format!("good.{n}"), NOW - n, bench.message("a1", n as usize).to_string());
        assert_eq!(bench.send(&signed).await.0, 200);
        accepted.push(signed);
    }
    let before = (bench.rows().await, bench.others().await);
    let mut dice = SeededRandom(0x9e37_79b9_7f4a_7c15);
    let requests: Vec<_> = (0..REQUESTS).map(|n| (n, refused_request(&bench, &mut dice, n, &secrets, &accepted))).collect();
    let parts = requests.chunks(REQUESTS / 8).map(|part| {
        let (bench, part) = (bench.clone(), part.to_vec());
        tokio::spawn(async move {
            for (n, (signed, status)) in part {
                let (found, answer) = bench.send(&signed).await;
                assert_eq!(found, status, "kind {}: {signed:?}: {answer}", n % KINDS);
            }
        })
    });
    for part in parts.collect::<Vec<_>>() {
        part.await.unwrap();
    }
    assert_eq!((bench.rows().await, bench.others().await), before);
    // Valid requests of the bridges are still accepted.
    for (n, (secret, account)) in secrets.iter().zip(["a1", "a2"]).enumerate() {
        assert_eq!(bench.send(&sign(secret, "after", NOW, bench.message(account, 90_000 + n).to_string())).await.0, 200);
    }
}
