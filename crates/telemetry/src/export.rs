//! Sends spans and metrics to a collector, from a thread of its own.

use crate::otlp::{Plan, Protocol, Target};
use crate::queue::Queue;
use crate::reader::SharedReader;
use hyper_rustls::{ConfigBuilderExt, HttpsConnectorBuilder};
use opentelemetry_http::HttpClient;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_otlp::{
    MetricExporter, Protocol as Wire, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::trace::SpanExporter as _;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::error::Error;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tonic::transport::{Certificate, ClientTlsConfig};
use tracing::debug;

/// The thread that sends. It has a runtime of its own, so that nothing on a request's way ever waits for it.
#[derive(Debug)]
pub(crate) struct Sender {
    thread: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

/// How long what is left may take when the process ends.
const LAST: Duration = Duration::from_secs(5);

impl Sender {
    /// Cannot fail but by a wrong address, a certificate that cannot be read or a system that gives no thread.
    pub(crate) fn start(
        plan: &Plan,
        spans: Option<Arc<Queue>>,
        reader: SharedReader,
        resource: &Resource,
    ) -> Result<Sender, Box<dyn Error + Send + Sync>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = watch::channel(false);
        let entered = runtime.enter();
        let spans = match (spans, &plan.traces) {
            (Some(queue), Some(target)) => {
                let mut exporter = span_exporter(target, plan)?;
                exporter.set_resource(resource);
                Some((queue, exporter))
            }
            _ => None,
        };
        let metrics = match &plan.metrics {
            Some(target) => Some((reader, metric_exporter(target, plan)?)),
            None => None,
        };
        drop(entered);
        let (delay, interval, most) = (plan.delay, plan.interval, plan.timeout);
        let run = move || {
            runtime.block_on(async {
                let spans = async {
                    if let Some((queue, exporter)) = spans {
                        send_spans(&queue, &exporter, delay, most, stopped.clone()).await;
                    }
                };
                let metrics = async {
                    if let Some((reader, exporter)) = metrics {
                        send_metrics(&reader, &exporter, interval, most, stopped.clone()).await;
                    }
                };
                tokio::join!(spans, metrics);
            });
        };
        let thread = std::thread::Builder::new().name("telemetry".to_owned()).spawn(run)?;
        Ok(Sender { thread, stop })
    }

    /// Sends what is left, for a few seconds at most.
    pub(crate) fn shut_down(self) {
        let _ = self.stop.send(true);
        // It ends by itself; a panic in it is in the log already.
        let _ = self.thread.join();
    }
}

async fn send_spans(
    queue: &Queue,
    exporter: &SpanExporter,
    delay: Duration,
    most: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => break,
            () = queue.enough() => {}
            () = tokio::time::sleep(delay) => {}
        }
        let on_the_way = async { while send_batch(queue, exporter, most).await {} };
        tokio::select! {
            () = on_the_way => {}
            () = lasted(stopped.clone()) => return,
        }
    }
    let deadline = Instant::now() + LAST;
    let rest = async { while send_batch(queue, exporter, most).await {} };
    let _ = tokio::time::timeout_at(deadline, rest).await;
}

/// The process is ending, and whatever was on its way then has had its time.
async fn lasted(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
    tokio::time::sleep(LAST).await;
}

/// Whether there was anything to send.
async fn send_batch(queue: &Queue, exporter: &SpanExporter, most: Duration) -> bool {
    let batch = queue.take();
    let spans = batch.len();
    if spans == 0 {
        return false;
    }
    match timeout(most, exporter.export(batch)).await {
        Ok(Ok(())) => queue.counts.exported(spans),
        failed => {
            queue.counts.failed(spans);
            debug!(spans, error = %told(failed), "spans could not be sent");
        }
    }
    true
}

async fn send_metrics(
    reader: &SharedReader,
    exporter: &MetricExporter,
    every: Duration,
    most: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    let every = every.max(Duration::from_millis(1));
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        // In this order: while a collector is away, both are always due.
        let is_last = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => true,
            _ = ticks.tick() => false,
        };
        let read = reader.collect();
        let sent = tokio::select! {
            sent = timeout(most, exporter.export(&read)) => sent,
            () = lasted(stopped.clone()) => return,
        };
        match sent {
            Ok(Ok(())) => {}
            failed => debug!(error = %told(failed), "metrics could not be sent"),
        }
        if is_last {
            return;
        }
    }
}

fn told<E: Error>(failed: Result<Result<(), E>, tokio::time::error::Elapsed>) -> String {
    match failed {
        Ok(Ok(())) => String::new(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it took too long".to_owned(),
    }
}

fn span_exporter(target: &Target, plan: &Plan) -> Result<SpanExporter, Box<dyn Error + Send + Sync>> {
    let Target { endpoint, protocol } = target;
    Ok(match protocol {
        Protocol::Grpc => {
            let builder = SpanExporter::builder().with_tonic().with_endpoint(endpoint);
            match tls(endpoint, plan)? {
                Some(tls) => builder.with_tls_config(tls).build()?,
                None => builder.build()?,
            }
        }
        Protocol::Http => SpanExporter::builder()
            .with_http()
            .with_http_client(http_client(plan)?)
            .with_protocol(Wire::HttpBinary)
            .with_endpoint(endpoint)
            .build()?,
    })
}

fn metric_exporter(target: &Target, plan: &Plan) -> Result<MetricExporter, Box<dyn Error + Send + Sync>> {
    let Target { endpoint, protocol } = target;
    let builder = MetricExporter::builder().with_temporality(Temporality::Cumulative);
    Ok(match protocol {
        Protocol::Grpc => {
            let builder = builder.with_tonic().with_endpoint(endpoint);
            match tls(endpoint, plan)? {
                Some(tls) => builder.with_tls_config(tls).build()?,
                None => builder.build()?,
            }
        }
        Protocol::Http => builder
            .with_http()
            .with_http_client(http_client(plan)?)
            .with_protocol(Wire::HttpBinary)
            .with_endpoint(endpoint)
            .build()?,
    })
}

/// For an address that wants it.
fn tls(endpoint: &str, plan: &Plan) -> Result<Option<ClientTlsConfig>, Box<dyn Error + Send + Sync>> {
    if !endpoint.starts_with("https") {
        return Ok(None);
    }
    let roots = ClientTlsConfig::new().with_native_roots();
    Ok(Some(match &plan.certificate {
        Some(path) => roots.ca_certificate(Certificate::from_pem(read(path)?)),
        None => roots,
    }))
}

fn http_client(plan: &Plan) -> Result<impl HttpClient + use<>, Box<dyn Error + Send + Sync>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let config = match &plan.certificate {
        Some(path) => {
            let mut roots = rustls::RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(&read(path)?) {
                roots.add(certificate.map_err(|error| format!("cannot read `{path}`: {error}"))?)?;
            }
            config.with_root_certificates(roots).with_no_client_auth()
        }
        None => config.with_native_roots()?.with_no_client_auth(),
    };
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build();
    Ok(HyperClient::new(connector, plan.timeout, None))
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read `{path}`: {error}"))
}
