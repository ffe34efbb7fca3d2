//! The mock upstream: accepts connections, dispatches them by protocol, and selects answers.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Instant;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::answer::Answer;
use crate::recorded::{Journal, Recorded, Recording};
use crate::step::Timing;
use crate::tls::Identity;
use crate::{http1, http2, openai, override_header};

/// A mock OpenAI upstream on loopback. Dropping it closes the port and every connection.
///
/// A request is answered by its `x-mock` header; else by the next answer queued with [`then`](Self::then); else as
/// [`answer`](Self::answer) or [`script`](Self::script) set last; else by the built-in OpenAI behaviour.
#[derive(Debug)]
pub struct MockUpstream {
    address: SocketAddr,
    listen: Listen,
    shared: Arc<Shared>,
    identity: Option<Identity>,
    accepting: AbortHandle,
}

/// The protocol of the mock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// HTTP/1.1 in clear text.
    Http1,
    /// HTTP/2 in clear text, by prior knowledge.
    H2c,
    /// TLS that offers HTTP/2 and HTTP/1.1 by ALPN.
    Tls,
    /// TLS that offers HTTP/1.1 only.
    TlsHttp1,
}

impl Listen {
    /// What `TIDEGATE_TEST_UPSTREAM` says: `http1` (the default), `h2c`, `tls` or `tls-http1`. The suites run once for each.
    pub fn from_environment() -> Listen {
        match std::env::var("TIDEGATE_TEST_UPSTREAM").as_deref() {
            Err(_) | Ok("" | "http1") => Listen::Http1,
            Ok("h2c") => Listen::H2c,
            Ok("tls") => Listen::Tls,
            Ok("tls-http1") => Listen::TlsHttp1,
            Ok(other) => panic!("TIDEGATE_TEST_UPSTREAM is `{other}`; expected http1, h2c, tls or tls-http1"),
        }
    }

    fn identity(self) -> Option<Identity> {
        match self {
            Listen::Http1 | Listen::H2c => None,
            Listen::Tls => Some(Identity::new(&[b"h2", b"http/1.1"])),
            Listen::TlsHttp1 => Some(Identity::new(&[b"http/1.1"])),
        }
    }
}

/// The identity of every [`MockUpstream::start`] of this process, so that the process under test can trust it before it starts.
static DEFAULT_IDENTITY: LazyLock<Option<Identity>> = LazyLock::new(|| Listen::from_environment().identity());

/// The CA that signed the certificate of every [`MockUpstream::start`]; `None` if they have none.
pub fn default_ca_pem() -> Option<&'static str> {
    DEFAULT_IDENTITY.as_ref().map(|identity| identity.ca_pem.as_str())
}

impl MockUpstream {
    /// Speaks what [`Listen::from_environment`] says.
    pub async fn start() -> Self {
        let address = ([127, 0, 0, 1], 0).into();
        Self::serve(address, Listen::from_environment(), DEFAULT_IDENTITY.clone(), Recording::On).await
    }

    /// For tests of what only HTTP/1 has: its framing, and one request after another on a connection.
    pub async fn start_http1() -> Self {
        Self::bind(([127, 0, 0, 1], 0).into(), Listen::Http1, Recording::On).await
    }

    pub async fn start_h2c() -> Self {
        Self::bind(([127, 0, 0, 1], 0).into(), Listen::H2c, Recording::On).await
    }

    /// With a certificate for `localhost` and `127.0.0.1`, signed by the CA of [`ca_pem`](Self::ca_pem).
    pub async fn start_tls() -> Self {
        Self::bind(([127, 0, 0, 1], 0).into(), Listen::Tls, Recording::On).await
    }

    /// Panics if the port is not available.
    pub async fn bind(address: SocketAddr, listen: Listen, recording: Recording) -> Self {
        Self::serve(address, listen, listen.identity(), recording).await
    }

    async fn serve(
        address: SocketAddr,
        listen: Listen,
        identity: Option<Identity>,
        recording: Recording,
    ) -> Self {
        let listener = TcpListener::bind(address).await.expect("the mock upstream's port is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared { journal: Journal::new(recording), script: Mutex::default() });
        let accepting =
            tokio::spawn(accept(listener, listen, identity.clone(), shared.clone())).abort_handle();
        MockUpstream { address, listen, shared, identity, accepting }
    }

    /// `http://127.0.0.1:PORT`, or `https://localhost:PORT` with TLS.
    pub fn url(&self) -> String {
        match self.listen {
            Listen::Http1 | Listen::H2c => format!("http://{}", self.address),
            Listen::Tls | Listen::TlsHttp1 => format!("https://localhost:{}", self.address.port()),
        }
    }

    pub fn listen(&self) -> Listen {
        self.listen
    }

    /// What requests name as their host.
    pub fn authority(&self) -> String {
        self.url().rsplit('/').next().unwrap_or_default().to_owned()
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The CA that signed the certificate, for a client's trust store. Panics on a mock without TLS.
    pub fn ca_pem(&self) -> &str {
        &self.identity.as_ref().expect("the mock upstream was started with TLS").ca_pem
    }

    /// Answers every request this way, once the queue of [`then`](Self::then) is empty.
    pub fn answer(&self, answer: Answer) {
        self.shared.script().standing = Standing::Always(answer);
    }

    /// Answers every request by this function, once the queue of [`then`](Self::then) is empty.
    pub fn script(&self, script: impl Fn(&Recorded) -> Answer + Send + 'static) {
        self.shared.script().standing = Standing::By(Box::new(script));
    }

    /// Answers one request this way, in the order of the calls.
    pub fn then(&self, answer: Answer) -> &Self {
        self.shared.script().queue.push_back(answer);
        self
    }

    /// All requests so far, including truncated ones, as [`Arrival::Partial`](crate::Arrival).
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.journal.requests()
    }

    /// Waits for the next request that no earlier call has returned. Panics after 20 s.
    pub async fn next_request(&self) -> Recorded {
        self.shared.journal.next_request().await
    }

    /// The number of connections accepted so far.
    pub fn connections(&self) -> usize {
        *self.shared.journal.accepted.borrow()
    }

    pub fn open_connections(&self) -> usize {
        *self.shared.journal.open.borrow()
    }

    /// Waits until exactly this many connections are open.
    pub async fn until_open_connections(&self, count: usize) {
        let journal = &self.shared.journal;
        journal.until("the number of open connections", &journal.open, |open| *open == count).await;
    }

    /// Waits until clients hold nothing: no connection of HTTP/1, no stream of HTTP/2.
    pub async fn until_released(&self) {
        let journal = &self.shared.journal;
        let held = match self.listen {
            Listen::Http1 | Listen::TlsHttp1 => &journal.open,
            Listen::H2c | Listen::Tls => &journal.held,
        };
        journal.until("what clients hold", held, |held| *held == 0).await;
    }

    /// Bytes read from all connections so far, heads and framing included (on HTTP/2, of headers and bodies).
    pub fn received_bytes(&self) -> u64 {
        *self.shared.journal.bytes.borrow()
    }

    /// Waits until at least this many bytes were read.
    pub async fn until_received_bytes(&self, count: u64) -> u64 {
        let journal = &self.shared.journal;
        journal.until("the number of received bytes", &journal.bytes, |bytes| *bytes >= count).await
    }

    /// Waits until a client leaves before its response has ended, and returns the time. Each call returns the next such
    /// event. Panics after 20 s.
    pub async fn disconnected(&self) -> Instant {
        self.shared.journal.next_departure().await
    }
}

impl Drop for MockUpstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// The state that all connections of a mock share.
pub(crate) struct Shared {
    pub(crate) journal: Journal,
    script: Mutex<Script>,
}

#[derive(Default)]
struct Script {
    queue: VecDeque<Answer>,
    standing: Standing,
    /// The number of uses of each `key` in `x-mock` headers.
    overrides: HashMap<String, u64>,
}

#[derive(Default)]
enum Standing {
    #[default]
    BuiltIn,
    Always(Answer),
    By(Box<dyn Fn(&Recorded) -> Answer + Send>),
}

impl Shared {
    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The answer to send before the request body is read, if any.
    pub(crate) fn early_answer(&self) -> Option<Answer> {
        let mut script = self.script();
        let early = |answer: &Answer| answer.timing == Timing::BeforeBody;
        if let Some(front) = script.queue.front() {
            return if early(front) { script.queue.pop_front() } else { None };
        }
        match &script.standing {
            Standing::Always(answer) if early(answer) => Some(answer.clone()),
            Standing::Always(_) | Standing::BuiltIn | Standing::By(_) => None,
        }
    }

    pub(crate) fn answer_to(&self, request: &Recorded) -> Answer {
        let mut script = self.script();
        if let Some(header) = request.header("x-mock") {
            return override_header::answer(header, request, &mut script.overrides);
        }
        if let Some(answer) = script.queue.pop_front() {
            return answer;
        }
        match &script.standing {
            Standing::BuiltIn => openai::answer(request),
            Standing::Always(answer) => answer.clone(),
            Standing::By(function) => function(request),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("journal", &self.journal).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, listen: Listen, identity: Option<Identity>, shared: Arc<Shared>) {
    // The set owns the connections, so that they end with this task.
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors: without a pause this loop would spin.
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        let number = *shared.journal.accepted.borrow();
        shared.journal.accepted.send_modify(|count| *count += 1);
        let open = OpenConnection::new(shared.clone());
        let identity = identity.clone();
        connections.spawn(async move {
            serve(stream, number, listen, identity, &open.0).await;
            drop(open);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(
    stream: TcpStream,
    number: usize,
    listen: Listen,
    identity: Option<Identity>,
    shared: &Arc<Shared>,
) {
    // Without this a small chunk waits for the acknowledgement of the previous one.
    let _ = stream.set_nodelay(true);
    match (listen, identity) {
        (Listen::H2c, _) => http2::serve(stream, number, shared.clone()).await,
        (Listen::Http1, _) | (Listen::Tls | Listen::TlsHttp1, None) => {
            http1::serve(stream, number, shared).await;
        }
        (Listen::Tls | Listen::TlsHttp1, Some(identity)) => {
            // The client rejected the certificate, which may be what its test is about.
            let Ok(stream) = identity.acceptor.accept(stream).await else { return };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                http2::serve(stream, number, shared.clone()).await;
            } else {
                http1::serve(stream, number, shared).await;
            }
        }
    }
}

/// Counts a connection as open until it is dropped, however its task ends.
struct OpenConnection(Arc<Shared>);

impl OpenConnection {
    fn new(shared: Arc<Shared>) -> Self {
        shared.journal.open.send_modify(|count| *count += 1);
        OpenConnection(shared)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.journal.open.send_modify(|count| *count -= 1);
    }
}
