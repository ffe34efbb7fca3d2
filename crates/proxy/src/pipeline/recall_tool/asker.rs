//! Answers calls of the recall tool, and asks the upstream again with the results.

use super::Place;
use crate::host::fold::Folder;
use crate::host::recalls::Recalls;
use crate::pipeline::forward::forward;
use crate::reply::refusal::Refusal;
use crate::reply::upstream_failure::{FailureKind, UpstreamFailure};
use crate::transport::body::{Progress, SendBody};
use crate::transport::overload::Charge;
use crate::transport::response_body::ResponseBody;
use crate::transport::upstream::Prepared;
use bytes::Bytes;
use http::Response;
use http::request::Parts;
use std::sync::Arc;
use tidegate_context::{Exchange, RecallReply, TurnInput};
use tidegate_engine::Tokens;
use tidegate_telemetry::Labels;
use tidegate_wire::{Asked, CallBeside, Dialect, ParsedRequest, RecallCall, Usage, forbid_calls, split};
use tokio::time::Instant;

/// One request, as long as its model asks for more.
pub(super) struct Asker {
    pub(super) folder: Folder,
    pub(super) upstream: Arc<Prepared>,
    pub(super) head: Parts,
    pub(super) labels: Option<Labels>,
    /// What is held in memory for the request.
    pub(super) charge: Arc<Charge>,
    pub(super) sent: Sent,
    /// The request as the client sent it.
    pub(super) input: Arc<TurnInput>,
    pub(super) chat: Arc<ParsedRequest>,
    /// What has been recalled so far for this answer, and where that stands in the conversation.
    pub(super) exchange: Exchange,
    pub(super) place: Option<Place>,
    /// How many more calls are answered, until when, and with how many tokens; `None` if nobody knows how many there is room for.
    pub(super) calls_left: u32,
    pub(super) until: Option<Instant>,
    pub(super) room: Option<Tokens>,
    /// How often the model has been told that there is nothing more.
    pub(super) refused: u32,
    pub(super) recalls: Arc<Recalls>,
}

/// The request as it was sent last.
#[derive(Clone)]
pub(super) enum Sent {
    Once(Vec<Bytes>),
    /// In two: up to its last message, and from there on.
    Again(Vec<Bytes>, Bytes),
}

/// Copying more than this takes a worker too long.
const INLINE_BYTES: usize = 64 * 1024;

/// How often the model can go on asking although it was told that there is nothing more, until it is made to answer.
const MAX_REFUSED: u32 = 2;

impl Asker {
    /// Whether the next answer is the last one, and calls in it are not answered any more.
    pub(super) fn is_last(&self) -> bool {
        self.refused >= MAX_REFUSED
    }

    /// Sends the request again, with what the model said and the results of its calls at its end.
    pub(super) async fn ask_again(
        &mut self,
        asked: &Asked,
        usage: Option<Usage>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let said = self.input.asking_tokens(asked);
        self.recalls.answered(usage, said);
        self.take(said);
        let is_exhausted = self.is_exhausted();
        let mut added = asked.message.clone();
        let mut results = Vec::new();
        for call in &asked.calls {
            let reply = self.reply(call).await;
            added.push(b',');
            added.extend(call.result(&reply.text));
            results.push(reply.kept);
        }
        self.refused += u32::from(is_exhausted);
        self.exchange.add(&asked.message, results);
        let pieces = self.extended(added).await.ok_or_else(|| self.failed())?;
        let worker = &self.folder.worker;
        let (sent, cut) = (Progress::start(), &worker.shutdown.cut);
        let (head, body) = (self.head.clone(), SendBody::pieces(pieces));
        forward(&worker.clients, &self.upstream, head, body, &sent, cut).await
    }

    /// Stores what was recalled for an answer that has come to its end, and not before: a client that gets no answer asks again, and so does
    /// its model. `beside` are the calls in that answer among the client's own.
    pub(super) async fn keep(&mut self, beside: Vec<CallBeside>) {
        for beside in beside {
            let reply = self.reply(&beside.call).await;
            self.exchange.add_beside(beside, reply.kept);
        }
        let exchange = std::mem::take(&mut self.exchange);
        let Some(Place { key, generation, end }) = self.place.as_ref().filter(|_| !exchange.is_empty())
        else {
            return;
        };
        let Ok(text) = serde_json::to_string(&exchange) else { return };
        let conversations = &self.folder.worker.gateway.conversations;
        // Without it the model may ask again, which is no reason to fail.
        let _ = conversations.save_exchange(*key, *generation, *end, &text).await;
    }

    fn is_exhausted(&self) -> bool {
        self.calls_left == 0 || self.until.is_some_and(|until| Instant::now() >= until)
    }

    async fn reply(&mut self, call: &RecallCall) -> RecallReply {
        let timeout = self.input.context.recall.timeout;
        self.until.get_or_insert_with(|| Instant::now() + timeout);
        let reply = if self.is_exhausted() {
            self.input.answer_exhausted(call)
        } else {
            self.calls_left -= 1;
            let (input, chat, call) = (self.input.clone(), self.chat.clone(), call.clone());
            let (exhausted, room) = (input.answer_exhausted(&call), self.room);
            let look_up = move || input.answer_call(&chat, &call, room);
            // A long message takes milliseconds to search.
            self.folder.lane.run(self.input.body.len(), look_up).await.unwrap_or(exhausted)
        };
        if let Some(labels) = &self.labels {
            self.folder.worker.gateway.metrics().recall_called(labels, reply.result);
        }
        self.recalls.called(reply.result, reply.tokens);
        self.take(reply.tokens);
        reply
    }

    fn take(&mut self, tokens: Tokens) {
        self.room = self.room.map(|room| room.saturating_sub(tokens));
    }

    /// The request that was sent last, with more messages at its end.
    async fn extended(&mut self, added: Vec<u8>) -> Option<Vec<Bytes>> {
        self.charge.grow_regardless(added.len() as u64);
        let (mut pieces, rest) = match &self.sent {
            Sent::Again(pieces, rest) => (pieces.clone(), rest.clone()),
            Sent::Once(pieces) => {
                let length = pieces.iter().map(Bytes::len).sum();
                self.charge.grow_regardless(length as u64);
                let pieces = pieces.clone();
                let divide = move || divided(&pieces.concat().into());
                let divided = self.off_worker(length, divide).await??;
                (vec![divided.0], divided.1)
            }
        };
        pieces.extend([Bytes::from_static(b","), added.into()]);
        self.sent = Sent::Again(pieces.clone(), rest.clone());
        pieces.push(rest);
        if !self.is_last() {
            return Some(pieces);
        }
        let length = pieces.iter().map(Bytes::len).sum();
        self.charge.grow_regardless(length as u64);
        let whole = pieces.clone();
        let forbidden = self.off_worker(length, move || forbid_calls(&whole.concat())).await?;
        Some(forbidden.map_or(pieces, |body| vec![body.into()]))
    }

    /// Does work that reads this much, elsewhere if that takes long.
    async fn off_worker<T: Send + 'static>(
        &self,
        length: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if length <= INLINE_BYTES { Some(work()) } else { self.folder.lane.run(length, work).await.ok() }
    }

    fn failed(&self) -> Refusal {
        let upstream = self.upstream.settings.name.clone();
        Refusal::Upstream(UpstreamFailure { upstream, kind: FailureKind::Broken })
    }
}

/// A request in two. Right behind the last message is where the next request has those that follow it, too.
fn divided(whole: &Bytes) -> Option<(Bytes, Bytes)> {
    // A request with tools has messages.
    let end = split(Dialect::Chat, whole).ok()?.messages.last()?.range().end;
    Some((whole.slice(..end), whole.slice(end..)))
}
