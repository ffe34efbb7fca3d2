//! Shortens a request that the upstream refuses as too long, and sends it once more.
//!
//! The upstream's error names its limit, which is learnt. The turn is planned again within it: masks now, summaries inline, and
//! truncation with a marker, as the policy allows. If that cannot make the request fit, the upstream's error passes unchanged. So it does
//! if the second attempt is too long as well or gets no answer: the first error speaks of what the client has sent. Any other error of the
//! second attempt passes instead, because it says what a retry can expect, such as when.
//!
//! A request that the upstream refuses because the model's thinking in it is bound to another conversation, which an edit can make of
//! it, is sent once more as the client sent it. Its conversation is left alone from then on.

use crate::host::drive::is_light;
use crate::host::fold::Folder;
use crate::host::shared::Gateway;
use crate::host::windows::{LearntWindow, Source};
use crate::observe::request::RequestObserver;
use crate::observe::spans;
use crate::pipeline::recall::recall;
use crate::pipeline::recall_tool::is_kind;
use crate::pipeline::remember::PendingTurn;
use crate::pipeline::rewrite::{Draft, Rewritten, asks_long_window, log_mistake, rewrite};
use crate::pipeline::send::{Forwarded, Unanswered, send};
use crate::reply::headers::{figure_headers, put};
use crate::reply::refusal::Refusal;
use crate::transport::body::SendBody;
use crate::transport::decode::{self, Coding};
use crate::transport::response_body::ResponseBody;
use crate::transport::upstream::Prepared;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, HeaderMap};
use http::request::Parts;
use http::{Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::{OnFailure, Route};
use tidegate_context::TurnInput;
use tidegate_engine::{Strategy, Tokens};
use tidegate_store::{Entries, wall_clock};
use tidegate_telemetry::names::header;
use tidegate_wire::{Opening, Overflow, Used, read_opening, read_overflow, refuses_thinking};
use tracing::info;

/// A request that was sent, with what it takes to plan it again.
#[derive(Debug)]
pub(crate) struct Attempt {
    folder: Folder,
    input: Arc<TurnInput>,
    deployment: Option<String>,
    /// The name under which its window is learnt.
    served: String,
    /// Whether anything of the request was edited.
    is_edited: bool,
    /// Our own count of what was forwarded.
    counted: Tokens,
    /// The part of it that is only a rule of thumb.
    estimated: Tokens,
    head: Parts,
}

/// The error that is rescued, for the response header.
const CONTEXT_LENGTH_EXCEEDED: &str = "context_length_exceeded";

/// The same for thinking that the upstream does not accept in an edited conversation.
const THINKING_REFUSED: &str = "thinking_refused";

/// What the upstream's error is about.
enum Complaint {
    TooLong(Overflow),
    /// It does not accept the thinking in the request.
    Thinking,
}

/// How long a stream is held back that shows no more than signs of life. An upstream that counts tokens does so before it answers.
const OPENING: Duration = Duration::from_secs(1);

/// A request below this fits any window.
const SHORT: Tokens = Tokens(2_048);

/// The longest error that is read.
const MAX_ERROR: usize = 64 * 1024;

/// What the second attempt leaves free of the upstream's limit, because counts differ.
const MARGIN: f64 = 0.98;

/// How much shorter the second attempt is if the upstream does not name its limit.
const BLIND_SHARE: f64 = 0.7;

impl Attempt {
    pub(crate) fn new(folder: &Folder, rewritten: &Rewritten, head: &Parts) -> Attempt {
        Attempt {
            folder: folder.clone(),
            input: rewritten.input.clone(),
            deployment: rewritten.deployment.clone(),
            served: rewritten.served.clone(),
            is_edited: rewritten.outcome.pieces.is_some(),
            counted: rewritten.outcome.figures.forwarded(),
            estimated: rewritten.input.estimated(&rewritten.outcome.assessment.chat),
            head: head.clone(),
        }
    }
}

/// Returns the upstream's answer, or that to a second attempt if the upstream has refused this one for what can be helped.
pub(crate) async fn rescue(
    forwarded: Forwarded,
    attempt: Option<Attempt>,
    upstream: &Arc<Prepared>,
    observer: &mut RequestObserver,
) -> Result<Forwarded, Refusal> {
    let Some(attempt) = attempt else { return Ok(forwarded) };
    let (mut refused, complaint) = read_complaint(forwarded, attempt.may_overflow(), observer).await;
    let (rewritten, reason) = match complaint {
        Some(Complaint::TooLong(overflow)) => {
            attempt.learn(&overflow, upstream).await;
            (attempt.shortened(&overflow).await, CONTEXT_LENGTH_EXCEEDED)
        }
        Some(Complaint::Thinking) if attempt.is_edited => {
            (attempt.planned_again(None, true).await, THINKING_REFUSED)
        }
        Some(Complaint::Thinking) | None => return Ok(refused),
    };
    let Some(mut rewritten) = rewritten else { return Ok(refused) };
    let pieces = match (rewritten.pieces(), reason) {
        (Some(pieces), _) => pieces,
        (None, THINKING_REFUSED) => vec![rewritten.input.body.clone()],
        (None, _) => return Ok(refused),
    };
    if let Some(mut held) = refused.turn.as_mut().and_then(PendingTurn::take_held) {
        // What the turn adds to the history is stored when its answer is complete, and not before.
        let Entries { waypoint, generation, .. } = std::mem::take(&mut rewritten.entries);
        held.decide_again(waypoint);
        rewritten.entries = Entries { generation, ..Entries::default() };
        rewritten.held = Some(held);
    }
    let Attempt { folder, mut head, .. } = attempt;
    let route = &folder.snapshot.settings.routes[folder.route];
    let figures = rewritten.outcome.figures;
    spans::planned(&observer.span, &rewritten.outcome);
    observer.degrade(rewritten.outcome.fold_failure.map(|failure| failure.reason()));
    let mut headers = refused.headers.clone();
    headers.remove(header::TRIGGER);
    figure_headers(&mut headers, &figures);
    head.headers.remove(CONTENT_ENCODING);
    let turn = PendingTurn::begin(&folder, rewritten, route, observer);
    let worker = folder.worker.clone();
    drop(folder);
    let body = SendBody::pieces(pieces);
    let Ok(answered) = send(&worker, upstream, head, body, observer, headers, Some(turn)).await else {
        // The second attempt has recorded the turn, so that it counts once.
        refused.turn = None;
        return Ok(refused);
    };
    let (mut answered, complaint) = read_complaint(answered, true, observer).await;
    // What was sent as the client sent it is answered with what the upstream says of that.
    if complaint.is_some() && reason == CONTEXT_LENGTH_EXCEEDED {
        refused.turn = answered.turn.take();
        return Ok(refused);
    }
    if answered.response.status().is_success() {
        observer.rescued(&figures);
        put(&mut answered.headers, header::RESCUED, reason);
    }
    Ok(answered)
}

/// Reads an upstream's error, without taking it from the client. The opening of a stream is held back for it if the request may be too long.
async fn read_complaint(
    forwarded: Forwarded,
    may_overflow: bool,
    observer: &mut RequestObserver,
) -> (Forwarded, Option<Complaint>) {
    let Forwarded { response, headers, upstream, turn } = forwarded;
    // The client may leave meanwhile.
    let mut unanswered = Unanswered { turn, observer };
    let is_stream = is_kind(response.headers(), b"text/event-stream");
    let is_plain = decode::coding(response.headers()) == Coding::Identity;
    let (response, complaint) = if response.status().as_u16() >= 400 {
        read_error(response, upstream.idle_timeout).await
    } else if may_overflow && is_stream && is_plain {
        read_stream(response).await
    } else {
        (response, None)
    };
    let turn = unanswered.turn.take();
    (Forwarded { response, headers, upstream, turn }, complaint)
}

async fn read_stream(response: Response<ResponseBody>) -> (Response<ResponseBody>, Option<Complaint>) {
    let (head, body) = response.into_parts();
    let mut opening = Opening::Undecided;
    let body = body
        .opened(MAX_ERROR, OPENING, |read| {
            opening = read_opening(read);
            opening != Opening::Undecided
        })
        .await;
    let complaint = match opening {
        Opening::Overflow(overflow) => Some(Complaint::TooLong(overflow)),
        Opening::Answer | Opening::Undecided => None,
    };
    (Response::from_parts(head, body), complaint)
}

async fn read_error(
    response: Response<ResponseBody>,
    pause: Duration,
) -> (Response<ResponseBody>, Option<Complaint>) {
    let (head, body) = response.into_parts();
    let (body, whole) = body.peeked(MAX_ERROR, pause, None).await;
    let complaint = whole.and_then(|whole| complaint(head.status, &head.headers, &whole));
    (Response::from_parts(head, body), complaint)
}

fn complaint(status: StatusCode, headers: &HeaderMap, body: &Bytes) -> Option<Complaint> {
    let of = |plain: &[u8]| match read_overflow(status.as_u16(), plain) {
        Some(overflow) => Some(Complaint::TooLong(overflow)),
        None => refuses_thinking(status.as_u16(), plain).then_some(Complaint::Thinking),
    };
    match decode::coding(headers) {
        Coding::Identity => of(body),
        coding => of(&decode::decode(coding, body, MAX_ERROR as u64).ok()?),
    }
}

impl Attempt {
    /// Learns the window that the error names. It holds for all clients, so it must be the upstream's own word.
    async fn learn(&self, overflow: &Overflow, upstream: &Prepared) {
        let Some(limit) = overflow.limit else { return };
        if !self.is_credible(overflow, Tokens(limit)).await {
            info!(
                upstream = upstream.settings.name,
                window = limit,
                "an error names a window that the request or its length does not bear out; not learnt"
            );
            return;
        }
        let gateway = &self.folder.worker.gateway;
        let window = LearntWindow::new(Tokens(limit), Source::Error, wall_clock());
        if gateway.windows.learn(&gateway.conversations, &upstream.settings, &self.served, window).await {
            info!(
                upstream = upstream.settings.name,
                window = limit,
                "the upstream has named a model's window"
            );
        }
    }

    /// Whether the request can be too long for this limit, and does not hold the very words that name it.
    async fn is_credible(&self, overflow: &Overflow, limit: Tokens) -> bool {
        if !self.input.can_exceed(self.counted, self.estimated, limit) {
            return false;
        }
        let (overflow, input) = (overflow.clone(), self.input.clone());
        let is_quoted = move || overflow.may_be_quoted_from(&input.body);
        match is_light(&self.input) {
            true => !is_quoted(),
            false => {
                let searched = self.folder.lane.run(self.input.body.len(), is_quoted).await;
                searched.is_ok_and(|is_quoted| !is_quoted)
            }
        }
    }

    /// Whether the route lets a request be shortened and sent once more.
    fn is_rescued(&self) -> bool {
        let context = &self.route().context;
        self.input.strategy != Strategy::Passthrough && !context.observe && context.rescue
    }

    /// Whether the upstream may find the request too long.
    fn may_overflow(&self) -> bool {
        let can_exceed = |window| self.input.can_exceed(self.counted, self.estimated, window);
        self.is_rescued() && self.input.window().tokens().map_or(self.counted >= SHORT, can_exceed)
    }

    fn route(&self) -> &Route {
        &self.folder.snapshot.settings.routes[self.folder.route]
    }

    /// Plans the request again. `None` if it cannot be made to fit.
    async fn shortened(&self, overflow: &Overflow) -> Option<Rewritten> {
        if !self.is_rescued() {
            return None;
        }
        for ceiling in self.ceilings(overflow) {
            let rewritten = self.planned_again(Some(ceiling), false).await?;
            let after = rewritten.outcome.figures.after;
            let is_shorter = after < self.counted && rewritten.refusal().is_none();
            if is_shorter && after <= ceiling {
                return Some(rewritten);
            }
        }
        None
    }

    /// What may be sent, in our own count: with the reserves of the policy, and if that is not enough, without.
    fn ceilings(&self, overflow: &Overflow) -> Vec<Tokens> {
        let Some(limit) = overflow.limit.map(Tokens) else {
            return vec![self.counted.share(BLIND_SHARE)];
        };
        // How many tokens the upstream counts for one of ours.
        let counted = self.counted.0.max(1) as f64;
        let ratio = match overflow.used {
            Some(Used::Exactly(used)) => (used as f64 / counted).clamp(0.25, 4.0),
            Some(Used::AtLeast(used)) => (used as f64 / counted).clamp(1.0, 4.0),
            None => 1.0,
        };
        let in_ours = |tokens: Tokens| tokens.share(MARGIN / ratio);
        let budget = self.input.budget_within(limit);
        let asked = self.input.outline.output_limit.map_or(Tokens::ZERO, |limit| Tokens(limit.tokens));
        let mut ceilings = vec![in_ours(budget.input.unwrap_or(limit)), in_ours(limit.saturating_sub(asked))];
        ceilings.retain(|ceiling| *ceiling > Tokens::ZERO);
        ceilings
    }

    fn asks_long_window(&self) -> bool {
        asks_long_window(&self.head.headers)
    }

    async fn planned_again(&self, ceiling: Option<Tokens>, leaves_alone: bool) -> Option<Rewritten> {
        let gateway = &self.folder.worker.gateway;
        let mut identity = self.folder.identity.clone();
        let recalled = recall(gateway, identity.as_mut(), OnFailure::Forward).await.ok()?;
        let draft = Draft {
            body: self.input.body.clone(),
            outline: self.input.outline.clone(),
            strategy: self.input.strategy,
            deployment: self.deployment.clone(),
            asks_long_window: self.asks_long_window(),
            ceiling,
            leaves_alone,
            recalled,
            // The limits of the conversation were checked at the first attempt.
            spent: None,
            turn: None,
        };
        rewrite(&self.folder, draft, Gateway::now()).await.inspect_err(log_mistake).ok()
    }
}
