//! The requests that the mock upstream received, byte for byte, and the signals that tests wait for.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{mpsc, watch};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Every byte from the request line to the empty line. Empty on HTTP/2.
    pub raw_head: Vec<u8>,
    pub method: String,
    /// The request target as it was sent, in any form. On HTTP/2, path and query.
    pub target: String,
    pub version: Version,
    /// In order of arrival, with the original casing. On HTTP/2, `:authority` is among them.
    pub headers: Vec<(String, String)>,
    /// Without chunk framing.
    pub body: Vec<u8>,
    /// As on the wire, with chunk sizes, extensions and trailers. On HTTP/2 the same as `body`.
    pub raw_body: Vec<u8>,
    pub arrival: Arrival,
    /// The index of the connection, counted from 0.
    pub connection: usize,
    /// When its last byte was read.
    pub at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Http10,
    Http11,
    Http2,
}

/// Whether the whole body arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    Complete,
    /// The client unseen_departures, the body was invalid, or the response was sent before the body.
    Partial,
}

impl Recorded {
    /// The first header with this name, in any casing.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers_named(name).into_iter().next()
    }

    /// The host that the request names, whatever its version calls it.
    pub fn authority(&self) -> Option<&str> {
        self.header(":authority").or_else(|| self.header("host"))
    }

    pub fn headers_named(&self, name: &str) -> Vec<&str> {
        let matching = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        matching.map(|(_, value)| value.as_str()).collect()
    }

    /// The body as JSON. Panics if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in the body {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    pub(crate) fn asked_for_usage(&self) -> bool {
        serde_json::from_slice::<Value>(&self.body)
            .is_ok_and(|body| body.pointer("/stream_options/include_usage") == Some(&Value::Bool(true)))
    }
}

/// Whether requests are kept. A mock under load for hours must not grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    On,
    Off,
}

/// Everything that happened at one mock upstream.
#[derive(Debug)]
pub(crate) struct Journal {
    recording: Recording,
    requests: Mutex<Vec<Recorded>>,
    arrivals: mpsc::UnboundedSender<Recorded>,
    unseen: tokio::sync::Mutex<mpsc::UnboundedReceiver<Recorded>>,
    departures: mpsc::UnboundedSender<Instant>,
    unseen_departures: tokio::sync::Mutex<mpsc::UnboundedReceiver<Instant>>,
    pub(crate) accepted: watch::Sender<usize>,
    pub(crate) open: watch::Sender<usize>,
    /// Streams of HTTP/2 connections.
    pub(crate) held: watch::Sender<usize>,
    pub(crate) bytes: watch::Sender<u64>,
}

impl Journal {
    pub(crate) fn new(recording: Recording) -> Self {
        let (arrivals, unseen) = mpsc::unbounded_channel();
        let (departures, unseen_departures) = mpsc::unbounded_channel();
        Journal {
            recording,
            requests: Mutex::default(),
            arrivals,
            unseen: tokio::sync::Mutex::new(unseen),
            departures,
            unseen_departures: tokio::sync::Mutex::new(unseen_departures),
            accepted: watch::Sender::new(0),
            open: watch::Sender::new(0),
            held: watch::Sender::new(0),
            bytes: watch::Sender::new(0),
        }
    }

    pub(crate) fn request(&self, request: &Recorded) {
        if self.recording == Recording::Off {
            return;
        }
        self.requests.lock().expect("no holder panics").push(request.clone());
        // The receiver lives in `self`.
        let _ = self.arrivals.send(request.clone());
    }

    pub(crate) fn client_left(&self) {
        if self.recording == Recording::On {
            let _ = self.departures.send(Instant::now());
        }
    }

    pub(crate) fn bytes_read(&self, count: usize) {
        self.bytes.send_modify(|bytes| *bytes += count as u64);
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.requests.lock().expect("no holder panics").clone()
    }

    pub(crate) async fn next_request(&self) -> Recorded {
        let next = async { self.unseen.lock().await.recv().await };
        within("a request reached the mock upstream", next).await.expect("the sender lives in self")
    }

    pub(crate) async fn next_departure(&self) -> Instant {
        let next = async { self.unseen_departures.lock().await.recv().await };
        within("a client unseen_departures the mock upstream", next).await.expect("the sender lives in self")
    }

    /// Waits until a counter satisfies a condition. Returns its value.
    pub(crate) async fn until<T: Copy>(
        &self,
        what: &str,
        counter: &watch::Sender<T>,
        holds: impl FnMut(&T) -> bool,
    ) -> T {
        let mut state = counter.subscribe();
        let value = within(what, state.wait_for(holds)).await.expect("the sender lives in self");
        *value
    }
}

/// Makes a missing signal fail its test, with a message, instead of hanging the run.
const PATIENCE: Duration = Duration::from_secs(20);

async fn within<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, signal).await {
        Ok(value) => value,
        Err(_) => panic!("timed out after {PATIENCE:?}: {what}"),
    }
}
