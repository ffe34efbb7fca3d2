//! Prepares the input of a summarizer from a fold job, and turns its summary into a saved fold.

use crate::renderer::tokens;
use crate::{Author, ConversationState, FoldFailure, FoldState, OwnedSource, OwnedSpeaker, TurnInput};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_engine::{Digest, FoldBackoff, FoldJob, Kind, Need, Role, Strategy, Tokens, Urgency};
use tidegate_summary::{Call, MessageRef, Room, Source, Summary, cap, complete, extract, render};
use tidegate_wire::{CallId, Content, MessageView, ParsedRequest, Part, Results};

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

/// A summary as the driver hands it over.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedFold {
    pub fold: SavedFold,
    /// Why the built-in summarizer made it, if the configured one should have.
    pub stands_in_for: Option<FoldFailure>,
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

/// More than the frame of a summary costs.
const LONGEST_FRAME: Tokens = Tokens(500);

/// Less than the marker for dropped messages costs.
const SHORTEST_MARKER: Tokens = Tokens(40);

impl Material {
    /// Summarizes the material with the built-in summarizer.
    #[must_use]
    pub fn extract(&self) -> Summary {
        let sources: Vec<Source<'_>> = self.sources.iter().map(OwnedSource::borrowed).collect();
        let max_tokens = u32::try_from(self.max_tokens).unwrap_or(u32::MAX);
        extract(self.previous.as_ref(), &sources, max_tokens)
    }
}

/// A summary that is ready to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedFold {
    pub fold: SavedFold,
    /// What its message costs.
    pub cost: Tokens,
    /// How many of its facts a model had left out.
    pub facts_added: usize,
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
            max_tokens: self.aim().0,
        }
    }

    /// The size to aim for: what the summary may cost.
    ///
    /// Only if the request has to shrink at once, it is less than what the summary replaces. Otherwise nothing is left out for that: a
    /// summary of everything that does not shrink the request is not made. What is masked is read in full, but was not there to be lost.
    fn aim(&self) -> Tokens {
        let FoldJob { most, worth, need, urgency, .. } = self.job;
        match (need, urgency) {
            (Need::Gain, Urgency::Later) if self.input.strategy != Strategy::Hybrid => most,
            (Need::Gain, _) => most.min(Tokens(worth.0 / 5 * 4)),
            // As in `finish`.
            (Need::Limit, _) if most < SHORTEST_MARKER => self.longest(),
            (Need::Limit, _) => most,
        }
    }

    /// The most that a summary may cost, whatever is left of the budget.
    fn longest(&self) -> Tokens {
        self.input.context.fold.max_tokens.of(&self.input.budget(&self.chat))
    }

    /// Completes and caps a summary, and decides which messages stay beside it.
    ///
    /// The summary keeps everything that its limit and the budget have room for. One that does not shrink the request then, or that
    /// has lost every entry, is a failure, except where the history has a limit to keep to.
    pub fn finish(&self, summary: Summary, author: Author) -> Result<FinishedFold, FoldFailure> {
        let FoldRequest { input, chat, job, .. } = self;
        let (role, encoding, limit) = (input.context.fold.role, input.model.encoding, job.most);
        let covered =
            chat.messages[..job.messages.end].iter().filter(|message| !message.role.is_instruction()).count();
        let (whole, is_empty) = (&summary, summary.is_empty());
        let (summary, facts_added) = match self.capped(whole, &author, covered, limit) {
            // Where not even a marker would fit, it stays as it is: the request is judged with it.
            (capped, _) if capped.is_empty() && !is_empty && limit < SHORTEST_MARKER => {
                self.capped(whole, &author, covered, self.longest())
            }
            capped => capped,
        };
        let cost = input.scaled(tokens(&render(&summary, covered), role, encoding));
        // One that has lost every entry would be a message dropped without saying so.
        let is_lost = summary.is_empty() && (!is_empty || self.says_something());
        if is_lost || (cost >= job.worth && job.need == Need::Gain) {
            return Err(FoldFailure::NoGain);
        }
        let (kept, anchored) = self.kept(&summary, cost, &author);
        let state =
            FoldState { summary, keeps_request: job.keeps_request, kept, anchored, seen: job.seen, author };
        let fold = SavedFold { covers: job.covers, covered, state };
        Ok(FinishedFold { fold, cost, facts_added })
    }

    /// What a limit leaves of a summary, and how many facts of it a model had left out.
    fn capped(&self, whole: &Summary, author: &Author, covered: usize, limit: Tokens) -> (Summary, usize) {
        let FoldRequest { input, job, .. } = self;
        let (role, encoding) = (input.context.fold.role, input.model.encoding);
        let fits = |text: &str| input.scaled(tokens(text, role, encoding)) <= limit;
        if author.calls == 0 || !input.context.fold.complete {
            return (cap(whole, covered, &fits), 0);
        }
        let Material { previous, sources, max_tokens } = self.material();
        let sources: Vec<Source<'_>> = sources.iter().map(OwnedSource::borrowed).collect();
        let max_tokens = u32::try_from(max_tokens.min(job.worth.0)).unwrap_or(u32::MAX);
        complete(whole, previous.as_ref(), &sources, Room { max_tokens, covered, fits: &fits })
    }

    /// Whether a summary of any length would have an entry. This reads everything again, but only where a summary came out empty.
    fn says_something(&self) -> bool {
        !Material { max_tokens: u64::from(u32::MAX), ..self.material() }.extract().is_empty()
    }

    /// Fails if a summary cannot shrink the request, or if hardly less could not a moment ago.
    pub fn check(&self, backoff: FoldBackoff) -> Result<(), FoldFailure> {
        if self.is_hopeless() || backoff.is_useless(self.job.need, self.job.worth) {
            Err(FoldFailure::NoGain)
        } else {
            Ok(())
        }
    }

    /// Whether no summary can shrink the request, because even one without entries would not.
    fn is_hopeless(&self) -> bool {
        let FoldRequest { input, job, .. } = self;
        let (role, encoding) = (input.context.fold.role, input.model.encoding);
        let least = || input.scaled(tokens(&render(&Summary::default(), job.messages.end), role, encoding));
        job.need == Need::Gain && job.worth < LONGEST_FRAME && least() >= job.worth
    }

    /// Whether `fold` takes more than folding alone would, because the request hardly fitted.
    #[must_use]
    pub fn prunes(&self, fold: &SavedFold) -> bool {
        self.job.prunes(&self.chat.messages, fold.state.kept.len())
    }

    /// The messages that stay beside the summary, each by the number of messages before it. Of those that only pruning takes, as
    /// many stay as there is room for, and first of all those that the summary's facts, decisions and open questions rest on.
    ///
    /// Also returns those of them that a model's summary names. The built-in summarizer names nearly every message, so none stands
    /// out.
    fn kept(&self, summary: &Summary, cost: Tokens, author: &Author) -> (Vec<usize>, Vec<usize>) {
        let messages = &self.chat.messages;
        let anchors = summary.anchors().into_iter();
        let anchors: Vec<usize> =
            anchors.filter_map(|MessageRef(number)| usize::try_from(number).ok()).collect();
        let kept = self.job.kept(messages, &anchors, cost);
        let is_anchored = |index: &&usize| author.calls > 0 && anchors.contains(index);
        let anchored: Vec<usize> = kept.iter().filter(is_anchored).copied().collect();
        (FoldJob::places(messages, &kept), FoldJob::places(messages, &anchored))
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
            let number = MessageRef(u32::try_from(index).unwrap_or(u32::MAX));
            // Each with its own tool, and apart from the words of the user beside them.
            sources.extend(view.results.iter().zip(&parsed.facts.answers).map(|(result, id)| OwnedSource {
                number,
                speaker: OwnedSpeaker::Observation { tool: tools.get(id).cloned() },
                text: words(&result.content).join("\n"),
                calls: Vec::new(),
            }));
            if parsed.facts.results == Results::Only {
                continue;
            }
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
                number,
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
    let mut texts = words(&view.content);
    texts.extend(view.refusal.as_deref());
    texts.join("\n")
}

fn words<'a>(content: &'a Content<'_>) -> Vec<&'a str> {
    match content {
        Content::Text(text) => vec![text.as_ref()],
        Content::Parts(parts) => {
            let word = |part: &'a Part<'_>| match part {
                Part::Text(text) | Part::Refusal(text) => text.as_ref(),
                Part::Image { .. } => "[an image]",
                Part::Audio { .. } => "[a recording]",
                Part::File { name, .. } => name.as_deref().unwrap_or("[a file]"),
                Part::Other(_) => "",
            };
            parts.iter().map(word).collect()
        }
        Content::Absent | Content::Null | Content::Unexpected(_) => Vec::new(),
    }
}
