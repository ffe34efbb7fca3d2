//! The address for operators and orchestrators: is this process alive, and does it want traffic?
//!
//! `/healthz` and `/readyz` need no token, because whoever probes them has none and learns one word. Nothing here touches
//! the request path.
//!
//! ```
//! use tidegate_admin::{Readiness, answer};
//!
//! assert_eq!(answer(&http::Method::GET, "/readyz", Readiness::Draining).status(), 503);
//! ```

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tracing::{debug, warn};

/// Whether this process wants new requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// It finishes what it has and then ends.
    Draining,
}

/// Serves the admin address until it is dropped. `readiness` is asked at every request.
pub async fn serve(listener: TcpListener, readiness: impl Fn() -> Readiness + Send + Sync + 'static) {
    let readiness = Arc::new(readiness);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                warn!(%error, "cannot accept a connection on the admin address");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let readiness = readiness.clone();
        let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let response = answer(request.method(), request.uri().path(), readiness());
            async move { Ok::<_, Infallible>(response) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10));
        let connection = http.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!(%error, "admin connection ended");
            }
        });
    }
}

/// The answer to one admin request.
#[must_use]
pub fn answer(method: &Method, path: &str, readiness: Readiness) -> Response<Full<Bytes>> {
    if ![Method::GET, Method::HEAD].contains(method) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match (path, readiness) {
        ("/healthz", _) => text(StatusCode::OK, "ok\n"),
        ("/readyz", Readiness::Ready) => text(StatusCode::OK, "ready\n"),
        ("/readyz", Readiness::Draining) => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
        _ => text(StatusCode::NOT_FOUND, "there are /healthz and /readyz\n"),
    }
}

fn text(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    // A probe that is answered from a cache says nothing about this process.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    #[test]
    fn alive_while_draining_but_not_ready() {
        let status = |path, readiness| answer(&Method::GET, path, readiness).status().as_u16();
        assert_eq!(status("/healthz", Readiness::Ready), 200);
        assert_eq!(status("/readyz", Readiness::Ready), 200);
        assert_eq!(status("/healthz", Readiness::Draining), 200);
        assert_eq!(status("/readyz", Readiness::Draining), 503);
        assert_eq!(status("/", Readiness::Ready), 404);
        assert_eq!(answer(&Method::POST, "/healthz", Readiness::Ready).status(), 405);
    }

    #[tokio::test]
    async fn it_answers_over_a_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener, || Readiness::Ready));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("ready\n"), "{answer}");
        server.abort();
    }
}
