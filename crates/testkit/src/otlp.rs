//! An OpenTelemetry collector for tests, over gRPC and HTTP.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind as Kind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as Code;
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::codec::CompressionEncoding;
use tonic::transport::server::{Server, TcpIncoming};
use tonic::{Response as Reply, Status};

/// A collector on loopback that keeps everything it receives.
#[derive(Debug)]
pub struct OtlpReceiver {
    grpc: SocketAddr,
    http: SocketAddr,
    received: Arc<watch::Sender<Received>>,
}

#[derive(Debug, Default)]
struct Received {
    spans: Vec<SpanFacts>,
    metrics: BTreeSet<String>,
}

/// A span as it arrived.
#[derive(Clone, Debug)]
pub struct SpanFacts {
    pub name: String,
    pub kind: SpanKind,
    /// In hexadecimal.
    pub trace: String,
    pub id: String,
    /// Empty for a root span.
    pub parent: String,
    pub trace_state: String,
    pub is_error: bool,
    /// In nanoseconds since 1970.
    pub start: u64,
    pub end: u64,
    pub attributes: BTreeMap<String, Fact>,
    pub events: Vec<SpanEvent>,
    pub resource: BTreeMap<String, Fact>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    pub name: String,
    pub attributes: BTreeMap<String, Fact>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    Server,
    Client,
    Other,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    Text(String),
    Int(i64),
    Float(f64),
    Flag(bool),
    List(Vec<Fact>),
}

impl OtlpReceiver {
    pub async fn start() -> OtlpReceiver {
        let received = Arc::new(watch::Sender::new(Received::default()));
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let grpc = incoming.local_addr().unwrap();
        let inbox = Inbox(received.clone());
        let traces = TraceServiceServer::new(inbox.clone()).accept_compressed(CompressionEncoding::Gzip);
        let metrics = MetricsServiceServer::new(inbox.clone()).accept_compressed(CompressionEncoding::Gzip);
        tokio::spawn(
            Server::builder().add_service(traces).add_service(metrics).serve_with_incoming(incoming),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let http = listener.local_addr().unwrap();
        tokio::spawn(serve_http(listener, inbox));
        OtlpReceiver { grpc, http, received }
    }

    pub fn grpc_url(&self) -> String {
        format!("http://{}", self.grpc)
    }

    pub fn http_url(&self) -> String {
        format!("http://{}", self.http)
    }

    /// Waits until the received spans satisfy `is_done`. Returns all of them.
    pub async fn spans(&self, what: &str, is_done: impl Fn(&[SpanFacts]) -> bool) -> Vec<SpanFacts> {
        let mut received = self.received.subscribe();
        let waited = received.wait_for(|received| is_done(&received.spans));
        match tokio::time::timeout(std::time::Duration::from_secs(60), waited).await {
            Ok(received) => received.expect("the sender lives in self").spans.clone(),
            Err(_) => {
                panic!("timed out waiting for spans: {what}; received {:#?}", self.received.borrow().spans)
            }
        }
    }

    /// Waits for metrics with these names.
    pub async fn metrics(&self, names: &[&str]) -> BTreeSet<String> {
        let mut received = self.received.subscribe();
        let is_done = |received: &Received| names.iter().all(|name| received.metrics.contains(*name));
        match tokio::time::timeout(std::time::Duration::from_secs(60), received.wait_for(is_done)).await {
            Ok(received) => received.expect("the sender lives in self").metrics.clone(),
            Err(_) => {
                panic!("timed out waiting for {names:?}; received {:?}", self.received.borrow().metrics)
            }
        }
    }
}

#[derive(Clone)]
struct Inbox(Arc<watch::Sender<Received>>);

impl Inbox {
    fn traces(&self, request: ExportTraceServiceRequest) {
        let mut spans = Vec::new();
        for resource_spans in request.resource_spans {
            let resource = facts(resource_spans.resource.unwrap_or_default().attributes);
            for scope in resource_spans.scope_spans {
                spans.extend(scope.spans.into_iter().map(|span| SpanFacts::of(span, &resource)));
            }
        }
        self.0.send_modify(|received| received.spans.append(&mut spans));
    }

    fn metrics(&self, request: ExportMetricsServiceRequest) {
        let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
        let mut names = scopes.flat_map(|scope| scope.metrics).map(|metric| metric.name).collect();
        self.0.send_modify(|received| received.metrics.append(&mut names));
    }
}

#[tonic::async_trait]
impl TraceService for Inbox {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<Reply<ExportTraceServiceResponse>, Status> {
        self.traces(request.into_inner());
        Ok(Reply::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Inbox {
    async fn export(
        &self,
        request: tonic::Request<ExportMetricsServiceRequest>,
    ) -> Result<Reply<ExportMetricsServiceResponse>, Status> {
        self.metrics(request.into_inner());
        Ok(Reply::new(ExportMetricsServiceResponse::default()))
    }
}

async fn serve_http(listener: TcpListener, inbox: Inbox) {
    while let Ok((stream, _)) = listener.accept().await {
        let inbox = inbox.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let inbox = inbox.clone();
            async move { Ok::<_, Infallible>(inbox.http(request).await) }
        });
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection);
    }
}

impl Inbox {
    async fn http(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        match path.as_str() {
            "/v1/traces" => self.traces(ExportTraceServiceRequest::decode(body).unwrap()),
            "/v1/metrics" => self.metrics(ExportMetricsServiceRequest::decode(body).unwrap()),
            _ => {
                return Response::builder().status(StatusCode::NOT_FOUND).body(Full::default()).unwrap();
            }
        }
        // An empty message means success.
        Response::builder().header("content-type", "application/x-protobuf").body(Full::default()).unwrap()
    }
}

impl SpanFacts {
    fn of(span: Span, resource: &BTreeMap<String, Fact>) -> SpanFacts {
        let kind = match Kind::try_from(span.kind) {
            Ok(Kind::Internal) => SpanKind::Internal,
            Ok(Kind::Server) => SpanKind::Server,
            Ok(Kind::Client) => SpanKind::Client,
            _ => SpanKind::Other,
        };
        let events = span.events.into_iter();
        SpanFacts {
            name: span.name,
            kind,
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            trace_state: span.trace_state,
            is_error: span.status.is_some_and(|status| status.code == i32::from(Code::Error)),
            start: span.start_time_unix_nano,
            end: span.end_time_unix_nano,
            attributes: facts(span.attributes),
            events: events
                .map(|event| SpanEvent { name: event.name, attributes: facts(event.attributes) })
                .collect(),
            resource: resource.clone(),
        }
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.attributes.get(key) {
            Some(Fact::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub fn int(&self, key: &str) -> Option<i64> {
        match self.attributes.get(key) {
            Some(Fact::Int(int)) => Some(*int),
            _ => None,
        }
    }

    pub fn float(&self, key: &str) -> Option<f64> {
        match self.attributes.get(key) {
            Some(Fact::Float(float)) => Some(*float),
            _ => None,
        }
    }
}

fn facts(attributes: Vec<KeyValue>) -> BTreeMap<String, Fact> {
    let known = |KeyValue { key, value, .. }| Some((key, fact(value?.value?)?));
    attributes.into_iter().filter_map(known).collect()
}

fn fact(value: Value) -> Option<Fact> {
    Some(match value {
        Value::StringValue(text) => Fact::Text(text),
        Value::IntValue(int) => Fact::Int(int),
        Value::DoubleValue(float) => Fact::Float(float),
        Value::BoolValue(flag) => Fact::Flag(flag),
        Value::ArrayValue(list) => {
            Fact::List(list.values.into_iter().filter_map(|value| fact(value.value?)).collect())
        }
        _ => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
