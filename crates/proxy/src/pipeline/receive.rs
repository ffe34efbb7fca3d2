//! Reads the whole body of a chat completion.

use crate::host::heavy::{Lane, SCANNED_AT_ONCE};
use crate::host::shared::Gateway;
use crate::reply::refusal::Refusal;
use crate::transport::body::{Progress, UploadError};
use crate::transport::decode::{self, Coding, DecodeError};
use crate::transport::overload::{Charge, Limit, SMALL, Share};
use bytes::{Bytes, BytesMut};
use http::header::EXPECT;
use http::request::Parts;
use http::{HeaderMap, Method, Request};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::Server;
use tidegate_wire::{Dialect, Outline, Reader, Unreadable};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

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

/// What a body may use while it is read.
pub(crate) struct Admission<'a> {
    pub(crate) limits: &'a Server,
    pub(crate) charge: &'a Arc<Charge>,
    pub(crate) progress: &'a Progress,
    pub(crate) lane: &'a Lane,
    /// Whether headers name a conversation under way. Only asked if memory is short or the body is long.
    pub(crate) is_under_way: &'a (dyn Fn(&HeaderMap) -> bool + Sync),
}

pub(crate) async fn receive(
    request: Request<Incoming>,
    (dialect, purpose): (Dialect, Purpose),
    gateway: &Arc<Gateway>,
    admission: &Admission<'_>,
) -> Result<Received, Refusal> {
    let limits = admission.limits;
    let (head, mut body) = request.into_parts();
    let declared = body.size_hint().lower();
    if declared > limits.max_body {
        if !head.headers.contains_key(EXPECT) {
            discard(&mut body, limits.max_body).await;
        }
        return Err(Refusal::TooLarge { limit: limits.max_body });
    }
    let coding = decode::coding(&head.headers);
    let memory = Memory { admission, headers: &head.headers };
    let sent = async {
        memory.wait_for(declared).await?;
        collect(&mut body, limits, admission.progress, &memory).await
    };
    let sent = match sent.await {
        Err(refusal @ Refusal::Overloaded(_)) => {
            admission.charge.shrink_to(0);
            // A client that waits to be asked for its body is not asked.
            let permit = DISCARDS.try_acquire().ok().filter(|_| !head.headers.contains_key(EXPECT));
            if permit.is_some() {
                discard(&mut body, limits.max_body).await;
            }
            return Err(refusal);
        }
        sent => sent?,
    };
    let plain = match coding {
        Coding::Identity => Some(sent.clone()),
        Coding::Unknown => None,
        coding => Some(decompress(coding, sent.clone(), &memory).await?),
    };
    let mut chat = match plain {
        Some(plain) => {
            let gateway = gateway.clone();
            let is_long = plain.len() > SCANNED_AT_ONCE;
            let lane = admission.lane.with_progress(is_long && (admission.is_under_way)(&head.headers));
            let outlined = lane.scan(plain.len(), move || outline(&gateway.reader, dialect, purpose, plain));
            // What makes the reader panic cannot be read.
            outlined.await.unwrap_or(Ok(None))?
        }
        None => None,
    };
    if let Some((plain, outline)) = &chat {
        memory.take(working_memory(plain.len(), outline.messages.len()))?;
    }
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

/// Whether the model that a body names is the name of a deployment, as in the other form of Azure's paths.
pub(crate) fn names_deployment(path: &str) -> bool {
    path.starts_with("/openai/v1/")
}

impl From<&UploadError> for Refusal {
    fn from(error: &UploadError) -> Refusal {
        match error {
            UploadError::Stalled => Refusal::BodyTooSlow,
            UploadError::Malformed => Refusal::BodyBroken,
            UploadError::Gone => Refusal::ClientLeft,
        }
    }
}

fn outline(
    reader: &Reader,
    dialect: Dialect,
    purpose: Purpose,
    plain: Bytes,
) -> Result<Option<(Bytes, Outline)>, Refusal> {
    let read = |dialect| match purpose {
        Purpose::Edit => reader.outline(dialect, &plain),
        Purpose::Forward => reader.survey(dialect, &plain),
    };
    let outline = match (read(dialect), dialect) {
        // Some clients send one API's requests to the other's path, and some gateways take them.
        (Err(Unreadable::NoMessages { .. }), Dialect::Chat) => read(Dialect::Responses),
        (Err(Unreadable::NoMessages { .. }), Dialect::Responses) => read(Dialect::Chat),
        (outline, _) => outline,
    };
    match outline {
        Ok(outline) => Ok(Some((plain, outline))),
        Err(Unreadable::DuplicateMessages { key }) => Err(Refusal::Ambiguous { key }),
        Err(_) => Ok(None),
    }
}

/// The memory of a request, taken as its bytes arrive: a length that is declared is only a claim.
struct Memory<'a> {
    admission: &'a Admission<'a>,
    headers: &'a HeaderMap,
}

impl Memory<'_> {
    /// Waits a moment if a large body would not fit now. Holds nothing meanwhile.
    async fn wait_for(&self, declared: u64) -> Result<(), Refusal> {
        let budget = self.admission.charge.budget();
        if declared <= SMALL || budget.would_fit(declared, Share::Large) {
            return Ok(());
        }
        let share = self.share(declared);
        if budget.wait_for(declared, share).await { Ok(()) } else { Err(OUT_OF_MEMORY) }
    }

    fn take(&self, bytes: u64) -> Result<(), Refusal> {
        let charge = self.admission.charge;
        // Whoever sends more than a little fills the buffers of its connection.
        let before = charge.bytes();
        let bytes = if before <= SMALL && before + bytes > SMALL { bytes + BUFFERS } else { bytes };
        let total = before + bytes;
        let simple = if total <= SMALL { Share::Small } else { Share::Large };
        if charge.grow(bytes, simple) || charge.grow(bytes, self.share(total)) {
            return Ok(());
        }
        Err(OUT_OF_MEMORY)
    }

    fn share(&self, total: u64) -> Share {
        match total <= SMALL {
            true => Share::Small,
            false if (self.admission.is_under_way)(self.headers) => Share::UnderWay,
            false => Share::Large,
        }
    }
}

const OUT_OF_MEMORY: Refusal = Refusal::Overloaded(Limit::Memory);

/// What reading a request takes besides the request: what is known of each message, and for a large one a copy on its way to the store.
fn working_memory(bytes: usize, messages: usize) -> u64 {
    let (bytes, messages) = (bytes as u64, messages as u64);
    messages * BYTES_PER_MESSAGE + if bytes > SMALL { bytes } else { 0 }
}

const BYTES_PER_MESSAGE: u64 = 768;

/// The buffers of a connection through which a large body arrives.
const BUFFERS: u64 = 128 * 1024;

async fn collect(
    body: &mut Incoming,
    limits: &Server,
    progress: &Progress,
    memory: &Memory<'_>,
) -> Result<Bytes, Refusal> {
    // A declared length is only a claim: memory is allocated as the bytes arrive.
    let expected = body.size_hint().exact().unwrap_or(0).min(1024 * 1024);
    let started = Instant::now();
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let pause = pause(started.elapsed(), progress.bytes(), limits).ok_or(Refusal::BodyTooSlow)?;
        let frame = timeout(pause, body.frame()).await.map_err(|_| Refusal::BodyTooSlow)?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| Refusal::from(&UploadError::from(error)))?;
        let Ok(data) = frame.into_data() else { continue };
        progress.record(data.len());
        if progress.bytes() > limits.max_body {
            discard(body, limits.max_body).await;
            return Err(Refusal::TooLarge { limit: limits.max_body });
        }
        memory.take(data.len() as u64)?;
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

/// How long the next bytes of a body may take, which has been arriving for `elapsed`. `None` if its client is too slow already: one that
/// sends a byte now and then would otherwise hold its memory for ever.
fn pause(elapsed: Duration, bytes: u64, limits: &Server) -> Option<Duration> {
    let slowest = bytes.saturating_mul(1_000).checked_div(limits.min_body_rate);
    let rated = slowest.map(|millis| limits.body_timeout.max(UNRATED) + Duration::from_millis(millis));
    let most = rated.map_or(limits.request_timeout, |rated| rated.min(limits.request_timeout));
    let rest = most.saturating_sub(elapsed);
    (!rest.is_zero()).then(|| rest.min(limits.body_timeout))
}

/// How long a body may arrive at any rate.
const UNRATED: Duration = Duration::from_secs(10);

/// The bodies that are read only to be thrown away because there is no memory for them. Each costs time and buffers, so only some clients
/// get to read their refusal; the others see a reset, which says the same.
static DISCARDS: Semaphore = Semaphore::const_new(32);

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

/// Decompressing can take milliseconds, during which the worker would serve nobody else.
async fn decompress(coding: Coding, sent: Bytes, memory: &Memory<'_>) -> Result<Bytes, Refusal> {
    let Admission { limits, charge, lane, .. } = *memory.admission;
    let share = memory.share(limits.max_body);
    let (limit, most, charge) = (limits.max_body, limits.max_body, charge.clone());
    let bytes = sent.len();
    let decode = move || {
        // A few bytes can decompress to gigabytes, so the result is paid for as it grows.
        decode::decode_paid(coding, &sent, most, |more| {
            let share = if charge.bytes() + more <= SMALL { Share::Small } else { share };
            charge.grow(more, share)
        })
    };
    match lane.run(bytes.saturating_mul(4), decode).await {
        Ok(Ok(plain)) => Ok(plain.into()),
        Ok(Err(DecodeError::TooLarge)) => Err(Refusal::TooLarge { limit }),
        Ok(Err(DecodeError::Unpaid)) => Err(OUT_OF_MEMORY),
        Ok(Err(DecodeError::Corrupt)) | Err(_) => Err(Refusal::Encoding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::{Flags, Source, load};

    #[test]
    fn a_body_may_pause_but_not_trickle() {
        let limits = load(Source::none(), &Flags::default(), &|_| None).unwrap().server;
        let pause = |seconds, bytes| pause(Duration::from_secs(seconds), bytes, &limits);
        let full = Some(limits.body_timeout);
        assert_eq!(pause(0, 0), full);
        assert_eq!(pause(25, 100_000), full, "a large body over a slow line");
        assert_eq!(pause(29, 100), Some(Duration::from_millis(1_097)));
        assert_eq!(pause(31, 100), None, "a hundred bytes in half a minute");
        assert_eq!(pause(595, 10 << 20), Some(Duration::from_secs(5)));
        assert_eq!(pause(600, 10 << 20), None, "longer than `request_timeout`");
        let unrated = Server { min_body_rate: 0, body_timeout: Duration::from_secs(1), ..limits };
        assert_eq!(super::pause(Duration::from_secs(500), 1, &unrated), Some(Duration::from_secs(1)));
    }
}
