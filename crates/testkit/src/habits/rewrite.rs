//! What a client does to one request.

use super::Habit;
use crate::trajectory::Random;
use serde_json::{Value, json};

/// A habit with its own random choices. The same request is always rewritten the same way.
pub(super) struct Rewrite {
    habit: Habit,
    seed: u64,
}

impl Rewrite {
    pub(super) fn new(habit: Habit, random: &mut Random) -> Rewrite {
        Rewrite { habit, seed: random.next() }
    }

    /// Rewrites the request with this number.
    pub(super) fn apply(&self, number: usize, messages: &mut Vec<Value>) {
        let mut random = self.random(number);
        match self.habit {
            Habit::StringToPart => messages.last_mut().into_iter().for_each(mark),
            Habit::MovingCacheControl => {
                messages.first_mut().into_iter().for_each(mark);
                let newest = messages.iter_mut().rev().filter(|message| message["role"] != "assistant");
                newest.take(2).for_each(mark);
            }
            Habit::TransientTail => {
                for _ in 0..1 + random.below(3) {
                    let text = format!("Reminder {number}: {}", random.text(30));
                    messages.push(json!({ "role": "user", "content": text }));
                }
            }
            Habit::RetrievedText => retrieve(messages, &mut random),
            Habit::SystemTime => append(&mut messages[0], &format!("\nIt is minute {number}.")),
            Habit::StrippedReasoning => {
                let newest = messages.iter_mut().rev().filter(|message| message["role"] == "assistant");
                for message in newest.take(2) {
                    message["reasoning_content"] = json!("The tide rises. ".repeat(15));
                }
            }
            Habit::TrimmedEcho => {
                let newest = messages.iter_mut().rev().find(|message| message["role"] == "assistant");
                newest.into_iter().for_each(|message| append(message, " \n\n"));
            }
            Habit::Truncation => {
                // Some keep the task, and some only their instructions.
                let head = if self.seed.is_multiple_of(2) { 2 } else { 1 };
                shorten(messages, head, &|_| Vec::new());
            }
            Habit::Compaction => {
                let summary = |step: usize| {
                    let text =
                        format!("Summary {step} of the conversation so far: {}", self.random(step).text(300));
                    vec![json!({ "role": "user", "content": text })]
                };
                shorten(messages, 2, &summary);
            }
            Habit::MiddleEdits => self.edit(number, messages),
            Habit::Verbatim
            | Habit::Regenerated
            | Habit::ModelsAlternate
            | Habit::SubAgents
            | Habit::Mixture => {}
        }
    }

    /// The model of the request with this number, if the habit chooses one.
    pub(super) fn model(&self, number: usize, dear: &str) -> Option<&'static str> {
        let is_cheap = match self.seed % 4 {
            0 => number % 2 == 1,
            // The dear one plans, and the cheap one does most of the work.
            1 => !number.is_multiple_of(8),
            2 => number / 6 % 2 == 1,
            _ => self.random(number).below(2) == 1,
        };
        let cheap = if dear.starts_with("claude-") { "claude-haiku-4-5" } else { "gpt-4.1-nano" };
        (self.habit == Habit::ModelsAlternate && is_cheap).then_some(cheap)
    }

    /// A client that edits one message in ten requests keeps the edited text from then on.
    fn edit(&self, number: usize, messages: &mut [Value]) {
        for edit in 2..=number {
            let mut random = self.random(edit);
            if random.below(10) != 0 {
                continue;
            }
            let at = 1 + random.below(2 * edit);
            if let Some(message) = messages.get_mut(at).filter(|message| message["content"].is_string()) {
                message["content"] = json!(format!("Edited {edit}: {}", random.text(60)));
            }
        }
    }

    fn random(&self, step: usize) -> Random {
        Random::new(self.seed ^ (step as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

const CACHE_CONTROL: &str = "cache_control";

/// Turns a string into a text part with a cache marker.
fn mark(message: &mut Value) {
    if let Some(text) = message["content"].as_str() {
        message["content"] =
            json!([{ "type": "text", "text": text, CACHE_CONTROL: { "type": "ephemeral" } }]);
    }
}

fn retrieve(messages: &mut [Value], random: &mut Random) {
    let last = messages.iter().rposition(|message| message["role"] == "user");
    // The same question retrieves the same text, however often it is sent.
    let mut random = last.map_or_else(|| Random::new(random.next()), |at| Random::new(at as u64 + 1));
    if let Some(message) = last.map(|at| &mut messages[at]) {
        append(message, &format!("\n\nRelevant documents:\n{}", random.text(500)));
    }
}

fn append(message: &mut Value, text: &str) {
    if let Some(content) = message["content"].as_str() {
        message["content"] = json!(format!("{content}{text}"));
    }
}

/// Replaces old messages after the first `head` in steps, up to a message of the assistant.
fn shorten(messages: &mut Vec<Value>, head: usize, with: &dyn Fn(usize) -> Vec<Value>) {
    const STEP: usize = 40;
    let step = messages.len() / STEP;
    let wanted = (step * STEP).saturating_sub(STEP / 2);
    let upto = (0..=wanted).rev().find(|&at| messages[at]["role"] == "assistant");
    if let Some(upto) = upto.filter(|&upto| step > 0 && head < upto) {
        messages.splice(head..upto, with(step));
    }
}
