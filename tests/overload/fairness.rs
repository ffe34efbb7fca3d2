//! Heavy work has its own threads.

use super::scene::{large, small};
use crate::support::client::{CHAT, exchange, post};
use crate::support::cores::quiet;
use crate::support::tidegate::Tidegate;
use std::time::Duration;
use tidegate_testkit::MockUpstream;

/// A window that every large request exceeds.
const CONFIG: &str =
    "[models.large]\nwindow = 20000\n[server]\nmax_memory = \"512MiB\"\n[store]\ntimeout = \"2s\"\n";

#[tokio::test]
async fn large_requests_that_are_refused_do_not_take_the_store_from_small_ones() {
    let _quiet = quiet().await;
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(CONFIG, &upstream).await;
    let mut floods = Vec::new();
    for number in 0..8 {
        let body = large(3 << 20, &format!("flood-{number}"));
        let request = post(CHAT, &[("x-conversation-id", &format!("flood-{number}"))], body);
        floods.push(tokio::spawn(exchange(tidegate.address, request)));
    }
    let mut degraded = Vec::new();
    while floods.iter().any(|flood| !flood.is_finished()) {
        let name = format!("small-{}", degraded.len());
        let reply = exchange(tidegate.address, small(&name)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        degraded.push(reply.header("x-tidegate-degraded").map(str::to_owned));
    }
    for flood in floods {
        assert_eq!(flood.await.unwrap().error_code(), "context_budget_exceeded");
    }
    assert!(degraded.len() >= 10, "only {} small requests", degraded.len());
    assert!(degraded.iter().all(Option::is_none), "{degraded:?}");
}

#[tokio::test]
async fn a_tenant_with_large_bodies_does_not_hold_up_another() {
    let _quiet = quiet().await;
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start("[server]\nmax_memory = \"512MiB\"\n", &upstream).await;
    let mut floods = Vec::new();
    for number in 0..12 {
        let body = large(2 << 20, &format!("flood-{number}"));
        let request = post(CHAT, &[("authorization", "Bearer greedy")], body);
        floods.push(tokio::spawn(exchange(tidegate.address, request)));
    }
    // Its own turn comes after at most one body for each core, not after all of them.
    let request = post(CHAT, &[("authorization", "Bearer modest")], large(300 << 10, "modest"));
    let reply = exchange(tidegate.address, request).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let waiting = floods.iter().filter(|flood| !flood.is_finished()).count();
    assert!(waiting >= 4, "{waiting} of the greedy ones were left");
    for flood in floods {
        assert_eq!(flood.await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn a_full_queue_refuses_first_sight_but_not_what_is_known() {
    let upstream = MockUpstream::start().await;
    let config = "[server]\nmax_memory = \"1GiB\"\nmax_queued_work = 1\n";
    let tidegate = Tidegate::start(config, &upstream).await;
    let known = post(CHAT, &[("x-conversation-id", "known")], large(100 << 10, "known"));
    assert_eq!(exchange(tidegate.address, &known).await.status, 200);
    let floods: Vec<_> =
        (0..12).map(|number| post(CHAT, &[], large(2 << 20, &format!("flood-{number}")))).collect();
    let floods: Vec<_> =
        floods.into_iter().map(|request| tokio::spawn(exchange(tidegate.address, request))).collect();
    while floods.iter().any(|flood| !flood.is_finished()) {
        let reply = exchange(tidegate.address, &known).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let mut refused = 0;
    for flood in floods {
        let reply = flood.await.unwrap();
        if reply.status != 200 {
            super::scene::assert_overloaded(&reply);
            refused += 1;
        }
    }
    assert!((1..12).contains(&refused), "{refused} were refused");
    let queued = async || super::scene::metric(&tidegate, "tidegate_queued_work", &[]).await;
    crate::support::until("the queue is empty", Duration::from_secs(30), queued, |queued| *queued == 0.0)
        .await;
}
