//! Listens, and runs one single-threaded runtime per core.
//!
//! A request and its upstream connection stay on one core, so that no request takes a contended lock or wakes another thread.

use crate::transport::error::TransportError;
use crate::transport::framing::{
    CONNECTION_WINDOW, ConnectionState, Guard, Limits, Opening, STREAM_WINDOW, SharedState,
};
use crate::transport::overload::{ConnectionPermit, Overload};
use crate::transport::refused;
use crate::transport::tls;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

/// Handles requests. Each worker has its own handler.
pub(crate) trait Handler: Send + Sync + 'static {
    type Body: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static;

    /// Handles one request of the connection.
    fn handle(
        self: Arc<Self>,
        connection: SharedState,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    shutdown: Shutdown,
    threads: Vec<JoinHandle<()>>,
}

/// The two stages of a shutdown and the tasks it waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shutdown {
    /// No new requests are accepted. Those in progress may finish.
    draining: CancellationToken,
    /// The drain timeout is over. Requests still in progress end with an error.
    pub(crate) cut: CancellationToken,
    /// Connections, and work that continues after a response has ended.
    pub(crate) tasks: TaskTracker,
}

/// Serves the connections of one worker thread.
struct Worker<H> {
    handler: Arc<H>,
    shutdown: Shutdown,
    overload: Arc<Overload>,
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    tls: Option<TlsAcceptor>,
    limits: Limits,
}

/// The maximum idle time of a connection between two requests.
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// The number of blocking threads per worker. They look up names, one lookup for each upstream at a time, and encode what is stored; heavy
/// work and the store have threads of their own. They are started when they are needed.
const MAX_BLOCKING_THREADS: usize = 16;

/// The minimum size limit of a connection's buffers. It grows with `max_header`. A client that uploads fills one before its body is accounted
/// for, so hyper's own 416 KiB would let a thousand of them take as much as large bodies do.
const MIN_BUFFER_LIMIT: usize = 128 * 1024;

/// How long connections have to close after their error events are sent.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

impl Server {
    /// Starts accepting on `listener`. `handler` is called once per worker, on the calling thread.
    pub(crate) fn start<H: Handler>(
        settings: &tidegate_config::Server,
        overload: &Arc<Overload>,
        listener: StdListener,
        handler: impl Fn(&Shutdown) -> H,
    ) -> Result<Server, StartError> {
        let address = listener.local_addr()?;
        let tls = settings.tls.as_ref().map(tls::server).transpose()?.map(TlsAcceptor::from);
        let count = settings.workers.map_or_else(available_cores, NonZeroUsize::get);
        let mut server = Server { address, shutdown: Shutdown::default(), threads: Vec::new() };
        let mut inboxes = Vec::new();
        for number in 0..count {
            let worker = Worker {
                handler: Arc::new(handler(&server.shutdown)),
                shutdown: server.shutdown.clone(),
                overload: overload.clone(),
                http1: http1_server(settings.max_header),
                http2: http2_server(settings),
                tls: tls.clone(),
                limits: Limits {
                    max_head: usize::try_from(settings.max_header).unwrap_or(usize::MAX),
                    head_timeout: settings.header_timeout,
                    write_timeout: settings.write_timeout,
                },
            };
            let (inbox, connections) = unbounded_channel();
            inboxes.push(inbox);
            let thread = thread::Builder::new().name(format!("worker-{number}"));
            let runtime = tokio::runtime::Builder::new_current_thread()
                .max_blocking_threads(MAX_BLOCKING_THREADS)
                .enable_all()
                .build()?;
            server.threads.push(thread.spawn(move || runtime.block_on(Arc::new(worker).run(connections)))?);
        }
        server.start_accepting(listener, inboxes, overload.clone())?;
        Ok(server)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, waits up to `drain` for requests in progress, then ends the rest with an error.
    pub(crate) async fn shut_down(self, drain: Duration) {
        let Shutdown { draining, cut, tasks } = &self.shutdown;
        draining.cancel();
        tasks.close();
        if timeout(drain, tasks.wait()).await.is_err() {
            warn!(connections = tasks.len(), "drain timeout exceeded; closing remaining connections");
            cut.cancel();
            // Connections that are still open after this end with the process.
            let _ = timeout(CLOSE_TIMEOUT, tasks.wait()).await;
        }
        cut.cancel();
    }

    fn start_accepting(
        &mut self,
        listener: StdListener,
        inboxes: Vec<UnboundedSender<Accepted>>,
        overload: Arc<Overload>,
    ) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let draining = self.shutdown.draining.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = thread::Builder::new().name("accept".to_owned());
        self.threads.push(thread.spawn(move || {
            runtime.block_on(async {
                match TcpListener::from_std(listener) {
                    Ok(listener) => {
                        draining.run_until_cancelled(accept(listener, inboxes, &overload)).await;
                    }
                    Err(error) => warn!(%error, "cannot accept connections"),
                }
            });
        })?);
        Ok(())
    }
}

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error("cannot start: {0}")]
    Io(#[from] io::Error),
}

fn available_cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// A connection on its way to a worker.
struct Accepted {
    stream: StdStream,
    permit: ConnectionPermit,
}

/// Distributes connections to the workers in turn. The kernel's own balancing (`SO_REUSEPORT`) is uneven with few connections, and
/// would let a second Tidegate take the same port without an error.
async fn accept(listener: TcpListener, inboxes: Vec<UnboundedSender<Accepted>>, overload: &Arc<Overload>) {
    let mut turn = 0;
    let mut refusals = refused::Refusals::default();
    loop {
        let accepted = match listener.accept().await {
            Ok((stream, peer)) => stream.set_nodelay(true).map(|()| (stream, peer)),
            Err(error) => Err(error),
        };
        let admitted = match accepted {
            Ok((stream, peer)) => match overload.connections.admit(peer.ip()) {
                Ok(permit) => stream.into_std().map(|stream| Accepted { stream, permit }),
                Err(limit) => {
                    overload.refused(limit);
                    refusals.refuse(&stream, limit);
                    continue;
                }
            },
            Err(error) => Err(error),
        };
        match admitted {
            Ok(accepted) => {
                // A worker is only gone when the process is shutting down.
                let _ = inboxes[turn % inboxes.len()].send(accepted);
                turn += 1;
            }
            Err(error) => {
                // Probably out of file descriptors. Retrying at once would keep the core busy that has to free some.
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn http1_server(max_header: u64) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        // An incomplete head has its own, shorter timeout in `framing`.
        .header_read_timeout(KEEP_ALIVE)
        // Doubled, because bytes after the head are read with it.
        .max_buf_size(
            usize::try_from(max_header).unwrap_or(usize::MAX).saturating_mul(2).max(MIN_BUFFER_LIMIT),
        )
        // The client gets the upstream's `Date`, if any.
        .auto_date_header(false);
    http
}

fn http2_server(settings: &tidegate_config::Server) -> http2::Builder<TokioExecutor> {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(settings.max_header).unwrap_or(u32::MAX))
        .max_concurrent_streams(settings.max_concurrent_streams.get())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .keep_alive_interval(Duration::from_secs(30))
        .auto_date_header(false);
    http
}

impl<H: Handler> Worker<H> {
    async fn run(self: Arc<Self>, mut connections: UnboundedReceiver<Accepted>) {
        while let Some(Accepted { stream, permit }) = connections.recv().await {
            match TcpStream::from_std(stream) {
                Ok(stream) => drop(self.shutdown.tasks.spawn(self.clone().serve(stream, permit))),
                Err(error) => warn!(%error, "cannot register an accepted connection"),
            }
        }
        // The acceptor has stopped. Open connections continue until they end or are cut.
        self.shutdown.tasks.wait().await;
    }

    async fn serve(self: Arc<Self>, stream: TcpStream, _permit: ConnectionPermit) {
        let Some(acceptor) = &self.tls else { return self.drive(stream).await };
        match timeout(self.limits.head_timeout, acceptor.accept(stream)).await {
            // Boxed, so that plain connections do not reserve the size of a TLS one.
            Ok(Ok(stream)) => Box::pin(self.drive(stream)).await,
            Ok(Err(error)) => debug!(%error, "TLS handshake failed"),
            Err(_) => debug!("TLS handshake timed out"),
        }
    }

    /// How long a connection may be open without a request.
    fn opening_timeout(&self) -> Duration {
        if self.overload.connections.is_crowded() {
            self.limits.head_timeout.min(KEEP_ALIVE)
        } else {
            KEEP_ALIVE
        }
    }

    /// Serves HTTP/1 or HTTP/2, whichever the client speaks. hyper-util could detect the protocol too, but it reads the first
    /// bytes itself, which makes hyper double every HTTP/1 buffer, and its HTTP/1 connections take as much memory as HTTP/2 ones.
    async fn drive(self: &Arc<Self>, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let state = SharedState::new(ConnectionState::accounted(&self.overload.memory));
        let mut guard = Guard::new(stream, self.limits, state.clone());
        let opening = tokio::select! {
            // A request that has arrived when the drain begins is still served.
            biased;
            opening = timeout(self.opening_timeout(), guard.opening()) => opening,
            () = self.shutdown.draining.cancelled() => return,
        };
        let (handler, connection_state) = (self.handler.clone(), state.clone());
        let service = service_fn(move |request| {
            let (handler, state) = (handler.clone(), state.clone());
            // Boxed, because hyper reserves the future's size for the life of the connection, even while a response streams.
            Box::pin(async move { Ok::<_, Infallible>(handler.handle(state, request).await) })
        });
        let io = TokioIo::new(guard);
        let ended = match opening {
            Ok(Ok(Opening::Http1)) => {
                let mut connection = pin!(self.http1.serve_connection(io, service).with_upgrades());
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = self.shutdown.draining.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            }
            Ok(Ok(Opening::Http2)) => {
                let mut connection = Box::pin(self.http2.serve_connection(io, service));
                // Its client answers pings, so that it would be open for ever.
                let idle = connection_state.idle(self.limits.head_timeout, || self.opening_timeout());
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = idle => {
                        connection.as_mut().graceful_shutdown();
                        match timeout(self.limits.write_timeout, connection).await {
                            Ok(ended) => ended,
                            Err(_) => return debug!("connection ended: idle"),
                        }
                    }
                    () = connection_state.abandoned() => {
                        return debug!("connection ended: the client takes no responses");
                    }
                    () = self.shutdown.draining.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            }
            Ok(Ok(Opening::Nothing)) | Err(_) => return,
            Ok(Err(error)) => return debug!(%error, "connection ended before its first request"),
        };
        if let Err(error) = ended {
            // Clients disconnect all the time. The access log has a line for each request that this ended.
            debug!(%error, "connection ended");
        }
    }
}
