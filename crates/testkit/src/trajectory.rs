//! Generated agent conversations of any length, deterministic by seed.
//!
//! The lengths of tool outputs are log-normal, like real ones: most are short, a few are very long.

use serde_json::{Value, json};

/// The shape of a run.
#[derive(Clone, Debug)]
pub struct Trajectory {
    pub model: String,
    pub turns: usize,
    /// The mean length of a tool output in tokens.
    pub output: f64,
    /// The standard deviation of the logarithm of the length.
    pub spread: f64,
    /// The length of the instructions, in tokens.
    pub system: usize,
    /// The number of turns between user messages. With zero, there is only the first one.
    pub question_every: usize,
}

impl Default for Trajectory {
    fn default() -> Trajectory {
        let model = "gpt-4o".to_owned();
        Trajectory { model, turns: 60, output: 1_500.0, spread: 1.0, system: 2_000, question_every: 0 }
    }
}

impl Trajectory {
    /// The conversation with this seed, as a line of JSON.
    #[must_use]
    pub fn line(&self, seed: u64) -> String {
        json!({ "id": format!("run-{seed}"), "model": self.model, "messages": self.messages(seed) })
            .to_string()
    }

    #[must_use]
    pub fn messages(&self, seed: u64) -> Vec<Value> {
        let mut random = Random::new(seed);
        let mut messages = vec![
            json!({ "role": "system", "content": format!("You look after a harbour. {}", random.text(self.system)) }),
            json!({ "role": "user", "content": "Find out why berth 7 floods at spring tide, and mend it." }),
        ];
        // The mean of a log-normal distribution is shifted by half its variance.
        let location = self.output.max(1.0).ln() - self.spread * self.spread / 2.0;
        for turn in 0..self.turns {
            if self.question_every > 0 && turn > 0 && turn % self.question_every == 0 {
                messages.push(json!({ "role": "user", "content": format!("And what about berth {turn}?") }));
            }
            let (id, tool) = (format!("call_{turn}"), ["read_gauge", "shell", "search"][random.below(3)]);
            let arguments = json!({ "berth": turn, "why": random.text(20) }).to_string();
            let function = json!({ "name": tool, "arguments": arguments });
            messages.push(json!({
                "role": "assistant",
                "content": format!("We decided to check gauge {turn}. {}", random.text(90)),
                "tool_calls": [{ "id": id, "type": "function", "function": function }],
            }));
            let length = (location + self.spread * random.normal()).exp().clamp(1.0, 40_000.0);
            messages
                .push(json!({ "role": "tool", "tool_call_id": id, "content": random.text(length as usize) }));
        }
        messages.push(json!({ "role": "assistant", "content": "Berth 7 no longer floods." }));
        messages
    }
}

/// A pseudorandom number generator.
pub(crate) struct Random(u64);

/// Words of one to two tokens.
const WORDS: [&str; 48] = [
    "tide", "gauge", "berth", "pier", "lock", "sluice", "level", "metre", "pump", "valve", "error",
    "warning", "line", "file", "open", "closed", "north", "south", "east", "west", "buoy", "chart", "depth",
    "spring", "neap", "log", "entry", "sensor", "reading", "0.42", "1.07", "3.30", "status", "ok", "failed",
    "retry", "at", "of", "in", "the", "a", "not", "since", "until", "gate", "quay", "crane", "anchor",
];

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }

    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A text of about this many tokens.
    pub(crate) fn text(&mut self, tokens: usize) -> String {
        let mut text = String::with_capacity(tokens * 5);
        // One word in five has two tokens.
        for word in 0..tokens * 5 / 6 {
            if word > 0 {
                text.push(if word % 12 == 0 { '\n' } else { ' ' });
            }
            text.push_str(WORDS[self.below(WORDS.len())]);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_run() {
        let short = Trajectory { turns: 3, question_every: 2, ..Trajectory::default() };
        assert_eq!(short.line(7), short.line(7));
        assert_ne!(short.line(7), short.line(8));
        let roles: Vec<Value> = short.messages(7).iter().map(|message| message["role"].clone()).collect();
        assert_eq!(
            roles,
            [
                "system",
                "user",
                "assistant",
                "tool",
                "assistant",
                "tool",
                "user",
                "assistant",
                "tool",
                "assistant"
            ]
        );
    }

    #[test]
    fn outputs_have_the_given_mean_length() {
        let run = Trajectory { turns: 4_000, output: 200.0, ..Trajectory::default() };
        let lengths = run.messages(1).into_iter().filter(|message| message["role"] == "tool");
        let words: Vec<usize> =
            lengths.map(|message| message["content"].as_str().unwrap().split_whitespace().count()).collect();
        let mean = words.iter().sum::<usize>() as f64 * 1.2 / words.len() as f64;
        assert!((150.0..250.0).contains(&mean), "{mean}");
    }
}
