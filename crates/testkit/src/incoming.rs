//! Reads HTTP/1.1 requests from a connection and keeps every byte.

use std::time::Instant;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::recorded::{Arrival, Journal, Recorded, Version};

/// Buffers the bytes of a connection until they form a request.
pub(crate) struct Incoming<'a> {
    pub(crate) buffer: BytesMut,
    pub(crate) journal: &'a Journal,
}

/// The connection ended.
pub(crate) struct Closed;

impl Incoming<'_> {
    /// Reads the head of the next request. Returns `Closed` if the client sends none.
    ///
    /// A head that is truncated or not HTTP is recorded as a partial request, because tests check exactly what arrived.
    pub(crate) async fn head(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        connection: usize,
    ) -> Result<Recorded, Closed> {
        let end = loop {
            if let Some(at) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            if self.more(stream).await.is_err() {
                if !self.buffer.is_empty() {
                    let mut fragment = parse_head(&self.buffer, connection);
                    fragment.arrival = Arrival::Partial;
                    self.journal.request(&fragment);
                }
                return Err(Closed);
            }
        };
        let head = self.buffer.split_to(end);
        Ok(parse_head(&head, connection))
    }

    /// Reads the body that the head announced into `request`.
    pub(crate) async fn body(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        request: &mut Recorded,
    ) -> Result<(), Closed> {
        request.arrival = Arrival::Partial;
        let chunked = request
            .headers_named("transfer-encoding")
            .iter()
            .any(|value| value.to_ascii_lowercase().contains("chunked"));
        if chunked {
            self.chunks(stream, request).await?;
        } else if let Some(length) =
            request.header("content-length").and_then(|value| value.trim().parse().ok())
        {
            self.take(stream, request, length, Part::Data).await?;
        }
        request.arrival = Arrival::Complete;
        request.at = Instant::now();
        Ok(())
    }

    async fn chunks(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        request: &mut Recorded,
    ) -> Result<(), Closed> {
        loop {
            let line = self.line(stream, request).await?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let Ok(size) = usize::from_str_radix(digits, 16) else { return Err(Closed) };
            if size == 0 {
                // Trailers, up to an empty line.
                while !self.line(stream, request).await?.is_empty() {}
                return Ok(());
            }
            self.take(stream, request, size, Part::Data).await?;
            self.take(stream, request, 2, Part::Framing).await?;
        }
    }

    async fn line(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        request: &mut Recorded,
    ) -> Result<String, Closed> {
        let end = loop {
            if let Some(at) = memchr::memmem::find(&self.buffer, b"\r\n") {
                break at;
            }
            self.more(stream).await?;
        };
        let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        request.raw_body.extend_from_slice(&self.buffer[..end + 2]);
        self.buffer.advance(end + 2);
        Ok(line)
    }

    async fn take(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        request: &mut Recorded,
        length: usize,
        part: Part,
    ) -> Result<(), Closed> {
        let mut left = length;
        loop {
            let here = left.min(self.buffer.len());
            request.raw_body.extend_from_slice(&self.buffer[..here]);
            match part {
                Part::Data => request.body.extend_from_slice(&self.buffer[..here]),
                Part::Framing => {}
            }
            self.buffer.advance(here);
            left -= here;
            if left == 0 {
                return Ok(());
            }
            self.more(stream).await?;
        }
    }

    /// Waits for more bytes.
    pub(crate) async fn more(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<(), Closed> {
        self.buffer.reserve(16 * 1024);
        match stream.read_buf(&mut self.buffer).await {
            Ok(0) | Err(_) => Err(Closed),
            Ok(count) => {
                self.journal.bytes_read(count);
                Ok(())
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Part {
    Data,
    Framing,
}

fn parse_head(head: &[u8], connection: usize) -> Recorded {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let method = first.next().unwrap_or_default().to_owned();
    let target = first.next().unwrap_or_default().to_owned();
    let version = if first.next() == Some("HTTP/1.0") { Version::Http10 } else { Version::Http11 };
    let headers = lines
        .map(|line| {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            (name.to_owned(), value.trim_matches([' ', '\t']).to_owned())
        })
        .collect();
    Recorded {
        raw_head: head.to_vec(),
        method,
        target,
        version,
        headers,
        body: Vec::new(),
        raw_body: Vec::new(),
        arrival: Arrival::Complete,
        connection,
        at: Instant::now(),
    }
}
