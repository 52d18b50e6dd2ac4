//! Where no connection is made to.

use std::sync::atomic::Ordering;

use super::{
    bench::{Bench, DAY, SHORT},
    endpoint::Endpoint,
};
use crate::delivery::guard::Targets;

#[tokio::test]
async fn nothing_connects_to_a_private_address() {
    let bench = Bench::new().await;
    let endpoint = Endpoint::says("200 OK").await;
    let mut worker = bench.worker_within(SHORT, Targets::Public);
    for url in [&endpoint.url, &endpoint.name] {
        let (id, _) = bench.hook(url).await;
        bench.event().await;
        worker.drain().await.unwrap();
        let attempt = bench.log(&id).await.remove(0);
        assert!(attempt.reason.as_deref().is_some_and(|reason| reason.contains("not a public one")), "{attempt:?}");
    }
    assert_eq!(endpoint.connections.load(Ordering::SeqCst), 0);
    bench.pass(DAY);
    bench.worker().drain().await.unwrap();
    assert_eq!(endpoint.count(), 3, "both names work where it is allowed");
}
