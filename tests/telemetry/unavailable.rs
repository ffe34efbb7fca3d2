//! A collector that is away, or takes everything and says nothing, costs no request anything.

use super::scene::{MASKING, ask, page, traced, upstream};
use crate::support::chat::{body, chat};
use crate::support::metrics::value;
use crate::support::tidegate::{Setup, Tidegate};
use tidegate_testkit::{OtlpReceiver, TcpProxy, Unreachable, until};

/// Little room, so that it is soon full.
fn cramped(setup: Setup) -> Setup {
    setup.env("OTEL_BSP_MAX_QUEUE_SIZE", "20").env("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
}

async fn spans(tidegate: &Tidegate, outcome: &str) -> f64 {
    value(&page(tidegate).await, "tidegate_spans_total", &[&format!("outcome=\"{outcome}\"")]).unwrap()
}

#[tokio::test]
async fn an_unreachable_collector_delays_neither_requests_nor_shutdown() {
    let (nobody, upstream) = (Unreachable::start(), upstream().await);
    let url = format!("http://{}", nobody.address());
    let mut tidegate = cramped(traced(MASKING, &upstream, &url)).start().await;
    for number in 0..20 {
        let reply = ask(&tidegate, &format!("c{number}"), body(&chat(1)), &[]).await;
        assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, None));
    }
    until("spans are dropped", async || spans(&tidegate, "dropped").await > 0.0).await;
    assert_eq!(spans(&tidegate, "exported").await, 0.0);
    tidegate.signal(rustix::process::Signal::TERM);
    assert!(tidegate.ended().await.success(), "a collector that is away must not keep it from ending");
}

#[tokio::test]
async fn a_hanging_collector_delays_no_request_and_is_used_once_it_recovers() {
    let (collector, upstream) = (OtlpReceiver::start().await, upstream().await);
    let address = collector.http_url().trim_start_matches("http://").parse().unwrap();
    let between = TcpProxy::start(address).await;
    let setup = traced(MASKING, &upstream, &format!("http://{}", between.address()));
    let tidegate = cramped(setup).env("OTEL_EXPORTER_OTLP_TIMEOUT", "200").start().await;
    between.pause();
    for number in 0..20 {
        let reply = ask(&tidegate, &format!("c{number}"), body(&chat(1)), &[]).await;
        assert_eq!((reply.status, reply.header("x-tidegate-degraded")), (200, None));
    }
    until("some have failed", async || spans(&tidegate, "failed").await > 0.0).await;
    between.resume();
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
