//! The material cut into questions, each of which fits the model's window together with its answer.

use super::failure::Cause;
use std::collections::BTreeSet;
use tidegate_context::Material;
use tidegate_context::OwnedSource;
use tidegate_engine::Tokens;
use tidegate_summary::{
    Bounds, Limits, MessageRef, Nonsense, Prompt, Section, Source, Style, Summary, cap, parse, prompt,
};
use tidegate_tokens::{Encoding, Fit, count};
use tidegate_wire::{Dialect, Usage};

/// What is known of the model that is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) window: Option<Tokens>,
    pub(super) max_output: Option<Tokens>,
    pub(super) encoding: Encoding,
    pub(super) fit: Fit,
    pub(super) tool_output_chars: usize,
}

/// The material, measured.
#[derive(Debug)]
pub(super) struct Passes {
    sources: Vec<OwnedSource>,
    /// What each source takes in a prompt.
    costs: Vec<u64>,
    /// The messages that an entry may rest on.
    known: BTreeSet<MessageRef>,
    encoding: Encoding,
    pub(super) limits: Limits,
    /// The longest prompt.
    input: u64,
    /// The longest answer.
    pub(super) answer: u64,
}

/// One question.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) prompt: Prompt,
    /// The first source that it does not hold.
    pub(super) end: usize,
    /// What the prompt takes by our count.
    tokens: u64,
}

/// The window of a model that nobody knows, as for requests.
const FALLBACK_WINDOW: Tokens = Tokens(8_192);

/// A model with a larger window is asked in full. In a smaller one the full question leaves little room for the conversation.
const BRIEF_WINDOW: u64 = 4_096;

impl Passes {
    pub(super) fn new(material: Material, room: Room) -> Passes {
        let Material { previous, sources, max_tokens } = material;
        let window = room.window.unwrap_or(FALLBACK_WINDOW).0;
        let usable = match room.fit {
            Fit::Exact => window,
            // Another tokenizer than ours needs a fifth more for paths and numbers, and sometimes a third.
            Fit::Nearest => window / 4 * 3,
        };
        // What the endpoint puts around and between the messages, and the schema where it shows that to the model.
        let usable = usable - usable / 64;
        let most = room.max_output.map_or(u64::MAX, |most| most.0);
        let style = if window > BRIEF_WINDOW { Style::Full } else { Style::Brief };
        let answer = answer_of(style, max_tokens).min(usable / 3).min(most).max(1);
        let asked = max_tokens.min(summary_in(style, answer)).max(1);
        let limits = Limits {
            style,
            max_tokens: u32::try_from(asked).unwrap_or(u32::MAX),
            tool_output_chars: room.tool_output_chars,
            ..Limits::default()
        };
        let mut known: BTreeSet<MessageRef> = sources.iter().map(|source| source.number).collect();
        if let Some(previous) = &previous {
            let entries = Section::ALL.iter().flat_map(|&section| previous.list(section));
            known.extend(entries.flat_map(|entry| entry.rests_on.iter().copied()));
        }
        let input = usable.saturating_sub(answer);
        let mut passes =
            Passes { sources, costs: Vec::new(), known, encoding: room.encoding, limits, input, answer };
        let empty = passes.tokens(&prompt(None, &[], limits));
        let cost = |source: &OwnedSource| {
            // One more, because tokens do not end exactly where messages do.
            passes.tokens(&prompt(None, &[source.borrowed()], limits)).saturating_sub(empty) + 1
        };
        passes.costs = passes.sources.iter().map(cost).collect();
        passes
    }

    pub(super) fn len(&self) -> usize {
        self.sources.len()
    }

    /// The question that goes on with the source at `from`, and with as many more as fit.
    pub(super) fn pass(&self, state: Option<Summary>, from: usize) -> Result<Pass, Cause> {
        let (state, base) = self.fitted(state)?;
        let mut tokens = base;
        let mut end = from;
        while let Some(cost) = self.costs.get(end).filter(|&cost| tokens + cost <= self.input) {
            tokens += cost;
            end += 1;
        }
        if end == from {
            return self.cut(state.as_ref(), from);
        }
        let sources: Vec<Source<'_>> = self.sources[from..end].iter().map(OwnedSource::borrowed).collect();
        Ok(Pass { prompt: prompt(state.as_ref(), &sources, self.limits), end, tokens })
    }

    /// The state, shortened until a quarter of the prompt is left for messages: folding would get nowhere without. With it, what the
    /// prompt takes before the first message.
    fn fitted(&self, mut state: Option<Summary>) -> Result<(Option<Summary>, u64), Cause> {
        let mut allowed = u64::from(self.limits.max_tokens);
        loop {
            state = state
                .map(|state| cap(&state, self.len(), &|text| count(self.encoding, text).0 <= allowed))
                .filter(|state| !state.is_empty());
            let base = self.tokens(&prompt(state.as_ref(), &[], self.limits));
            if base <= self.input / 4 * 3 {
                return Ok((state, base));
            }
            if state.is_none() {
                return Err(Cause::WindowTooSmall);
            }
            allowed /= 2;
        }
    }

    /// A question about one message that is too long for any, with its middle left out.
    fn cut(&self, state: Option<&Summary>, at: usize) -> Result<Pass, Cause> {
        let mut source = self.sources[at].borrowed();
        let mut limits = self.limits;
        loop {
            let prompt = prompt(state, std::slice::from_ref(&source), limits);
            let tokens = self.tokens(&prompt);
            if tokens <= self.input {
                return Ok(Pass { prompt, end: at + 1, tokens });
            }
            let chars =
                [&mut limits.message_chars, &mut limits.tool_output_chars, &mut limits.argument_chars];
            if chars.iter().any(|chars| **chars > 1) {
                chars.into_iter().for_each(|chars| *chars /= 2);
            } else if !source.calls.is_empty() {
                // Nothing but the names of calls is left, and there are too many of them.
                source.calls.truncate(source.calls.len() / 2);
            } else {
                return Err(Cause::WindowTooSmall);
            }
        }
    }

    /// What the endpoint answered to a question, held to the bounds if there were any.
    pub(super) fn read(
        &self,
        pass: &Pass,
        body: &[u8],
        bounds: Option<Bounds>,
    ) -> (Result<Summary, Nonsense>, Usage) {
        let Some(answer) = Dialect::Chat.read_answer(body) else {
            return (Err(Nonsense::NoJson), Usage::default());
        };
        let content = answer.content.unwrap_or_default();
        let usage = answer.usage.unwrap_or_else(|| Usage {
            prompt_tokens: pass.tokens,
            completion_tokens: count(self.encoding, &content).0,
            ..Usage::default()
        });
        let is_refusal = answer.failed || (content.is_empty() && answer.refusal.is_some());
        let summary = if is_refusal {
            Err(Nonsense::LooksLikeAnError)
        } else {
            parse(&content, |number| self.known.contains(&number)).and_then(|summary| mended(summary, bounds))
        };
        (summary, usage)
    }

    fn tokens(&self, prompt: &Prompt) -> u64 {
        count(self.encoding, &prompt.system).0 + count(self.encoding, &prompt.user).0
    }
}

fn mended(summary: Summary, bounds: Option<Bounds>) -> Result<Summary, Nonsense> {
    let mended = match bounds {
        Some(bounds) => bounds.mended(summary),
        None => summary,
    };
    if mended.is_empty() { Err(Nonsense::NothingInIt) } else { Ok(mended) }
}

/// How long an answer may get that holds a summary of so many tokens. Quotes and brackets, and in a full one the references, come
/// on top of the text. A model that is cut off loses its last entries.
fn answer_of(style: Style, summary: u64) -> u64 {
    match style {
        Style::Full => summary.saturating_mul(2).saturating_add(256),
        Style::Brief => summary.saturating_add(summary / 2).saturating_add(96),
    }
}

/// How long a summary to ask for where the answer cannot be longer.
fn summary_in(style: Style, answer: u64) -> u64 {
    match style {
        Style::Full => answer / 2,
        Style::Brief => answer.saturating_sub(96) / 3 * 2,
    }
}
