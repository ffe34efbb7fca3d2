//! The admin address.

use crate::auth::Token;
use crate::desk::Desk;
use crate::reloads::Reloads;
use http::Request;
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_config::Settings;
use tidegate_store::Conversations;
use tidegate_telemetry::Tallied;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

/// What the admin address tells about. The closures are asked at every request.
pub struct Admin {
    pub readiness: Box<dyn Fn() -> Readiness + Send + Sync>,
    pub conversations: Arc<Conversations>,
    /// Without one, only this machine may ask, and no web page but ours.
    pub token: Option<Token>,
    /// What `/metrics` says.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// What requests have added up to since the start.
    pub tallies: Box<dyn Fn() -> Vec<Tallied> + Send + Sync>,
    /// The configuration in force.
    pub settings: Box<dyn Fn() -> Arc<Settings> + Send + Sync>,
    pub reloads: Arc<Reloads>,
}

/// Whether this process wants new requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// It finishes what it has and then ends.
    Draining,
}

/// So many connections at once; the next ones wait. Far more than probes, a scraper and some people need, and few
/// enough that those who hold theirs open cannot take the files that requests need.
const MOST_CONNECTIONS: usize = 128;
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// A request is a line and some headers, but for what is pinned, and that has a bound of its own.
const HEAD_BYTES: usize = 32 * 1024;
/// How long a connection is kept, and how much longer an answer may take that began in time. Whoever does not read what
/// was asked for gives up the place then.
const LIFE: Duration = Duration::from_secs(300);
const GRACE: Duration = Duration::from_secs(60);

/// Serves the admin address until it is dropped.
pub async fn serve(listener: TcpListener, admin: Admin) {
    let desk = Arc::new(Desk::new(admin));
    tokio::select! {
        () = desk.keep_time() => {}
        () = accept(listener, &desk) => {}
    }
}

async fn accept(listener: TcpListener, desk: &Arc<Desk>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        // Nobody closes it, so there is always a place some day.
        let place = places.clone().acquire_owned().await;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "cannot accept a connection on the admin address");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let desk = desk.clone();
        tokio::spawn(async move {
            converse(stream, desk).await;
            drop(place);
        });
    }
}

async fn converse(stream: TcpStream, desk: Arc<Desk>) {
    let is_listening = Arc::new(AtomicBool::new(false));
    let listens = is_listening.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (desk, listens) = (desk.clone(), listens.clone());
        async move {
            let answer = desk.answer(request).await;
            listens.store(matches!(answer.body(), Either::Right(_)), Ordering::Relaxed);
            Ok::<_, Infallible>(answer)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(HEAD_BYTES);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = loop {
        match timeout(LIFE, connection.as_mut()).await {
            Ok(ended) => break Ok(ended),
            // Events go on for longer. There are few such connections, and they end by themselves.
            Err(_) if is_listening.load(Ordering::Relaxed) => {}
            Err(_) => {
                connection.as_mut().graceful_shutdown();
                break timeout(GRACE, connection).await;
            }
        }
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "admin connection ended"),
        Err(_) => debug!("admin connection ended: nobody read the answer"),
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin")
            .field("conversations", &self.conversations)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}
