//! Answers the model's calls of our own tool, and asks the upstream again, until there is an answer for the client.
//!
//! A whole answer is read before the client gets any of it. A stream passes as it arrives until a call of ours begins; what follows the
//! result continues the same stream.

mod asker;

use crate::host::fold::Folder;
use crate::host::recalls::Recalls;
use crate::observe::request::RequestObserver;
use crate::pipeline::rewrite::Rewritten;
use crate::pipeline::send::{Forwarded, Unanswered};
use crate::reply::refusal::Refusal;
use crate::transport::BoxError;
use crate::transport::decode::{self, Coding};
use crate::transport::driven::{DrivenBody, Frames};
use crate::transport::response_body::ResponseBody;
use crate::transport::stream_decode::StreamDecoder;
use crate::transport::upstream::Prepared;
use asker::{Asker, Sent};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use http::request::Parts;
use http::{HeaderValue, Response};
use http_body_util::BodyExt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tidegate_context::Exchange;
use tidegate_engine::Digest;
use tidegate_store::{ConversationKey, Generation};
use tidegate_wire::{Asked, ExtraKind, RecallAnswer, RecallStream, Usage};
use tokio::time::{MissedTickBehavior, interval};

/// What it takes to answer calls of the recall tool in the answer to one request.
pub(crate) struct Recaller(Asker);

/// Where an exchange is stored.
struct Place {
    key: ConversationKey,
    generation: Generation,
    /// The digest of the conversation at the last message of the request.
    end: Digest,
}

/// A whole answer that is longer than this is passed on as it is. No more of it can be repeated to the model.
const MAX_WHOLE: usize = 4 << 20;

/// How much of a stream is read before memory is taken for what is kept of it.
const PAY_STEP: usize = 16 * 1024;

/// How often the client's connection is shown to be alive while the upstream is asked again.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

impl Recaller {
    /// `None` if the model does not have the tool.
    pub(crate) fn new(
        folder: &Folder,
        rewritten: &Rewritten,
        (upstream, head): (&Arc<Prepared>, &Parts),
        recalls: &Arc<Recalls>,
        observer: &RequestObserver,
    ) -> Option<Recaller> {
        let Rewritten { input, outcome, generation, .. } = rewritten;
        if !outcome.assessment.offers_recall(input) {
            return None;
        }
        // A history that is kept here is the client's view of it.
        let identity = folder.identity.as_ref().filter(|_| rewritten.held.is_none());
        let place = identity.zip(outcome.end()).map(|(identity, end)| Place {
            key: identity.key,
            generation: *generation,
            end,
        });
        Some(Recaller(Asker {
            folder: folder.clone(),
            upstream: upstream.clone(),
            head: head.clone(),
            labels: observer.labels().cloned(),
            charge: observer.charge.clone(),
            sent: Sent::Once(rewritten.pieces()?),
            input: input.clone(),
            chat: outcome.assessment.chat.clone(),
            exchange: Exchange::default(),
            place,
            calls_left: input.context.recall.max_calls.get(),
            until: None,
            room: input.recall_room(&outcome.figures),
            refused: 0,
            recalls: recalls.clone(),
        }))
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
            let Asker { upstream, charge, .. } = &self.0;
            let (body, whole) =
                body.peeked(MAX_WHOLE, upstream.settings.idle_timeout, Some(charge.as_ref())).await;
            let plain = whole.and_then(|whole| match decode::coding(&head.headers) {
                Coding::Identity => Some(whole),
                coding => decode::decode(coding, &whole, MAX_WHOLE as u64).ok().map(Bytes::from),
            });
            let read = plain.map(|plain| RecallAnswer::read(&plain, self.0.is_last()));
            let (asked, usage) = match read {
                Some(RecallAnswer::Asks(asked, usage)) => (asked, usage),
                Some(RecallAnswer::Without(rest, beside)) => {
                    self.0.keep(beside).await;
                    let mut head = head;
                    head.headers.remove(CONTENT_ENCODING);
                    head.headers.insert(CONTENT_LENGTH, HeaderValue::from(rest.len()));
                    let body = ResponseBody::Driven(DrivenBody::whole(rest.into()));
                    return Ok(Response::from_parts(head, body));
                }
                Some(RecallAnswer::Untouched) => {
                    self.0.keep(Vec::new()).await;
                    return Ok(Response::from_parts(head, body));
                }
                None => return Ok(Response::from_parts(head, body)),
            };
            response = self.0.ask_again(&asked, usage).await?;
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
        let extras = &self.0.input.outline.extras;
        let mut stream =
            RecallStream::new(extras.iter().any(|extra| extra.kind == ExtraKind::ResponseFormat));
        let (mut unpaid, mut is_kept) = (0, false);
        loop {
            let mut decoder = StreamDecoder::new(coding);
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame?.into_data() else { continue };
                unpaid += data.len();
                if unpaid >= PAY_STEP {
                    self.0.charge.grow_regardless(std::mem::take(&mut unpaid) as u64);
                }
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
                if stream.is_over() && !is_kept {
                    is_kept = true;
                    self.0.keep(stream.beside()).await;
                }
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
            stream.next_answer(self.0.is_last());
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
        let mut asking = pin!(self.0.ask_again(asked, usage));
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
}

pub(crate) fn is_kind(headers: &HeaderMap, name: &[u8]) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    kind.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}
