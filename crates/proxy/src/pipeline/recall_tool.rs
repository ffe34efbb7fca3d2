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
use crate::reply::refusal::Refusal;
use crate::reply::upstream_failure::{FailureKind, UpstreamFailure};
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
use tidegate_context::{Exchange, NO_MORE_RECALLS, RecallRequest, Recalled, TurnInput, unknown_reference};
use tidegate_engine::Digest;
use tidegate_store::{ConversationKey, Generation};
use tidegate_wire::{
    Asked, CallBeside, Dialect, ParsedRequest, RecallAnswer, RecallCall, RecallStream, Usage, split,
};
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
    /// What has been recalled so far for this answer, and where that stands in the conversation.
    exchange: Exchange,
    place: Option<Place>,
    /// How often the tool can still be called.
    calls_left: u32,
    /// How often the upstream can still be asked.
    asks_left: u32,
    usage: Arc<RecallUsage>,
}

/// Where an exchange is stored.
struct Place {
    key: ConversationKey,
    generation: Generation,
    /// The digest of the conversation at the last message of the request.
    end: Digest,
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
        // A history that is kept here is the client's view of it.
        let identity = folder.identity.as_ref().filter(|_| rewritten.held.is_none());
        let place = identity.zip(rewritten.outcome.end()).map(|(identity, end)| Place {
            key: identity.key,
            generation: rewritten.generation,
            end,
        });
        Some(Recaller {
            folder: folder.clone(),
            upstream: upstream.clone(),
            head: head.clone(),
            forwarded: rewritten.pieces()?,
            input: rewritten.input.clone(),
            chat: assessment.chat.clone(),
            exchange: Exchange::default(),
            place,
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
                Some(RecallAnswer::Without(rest, beside)) => {
                    self.keep_beside(beside).await;
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
                // Before the client has the end: it may send its next request at once.
                self.keep_beside(stream.take_beside()).await;
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
        let mut results = Vec::new();
        for call in &asked.calls {
            let (text, recalled) = self.result(call).await;
            added.push(b',');
            added.extend(call.result(&text));
            results.push(recalled);
        }
        self.exchange.add(&asked.message, results);
        let body = self.extended(&added).ok_or_else(|| self.failed())?;
        self.forwarded = vec![body.clone()];
        let Folder { worker, .. } = &self.folder;
        let (sent, cut) = (Progress::start(), &worker.shutdown.cut);
        let (head, body) = (self.head.clone(), SendBody::pieces([body]));
        let asking = forward(&worker.clients, &self.upstream, head, body, &sent, cut);
        let (response, ()) = tokio::join!(asking, self.keep());
        response
    }

    /// Keeps the calls that stand beside others, with their results, for the next request.
    async fn keep_beside(&mut self, beside: Vec<CallBeside>) {
        if beside.is_empty() {
            return;
        }
        for beside in beside {
            let (_, recalled) = self.result(&beside.call).await;
            self.exchange.add_beside(beside, recalled);
        }
        self.keep().await;
    }

    /// Stores what has been recalled so far, so that the next request has it, whichever process gets it.
    async fn keep(&self) {
        let Some(Place { key, generation, end }) = &self.place else { return };
        let Ok(text) = serde_json::to_string(&self.exchange) else { return };
        let conversations = &self.folder.worker.gateway.conversations;
        // Without it the model may ask again, which is no reason to fail.
        let _ = conversations.save_exchange(*key, *generation, &end.to_string(), &text).await;
    }

    /// The text that answers a call, and what is kept of it.
    async fn result(&mut self, call: &RecallCall) -> (String, Recalled) {
        let metrics = self.folder.worker.gateway.metrics();
        if self.calls_left == 0 {
            metrics.recall_called("exhausted");
            return without_original(call, NO_MORE_RECALLS.to_owned());
        }
        self.calls_left -= 1;
        let request = match RecallRequest::read(&call.arguments) {
            Ok(request) => request,
            Err(fault) => {
                metrics.recall_called("unknown");
                return without_original(call, fault.to_string());
            }
        };
        let (input, chat, reference) = (self.input.clone(), self.chat.clone(), request.reference);
        let look_up = move || input.original(&chat, reference).map(|original| request.answer(&original));
        // A long message takes milliseconds to search.
        let found = self.folder.lane.run(self.input.body.len(), look_up).await.ok().flatten();
        metrics.recall_called(if found.is_some() { "found" } else { "unknown" });
        match found {
            Some(text) => (text, Recalled::new(call, None)),
            None => without_original(call, unknown_reference(reference)),
        }
    }

    /// The forwarded request with more messages at its end.
    fn extended(&self, added: &[u8]) -> Option<Bytes> {
        let whole: Vec<u8> = self.forwarded.iter().flatten().copied().collect();
        // A request with tools has messages. Right behind the last one is where the next request has them, too.
        let end = split(Dialect::Chat, &whole).ok()?.messages.last()?.range().end;
        Some([&whole[..end], b",", added, &whole[end..]].concat().into())
    }

    fn failed(&self) -> Refusal {
        let upstream = self.upstream.settings.name.clone();
        Refusal::Upstream(UpstreamFailure { upstream, kind: FailureKind::Broken })
    }
}

fn without_original(call: &RecallCall, text: String) -> (String, Recalled) {
    (text.clone(), Recalled::new(call, Some(text)))
}

pub(crate) fn is_kind(headers: &HeaderMap, name: &[u8]) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    kind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}
