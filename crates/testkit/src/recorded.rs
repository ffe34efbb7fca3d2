//! What the mock upstream received, byte for byte, and the signals that tests wait on.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{mpsc, watch};

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// From the request line to the empty line, every byte. Empty on HTTP/2, which has no such bytes.
    pub raw_head: Vec<u8>,
    pub method: String,
    /// The request target as it was sent: origin form, absolute form or whatever else came. On HTTP/2, path and query.
    pub target: String,
    pub version: Version,
    /// In order of arrival, with the casing of the wire. On HTTP/2 `:authority` is given as a header of that name.
    pub headers: Vec<(String, String)>,
    /// Without chunk framing.
    pub body: Vec<u8>,
    /// As on the wire, with chunk sizes, extensions and trailers. On HTTP/2 the same as `body`.
    pub raw_body: Vec<u8>,
    pub arrival: Arrival,
    /// Which accepted connection brought it, counted from 0.
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

/// Whether the whole body came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    Complete,
    /// The client left, or the body was not valid, or the answer came before the body.
    Partial,
}

impl Recorded {
    /// The first header of this name, in any casing.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers_named(name).into_iter().next()
    }

    pub fn headers_named(&self, name: &str) -> Vec<&str> {
        let matching = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        matching.map(|(_, value)| value.as_str()).collect()
    }

    /// The body as JSON; panics with the body if it is not.
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

/// Whether requests are kept. A mock that runs for hours under load must not grow.
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
    leavings: mpsc::UnboundedSender<Instant>,
    left: tokio::sync::Mutex<mpsc::UnboundedReceiver<Instant>>,
    pub(crate) accepted: watch::Sender<usize>,
    pub(crate) open: watch::Sender<usize>,
    pub(crate) bytes: watch::Sender<u64>,
}

impl Journal {
    pub(crate) fn new(recording: Recording) -> Self {
        let (arrivals, unseen) = mpsc::unbounded_channel();
        let (leavings, left) = mpsc::unbounded_channel();
        Journal {
            recording,
            requests: Mutex::default(),
            arrivals,
            unseen: tokio::sync::Mutex::new(unseen),
            leavings,
            left: tokio::sync::Mutex::new(left),
            accepted: watch::Sender::new(0),
            open: watch::Sender::new(0),
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
            let _ = self.leavings.send(Instant::now());
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

    pub(crate) async fn next_leaving(&self) -> Instant {
        let next = async { self.left.lock().await.recv().await };
        within("a client left the mock upstream", next).await.expect("the sender lives in self")
    }

    /// Waits until a counter satisfies a condition, and gives its value.
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

/// A signal that never comes should fail its test with a name, not hang the whole run.
const PATIENCE: Duration = Duration::from_secs(20);

async fn within<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, signal).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain: {what}"),
    }
}
