//! HTTP/1.1, implemented by hand so that the mock can record every byte and break at any byte.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::answer::Answer;
use crate::incoming::Incoming;
use crate::recorded::{Arrival, Recorded, Version};
use crate::step::{Ending, Framing, Step, filler};
use crate::upstream::Shared;

/// A byte stream that can be reset.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Unpin {
    fn tcp(&self) -> &TcpStream;
}

impl Transport for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Transport for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// Serves one connection until it ends.
pub(crate) async fn serve(mut stream: impl Transport, connection: usize, shared: &Shared) {
    let mut incoming = Incoming { buffer: BytesMut::new(), journal: &shared.journal };
    loop {
        let Ok(mut request) = incoming.head(&mut stream, connection).await else { return };
        let early = match request.header("x-mock") {
            Some(_) => None,
            None => shared.early_answer(),
        };
        if let Some(answer) = early {
            request.arrival = Arrival::Partial;
            shared.journal.request(&request);
            let end = converse(&mut stream, &mut incoming, answer, &request).await;
            if end == End::KeepAlive {
                linger(&mut stream).await;
            } else {
                finish(stream, end, shared).await;
            }
            return;
        }
        let expects =
            request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"));
        if expects && stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.is_err() {
            return;
        }
        let body = incoming.body(&mut stream, &mut request).await;
        shared.journal.request(&request);
        if body.is_err() {
            return;
        }
        let answer = shared.answer_to(&request);
        let end = converse(&mut stream, &mut incoming, answer, &request).await;
        if end != End::KeepAlive {
            finish(stream, end, shared).await;
            return;
        }
    }
}

/// Closes the connection in the way that the response ended.
async fn finish(mut stream: impl Transport, end: End, shared: &Shared) {
    match end {
        End::KeepAlive | End::Broken(Ending::Close) => {
            let _ = stream.shutdown().await;
        }
        End::Broken(Ending::Reset) => {
            // With a zero linger the kernel discards unsent data and sends a reset.
            let _ = socket2::SockRef::from(stream.tcp()).set_linger(Some(Duration::ZERO));
        }
        End::ClientLeft => shared.journal.client_left(),
    }
}

/// How a response ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    KeepAlive,
    Broken(Ending),
    ClientLeft,
}

/// Sends the response while watching for the client to leave. Bytes of a pipelined request are kept.
async fn converse(
    stream: &mut impl Transport,
    incoming: &mut Incoming<'_>,
    answer: Answer,
    request: &Recorded,
) -> End {
    let (mut reading, mut writing) = tokio::io::split(stream);
    let watch = async { while incoming.more(&mut reading).await.is_ok() {} };
    let mut wire = Wire { out: &mut writing, left: answer.cut };
    tokio::select! {
        biased;
        end = play(&mut wire, answer, request) => match end {
            Ok(end) | Err(end) => end,
        },
        () = watch => End::ClientLeft,
    }
}

async fn play<W: AsyncWrite + Unpin>(
    wire: &mut Wire<'_, W>,
    answer: Answer,
    request: &Recorded,
) -> Result<End, End> {
    let usage_asked = request.asked_for_usage();
    let bodiless = request.method == "HEAD" || answer.status == 204 || answer.status == 304;
    let chunked = answer.framing == Framing::Chunked;
    let mut head = Some(render_head(&answer, usage_asked));
    let mut raw = false;
    for step in answer.steps {
        let bytes = match step {
            Step::Pause(time) => {
                tokio::time::sleep(time).await;
                continue;
            }
            Step::Wait(gate) => {
                gate.opened().await;
                continue;
            }
            Step::Break(ending) => return Err(End::Broken(ending)),
            Step::Raw(bytes) => {
                raw |= head.take().is_some();
                wire.send(&bytes).await?;
                continue;
            }
            Step::UsageChunk(_) if !usage_asked => continue,
            Step::Head => Bytes::new(),
            Step::Chunk(bytes) | Step::UsageChunk(bytes) => bytes,
            Step::Fill(length) => {
                if let Some(head) = head.take() {
                    wire.send(&head).await?;
                }
                if !bodiless {
                    wire.fill(length, chunked && !raw).await?;
                }
                continue;
            }
        };
        let mut packet = head.take().unwrap_or_default();
        if bodiless || bytes.is_empty() {
            // A chunk of length zero would end the body.
        } else if chunked && !raw {
            packet.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
            packet.extend_from_slice(&bytes);
            packet.extend_from_slice(b"\r\n");
        } else {
            packet.extend_from_slice(&bytes);
        }
        wire.send(&packet).await?;
    }
    let mut rest = head.take().unwrap_or_default();
    if chunked && !raw && !bodiless {
        rest.extend_from_slice(b"0\r\n");
        for (name, value) in &answer.trailers {
            rest.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        rest.extend_from_slice(b"\r\n");
    }
    wire.send(&rest).await?;
    let asked_to_close = request.version == Version::Http10
        || request.headers_named("connection").iter().any(|value| value.eq_ignore_ascii_case("close"))
        || answer
            .headers
            .iter()
            .any(|(n, v)| n.eq_ignore_ascii_case("connection") && v.eq_ignore_ascii_case("close"));
    let ends = raw || asked_to_close || answer.framing == Framing::Close;
    Ok(if ends { End::Broken(Ending::Close) } else { End::KeepAlive })
}

fn render_head(answer: &Answer, usage_asked: bool) -> Vec<u8> {
    let reason = http::StatusCode::from_u16(answer.status).ok().and_then(|status| status.canonical_reason());
    let mut head = format!("HTTP/1.1 {} {}\r\n", answer.status, reason.unwrap_or("Unnamed"));
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let without_body = answer.status == 204 || answer.status == 304;
    match answer.framing {
        Framing::Length if without_body => {}
        Framing::Length => head += &format!("content-length: {}\r\n", answer.body_length(usage_asked)),
        Framing::Declared(length) => head += &format!("content-length: {length}\r\n"),
        Framing::Chunked => head += "transfer-encoding: chunked\r\n",
        Framing::Close => head += "connection: close\r\n",
    }
    head += "\r\n";
    head.into_bytes()
}

/// The outgoing side, which may be cut at a byte chosen by the test.
struct Wire<'a, W> {
    out: &'a mut W,
    left: Option<(u64, Ending)>,
}

impl<W: AsyncWrite + Unpin> Wire<'_, W> {
    async fn send(&mut self, bytes: &[u8]) -> Result<(), End> {
        let Some((left, ending)) = self.left else { return self.write(bytes).await };
        if left > bytes.len() as u64 {
            self.left = Some((left - bytes.len() as u64, ending));
            return self.write(bytes).await;
        }
        // The cast cannot truncate: `left` is at most the length of a slice.
        self.write(&bytes[..left as usize]).await?;
        Err(End::Broken(ending))
    }

    async fn fill(&mut self, length: u64, chunked: bool) -> Result<(), End> {
        // The block is a whole number of periods, so that blocks can be repeated.
        let block = filler(251 * 256);
        let mut left = length;
        while left > 0 {
            let part = &block[..left.min(block.len() as u64) as usize];
            if chunked {
                self.send(format!("{:x}\r\n", part.len()).as_bytes()).await?;
            }
            self.send(part).await?;
            if chunked {
                self.send(b"\r\n").await?;
            }
            left -= part.len() as u64;
        }
        Ok(())
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), End> {
        let written = self.out.write_all(bytes).await;
        written.and(self.out.flush().await).map_err(|_| End::ClientLeft)
    }
}

/// Closes without a reset although bytes of the request are unread: a reset could overtake the response.
async fn linger(stream: &mut impl Transport) {
    let _ = stream.shutdown().await;
    let mut sink = [0; 4096];
    let drain = async { while stream.read(&mut sink).await.is_ok_and(|count| count > 0) {} };
    let _ = tokio::time::timeout(Duration::from_secs(2), drain).await;
}
