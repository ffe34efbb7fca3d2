//! Splits the material into prompts, each of which fits the model's window together with its response.

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

/// The limits of the summarizer's model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) window: Option<Tokens>,
    pub(super) max_output: Option<Tokens>,
    pub(super) encoding: Encoding,
    pub(super) fit: Fit,
    pub(super) tool_output_chars: usize,
}

/// The measured material.
#[derive(Debug)]
pub(super) struct Passes {
    sources: Vec<OwnedSource>,
    /// The tokens that each source adds to a prompt.
    costs: Vec<u64>,
    /// The messages that an entry of the summary may refer to.
    known: BTreeSet<MessageRef>,
    encoding: Encoding,
    pub(super) limits: Limits,
    /// The maximum length of the prompt in tokens.
    input: u64,
    /// The maximum length of the response in tokens.
    pub(super) answer: u64,
}

/// One prompt.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) prompt: Prompt,
    /// The index after the last source in the prompt.
    pub(super) end: usize,
    /// The length of the prompt by our own count.
    tokens: u64,
}

/// The assumed window of an unknown model.
const FALLBACK_WINDOW: Tokens = Tokens(8_192);

/// Models with a window up to this size get the brief prompt, because the full one would leave little room for messages.
const BRIEF_WINDOW: u64 = 4_096;

impl Passes {
    pub(super) fn new(material: Material, room: Room) -> Passes {
        let Material { previous, sources, max_tokens } = material;
        let window = room.window.unwrap_or(FALLBACK_WINDOW).0;
        let usable = match room.fit {
            Fit::Exact => window,
            // Other tokenizers need about a fifth more tokens for paths and numbers, and sometimes a third.
            Fit::Nearest => window / 4 * 3,
        };
        // Reserves room for the endpoint's chat template, and for the schema if the endpoint adds it to the prompt.
        let usable = usable - usable / 64;
        let max_output = room.max_output.map_or(u64::MAX, |max| max.0);
        let style = if window > BRIEF_WINDOW { Style::Full } else { Style::Brief };
        let within_bounds = match style {
            Style::Brief => Bounds::of(u32::try_from(max_tokens).unwrap_or(u32::MAX)).longest_answer(),
            Style::Full => 0,
        };
        let answer =
            response_length(style, max_tokens).max(within_bounds).min(usable / 3).min(max_output).max(1);
        let asked = max_tokens.min(summary_length(style, answer)).max(1);
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
            // One more, because a token can span the boundary between messages.
            passes.tokens(&prompt(None, &[source.borrowed()], limits)).saturating_sub(empty) + 1
        };
        passes.costs = passes.sources.iter().map(cost).collect();
        passes
    }

    pub(super) fn len(&self) -> usize {
        self.sources.len()
    }

    /// Builds the prompt that starts with the source at `from` and has as many sources as fit.
    pub(super) fn pass(&self, state: Option<Summary>, from: usize) -> Result<Pass, Cause> {
        let (state, base) = self.fitted(state)?;
        let mut tokens = base;
        let mut end = from;
        while let Some(cost) = self.costs.get(end).filter(|&cost| tokens + cost <= self.input) {
            tokens += cost;
            end += 1;
        }
        if end == from {
            return self.truncated(state.as_ref(), from);
        }
        let sources: Vec<Source<'_>> = self.sources[from..end].iter().map(OwnedSource::borrowed).collect();
        Ok(Pass { prompt: prompt(state.as_ref(), &sources, self.limits), end, tokens })
    }

    /// Shortens the state until at least a quarter of the prompt is left for messages. Returns it with the tokens that the prompt
    /// needs before the first message.
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

    /// Builds a prompt for one message that is too long, with its middle left out.
    fn truncated(&self, state: Option<&Summary>, at: usize) -> Result<Pass, Cause> {
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
                // Only the names of calls are left, and there are too many of them.
                source.calls.truncate(source.calls.len() / 2);
            } else {
                return Err(Cause::WindowTooSmall);
            }
        }
    }

    /// Parses the endpoint's response to a prompt and applies the bounds, if any. Also returns the usage.
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
        let is_error = answer.failed || (content.is_empty() && answer.refusal.is_some());
        let is_cut_off = answer.finish_reasons.iter().any(|reason| reason == "length");
        let summary = if is_error {
            Err(Nonsense::LooksLikeAnError)
        } else if is_cut_off {
            // What a model did not get to write, nobody would miss until it is needed.
            Err(Nonsense::CutOff)
        } else {
            parse(&content, |number| self.known.contains(&number))
                .and_then(|summary| within_bounds(summary, bounds))
        };
        (summary, usage)
    }

    fn tokens(&self, prompt: &Prompt) -> u64 {
        count(self.encoding, &prompt.system).0 + count(self.encoding, &prompt.user).0
    }
}

fn within_bounds(summary: Summary, bounds: Option<Bounds>) -> Result<Summary, Nonsense> {
    let summary = match bounds {
        Some(bounds) => bounds.mended(summary),
        None => summary,
    };
    if summary.is_empty() { Err(Nonsense::NothingInIt) } else { Ok(summary) }
}

/// The maximum length of a response with a summary of this many tokens. JSON syntax, and references in the full style, come on
/// top of the text. A response that is cut off loses its last entries.
fn response_length(style: Style, summary: u64) -> u64 {
    match style {
        Style::Full => summary.saturating_mul(2).saturating_add(256),
        Style::Brief => summary.saturating_add(summary / 2).saturating_add(96),
    }
}

/// The inverse: the length of the summary to ask for if the response cannot be longer than `answer`.
fn summary_length(style: Style, answer: u64) -> u64 {
    match style {
        Style::Full => answer / 2,
        Style::Brief => answer.saturating_sub(96) / 3 * 2,
    }
}
