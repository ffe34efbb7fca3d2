//! Connections that are closed as soon as they are accepted.

use crate::transport::overload::Limit;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tracing::warn;

/// Whatever the client has sent, it gets this. It fits into the socket's buffer, so nothing waits for a client that does not read.
const RESPONSE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
    connection: close\r\ncontent-length: 143\r\n\r\n\
    {\"error\":{\"message\":\"This gateway has no room for another connection. Try again soon.\",\"type\":\"server_error\",\
    \"param\":null,\"code\":\"overloaded\"}}";

/// How often refused connections are reported: whoever opens thousands must not fill the log.
const INTERVAL: Duration = Duration::from_secs(1);

/// Connections that were refused since the last report.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    count: u64,
    reported: Option<Instant>,
}

impl Refusals {
    /// Says so to the client as well as that is possible without waiting for it, and closes the connection.
    pub(super) fn refuse(&mut self, stream: &TcpStream, limit: Limit) {
        // A client of HTTP/2 or TLS sees a broken connection, which says the same.
        let _ = stream.try_write(RESPONSE);
        self.count += 1;
        if self.reported.is_some_and(|reported| reported.elapsed() < INTERVAL) {
            return;
        }
        warn!(limit = limit.name(), connections = self.count, "connections refused");
        *self = Refusals { count: 0, reported: Some(Instant::now()) };
    }
}

#[cfg(test)]
mod tests {
    use super::RESPONSE;

    #[test]
    fn the_response_has_the_length_that_it_declares() {
        let text = std::str::from_utf8(RESPONSE).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        assert_eq!(serde_json::from_str::<serde_json::Value>(body).unwrap()["error"]["code"], "overloaded");
    }
}
