//! Answers the model's calls of our own tool, and asks the upstream again, until there is an answer for the client.
//!
//! A whole answer is read before the client gets any of it. A stream passes as it arrives until a call of ours begins; what follows the
//! result continues the same stream.

use crate::host::fold::Folder;
use crate::host::turn_log::RecallUsage;
use crate::observe::request::RequestObserver;
use crate::pipeline::forward::forward;
use crate::pipeline::rewrite::Rewritten;
use crate::pipeline::send::{Forwarded, Unanswered};
use crate::reply::refusal::{FailureKind, Refusal, UpstreamFailure};
use crate::transport::BoxError;
use crate::transport::body::{Progress, SendBody};
use crate::transport::decode::{self, Coding};
use crate::transport::driven::{DrivenBody, Frames};
use crate::transport::response_body::ResponseBody;
use crate::transport::stream_decode::StreamDecoder;
use crate::transport::upstream::Prepared;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use http::request::Parts;
use http::{HeaderValue, Response};
use http_body_util::BodyExt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate_context::{NO_MORE_RECALLS, RecallRequest, TurnInput, unknown_reference};
use tidegate_wire::{Asked, Dialect, ParsedRequest, RecallAnswer, RecallCall, RecallStream, Usage, split};
use tokio::time::{MissedTickBehavior, interval};

/// What it takes to answer calls of the recall tool in the answer to one request.
pub(crate) struct Recaller {
    folder: Folder,
    upstream: Arc<Prepared>,
    head: Parts,
    /// The request as it was forwarded.
    forwarded: Vec<Bytes>,
    /// The request as the client sent it.
    input: Arc<TurnInput>,
    chat: Arc<ParsedRequest>,
    /// How often the tool can still be called.
    calls_left: u32,
    /// How often the upstream can still be asked.
    asks_left: u32,
    usage: Arc<RecallUsage>,
}

/// A whole answer that is longer than this is passed on as it is.
const MAX_WHOLE: usize = 16 << 20;

/// How often the client's connection is shown to be alive while the upstream is asked again.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

impl Recaller {
    /// `None` if the model does not have the tool.
    pub(crate) fn new(
        folder: &Folder,
        rewritten: &Rewritten,
        (upstream, head): (&Arc<Prepared>, &Parts),
        usage: &Arc<RecallUsage>,
    ) -> Option<Recaller> {
        let assessment = &rewritten.outcome.assessment;
        if !assessment.offers_recall(&rewritten.input) {
            return None;
        }
        let max_calls = rewritten.input.context.recall.max_calls.get();
        Some(Recaller {
            folder: folder.clone(),
            upstream: upstream.clone(),
            head: head.clone(),
            forwarded: rewritten.pieces()?,
            input: rewritten.input.clone(),
            chat: assessment.chat.clone(),
            calls_left: max_calls,
            asks_left: max_calls,
            usage: usage.clone(),
        })
    }

    /// Returns the answer for the client, given the upstream's first one.
    pub(crate) async fn answer(
        self,
        forwarded: Forwarded,
        observer: &mut RequestObserver,
    ) -> Result<Forwarded, Refusal> {
        let Forwarded { response, headers, upstream, turn } = forwarded;
        let mut unanswered = Unanswered { turn, observer };
        let response = if !response.status().is_success() {
            response
        } else if is_kind(response.headers(), b"text/event-stream") {
            self.stream(response)
        } else if is_kind(response.headers(), b"application/json") {
            match self.whole(response).await {
                Ok(response) => response,
                Err(refusal) => {
                    unanswered.fail(&refusal);
                    return Err(refusal);
                }
            }
        } else {
            response
        };
        let turn = unanswered.turn.take();
        Ok(Forwarded { response, headers, upstream, turn })
    }

    async fn whole(
        mut self,
        mut response: Response<ResponseBody>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        loop {
            if !response.status().is_success() {
                return Ok(response);
            }
            let (head, body) = response.into_parts();
            let (body, whole) = body.peeked(MAX_WHOLE, self.upstream.settings.idle_timeout).await;
            let plain = whole.and_then(|whole| match decode::coding(&head.headers) {
                Coding::Identity => Some(whole),
                coding => decode::decode(coding, &whole, MAX_WHOLE as u64).ok().map(Bytes::from),
            });
            let read = plain.map(|plain| RecallAnswer::read(&plain, self.asks_left == 0));
            let (asked, usage) = match read {
                Some(RecallAnswer::Asks(asked, usage)) => (asked, usage),
                Some(RecallAnswer::Without(rest)) => {
                    let mut head = head;
                    head.headers.remove(CONTENT_ENCODING);
                    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(rest.len()));
                    let body = ResponseBody::Driven(DrivenBody::whole(rest.into()));
                    return Ok(Response::from_parts(head, body));
                }
                Some(RecallAnswer::Untouched) | None => return Ok(Response::from_parts(head, body)),
            };
            response = self.ask_again(&asked, usage).await?;
        }
    }

    fn stream(self, response: Response<ResponseBody>) -> Response<ResponseBody> {
        let (mut head, body) = response.into_parts();
        let coding = decode::coding(&head.headers);
        if coding == Coding::Unknown {
            return Response::from_parts(head, body);
        }
        head.headers.remove(CONTENT_ENCODING);
        head.headers.remove(CONTENT_LENGTH);
        let driven = DrivenBody::spawn(|frames| async move {
            // An error ends the stream as the upstream's own would. A client that has left needs none.
            if let Err(error) = self.relay(body, coding, &frames).await {
                let _ = frames.send(Err(error)).await;
            }
        });
        Response::from_parts(head, ResponseBody::Driven(driven))
    }

    async fn relay(
        mut self,
        mut body: ResponseBody,
        mut coding: Coding,
        frames: &Frames,
    ) -> Result<(), BoxError> {
        let mut stream = RecallStream::new();
        loop {
            let mut decoder = StreamDecoder::new(coding);
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame?.into_data() else { continue };
                let passed = match &mut decoder {
                    None => stream.feed(&data),
                    Some(decoder) => {
                        let mut passed = Vec::new();
                        let decoded = decoder.feed(&data, |plain| passed.extend(stream.feed(plain)));
                        decoded.map_err(|_| "the upstream's stream cannot be decompressed")?;
                        passed
                    }
                };
                if !passed.is_empty() {
                    frames.send(Ok(passed.into())).await?;
                }
            }
            let mut rest = Vec::new();
            let asked = stream.end(&mut rest);
            if !rest.is_empty() {
                frames.send(Ok(rest.into())).await?;
            }
            let Some((asked, usage)) = asked else { return Ok(()) };
            let response = self.ask_while_waiting(&asked, usage, frames).await?;
            coding = decode::coding(response.headers());
            let is_stream = is_kind(response.headers(), b"text/event-stream");
            if !response.status().is_success() || !is_stream || coding == Coding::Unknown {
                return Err("the upstream did not answer after a recall".into());
            }
            stream.next_answer(self.asks_left == 0);
            body = response.into_body();
        }
    }

    /// Asks again, and keeps the wait for the upstream's next first byte from looking like a pause inside an answer.
    async fn ask_while_waiting(
        &mut self,
        asked: &Asked,
        usage: Option<Usage>,
        frames: &Frames,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let mut asking = pin!(self.ask_again(asked, usage));
        let mut signs = interval(SIGN_OF_LIFE);
        signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                response = &mut asking => return response.map_err(|_| "the upstream cannot be asked again".into()),
                // Nothing is sent for an empty frame.
                _ = signs.tick() => frames.send(Ok(Bytes::new())).await?,
            }
        }
    }

    /// Sends the request again, with what the model said and the results of its calls at its end.
    async fn ask_again(
        &mut self,
        asked: &Asked,
        usage: Option<Usage>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        self.usage.add(usage);
        self.asks_left = self.asks_left.saturating_sub(1);
        let mut added = asked.message.clone();
        for call in &asked.calls {
            added.push(b',');
            added.extend(call.result(&self.result(call).await));
        }
        let body = self.extended(&added).ok_or_else(|| self.failed())?;
        self.forwarded = vec![body.clone()];
        let Folder { worker, .. } = &self.folder;
        let (sent, cut) = (Progress::start(), &worker.shutdown.cut);
        forward(&worker.clients, &self.upstream, self.head.clone(), SendBody::pieces([body]), &sent, cut)
            .await
    }

    /// The text that answers a call.
    async fn result(&mut self, call: &RecallCall) -> String {
        let metrics = self.folder.worker.gateway.metrics();
        if self.calls_left == 0 {
            metrics.recall_called("exhausted");
            return NO_MORE_RECALLS.to_owned();
        }
        self.calls_left -= 1;
        let request = match RecallRequest::read(&call.arguments) {
            Ok(request) => request,
            Err(fault) => {
                metrics.recall_called("unknown");
                return fault.to_string();
            }
        };
        let (input, chat, reference) = (self.input.clone(), self.chat.clone(), request.reference);
        let look_up = move || input.original(&chat, reference).map(|original| request.answer(&original));
        // A long message takes milliseconds to search.
        let found = self.folder.lane.run(self.input.body.len(), look_up).await.ok().flatten();
        metrics.recall_called(if found.is_some() { "found" } else { "unknown" });
        found.unwrap_or_else(|| unknown_reference(reference))
    }

    /// The forwarded request with more messages at its end.
    fn extended(&self, added: &[u8]) -> Option<Bytes> {
        let whole: Vec<u8> = self.forwarded.iter().flatten().copied().collect();
        let end = split(Dialect::Chat, &whole).ok()?.array.range().end - 1;
        Some([&whole[..end], b",", added, &whole[end..]].concat().into())
    }

    fn failed(&self) -> Refusal {
        let upstream = self.upstream.settings.name.clone();
        Refusal::Upstream(UpstreamFailure { upstream, kind: FailureKind::Broken })
    }
}

fn is_kind(headers: &HeaderMap, name: &[u8]) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    kind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}
