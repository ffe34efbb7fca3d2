//! An HTTP/1.1 client that sends exactly the bytes it is given.

use super::reply::{End, Framing, Reply, header};
use super::within;
use bytes::BytesMut;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;

pub(crate) const CHAT: &str = "/v1/chat/completions";
pub(crate) const QUESTION: &str = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}"#;

pub(crate) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

pub(crate) struct Client {
    from: ReadHalf<Box<dyn Connection>>,
    to: Option<WriteHalf<Box<dyn Connection>>>,
    buffer: BytesMut,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        let stream = within("a connection to tidegate", TcpStream::connect(address)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client::over(stream)
    }

    pub(crate) fn over(stream: impl Connection + 'static) -> Client {
        let (from, to) = split(Box::new(stream) as Box<dyn Connection>);
        Client { from, to: Some(to), buffer: BytesMut::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let to = self.to.as_mut().expect("the sender was not taken");
        within("tidegate reads", to.write_all(bytes.as_ref())).await.unwrap();
        to.flush().await.unwrap();
    }

    /// The sending half, for a test that sends while it reads.
    pub(crate) fn take_sender(&mut self) -> WriteHalf<Box<dyn Connection>> {
        self.to.take().expect("the sender was not taken")
    }

    /// Reads the next response. A truncated body does not panic: see [`Reply::end`].
    pub(crate) async fn reply(&mut self) -> Reply {
        let mut reply = self.head().await;
        self.rest(&mut reply).await;
        reply
    }

    /// Reads the next head, of an interim or a final response.
    pub(crate) async fn head(&mut self) -> Reply {
        loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                return Reply::parse(&self.buffer.split_to(at + 4));
            }
            assert!(self.more().await, "the connection ended inside a head: {:?}", self.buffer);
        }
    }

    /// Reads the rest of the body of `reply`.
    pub(crate) async fn rest(&mut self, reply: &mut Reply) {
        while let Some(piece) = self.piece(reply).await {
            reply.body.extend_from_slice(&piece);
        }
    }

    /// Reads the next chunk of a chunked body exactly as the server sent it; for other framings, whatever has arrived.
    /// Returns `None` at the end, and records in `reply` how the body ended.
    pub(crate) async fn piece(&mut self, reply: &mut Reply) -> Option<Vec<u8>> {
        match reply.framing() {
            Framing::Chunked => {
                let size = usize::from_str_radix(&self.line().await?, 16).expect("a chunk size");
                if size == 0 {
                    while let Some(line) = self.line().await {
                        if line.is_empty() {
                            reply.end = End::Complete;
                            break;
                        }
                        reply.trailers.push(header(&line));
                    }
                    return None;
                }
                let chunk = self.take(size).await?;
                self.line().await.map(|_| chunk)
            }
            Framing::Length(length) => {
                let left = length - reply.body.len();
                if left == 0 {
                    reply.end = End::Complete;
                    return None;
                }
                if self.buffer.is_empty() && !self.more().await {
                    return None;
                }
                let here = left.min(self.buffer.len());
                Some(self.buffer.split_to(here).to_vec())
            }
            Framing::UntilClose => {
                if self.buffer.is_empty() && !self.more().await {
                    reply.end = End::Complete;
                    return None;
                }
                Some(self.buffer.split().to_vec())
            }
        }
    }

    /// Waits until the server closes the connection, and returns what it sent before.
    pub(crate) async fn until_closed(&mut self) -> Vec<u8> {
        while self.more().await {}
        self.buffer.to_vec()
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let line = self.buffer.split_to(at + 2);
                return Some(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Returns the next `count` bytes.
    pub(crate) async fn exactly(&mut self, count: usize) -> Vec<u8> {
        self.take(count).await.expect("the connection stays open")
    }

    async fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < count {
            if !self.more().await {
                return None;
            }
        }
        Some(self.buffer.split_to(count).to_vec())
    }

    /// Returns whether anything arrived. A reset counts as an end: to distinguish them would be to test the kernel.
    async fn more(&mut self) -> bool {
        let read = within("tidegate sends or closes", self.from.read_buf(&mut self.buffer)).await;
        read.is_ok_and(|count| count > 0)
    }
}

/// Sends one request on a new connection.
pub(crate) async fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> Reply {
    let mut client = Client::connect(address).await;
    client.send(request).await;
    client.reply().await
}

/// Gets a path of the admin address.
pub(crate) async fn admin(address: SocketAddr, path: &str) -> Reply {
    exchange(address, format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")).await
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    request("GET", path, &[], b"")
}

/// A request for a chat completion.
pub(crate) fn chat() -> Vec<u8> {
    post(CHAT, &[], QUESTION)
}

pub(crate) fn post(path: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len().to_string();
    let mut all = vec![("content-type", "application/json"), ("content-length", &length)];
    // A value given by the test replaces the default.
    all.retain(|(name, _)| !headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)));
    all.extend_from_slice(headers);
    request("POST", path, &all, body)
}

pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nhost: tidegate.test\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}
