//! Requests of the model, and what their client learns.

use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// What a client knows of its request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Answered(String),
    /// Tidegate or the upstream has refused it: it is not part of the history.
    Refused(u16),
    /// The connection broke: it may be part of it.
    Unknown,
}

/// Sends a request and reads to the end of the connection.
pub(super) async fn send(address: SocketAddr, request: Vec<u8>) -> Reply {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(&request).await.ok()?;
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).await.ok()?;
        parse(&reply)
    };
    // Whoever cannot connect was not served, but that is as good as not knowing.
    let reply = timeout(Duration::from_secs(60), exchange).await.expect("a reply in time");
    if reply == Some(Reply::Refused(503)) {
        // As its client would, or all operations would be spent while the store is away.
        sleep(RETRY_AFTER).await;
    }
    reply.unwrap_or(Reply::Unknown)
}

const RETRY_AFTER: Duration = Duration::from_millis(20);

/// `None` if the reply is not complete.
fn parse(reply: &[u8]) -> Option<Reply> {
    let end = reply.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&reply[..end]).to_lowercase();
    let status: u16 = head.split(' ').nth(1)?.parse().ok()?;
    if status == 204 {
        return Some(Reply::Answered(String::new()));
    }
    if status != 200 {
        return Some(Reply::Refused(status));
    }
    let length: usize = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
    let body: Value = serde_json::from_slice(reply.get(end + 4..end + 4 + length)?).ok()?;
    Some(Reply::Answered(body["choices"][0]["message"]["content"].as_str()?.to_owned()))
}
