//! The admin address.

use crate::auth::{Token, admit};
use crate::problem::Problem;
use crate::target::ROOT;
use crate::{api, reply};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::Conversations;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

/// What the admin address tells about. The closures are asked at every request.
pub struct Admin {
    pub readiness: Box<dyn Fn() -> Readiness + Send + Sync>,
    pub conversations: Arc<Conversations>,
    /// Without one, only this machine may ask, and no web page.
    pub token: Option<Token>,
    /// What `/metrics` says.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
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
    let admin = Arc::new(admin);
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
        let admin = admin.clone();
        tokio::spawn(async move {
            converse(stream, admin).await;
            drop(place);
        });
    }
}

async fn converse(stream: TcpStream, admin: Arc<Admin>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let admin = admin.clone();
        async move { Ok::<_, Infallible>(admin.answer(request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(HEAD_BYTES);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = match timeout(LIFE, connection.as_mut()).await {
        Ok(ended) => Ok(ended),
        Err(_) => {
            connection.as_mut().graceful_shutdown();
            timeout(GRACE, connection).await
        }
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "admin connection ended"),
        Err(_) => debug!("admin connection ended: nobody read the answer"),
    }
}

impl Admin {
    pub(crate) async fn answer<B: Body<Data = Bytes>>(&self, request: Request<B>) -> Response<Full<Bytes>> {
        let method = request.method();
        let answer = match request.uri().path() {
            "/healthz" => reading(method).map(|()| reply::of(StatusCode::OK, reply::TEXT, "ok\n")),
            "/readyz" => reading(method).map(|()| self.ready()),
            _ => self.guarded(request).await,
        };
        answer.unwrap_or_else(|problem| problem.response())
    }

    /// What not everybody may ask. Whether there is such a path is part of it.
    async fn guarded<B: Body<Data = Bytes>>(
        &self,
        request: Request<B>,
    ) -> Result<Response<Full<Bytes>>, Problem> {
        admit(self.token.as_ref(), request.method(), request.uri(), request.headers())?;
        match request.uri().path() {
            "/metrics" => {
                reading(request.method())?;
                Ok(reply::of(StatusCode::OK, reply::METRICS, (self.metrics)()))
            }
            path if path.starts_with(ROOT) => api::answer(&self.conversations, request).await,
            _ => Err(Problem::UnknownPath),
        }
    }

    /// A store that fails is said but is no reason to get no requests: they are still answered, and all replicas that share
    /// the store would go at once.
    fn ready(&self) -> Response<Full<Bytes>> {
        match ((self.readiness)(), self.conversations.degraded()) {
            (Readiness::Draining, _) => reply::of(StatusCode::SERVICE_UNAVAILABLE, reply::TEXT, "draining\n"),
            (Readiness::Ready, None) => reply::of(StatusCode::OK, reply::TEXT, "ready\n"),
            (Readiness::Ready, Some(reason)) => {
                reply::of(StatusCode::OK, reply::TEXT, format!("ready, store degraded: {reason}\n"))
            }
        }
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

fn reading(method: &Method) -> Result<(), Problem> {
    let allow = "GET, HEAD";
    if [Method::GET, Method::HEAD].contains(method) { Ok(()) } else { Err(Problem::Method { allow }) }
}
