//! Sends requests to upstreams, over HTTP/1 or HTTP/2, whichever the upstream speaks.
//!
//! A request of which anything was written is never sent twice, unless the upstream says that it did not process it.

use crate::transport::body::SendBody;
use crate::transport::dial::{DialError, Dialer, Offer, Spoken};
use crate::transport::http1::Http1Pool;
use crate::transport::http1::error::Http1Error;
use crate::transport::http2::error::Http2Error;
use crate::transport::http2::{self, Http2Pool, Lease};
use crate::transport::response_body::ResponseBody;
use crate::transport::stream::Stream;
use crate::transport::upstream::Prepared;
use http::header::UPGRADE;
use http::request::Parts;
use http::{Request, Response};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thiserror::Error;

/// The HTTP clients of one worker. Connections are never shared between workers.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    clients: Mutex<Vec<(Arc<Prepared>, Arc<Client>)>>,
}

/// The client of one worker for one upstream.
#[derive(Debug)]
struct Client {
    dialer: Dialer,
    http1: Http1Pool,
    http2: Arc<Http2Pool>,
    /// Taken while a connection is opened that other requests could share.
    dialing: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What the upstream spoke last; `None` until it is known.
    spoken: Option<Spoken>,
    /// The number of failed attempts to connect, and why the last one failed.
    failures: u64,
    failure: Option<DialError>,
}

enum Connection {
    Http1 { stream: Stream, is_reused: bool },
    Http2(Lease),
}

/// Why an upstream sent no response.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    #[error("cannot connect")]
    Connect(#[source] DialError),
    #[error(transparent)]
    Http1(#[from] Http1Error),
    #[error(transparent)]
    Http2(#[from] Http2Error),
}

impl CallError {
    pub(crate) fn is_connect(&self) -> bool {
        matches!(self, CallError::Connect(_))
    }
}

/// The longest that an idle upstream connection is kept. It is less than common server timeouts, so that servers rarely close one
/// just as a request is sent; servers with shorter ones are noticed.
const MAX_IDLE: Duration = Duration::from_secs(50);

/// How often a request is sent that the upstream does not take.
const MAX_ATTEMPTS: usize = 3;

impl Clients {
    pub(crate) fn send(
        &self,
        upstream: &Arc<Prepared>,
        request: Request<SendBody>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, CallError>> + use<> {
        let client = self.client(upstream);
        async move { client.send(request).await }
    }

    fn client(&self, upstream: &Arc<Prepared>) -> Arc<Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(known, _)| Arc::ptr_eq(known, upstream)) {
            return client.clone();
        }
        // The configuration has changed, so clients for the upstream's old settings are no longer needed.
        clients.retain(|(known, _)| known.settings.name != upstream.settings.name);
        let client = Arc::new(Client::new(upstream));
        clients.push((upstream.clone(), client.clone()));
        client
    }
}

impl Client {
    /// Must be called on the worker's runtime.
    fn new(upstream: &Prepared) -> Client {
        let dialer = Dialer::new(upstream);
        let state = State { spoken: dialer.fixed(), failures: 0, failure: None };
        Client {
            dialer,
            http1: Http1Pool::new(MAX_IDLE),
            http2: Http2Pool::new(MAX_IDLE),
            dialing: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
        }
    }

    async fn send(&self, request: Request<SendBody>) -> Result<Response<ResponseBody>, CallError> {
        let (head, body) = request.into_parts();
        if head.headers.contains_key(UPGRADE) {
            // HTTP/2 has no upgrades.
            let stream = self.dial(Offer::Http1).await?.0;
            return self.send_http1(stream, false, head, body).await;
        }
        let mut body = Some(body);
        let mut attempt = 1;
        loop {
            let lease = match self.connection().await? {
                Connection::Http1 { stream, is_reused } => {
                    let body = body.unwrap_or_else(|| SendBody::pieces([]));
                    return self.send_http1(stream, is_reused, head, body).await;
                }
                Connection::Http2(lease) => lease,
            };
            let spare = body.as_ref().and_then(SendBody::replica);
            match http2::send(lease, &head, &mut body).await {
                Ok(response) => return Ok(response.map(ResponseBody::Http2)),
                Err(error) if !error.is_unprocessed() || attempt == MAX_ATTEMPTS => return Err(error.into()),
                // What is left of an upload must not be sent as if it were whole.
                Err(error) => body = Some(body.or(spare).ok_or(error)?),
            }
            attempt += 1;
        }
    }

    async fn send_http1(
        &self,
        mut stream: Stream,
        mut is_reused: bool,
        head: Parts,
        body: SendBody,
    ) -> Result<Response<ResponseBody>, CallError> {
        let mut request = self.http1.request(head, body);
        loop {
            match request.send(stream).await {
                Ok(response) => return Ok(response.map(ResponseBody::Http1)),
                // What is left of a failed upload must not be sent as if it were whole.
                Err(error @ Http1Error::Upload(_)) => return Err(error.into()),
                // The upstream closed the idle connection before anything was written.
                Err(_) if is_reused && request.is_untouched() => {}
                Err(error) => return Err(error.into()),
            }
            (stream, is_reused) = match self.http1.take() {
                Some(stream) => (stream, true),
                None => (self.dial(Offer::Http1).await?.0, false),
            };
        }
    }

    /// Returns a connection that can take a request.
    async fn connection(&self) -> Result<Connection, CallError> {
        if let Some(found) = self.idle_connection() {
            return Ok(found);
        }
        if self.state().spoken == Some(Spoken::Http1) {
            return self.open().await;
        }
        // One request opens the connection that the others will share.
        let failures = self.state().failures;
        let dialing = self.dialing.lock().await;
        if let Some(found) = self.idle_connection() {
            return Ok(found);
        }
        if let Some(failure) = self.failure_since(failures) {
            return Err(CallError::Connect(failure));
        }
        if self.state().spoken == Some(Spoken::Http1) {
            drop(dialing);
        }
        self.open().await
    }

    /// Why an attempt to connect has failed, if one has since there were this many failures.
    fn failure_since(&self, failures: u64) -> Option<DialError> {
        let state = self.state();
        state.failure.clone().filter(|_| state.failures != failures)
    }

    fn idle_connection(&self) -> Option<Connection> {
        if self.state().spoken != Some(Spoken::Http1)
            && let Some(lease) = self.http2.lease()
        {
            return Some(Connection::Http2(lease));
        }
        self.http1.take().map(|stream| Connection::Http1 { stream, is_reused: true })
    }

    async fn open(&self) -> Result<Connection, CallError> {
        let (stream, spoken) = self.dial(Offer::Configured).await?;
        self.state().spoken = Some(spoken);
        match spoken {
            Spoken::Http1 => Ok(Connection::Http1 { stream, is_reused: false }),
            Spoken::Http2 => Ok(Connection::Http2(self.http2.open(stream).await?)),
        }
    }

    async fn dial(&self, offer: Offer) -> Result<(Stream, Spoken), CallError> {
        self.dialer.dial(offer).await.map_err(|error| {
            let mut state = self.state();
            state.failures += 1;
            state.failure = Some(error.clone());
            CallError::Connect(error)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
