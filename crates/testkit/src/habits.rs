//! What clients do to their history from request to request, as generated agent runs.
//!
//! A [`Trajectory`] gives the conversation, and a [`Habit`] how its client sends it: most resend it verbatim, but others move cache
//! markers, add reminders that they take away again, or edit what they have sent before.

mod rewrite;
mod schedule;

use crate::Trajectory;
use crate::trajectory::Random;
use rewrite::Rewrite;
use schedule::{Draft, Schedule};
use serde_json::json;

/// A client's habit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Habit {
    /// Resends everything as it was.
    Verbatim,
    /// Turns the newest message's string into a text part with a cache marker, and back at the next request.
    StringToPart,
    /// Puts cache markers on the system message and the last two messages that the model does not write.
    MovingCacheControl,
    /// Ends each request with one to three messages that it does not repeat.
    TransientTail,
    /// Puts retrieved text into the last user message, and removes it at the next user message.
    RetrievedText,
    /// Puts the time into the system prompt.
    SystemTime,
    /// Sends the reasoning of the newest turns only.
    StrippedReasoning,
    /// Trims an answer when it sends it back for the second time.
    TrimmedEcho,
    /// Removes its oldest messages now and then.
    Truncation,
    /// Replaces its oldest messages with a summary of its own now and then.
    Compaction,
    /// Edits an earlier message now and then.
    MiddleEdits,
    /// Asks for another answer now and then.
    Regenerated,
    /// Goes back and forth between a dear and a cheap model.
    ModelsAlternate,
    /// Four agents with the same instructions share the conversation.
    SubAgents,
    /// Two or three of the others.
    Mixture,
}

/// Which cache breakpoints a client sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakpoints {
    /// Those that belong to its habit.
    AsTheHabit,
    /// Beside these, those of [`Habit::MovingCacheControl`], as a client of a Claude does.
    Newest,
}

impl Habit {
    pub const ALL: [Habit; 15] = [
        Habit::Verbatim,
        Habit::StringToPart,
        Habit::MovingCacheControl,
        Habit::TransientTail,
        Habit::RetrievedText,
        Habit::SystemTime,
        Habit::StrippedReasoning,
        Habit::TrimmedEcho,
        Habit::Truncation,
        Habit::Compaction,
        Habit::MiddleEdits,
        Habit::Regenerated,
        Habit::ModelsAlternate,
        Habit::SubAgents,
        Habit::Mixture,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Habit::Verbatim => "verbatim",
            Habit::StringToPart => "string ↔ part",
            Habit::MovingCacheControl => "moving cache_control",
            Habit::TransientTail => "transient tail",
            Habit::RetrievedText => "retrieved text",
            Habit::SystemTime => "time in the system prompt",
            Habit::StrippedReasoning => "stripped reasoning",
            Habit::TrimmedEcho => "trimmed echo",
            Habit::Truncation => "client truncates",
            Habit::Compaction => "client compacts",
            Habit::MiddleEdits => "edits in the middle",
            Habit::Regenerated => "regenerated answers",
            Habit::ModelsAlternate => "models alternate",
            Habit::SubAgents => "four sub-agents",
            Habit::Mixture => "mixture",
        }
    }

    /// Whether the client's history only ever grows, so that it saves as much as a verbatim client.
    #[must_use]
    pub fn leaves_prefix_alone(self) -> bool {
        matches!(self, Habit::StringToPart | Habit::MovingCacheControl | Habit::TransientTail)
    }

    /// The bodies of the requests of one run, in order.
    #[must_use]
    pub fn requests(self, run: &Trajectory, seed: u64) -> Vec<Vec<u8>> {
        self.requests_with(run, seed, Breakpoints::AsTheHabit)
    }

    /// The same of a client that also sets cache breakpoints.
    #[must_use]
    pub fn requests_with(self, run: &Trajectory, seed: u64, breakpoints: Breakpoints) -> Vec<Vec<u8>> {
        let mut random = Random::new(seed ^ 0x5bd1_e995);
        let habits = match self {
            Habit::Mixture => mixture(&mut random),
            habit => vec![habit],
        };
        let drafts = Schedule::of(&habits).drafts(run, seed, &mut random);
        let mut rewrites: Vec<Rewrite> =
            habits.iter().map(|habit| Rewrite::new(*habit, &mut random)).collect();
        match breakpoints {
            Breakpoints::AsTheHabit => {}
            Breakpoints::Newest => rewrites.push(Rewrite::new(Habit::MovingCacheControl, &mut random)),
        }
        drafts.into_iter().map(|draft| body(run, draft, &rewrites)).collect()
    }
}

/// Two or three habits that are not mixtures themselves.
fn mixture(random: &mut Random) -> Vec<Habit> {
    let mut habits = Vec::new();
    let wanted = 2 + random.below(2);
    while habits.len() < wanted {
        let habit = Habit::ALL[1 + random.below(Habit::ALL.len() - 2)];
        if !habits.contains(&habit) {
            habits.push(habit);
        }
    }
    habits
}

fn body(run: &Trajectory, draft: Draft, rewrites: &[Rewrite]) -> Vec<u8> {
    let Draft { number, mut messages } = draft;
    for rewrite in rewrites {
        rewrite.apply(number, &mut messages);
    }
    let model = rewrites.iter().find_map(|rewrite| rewrite.model(number, &run.model));
    json!({ "model": model.unwrap_or(&run.model), "messages": messages }).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const RUN: fn() -> Trajectory =
        || Trajectory { turns: 30, output: 50.0, system: 20, question_every: 4, ..Trajectory::default() };

    fn bodies(habit: Habit, seed: u64) -> Vec<Value> {
        let requests = habit.requests(&RUN(), seed).into_iter();
        requests.map(|body| serde_json::from_slice(&body).unwrap()).collect()
    }

    fn messages(body: &Value) -> &[Value] {
        body["messages"].as_array().unwrap()
    }

    /// In how many requests the previous one is not a prefix, or was to another model.
    fn breaks(habit: Habit, seed: u64) -> usize {
        let continues = |pair: &[Value]| {
            pair[0]["model"] == pair[1]["model"] && messages(&pair[1]).starts_with(messages(&pair[0]))
        };
        bodies(habit, seed).windows(2).filter(|pair| !continues(pair)).count()
    }

    #[test]
    fn every_habit_but_verbatim_changes_what_was_sent_before() {
        for habit in Habit::ALL {
            let is_changed = (1..4).any(|seed| breaks(habit, seed) > 0);
            assert_eq!(is_changed, habit != Habit::Verbatim, "{habit:?}");
            assert_eq!(habit.requests(&RUN(), 7), habit.requests(&RUN(), 7), "{habit:?}");
        }
    }

    #[test]
    fn every_request_is_a_valid_conversation() {
        for habit in Habit::ALL {
            for request in (1..6).flat_map(|seed| bodies(habit, seed)) {
                let mut open: Vec<Value> = Vec::new();
                for message in messages(&request) {
                    match message["role"].as_str().unwrap() {
                        "assistant" => {
                            assert!(open.is_empty(), "{habit:?}");
                            let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
                            open = calls.iter().map(|call| call["id"].clone()).collect();
                        }
                        "tool" => {
                            let at = open.iter().position(|id| *id == message["tool_call_id"]);
                            open.remove(at.unwrap_or_else(|| panic!("{habit:?}: {message}")));
                        }
                        _ => assert!(open.is_empty(), "{habit:?}"),
                    }
                }
            }
        }
    }
}
