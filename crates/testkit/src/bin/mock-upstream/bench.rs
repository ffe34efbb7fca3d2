//! An upstream that is never the bottleneck of a benchmark: it writes one prebuilt response.
//!
//! With `--bench-response BYTES` every request gets a JSON body of that size. A request whose body contains
//! `"stream":true`, or every request if only `--bench-events N` is given, gets N server-sent events, one write each.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Plan {
    response: Option<Vec<u8>>,
    stream_head: Vec<u8>,
    /// Framed as chunks; the last one includes the end of the body.
    events: Vec<Vec<u8>>,
}

impl Plan {
    pub(crate) fn new(response: Option<usize>, events: Option<usize>) -> Self {
        let response = response.map(|size| {
            let shell = r#"{"id":"chatcmpl-bench","object":"chat.completion","choices":[],"text":""}"#;
            let filling = "x".repeat(size.saturating_sub(shell.len()));
            let body = shell.replace(r#""text":"""#, &format!(r#""text":"{filling}""#));
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
            format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
        });
        let count = events.unwrap_or(100).max(1);
        let events = (1..=count).map(|number| event(number, count)).collect();
        let stream_head =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                .to_vec();
        Plan { response, stream_head, events }
    }
}

fn event(number: usize, count: usize) -> Vec<u8> {
    if number == count {
        return b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n".to_vec();
    }
    let choice = r#"{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}"#;
    let data = format!(
        "data: {{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\
         \"model\":\"mock\",\"choices\":[{choice}]}}\n\n"
    );
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

/// Serves until the process ends. Each thread has its own runtime and its own listener on the shared port, so that
/// connections never move between threads.
pub(crate) fn run(
    address: SocketAddr,
    threads: usize,
    plan: Plan,
    ready: impl FnOnce(SocketAddr),
) -> std::io::Result<()> {
    let plan = Arc::new(plan);
    let first = std::net::TcpListener::from(reserve(address)?);
    let address = first.local_addr()?;
    let mut workers = Vec::new();
    let mut first = Some(first);
    for _ in 0..threads.max(1) {
        let plan = plan.clone();
        let socket = match first.take() {
            Some(socket) => socket,
            None => reserve(address)?.into(),
        };
        workers.push(std::thread::spawn(move || serve(socket, plan)));
    }
    ready(address);
    for worker in workers {
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    }
    Ok(())
}

/// A listening socket, so that no connection is refused once the address is printed.
fn reserve(address: SocketAddr) -> std::io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(4096)?;
    Ok(socket)
}

fn serve(socket: std::net::TcpListener, plan: Arc<Plan>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::from_std(socket)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            // The load generator counts failed connections.
            tokio::spawn(converse(stream, plan.clone()));
        }
    })
}

async fn converse(mut stream: TcpStream, plan: Arc<Plan>) -> std::io::Result<()> {
    let mut buffer = BytesMut::with_capacity(64 * 1024);
    loop {
        let (length, wants_stream) = loop {
            if let Some(found) = request(&buffer) {
                break found;
            }
            buffer.reserve(32 * 1024);
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        buffer.advance(length);
        match &plan.response {
            Some(response) if !wants_stream => stream.write_all(response).await?,
            Some(_) | None => {
                stream.write_all(&plan.stream_head).await?;
                for event in &plan.events {
                    stream.write_all(event).await?;
                    // Real upstreams do not send a hundred events at once: let other streams run.
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

/// The length of the first request, and whether it asks for a stream. `None` if it is incomplete.
fn request(buffer: &[u8]) -> Option<(usize, bool)> {
    let head_end = memmem::find(buffer, b"\r\n\r\n")? + 4;
    let mut body = Body::Length(0);
    for line in buffer[..head_end].split(|byte| *byte == b'\n') {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let value = std::str::from_utf8(&line[colon + 1..]).unwrap_or_default().trim();
        if line[..colon].eq_ignore_ascii_case(b"content-length") {
            body = Body::Length(value.parse().unwrap_or(0));
        } else if line[..colon].eq_ignore_ascii_case(b"transfer-encoding") {
            body = Body::Chunked;
        }
    }
    let end = match body {
        Body::Length(length) => head_end + length,
        Body::Chunked => chunked_end(buffer, head_end)?,
    };
    let body = buffer.get(head_end..end)?;
    Some((end, memmem::find(body, br#""stream":true"#).is_some()))
}

enum Body {
    Length(usize),
    Chunked,
}

fn chunked_end(buffer: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let line_end = at + memmem::find(buffer.get(at..)?, b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&buffer[at..line_end]).ok()?.trim(), 16).ok()?;
        at = line_end + 2 + size + 2;
        if size == 0 {
            return (buffer.len() >= at).then_some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, wants_stream: bool) {
        let pipelined = format!("{text}GET / HTTP/1.1\r\n\r\n");
        assert_eq!(request(pipelined.as_bytes()), Some((text.len(), wants_stream)));
        for length in 0..text.len() {
            assert_eq!(request(&text.as_bytes()[..length]), None, "cut at {length}");
        }
    }

    #[test]
    fn an_incomplete_request_is_not_parsed() {
        check("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", false);
        check("POST / HTTP/1.1\r\ncontent-length: 15\r\n\r\n{\"stream\":true}", true);
        check(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nf\r\n{\"stream\":true}\r\n0\r\n\r\n",
            true,
        );
    }

    #[test]
    fn the_response_has_the_given_size_and_number_of_events() {
        let plan = Plan::new(Some(1000), Some(3));
        let response = String::from_utf8(plan.response.unwrap()).unwrap();
        let body = response.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(body.len(), 1000);
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
        assert_eq!(plan.events.len(), 3);
        assert!(plan.events[2].ends_with(b"data: [DONE]\n\n\r\n0\r\n\r\n"));
    }
}
