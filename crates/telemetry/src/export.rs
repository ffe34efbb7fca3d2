//! Exports spans and metrics to a collector.

use crate::otlp::{ExportSettings, Protocol, Target};
use crate::reader::SharedReader;
use crate::span_queue::SpanQueue;
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

/// The thread that exports. It has a runtime of its own, so that requests never wait for it.
#[derive(Debug)]
pub(crate) struct Exporter {
    thread: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

/// How long the last export may take when the process exits.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

impl Exporter {
    /// Fails if an endpoint is invalid, the certificate cannot be read or the thread cannot be started.
    pub(crate) fn start(
        settings: &ExportSettings,
        spans: Option<Arc<SpanQueue>>,
        reader: SharedReader,
        resource: &Resource,
    ) -> Result<Exporter, Box<dyn Error + Send + Sync>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = watch::channel(false);
        let entered = runtime.enter();
        let spans = match (spans, &settings.traces) {
            (Some(queue), Some(target)) => {
                let mut exporter = span_exporter(target, settings)?;
                exporter.set_resource(resource);
                Some((queue, exporter))
            }
            _ => None,
        };
        let metrics = match &settings.metrics {
            Some(target) => Some((reader, metric_exporter(target, settings)?)),
            None => None,
        };
        drop(entered);
        let (delay, interval, timeout) = (settings.delay, settings.interval, settings.timeout);
        let run = move || {
            runtime.block_on(async {
                let spans = async {
                    if let Some((queue, exporter)) = spans {
                        export_spans(&queue, &exporter, delay, timeout, stopped.clone()).await;
                    }
                };
                let metrics = async {
                    if let Some((reader, exporter)) = metrics {
                        export_metrics(&reader, &exporter, interval, timeout, stopped.clone()).await;
                    }
                };
                tokio::join!(spans, metrics);
            });
        };
        let thread = std::thread::Builder::new().name("telemetry".to_owned()).spawn(run)?;
        Ok(Exporter { thread, stop })
    }

    /// Exports what is left, for a few seconds at most.
    pub(crate) fn shut_down(self) {
        let _ = self.stop.send(true);
        // If the thread panicked, that is in the log.
        let _ = self.thread.join();
    }
}

async fn export_spans(
    queue: &SpanQueue,
    exporter: &SpanExporter,
    delay: Duration,
    limit: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => break,
            () = queue.has_batch() => {}
            () = tokio::time::sleep(delay) => {}
        }
        let batches = async { while export_batch(queue, exporter, limit).await {} };
        tokio::select! {
            () = batches => {}
            () = shutdown_timeout(stopped.clone()) => return,
        }
    }
    let rest = async { while export_batch(queue, exporter, limit).await {} };
    let _ = timeout(SHUTDOWN_TIMEOUT, rest).await;
}

/// Returns when the process is exiting and an export that was running then has had its time.
async fn shutdown_timeout(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
    tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
}

/// Returns whether there was a batch.
async fn export_batch(queue: &SpanQueue, exporter: &SpanExporter, limit: Duration) -> bool {
    let batch = queue.take();
    let spans = batch.len();
    if spans == 0 {
        return false;
    }
    match timeout(limit, exporter.export(batch)).await {
        Ok(Ok(())) => queue.counts.exported(spans),
        failed => {
            queue.counts.failed(spans);
            debug!(spans, error = %describe(failed), "cannot export spans");
        }
    }
    true
}

async fn export_metrics(
    reader: &SharedReader,
    exporter: &MetricExporter,
    every: Duration,
    limit: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    let every = every.max(Duration::from_millis(1));
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        // `stopped` comes first: while a collector is unreachable, a tick is always due.
        let is_last = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => true,
            _ = ticks.tick() => false,
        };
        let read = reader.collect();
        let sent = tokio::select! {
            sent = timeout(limit, exporter.export(&read)) => sent,
            () = shutdown_timeout(stopped.clone()) => return,
        };
        match sent {
            Ok(Ok(())) => {}
            failed => debug!(error = %describe(failed), "cannot export metrics"),
        }
        if is_last {
            return;
        }
    }
}

fn describe<E: Error>(failed: Result<Result<(), E>, tokio::time::error::Elapsed>) -> String {
    match failed {
        Ok(Ok(())) => String::new(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "timed out".to_owned(),
    }
}

fn span_exporter(
    target: &Target,
    settings: &ExportSettings,
) -> Result<SpanExporter, Box<dyn Error + Send + Sync>> {
    let Target { endpoint, protocol } = target;
    Ok(match protocol {
        Protocol::Grpc => {
            let builder = SpanExporter::builder().with_tonic().with_endpoint(endpoint);
            match tls(endpoint, settings)? {
                Some(tls) => builder.with_tls_config(tls).build()?,
                None => builder.build()?,
            }
        }
        Protocol::Http => SpanExporter::builder()
            .with_http()
            .with_http_client(http_client(settings)?)
            .with_protocol(Wire::HttpBinary)
            .with_endpoint(endpoint)
            .build()?,
    })
}

fn metric_exporter(
    target: &Target,
    settings: &ExportSettings,
) -> Result<MetricExporter, Box<dyn Error + Send + Sync>> {
    let Target { endpoint, protocol } = target;
    let builder = MetricExporter::builder().with_temporality(Temporality::Cumulative);
    Ok(match protocol {
        Protocol::Grpc => {
            let builder = builder.with_tonic().with_endpoint(endpoint);
            match tls(endpoint, settings)? {
                Some(tls) => builder.with_tls_config(tls).build()?,
                None => builder.build()?,
            }
        }
        Protocol::Http => builder
            .with_http()
            .with_http_client(http_client(settings)?)
            .with_protocol(Wire::HttpBinary)
            .with_endpoint(endpoint)
            .build()?,
    })
}

/// Returns `None` unless the endpoint is `https`.
fn tls(
    endpoint: &str,
    settings: &ExportSettings,
) -> Result<Option<ClientTlsConfig>, Box<dyn Error + Send + Sync>> {
    if !endpoint.starts_with("https") {
        return Ok(None);
    }
    let roots = ClientTlsConfig::new().with_native_roots();
    Ok(Some(match &settings.certificate {
        Some(path) => roots.ca_certificate(Certificate::from_pem(read(path)?)),
        None => roots,
    }))
}

fn http_client(settings: &ExportSettings) -> Result<impl HttpClient + use<>, Box<dyn Error + Send + Sync>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    let config = match &settings.certificate {
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
    Ok(HyperClient::new(connector, settings.timeout, None))
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read `{path}`: {error}"))
}
