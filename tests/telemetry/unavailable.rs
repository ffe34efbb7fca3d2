//! A collector that is unreachable or hangs does not affect requests.

use super::scene::{MASKING, ask, page, traced, upstream};
use crate::support::chat::{body, chat};
use crate::support::metrics::value;
use crate::support::tidegate::{Setup, Tidegate};
use tidegate_testkit::{OtlpReceiver, TcpProxy, Unreachable, until};

/// A small queue, so that it fills up quickly.
fn with_small_queue(setup: Setup) -> Setup {
    setup.env("OTEL_BSP_MAX_QUEUE_SIZE", "20").env("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
}

async fn spans(tidegate: &Tidegate, outcome: &str) -> f64 {
    value(&page(tidegate).await, "tidegate_spans_total", &[&format!("outcome=\"{outcome}\"")]).unwrap()
}

#[tokio::test]
async fn an_unreachable_collector_delays_neither_requests_nor_shutdown() {
    let (unreachable, upstream) = (Unreachable::start(), upstream().await);
    let url = format!("http://{}", unreachable.address());
    let mut tidegate = with_small_queue(traced(MASKING, &upstream, &url)).start().await;
    for number in 0..20 {
        let reply = ask(&tidegate, &format!("c{number}"), body(&chat(1)), &[]).await;
        assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, None));
    }
    until("spans are dropped", async || spans(&tidegate, "dropped").await > 0.0).await;
    assert_eq!(spans(&tidegate, "exported").await, 0.0);
    tidegate.signal(rustix::process::Signal::TERM);
    assert!(tidegate.ended().await.success(), "shutdown failed");
}

#[tokio::test]
async fn a_hanging_collector_delays_no_request_and_is_used_once_it_recovers() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let address = collector.http_url().trim_start_matches("http://").parse().unwrap();
    let proxy = TcpProxy::start(address).await;
    let setup = traced(MASKING, &upstream, &format!("http://{}", proxy.address()));
    let tidegate = with_small_queue(setup).env("OTEL_EXPORTER_OTLP_TIMEOUT", "200").start().await;
    proxy.pause();
    for number in 0..20 {
        let reply = ask(&tidegate, &format!("c{number}"), body(&chat(1)), &[]).await;
        assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, None));
    }
    until("some have failed", async || spans(&tidegate, "failed").await > 0.0).await;
    proxy.resume();
    until("some arrive", async || {
        ask(&tidegate, "again", body(&chat(1)), &[]).await;
        spans(&tidegate, "exported").await > 0.0
    })
    .await;
}

#[tokio::test]
async fn an_invalid_collector_address_is_logged() {
    let upstream = upstream().await;
    let mut tidegate = traced(MASKING, &upstream, "not a url").start().await;
    tidegate.logged_message("telemetry is not exported").await;
    assert_eq!(ask(&tidegate, "c", body(&chat(1)), &[]).await.status, 200);
}
