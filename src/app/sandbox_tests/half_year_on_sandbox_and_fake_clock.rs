//! Test that runs a store ("shop") for six months, first on the clock of a sandbox (a test database whose clock can be advanced), then on
//! the fake clock of the test suite. Both runs must give the same results.

use std::time::Instant;

use poem::http::Method;
use serde_json::{Value, json};

use super::fixture::{ClockedShop, DAY, HOUR};
use crate::delivery::scripted_endpoints::TestEndpoint;

/// The results of one run of [`live`], which the test compares between the two clocks.
#[derive(Debug, PartialEq)]
struct RunResults {
    /// What the responses showed, week by week.
    shown: Vec<String>,
    history: Vec<String>,
    /// How many requests each receiver got.
    received: Vec<usize>,
}

/// Runs a store for half a year and one week. Each week a contact writes, a reply is sent over a channel that sometimes fails, and the
/// ticket is snoozed. One API key is rotated and one expires. Of three receivers of events, one always works, one fails for two days, and
/// one fails permanently from week 10 on.
async fn live(mut shop: ClockedShop) -> RunResults {
    let receivers = [TestEndpoint::says("200 OK").await, TestEndpoint::says("200 OK").await, TestEndpoint::says("200 OK").await];
    let [_, recovers, fails] = &receivers;
    let (kept, mut secret) = shop.key("kept").await;
    let (_, expires) = shop.key("expires").await;
    let mut hooks = Vec::new();
    for receiver in &receivers {
        hooks.push(shop.webhook(receiver).await);
    }
    let mut shown = Vec::new();
    for week in 0..27 {
        let (conversation, ticket) = shop.receive("a1", &format!("thread {week}"), &format!("message {week}")).await;
        let text = if week % 3 == 0 { "simulate:fail=4" } else { "Good morning!" };
        assert_eq!(shop.send(&secret, &conversation, text, &[]).await.0, 200);
        shop.snooze(&ticket, 3 * DAY).await;
        match week {
            5 => {
                shop.pass(0).await;
                recovers.now_says("500 Broken");
                shop.receive("a1", "thread 5", "message 5, again").await;
                shop.pass(2 * DAY).await;
                recovers.now_says("200 OK");
                shop.pass(5 * DAY).await;
            }
            8 => {
                let rotated = shop.set(Method::POST, "/keys/rotate", json!({ "keyId": kept })).await;
                let former = std::mem::replace(&mut secret, rotated["secret"].as_str().unwrap().to_owned());
                for millis in [0, 2 * HOUR - 1, 1] {
                    shop.pass(millis).await;
                    shown.push(format!("{:?} {:?}", shop.open_tickets(&former).await, shop.open_tickets(&secret).await));
                }
                shop.pass(7 * DAY - 2 * HOUR).await;
            }
            10 => {
                shop.pass(0).await;
                fails.now_says("500 Broken");
                for day in 0..7 {
                    shop.set(Method::POST, "/conversations/escalate", json!({ "conversationId": conversation })).await;
                    shop.pass(DAY).await;
                    shown.push(format!("day {day}: {}", shop.shown_webhook(&hooks[2]).await["enabled"]));
                }
            }
            _ => {
                shop.pass(3 * DAY - 1).await;
                let asleep = shop.open_tickets(&secret).await;
                shop.pass(1).await;
                shown.push(format!("{asleep:?} asleep, {:?} awake", shop.open_tickets(&secret).await));
                shop.pass(4 * DAY).await;
            }
        }
        let keys = shop.set(Method::GET, "/keys", Value::Null).await;
        let keys: Vec<&Value> = keys.as_array().unwrap().iter().map(|key| &key["status"]).collect();
        let mut line = format!("week {week}: {:?}, {:?}", keys, shop.open_tickets(&expires).await);
        for hook in &hooks {
            let webhook = shop.shown_webhook(hook).await;
            line.push_str(&format!(", {} {} {}", webhook["enabled"], webhook["disabledReason"], webhook["failingSince"]));
        }
        shown.push(line);
    }
    let history = shop.history(&hooks.iter().map(String::as_str).collect::<Vec<_>>()).await;
    RunResults { shown, history, received: receivers.iter().map(TestEndpoint::count).collect() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_months_give_equal_results_in_a_sandbox_and_on_a_fake_clock() {
    let began = Instant::now();
    let sandbox = live(ClockedShop::in_sandbox().await).await;
    let took = began.elapsed();
    let moved = live(ClockedShop::on_moved_clock().await).await;
    println!("six months in a sandbox took {took:?}, with {:?} requests to receivers", sandbox.received);
    assert_eq!(sandbox.shown, moved.shown);
    assert_eq!(sandbox.history.len(), moved.history.len());
    for (in_sandbox, on_moved) in sandbox.history.iter().zip(&moved.history) {
        assert_eq!(in_sandbox, on_moved);
    }
    assert_eq!(sandbox.received, moved.received);
    // The comparison would also succeed if nothing happened, so some expected results are checked.
    let assert_shown = |line: &str| assert!(sandbox.shown.iter().any(|shown| shown.contains(line)), "{line}: {:#?}", sandbox.shown);
    for line in ["day 4: true", "day 5: false", "week 26: [String(\"active\"), String(\"expired\")], (401, 0)"] {
        assert_shown(line);
    }
    let [well, recovered, failed] = sandbox.received[..] else { panic!("three receivers") };
    assert!(recovered > well && failed < well, "{:?}", sandbox.received);
    assert!(sandbox.history.iter().any(|line| line.contains("webhook 2") && line.contains("disabled")));
}
