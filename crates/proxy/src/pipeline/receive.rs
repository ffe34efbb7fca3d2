//! Reads the whole body of a chat completion.

use crate::reply::refusal::Refusal;
use crate::transport::body::{Progress, UploadError};
use crate::transport::decode::{self, Coding, DecodeError};
use bytes::{Bytes, BytesMut};
use http::header::EXPECT;
use http::request::Parts;
use http::{Method, Request};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::time::Duration;
use tidegate_config::Server;
use tidegate_wire::{Dialect, Outline, Reader, Unreadable};
use tokio::time::timeout;

/// A chat completion that was read whole.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) head: Parts,
    /// The body as the client sent it, perhaps compressed. It is forwarded if there is nothing to edit.
    pub(crate) sent: Bytes,
    /// The body as JSON, and where its messages are; `None` if it cannot be read, and then it is forwarded untouched.
    pub(crate) chat: Option<(Bytes, Outline)>,
}

impl Received {
    /// The model's name as the client wrote it.
    pub(crate) fn model(&self) -> &str {
        self.chat.as_ref().and_then(|(_, outline)| outline.model.as_deref()).unwrap_or_default()
    }
}

/// What a body is read for. It only decides how much work is done ahead: a body that was read to be forwarded can still be edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Edit,
    Forward,
}

/// Returns the dialect of a request whose messages Tidegate may edit. `path` is canonical.
pub(crate) fn dialect(method: &Method, path: &str) -> Option<Dialect> {
    Dialect::of_path(path).filter(|_| method == Method::POST)
}

pub(crate) async fn receive(
    request: Request<Incoming>,
    (dialect, purpose): (Dialect, Purpose),
    limits: &Server,
    reader: &Reader,
    progress: &Progress,
) -> Result<Received, Refusal> {
    let (head, mut body) = request.into_parts();
    if body.size_hint().lower() > limits.max_body {
        if !head.headers.contains_key(EXPECT) {
            discard(&mut body, limits.max_body).await;
        }
        return Err(Refusal::TooLarge { limit: limits.max_body });
    }
    let sent = collect(&mut body, limits, progress).await?;
    let plain = match decode::coding(&head.headers) {
        Coding::Identity => Some(sent.clone()),
        Coding::Unknown => None,
        coding => Some(decompress(coding, sent.clone(), limits.max_body).await?),
    };
    let mut chat = match plain.map(|plain| outline(reader, dialect, purpose, plain)) {
        Some(chat) => chat?,
        None => None,
    };
    if let Some((_, outline)) = &mut chat
        && outline.model.is_none()
    {
        outline.model = deployment(head.uri.path()).map(str::to_owned);
    }
    Ok(Received { head, sent, chat })
}

/// The deployment that an Azure path names. Azure's clients often leave the model out of the body.
pub(crate) fn deployment(path: &str) -> Option<&str> {
    let (_, rest) = path.split_once("/openai/deployments/")?;
    rest.split('/').next().filter(|name| !name.is_empty())
}

fn outline(
    reader: &Reader,
    dialect: Dialect,
    purpose: Purpose,
    plain: Bytes,
) -> Result<Option<(Bytes, Outline)>, Refusal> {
    let outline = match purpose {
        Purpose::Edit => reader.outline(dialect, &plain),
        Purpose::Forward => reader.survey(dialect, &plain),
    };
    match outline {
        Ok(outline) => Ok(Some((plain, outline))),
        Err(Unreadable::DuplicateMessages { key }) => Err(Refusal::Ambiguous { key }),
        Err(_) => Ok(None),
    }
}

async fn collect(body: &mut Incoming, limits: &Server, progress: &Progress) -> Result<Bytes, Refusal> {
    // A declared length is only a claim: memory is allocated as the bytes arrive.
    let expected = body.size_hint().exact().unwrap_or(0).min(1024 * 1024);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) =
        timeout(limits.body_timeout, body.frame()).await.map_err(|_| Refusal::BodyTooSlow)?
    {
        let frame = frame.map_err(|error| Refusal::from(&UploadError::from(error)))?;
        let Ok(data) = frame.into_data() else { continue };
        progress.record(data.len());
        if progress.bytes() > limits.max_body {
            discard(body, limits.max_body).await;
            return Err(Refusal::TooLarge { limit: limits.max_body });
        }
        if first.is_empty() {
            // Small requests arrive in one frame and are not copied.
            first = data;
        } else {
            if rest.is_empty() {
                rest.reserve(usize::try_from(expected).unwrap_or(0).max(first.len() + data.len()));
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// Reads and discards the rest of the body for a while. A client that is still sending when its connection is closed would get a
/// reset instead of the refusal.
async fn discard(body: &mut Incoming, most: u64) {
    let mut left = most.saturating_mul(2);
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, |data| data.len() as u64));
            if left == 0 {
                break;
            }
        }
    };
    // The refusal is the same whether the body ended or not.
    let _ = timeout(Duration::from_secs(2), reading).await;
}

async fn decompress(coding: Coding, sent: Bytes, limit: u64) -> Result<Bytes, Refusal> {
    // Decompressing can take milliseconds, during which the worker would serve nobody else.
    let decoded = tokio::task::spawn_blocking(move || decode::decode(coding, &sent, limit)).await;
    match decoded {
        Ok(Ok(plain)) => Ok(plain.into()),
        Ok(Err(DecodeError::TooLarge)) => Err(Refusal::TooLarge { limit }),
        Ok(Err(DecodeError::Corrupt)) | Err(_) => Err(Refusal::Encoding),
    }
}
