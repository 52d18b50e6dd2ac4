//! SSRF tests: a worker tries to deliver an event to each forbidden target, and listeners at the loopback addresses check that no
//! connection arrives.

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, atomic::Ordering},
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::{TcpListener, TcpStream};

use super::{
    endpoint::{SHORT, ScriptedReply, TestServer},
    fixture::Bench,
};
use crate::{
    delivery::{signing_http_client::SigningHttpClient, ssrf_guard::SystemResolver},
    domain::{
        ids::WebhookId,
        ssrf_policy::{Targets, tests::SPELT_OUT},
    },
    service::{Error, webhooks::WebhookSettings},
};

/// A part of the error text with which every forbidden target is refused.
const REASON: &str = "a public";

/// URLs of this machine in every notation of its host that a URL permits. The test appends the port.
const OURSELVES: [&str; 27] = [
    "http://127.0.0.1",
    "http://127.0.0.1.",
    "http://127.1",
    "http://127.0.1",
    "http://2130706433",
    "http://0x7f000001",
    "http://0x7F.1",
    "http://0x7f.0x0.0x0.0x1",
    "http://017700000001",
    "http://0177.0.0.01",
    "http://0.0.0.0",
    "http://0",
    "http://0x0",
    "http://１２７.0.0.1",
    "http://127。0。0。1",
    "http://%31%32%37.0.0.1",
    "http://127.\t0.0.1",
    "http:127.0.0.1",
    "http:\\\\127.0.0.1",
    "HTTP://///127.0.0.1",
    "http://[::1]",
    "http://[0:0:0:0:0:0:0:1]",
    "http://[::]",
    "http://[::ffff:127.0.0.1]",
    "http://[::ffff:7f00:1]",
    "http://localhost",
    "http://LocalHost",
];

/// URLs of this machine with credentials before the host. Most of the credentials look like another host. The server refuses a subscription
/// with such a URL.
const WITH_A_NAME: [&str; 5] = [
    "http://example.com@127.0.0.1",
    "http://example.com:80@127.0.0.1",
    "http://example.com%2f@127.1",
    "http://a:b@localhost",
    "http://example.com:pass@[::1]",
];

/// DNS names and the addresses to which the test resolves them, all of them forbidden.
const NAMES: [(&str, &[&str]); 18] = [
    ("self.example", &["127.0.0.1"]),
    ("six.example", &["::1"]),
    ("localhost.", &["127.0.0.1", "::1"]),
    ("dot.example.", &["127.0.0.1"]),
    ("127.0.0.1.example", &["127.0.0.1"]),
    ("xn--bcher-kva.example", &["127.0.0.1"]),
    ("mapped.example", &["::ffff:127.0.0.1"]),
    ("translated.example", &["64:ff9b::7f00:1"]),
    ("zero.example", &["0.0.0.0"]),
    ("zeros.example", &["::"]),
    ("metadata.google.internal", &["169.254.169.254"]),
    ("metadata.example", &["fd00:ec2::254", "169.254.169.254"]),
    ("ten.example", &["10.0.0.5"]),
    ("office.example", &["172.20.0.1"]),
    ("home.example", &["192.168.1.10"]),
    ("carrier.example", &["100.64.0.1"]),
    ("link.example", &["fe80::1"]),
    ("several.example", &["10.0.0.1", "127.0.0.1", "::1"]),
];

/// Listeners at loopback addresses on one port, which record their callers.
struct LoopbackListeners {
    port: u16,
    addresses: Vec<SocketAddr>,
    callers: Arc<Mutex<Vec<SocketAddr>>>,
}

/// Opens listeners at 127.0.0.1 and at ::1, both on the same port.
async fn both() -> (TcpListener, TcpListener) {
    loop {
        let four = TcpListener::bind("127.0.0.1:0").await.unwrap();
        match TcpListener::bind((Ipv6Addr::LOCALHOST, four.local_addr().unwrap().port())).await {
            Ok(six) => return (four, six),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{error}"),
        }
    }
}

impl LoopbackListeners {
    async fn new() -> Self {
        let (four, six) = both().await;
        Self::at([four, six])
    }

    fn at(listeners: impl IntoIterator<Item = TcpListener>) -> Self {
        let (mut addresses, callers) = (Vec::new(), Arc::<Mutex<Vec<SocketAddr>>>::default());
        for listener in listeners {
            addresses.push(listener.local_addr().unwrap());
            let callers = callers.clone();
            tokio::spawn(async move {
                loop {
                    let (_, caller) = listener.accept().await.unwrap();
                    callers.lock().unwrap().push(caller);
                }
            });
        }
        Self { port: addresses[0].port(), addresses, callers }
    }

    /// Removes `caller` from the list of callers, and returns whether it was found. The first `before` entries are not searched.
    fn forget(&self, before: usize, caller: SocketAddr) -> bool {
        let mut callers = self.callers.lock().unwrap();
        let Some(at) = callers[before..].iter().position(|other| *other == caller) else { return false };
        callers.remove(before + at);
        true
    }

    /// Returns the number of connections that reached the listeners. Connections are accepted in order: once the probe connection of this
    /// function has arrived, all earlier connections are counted.
    async fn calls(&self) -> usize {
        for address in &self.addresses {
            // The probe is searched for only among later callers, since an earlier caller may have had the same port.
            let before = self.callers.lock().unwrap().len();
            let last = TcpStream::connect(address).await.unwrap().local_addr().unwrap();
            while !self.forget(before, last) {
                tokio::task::yield_now().await;
            }
        }
        self.callers.lock().unwrap().len()
    }
}

/// A scripted DNS resolver: each look-up of a name returns the next of its scripted answers, and the last answer is repeated. Names without
/// scripted answers go to the system resolver.
#[derive(Default)]
struct Names(Mutex<HashMap<String, VecDeque<Vec<SocketAddr>>>>);

impl Names {
    fn give(&self, name: &str, addresses: &[&str]) {
        let answer = addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 0)).collect();
        self.0.lock().unwrap().entry(name.to_owned()).or_default().push_back(answer);
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let mut names = self.0.lock().unwrap();
        let Some(answers) = names.get_mut(name.as_str()) else { return SystemResolver.resolve(name) };
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Box::pin(async move { Ok(Box::new(answer.unwrap_or_default().into_iter()) as Addrs) })
    }
}

/// Returns the HTTP status and the failure reason of the only delivery attempt to a webhook.
async fn ended(bench: &Bench, id: &WebhookId) -> (Option<i64>, String) {
    let log = bench.log(id).await;
    assert_eq!(log.len(), 1, "{log:?}");
    (log[0].status, log[0].reason.clone().unwrap_or_default())
}

#[tokio::test]
async fn nothing_connects_to_a_private_address() {
    let bench = Bench::new().await;
    let (ears, names) = (LoopbackListeners::new().await, Arc::new(Names::default()));
    let port = ears.port;
    let mut hooks = Vec::new();
    let spelt_out = SPELT_OUT.iter().map(|host| format!("http://{host}:{port}/"));
    let ourselves = OURSELVES.iter().map(|url| format!("{url}:{port}/"));
    let named = NAMES.iter().map(|(name, _)| format!("http://{name}:{port}/"));
    for url in spelt_out.chain(ourselves).chain(named) {
        hooks.push((bench.hook(&url).await.0, url));
    }
    for url in WITH_A_NAME.map(|url| format!("{url}:{port}/")) {
        let refused =
            bench.service.create_webhook(&bench.editor(), WebhookSettings { url: Some(url.clone()), ..WebhookSettings::default() }).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{url}");
        hooks.push((bench.unchecked_hook(&url).await, url));
    }
    for (name, addresses) in NAMES {
        names.give(name, addresses);
    }
    assert!(hooks.len() >= 100);
    bench.event().await;
    let http_client = SigningHttpClient::naming(SHORT, Targets::Public, names).unwrap();
    bench.worker_over(http_client, Targets::Public).drain().await.unwrap();
    for (id, url) in &hooks {
        let (status, reason) = ended(&bench, id).await;
        assert!(status.is_none() && reason.contains(REASON), "{url}: {status:?} {reason}");
    }
    assert_eq!(ears.calls().await, 0, "a connection was made");
}

#[tokio::test]
async fn loopback_connects_where_all_targets_are_permitted() {
    let bench = Bench::new().await;
    let ears = LoopbackListeners::new().await;
    let mut worker = bench.worker();
    for (before, url) in OURSELVES.iter().chain(&WITH_A_NAME).enumerate() {
        let id = bench.unchecked_hook(&format!("{url}:{}/", ears.port)).await;
        bench.event().await;
        worker.drain().await.unwrap();
        assert_eq!(bench.log(&id).await.len(), 1, "{url}");
        // Two calls per URL: the connection ends without a response, so the request is repeated once.
        assert_eq!(ears.calls().await, 2 * (before + 1), "{url} does not lead to this machine, so a refusal of it proves nothing");
        bench.service.delete_webhook(&bench.editor(), &id).await.unwrap();
    }
}

#[tokio::test]
async fn dns_rebinding_is_refused() {
    let (four, six) = both().await;
    let ears = LoopbackListeners::at([four]);
    let permitted = Targets::PublicAnd(IpAddr::V6(Ipv6Addr::LOCALHOST));
    // Every response closes its connection, so each delivery opens a new connection.
    let origin = TestServer::on(six, |_| ScriptedReply::Says("200 OK\r\nconnection: close".to_owned()));
    let names = Arc::new(Names::default());
    // The answers to the look-ups of the name, in order. `::1` is permitted here, and `127.0.0.1` is refused, also in its IPv6 notation. If
    // an answer has both, the request goes to `::1`.
    for answer in [&["::1"][..], &["127.0.0.1"], &["::1"], &["127.0.0.1", "::1"], &["::ffff:127.0.0.1"]] {
        names.give("rebinding.example", answer);
    }
    let bench = Bench::new().await;
    let (id, _) = bench.hook(&format!("http://rebinding.example:{}/", ears.port)).await;
    let mut worker = bench.worker_over(SigningHttpClient::naming(SHORT, permitted, names).unwrap(), permitted);
    for arrives in [true, false, true, true, false] {
        let before = origin.connections.load(Ordering::SeqCst);
        bench.event().await;
        worker.drain().await.unwrap();
        let attempt = bench.log(&id).await.pop().unwrap();
        assert_eq!(attempt.status, arrives.then_some(200), "{attempt:?}");
        assert_eq!(attempt.reason.is_some_and(|reason| reason.contains(REASON)), !arrives);
        assert_eq!(origin.connections.load(Ordering::SeqCst) - before, usize::from(arrives));
    }
    assert_eq!(ears.calls().await, 0, "a connection was made");
}

#[tokio::test]
async fn no_redirect_leads_to_a_private_address() {
    let (ears, listener) = (LoopbackListeners::new().await, TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.unwrap());
    let port = ears.port;
    let locations = ["http://127.0.0.1", "//127.0.0.1", "http://2130706433", "http://[::ffff:7f00:1]", "http://[::1]", "http://localhost"];
    // The path of a request, `STATUS-INDEX`, selects the response: its status, and the index in `locations` of its redirect target.
    let origin = TestServer::on(listener, move |seen| {
        let (status, place) = seen.line.split([' ', '/']).filter(|part| !part.is_empty()).nth(1).unwrap().split_once('-').unwrap();
        ScriptedReply::Says(format!("{status} Elsewhere\r\nlocation: {}:{port}/", locations[place.parse::<usize>().unwrap()]))
    });
    let bench = Bench::new().await;
    let mut hooks = Vec::new();
    for status in [301, 302, 303, 307, 308] {
        for place in 0..locations.len() {
            let (id, _) = bench.hook(&format!("http://[::1]:{}/{status}-{place}", origin.port)).await;
            hooks.push((id, status));
        }
    }
    let permitted = Targets::PublicAnd(IpAddr::V6(Ipv6Addr::LOCALHOST));
    bench.event().await;
    bench.worker_within(SHORT, permitted).drain().await.unwrap();
    for (id, status) in &hooks {
        assert_eq!(ended(&bench, id).await, (Some(*status), String::new()));
    }
    assert_eq!(ears.calls().await, 0, "a connection was made");
}
