//! Tests of the Prometheus metrics: the results of deliveries, the lengths of queues, the search index, connections, and the process.

use serde_json::json;

use crate::{
    client::Api,
    delivery_receiver::{Endpoint, PRIVATE, until},
    fixture::channels,
    harness::{ALL_SCOPES, Database, Server, has_postgres},
    webhooks,
};

fn page(api: &Api) -> String {
    let page = api.anonymous().raw("GET", "/metrics").exchange();
    assert_eq!(page.status, 200);
    page.text
}

/// Returns the value of a metric on the page, or `None` if the page does not have it. `name` includes the labels of the metric.
fn value(page: &str, name: &str) -> Option<f64> {
    let named = |line: &&str| line.split_once(' ').is_some_and(|(start, _)| start == name || start == format!("{name}{{}}"));
    page.lines().find(named)?.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn metrics_show_failing_deliveries() {
    let database = Database::with(&[("shop", channels())]);
    let endpoint = Endpoint::replying(|_| ("500 Internal Server Error", String::new()));
    database.run(&["webhook", "create", "--store", "shop", "--url", &endpoint.url()]);
    // A webhook that its owner disables counts neither as failing nor as disabled because of failures.
    let switched_off = webhooks::create(&database, &endpoint.url(), &[]);
    webhooks::run(&database, "disable", &switched_off, &[]);
    // Leaves out the first setting of `PRIVATE`, which simulates the channels. Without this setting, the server cannot send through LINE,
    // so LINE messages fail.
    let server = Server::start_with(database, &PRIVATE[1..]);
    let api = server.api("shop", &ALL_SCOPES);
    let before = page(&api);
    for (name, expected) in [
        ("counterpart_delivery_waiting{queue=\"messages\"}", Some(0.0)),
        ("counterpart_delivery_waiting{queue=\"webhooks\"}", Some(0.0)),
        ("counterpart_delivery_oldest_waiting_seconds{queue=\"webhooks\"}", Some(0.0)),
        ("counterpart_delivery_attempts_total{queue=\"webhooks\",outcome=\"retrying\"}", None),
        ("counterpart_webhooks_failing", Some(0.0)),
        ("counterpart_webhooks_disabled", Some(0.0)),
    ] {
        assert_eq!(value(&before, name), expected, "{name}\n{before}");
    }
    for (name, least) in [
        ("counterpart_db_size_bytes", 100_000.0),
        ("counterpart_http_connections", 1.0),
        ("process_resident_memory_bytes", 1_000_000.0),
        ("process_cpu_seconds_total", 0.01),
        ("process_open_fds", 5.0),
        ("process_start_time_seconds", 1_700_000_000.0),
    ] {
        assert!(value(&before, name).is_some_and(|value| value >= least), "{name}\n{before}");
    }
    assert!(before.contains(&format!("counterpart_build_info{{version=\"{}\"", env!("CARGO_PKG_VERSION"))), "{before}");
    assert!(before.ends_with("# EOF\n"), "{before}");

    let widget = json!({"conversationId": "conv-web", "text": "a"});
    api.post("/messages", widget).send().ok();
    api.post("/messages", json!({"conversationId": "conv-line", "text": "a"})).send().ok();
    let counted = |name: &str, least: f64| until(name, || value(&page(&api), name).is_some_and(|value| value >= least));
    counted("counterpart_delivery_attempts_total{queue=\"messages\",outcome=\"given_up\"}", 1.0);
    counted("counterpart_delivery_attempts_total{queue=\"webhooks\",outcome=\"retrying\"}", 1.0);
    counted("counterpart_delivery_waiting{queue=\"webhooks\"}", 1.0);
    counted("counterpart_webhooks_failing", 1.0);
    server.database.sql("UPDATE events SET occurred_at = occurred_at - 90000");
    let oldest = value(&page(&api), "counterpart_delivery_oldest_waiting_seconds{queue=\"webhooks\"}");
    assert!(oldest.is_some_and(|seconds| seconds >= 90.0), "{oldest:?}");
    server.database.sql("UPDATE webhooks SET enabled = FALSE, disabled_reason = 'gone' WHERE enabled = TRUE");
    assert_eq!(value(&page(&api), "counterpart_webhooks_disabled"), Some(1.0));
    // An edit of a disabled webhook does not enable it.
    let gone = webhooks::listed(&server.database).into_iter().find(|webhook| webhook["disabledReason"] == "gone").unwrap_or_default();
    webhooks::run(&server.database, "edit", &gone, &["--url", &format!("{}/moved", endpoint.url())]);
    assert_eq!(value(&page(&api), "counterpart_webhooks_disabled"), Some(1.0));
    server.database.sql("UPDATE webhooks SET enabled = TRUE, disabled_reason = NULL WHERE disabled_reason = 'gone'");
    endpoint.replies(|_| ("200 OK", String::new()));
    api.post("/messages", json!({"conversationId": "conv-web", "text": "b"})).send().ok();
    counted("counterpart_delivery_attempts_total{queue=\"webhooks\",outcome=\"delivered\"}", 1.0);
    // Metrics whose values cannot be read from the database are left out of the page.
    if server.database.lets_in(false) {
        until("the gauges are gone", || value(&page(&api), "counterpart_delivery_waiting{queue=\"webhooks\"}").is_none());
        assert!(value(&page(&api), "counterpart_db_gauges_unread_total").is_some_and(|times| times >= 1.0));
        server.database.lets_in(true);
    }
}

#[test]
fn metrics_show_the_search_index_and_connections() {
    let database = Database::with(&[("shop", channels())]);
    let on_postgres = has_postgres();
    let server = Server::start_with(database, &[]);
    let api = server.api("shop", &ALL_SCOPES);
    until("the index is ready", || value(&page(&api), "counterpart_search_index_ready") == Some(1.0));
    let page = page(&api);
    assert!(value(&page, "counterpart_search_index_bytes").is_some_and(|bytes| bytes > 1000.0), "{page}");
    assert!(value(&page, "counterpart_search_index_lag_seconds").is_some_and(|seconds| seconds < 60.0), "{page}");
    let connections = value(&page, "counterpart_db_connections");
    assert_eq!(connections.is_some_and(|open| open >= 1.0), on_postgres, "{page}");
}

#[test]
fn the_metrics_page_can_have_a_separate_address() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").to_string();
    let server = Server::start_with(Database::with(&[("shop", channels())]), &[("COUNTERPART_METRICS_LISTEN", &free)]);
    let api = server.api("shop", &ALL_SCOPES);
    assert_eq!(api.anonymous().raw("GET", "/metrics").exchange().status, 404);
    let apart = Api { address: free, ..api.anonymous() };
    let alone = page(&apart);
    assert!(value(&alone, "counterpart_search_index_ready").is_some(), "{alone}");
    for path in ["/", "/healthz", "/openapi.json", "/docs"] {
        assert_eq!(apart.anonymous().raw("GET", path).exchange().status, 404, "{path}");
    }
}
