//! The HTTP server on the admin address.

use crate::auth::Token;
use crate::connections::{Activity, Connection, Connections};
use crate::reloads::Reloads;
use crate::router::Router;
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
use std::time::Duration;
use tidegate_config::Settings;
use tidegate_store::Conversations;
use tidegate_telemetry::{ModelTally, WindowFact};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

/// What the admin address serves. The closures are called for every request that needs them.
pub struct Admin {
    pub readiness: Box<dyn Fn() -> Readiness + Send + Sync>,
    pub conversations: Arc<Conversations>,
    /// Without a token, only loopback requests are accepted, and none from web pages of other sites.
    pub token: Option<Token>,
    /// Renders the body of `/metrics`.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// The totals of all requests since the start, by route and model.
    pub tallies: Box<dyn Fn() -> Vec<ModelTally> + Send + Sync>,
    /// How many requests of clients are under way.
    pub in_flight: Box<dyn Fn() -> u64 + Send + Sync>,
    /// The active configuration.
    pub settings: Box<dyn Fn() -> Arc<Settings> + Send + Sync>,
    pub reloads: Arc<Reloads>,
    /// The windows that upstreams have named.
    pub windows: Box<dyn Fn() -> Vec<WindowFact> + Send + Sync>,
}

/// Whether this process accepts new requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// Accepts them, but refuses some because a limit of the process is reached.
    Overloaded,
    /// Finishing open requests before it exits.
    Draining,
}

const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Limits the request line and headers. Bodies have limits of their own.
const HEAD_BYTES: usize = 32 * 1024;
/// How long a connection may stay open, and how much longer a response that has begun may take. A client that
/// stops reading loses its connection then.
const CONNECTION_LIFETIME: Duration = Duration::from_secs(300);
const SHUTDOWN_GRACE: Duration = Duration::from_secs(60);

/// Serves the admin address until `stop`. Then it tells the store what was counted last.
pub async fn serve(listener: TcpListener, admin: Admin, stop: impl Future<Output = ()>) {
    let router = Arc::new(Router::new(admin));
    tokio::select! {
        () = router.sample_forever() => {}
        () = router.share_forever() => {}
        () = accept(listener, &router) => {}
        () = stop => router.save().await,
    }
}

async fn accept(listener: TcpListener, router: &Arc<Router>) {
    let connections = Arc::<Connections>::default();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "cannot accept connection on the admin address");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (router, connection) = (router.clone(), Arc::new(connections.enter()));
        tokio::spawn(async move {
            tokio::select! {
                () = serve_connection(stream, router, connection.clone()) => {}
                () = connection.lost() => debug!("admin connection ended: others need its place"),
            }
        });
    }
}

async fn serve_connection(stream: TcpStream, router: Arc<Router>, place: Arc<Connection>) {
    let own = place.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, place) = (router.clone(), own.clone());
        async move {
            place.does(Activity::Serving);
            let response = router.handle(request).await;
            // What is left to send is in the buffers of the connection.
            let is_streaming = matches!(response.body(), Either::Right(_));
            place.does(if is_streaming { Activity::Streaming } else { Activity::Idle });
            Ok::<_, Infallible>(response)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(HEAD_BYTES);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let result = loop {
        match timeout(CONNECTION_LIFETIME, connection.as_mut()).await {
            Ok(result) => break Ok(result),
            // Event streams outlive this limit. They are few, and `EventStream` ends them after a while.
            Err(_) if place.is_streaming() => {}
            Err(_) => {
                connection.as_mut().graceful_shutdown();
                break timeout(SHUTDOWN_GRACE, connection).await;
            }
        }
    };
    match result {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "admin connection ended"),
        Err(_) => debug!("admin connection ended: client stopped reading"),
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
