//! Prepares the input of a summarizer from a fold job, and turns its summary into a saved fold.

use crate::renderer::tokens;
use crate::{Author, ConversationState, FoldFailure, FoldState, OwnedSource, OwnedSpeaker, TurnInput};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_engine::{Cause, Digest, FoldJob, Kind, Role, Tokens};
use tidegate_summary::{Call, MessageRef, Source, Summary, cap, extract, render};
use tidegate_wire::{CallId, Content, MessageView, ParsedRequest, Part};

/// A summary that should be made, with everything that making it needs. It can outlive its request.
#[derive(Clone, Debug)]
pub struct FoldRequest {
    pub(crate) input: Arc<TurnInput>,
    pub(crate) state: Arc<ConversationState>,
    pub(crate) chat: Arc<ParsedRequest>,
    pub job: FoldJob,
}

/// A summary and the prefix that it covers.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedFold {
    /// The digest of the conversation up to the last covered message.
    pub covers: Digest,
    /// How many messages it covers, instructions not counted.
    pub covered: usize,
    pub state: FoldState,
}

/// What a summarizer reads.
#[derive(Clone, Debug)]
pub struct Material {
    /// The summary that the new one replaces.
    pub previous: Option<Summary>,
    /// The messages that leave the context, in order.
    pub sources: Vec<OwnedSource>,
    /// The size to aim for. A longer summary is capped afterwards.
    pub max_tokens: u64,
}

impl Material {
    /// Summarizes the material with the built-in summarizer.
    #[must_use]
    pub fn extract(&self) -> Summary {
        let sources: Vec<Source<'_>> = self.sources.iter().map(OwnedSource::borrowed).collect();
        let max_tokens = u32::try_from(self.max_tokens).unwrap_or(u32::MAX);
        extract(self.previous.as_ref(), &sources, max_tokens)
    }
}

impl FoldRequest {
    #[must_use]
    pub fn input(&self) -> &TurnInput {
        &self.input
    }

    /// The state of the conversation that the fold was wanted for.
    #[must_use]
    pub fn state(&self) -> &ConversationState {
        &self.state
    }

    /// The digest of the conversation's first message.
    #[must_use]
    pub fn first_message(&self) -> Digest {
        let first = self.chat.messages.iter().find(|message| !message.role.is_instruction());
        first.map_or(self.job.covers, |message| message.digest)
    }

    /// Collects what the summarizer reads. This copies the texts of all messages that leave.
    #[must_use]
    pub fn material(&self) -> Material {
        let previous = self.job.previous.and_then(|covers| self.state.fold(covers));
        Material {
            previous: previous.map(|fold| fold.state.summary.clone()),
            sources: self.sources(),
            max_tokens: self.longest().0,
        }
    }

    /// Caps a summary and decides which messages stay beside it. Also returns the cost of its message.
    ///
    /// A summary that does not shrink the request is a failure, except where the history has a limit to keep to.
    pub fn finish(&self, summary: &Summary, author: Author) -> Result<(SavedFold, Tokens), FoldFailure> {
        let FoldRequest { input, chat, job, .. } = self;
        let (role, encoding, limit) = (input.context.fold.role, input.model.encoding, self.longest());
        let covered =
            chat.messages[..job.messages.end].iter().filter(|message| !message.role.is_instruction()).count();
        let summary = cap(summary, covered, &|text| tokens(text, role, encoding) <= limit);
        let cost = input.scaled(tokens(&render(&summary, covered), role, encoding));
        if cost >= job.worth && job.cause != Cause::Blocks {
            return Err(FoldFailure::NoGain);
        }
        let kept = self.kept(&summary, cost);
        let state = FoldState { summary, keeps_request: job.keeps_request, kept, seen: job.seen, author };
        Ok((SavedFold { covers: job.covers, covered, state }, cost))
    }

    /// Whether `fold` takes more than folding alone would, because the request hardly fitted.
    #[must_use]
    pub fn prunes(&self, fold: &SavedFold) -> bool {
        self.job.prunes(&self.chat.messages, fold.state.kept.len())
    }

    /// The maximum size of the summary: a tenth less than what it replaces, so that folding pays. A summary that a limit of the
    /// history demands is made even if it does not pay.
    fn longest(&self) -> Tokens {
        let max = self.input.context.fold.max_tokens;
        match self.job.cause {
            Cause::Blocks => max,
            _ => max.min(Tokens(self.job.worth.0 / 10 * 9)),
        }
    }

    /// The messages that stay beside the summary, each by the number of messages before it. Of those that only pruning takes, as
    /// many stay as there is room for, and first of all those that the summary's facts, decisions and open questions rest on.
    fn kept(&self, summary: &Summary, cost: Tokens) -> Vec<usize> {
        let messages = &self.chat.messages;
        let anchors = summary.anchors().into_iter();
        let anchors: Vec<usize> =
            anchors.filter_map(|MessageRef(number)| usize::try_from(number).ok()).collect();
        FoldJob::places(messages, &self.job.kept(messages, &anchors, cost))
    }

    /// The messages as a summarizer reads them. Instructions stay in the context and are not summarized.
    fn sources(&self) -> Vec<OwnedSource> {
        let FoldRequest { input, chat, job, .. } = self;
        let mut tools: HashMap<CallId, String> = HashMap::new();
        let mut sources = Vec::new();
        for index in 0..job.messages.end {
            let parsed = &chat.parsed[index];
            tools.extend(parsed.facts.calls.iter().map(|call| (call.id, call.tool.to_string())));
            let message = &chat.messages[index];
            if index < job.messages.start || message.role.is_instruction() {
                continue;
            }
            let raw = input.outline.messages[index].of(&input.body);
            let Ok(view) = input.outline.dialect.read_message(raw) else { continue };
            let tool = parsed.facts.answers.iter().find_map(|id| tools.get(id).cloned());
            let speaker = match (message.kind, message.role) {
                (Kind::Observation, _) => OwnedSpeaker::Observation {
                    tool: tool.or_else(|| parsed.facts.name.as_deref().map(str::to_owned)),
                },
                (Kind::Speech, Role::User) => OwnedSpeaker::User,
                (Kind::Speech, Role::Assistant) => OwnedSpeaker::Assistant,
                (Kind::Speech, _) => OwnedSpeaker::Other(view.role.as_deref().unwrap_or_default().to_owned()),
            };
            sources.push(OwnedSource {
                number: MessageRef(u32::try_from(index).unwrap_or(u32::MAX)),
                speaker,
                text: text(&view),
                calls: view
                    .calls()
                    .map(|function| Call {
                        tool: function.name.clone().into_owned().into(),
                        arguments: function.arguments.clone().into_owned().into(),
                    })
                    .collect(),
            });
        }
        sources
    }
}

/// The words of a message. Images, audio and files are only named.
fn text(view: &MessageView<'_>) -> String {
    let mut texts = Vec::new();
    match &view.content {
        Content::Text(text) => texts.push(text.as_ref()),
        Content::Parts(parts) => texts.extend(parts.iter().map(|part| match part {
            Part::Text(text) | Part::Refusal(text) => text.as_ref(),
            Part::Image { .. } => "[an image]",
            Part::Audio { .. } => "[a recording]",
            Part::File { name, .. } => name.as_deref().unwrap_or("[a file]"),
            Part::Other(_) => "",
        })),
        Content::Absent | Content::Null | Content::Unexpected(_) => {}
    }
    texts.extend(view.refusal.as_deref());
    texts.join("\n")
}
