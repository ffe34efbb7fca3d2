//! HTTP/2 through hyper, with the same answers and signals but without a byte-exact record.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::answer::Answer;
use crate::recorded::{Arrival, Recorded, Version};
use crate::step::{Framing, Step, filler};
use crate::upstream::Shared;

/// The script broke the stream. hyper resets the stream on this error.
#[derive(Debug)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the script breaks the stream here")
    }
}

impl std::error::Error for Broken {}

/// As much as the HTTP/1 mock reads.
const MAX_HEADER_LIST: u32 = 4 * 1024 * 1024;
/// The largest frame of filler: a multiple of its period.
const FILLER: u64 = 251 * 256;

/// By then hyper has written what it was given.
const UNTIL_WRITTEN: Duration = Duration::from_millis(20);

/// Serves one connection until it ends.
pub(crate) async fn serve<S>(stream: S, connection: usize, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| respond(request, connection, shared.clone()));
    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .max_header_list_size(MAX_HEADER_LIST)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond(
    request: Request<Incoming>,
    connection: usize,
    shared: Arc<Shared>,
) -> Result<Response<Steps>, Broken> {
    let held = Held::new(shared.clone());
    let (recorded, answer) = match shared.early_answer() {
        Some(answer) => {
            let (parts, body) = request.into_parts();
            // Dropping the body would reset the stream before the answer.
            tokio::spawn(body.collect());
            (Recorded { arrival: Arrival::Partial, ..recorded(&parts, connection) }, answer)
        }
        None => {
            let recorded = record(request, connection, &shared).await;
            if recorded.arrival == Arrival::Partial {
                shared.journal.request(&recorded);
                return Err(Broken);
            }
            let answer = shared.answer_to(&recorded);
            (recorded, answer)
        }
    };
    shared.journal.request(&recorded);
    // hyper drops this future when the client resets the stream before the first byte.
    let leaving = Leaving { shared: shared.clone(), under_way: true };
    let usage_asked = recorded.asked_for_usage();
    let mut steps = answer.steps.clone().into_iter().peekable();
    loop {
        match steps.peek() {
            Some(Step::Pause(time)) => tokio::time::sleep(*time).await,
            Some(Step::Wait(gate)) => gate.opened().await,
            Some(Step::Break(_)) => {
                leaving.finished();
                return Err(Broken);
            }
            Some(Step::Head | Step::Chunk(_) | Step::UsageChunk(_) | Step::Fill(_) | Step::Raw(_)) | None => {
                break;
            }
        }
        steps.next();
    }
    let response = head(&answer, usage_asked);
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(play(sender, steps, usage_asked, pairs(&answer.trailers), (leaving, held)));
    Ok(response.map(|()| Steps(receiver)))
}

async fn record(request: Request<Incoming>, connection: usize, shared: &Shared) -> Recorded {
    let (parts, mut incoming) = request.into_parts();
    let mut recorded = recorded(&parts, connection);
    // As long as HTTP/1 would write it.
    let head: usize = recorded.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    shared.journal.bytes_read(head + format!("{} {} HTTP/1.1\r\n", recorded.method, recorded.target).len());
    while let Some(frame) = incoming.frame().await {
        match frame {
            Ok(frame) => {
                if let Some(data) = frame.data_ref() {
                    shared.journal.bytes_read(data.len());
                    recorded.body.extend_from_slice(data);
                }
            }
            Err(_) => {
                recorded.arrival = Arrival::Partial;
                break;
            }
        }
    }
    recorded.raw_body = recorded.body.clone();
    recorded
}

fn recorded(parts: &Parts, connection: usize) -> Recorded {
    let mut headers = Vec::new();
    if let Some(authority) = parts.uri.authority() {
        headers.push((":authority".to_owned(), authority.to_string()));
    }
    headers.extend(parts.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    }));
    let target = parts.uri.path_and_query().map_or_else(|| parts.uri.to_string(), ToString::to_string);
    Recorded {
        raw_head: Vec::new(),
        method: parts.method.to_string(),
        target,
        version: Version::Http2,
        headers,
        raw_body: Vec::new(),
        body: Vec::new(),
        arrival: Arrival::Complete,
        connection,
        at: Instant::now(),
    }
}

fn head(answer: &Answer, usage_asked: bool) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = http::StatusCode::from_u16(answer.status).expect("the script's status is valid");
    *response.headers_mut() = pairs(&answer.headers);
    let length = match answer.framing {
        Framing::Length => Some(answer.body_length(usage_asked)),
        Framing::Declared(length) => Some(length),
        Framing::Chunked | Framing::Close => None,
    };
    if let Some(length) = length {
        response.headers_mut().insert(http::header::CONTENT_LENGTH, length.into());
    }
    response
}

fn pairs(headers: &[(String, String)]) -> HeaderMap {
    let pair = |(name, value): &(String, String)| {
        let name: HeaderName = name.parse().expect("the script's header name is valid");
        (name, HeaderValue::from_str(value).expect("the script's header value is valid"))
    };
    headers.iter().map(pair).collect()
}

async fn play(
    sender: mpsc::Sender<Result<Frame<Bytes>, Broken>>,
    steps: impl Iterator<Item = Step>,
    usage_asked: bool,
    trailers: HeaderMap,
    (leaving, _held): (Leaving, Held),
) {
    let sending = async {
        for step in steps {
            let bytes = match step {
                Step::Pause(time) => {
                    tokio::time::sleep(time).await;
                    continue;
                }
                Step::Wait(gate) => {
                    gate.opened().await;
                    continue;
                }
                Step::Break(_) => {
                    // A reset discards frames that are not written yet, which is not what the script means.
                    tokio::time::sleep(UNTIL_WRITTEN).await;
                    sender.send(Err(Broken)).await?;
                    return Ok(());
                }
                Step::UsageChunk(_) if !usage_asked => continue,
                Step::Head => continue,
                Step::Chunk(bytes) | Step::UsageChunk(bytes) | Step::Raw(bytes) => bytes,
                Step::Fill(length) => {
                    let piece: Bytes = filler(FILLER as usize).into();
                    for at in (0..length).step_by(FILLER as usize) {
                        let piece = piece.slice(..FILLER.min(length - at) as usize);
                        sender.send(Ok(Frame::data(piece))).await?;
                    }
                    continue;
                }
            };
            sender.send(Ok(Frame::data(bytes))).await?;
        }
        if !trailers.is_empty() {
            sender.send(Ok(Frame::trailers(trailers))).await?;
        }
        Ok::<_, mpsc::error::SendError<_>>(())
    };
    tokio::select! {
        biased;
        sent = sending => if sent.is_ok() { leaving.finished() },
        // hyper drops the body when the client resets the stream or closes the connection.
        () = sender.closed() => {}
    }
}

/// A body from a channel, whose sender notices at once when hyper drops it.
struct Steps(mpsc::Receiver<Result<Frame<Bytes>, Broken>>);

impl Body for Steps {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.0.poll_recv(context)
    }
}

/// Counts a stream as held by the client until it is dropped.
struct Held(Arc<Shared>);

impl Held {
    fn new(shared: Arc<Shared>) -> Held {
        shared.journal.held.send_modify(|count| *count += 1);
        Held(shared)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.journal.held.send_modify(|count| *count -= 1);
    }
}

/// Reports that the client left, unless the response ended first.
struct Leaving {
    shared: Arc<Shared>,
    under_way: bool,
}

impl Leaving {
    fn finished(mut self) {
        self.under_way = false;
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if self.under_way {
            self.shared.journal.client_left();
        }
    }
}
