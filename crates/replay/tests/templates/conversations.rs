//! Generated conversations in the order that strict templates want.

use serde_json::{Value, json};

/// A pseudorandom number generator.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    /// A text of up to this many words. One in four is much shorter.
    fn text(&mut self, words: usize) -> String {
        let words = if self.below(4) == 0 { words / 8 } else { words };
        let count = 1 + self.below(words.max(1));
        let word =
            |_| ["tide", "gauge", "berth", "pier", "lock", "we decided to", "error", "0.42"][self.below(8)];
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    }
}

/// A message with a string or a part.
fn said(role: &str, text: String, random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!({ "role": role, "content": [{ "type": "text", "text": text }] }),
        _ => json!({ "role": role, "content": text }),
    }
}

/// Up to one system message.
fn instructions(random: &mut Random) -> Vec<Value> {
    let text = format!("You look after a harbour. {}", random.text(60));
    if random.below(4) == 0 { Vec::new() } else { vec![json!({ "role": "system", "content": text })] }
}

/// Questions and answers.
pub(crate) fn chat(random: &mut Random) -> Vec<Value> {
    let mut messages = instructions(random);
    let longest = 60 + random.below(300);
    for _ in 0..30 + random.below(30) {
        let text = random.text(longest);
        messages.push(said("user", text, random));
        let text = random.text(longest);
        messages.push(said("assistant", text, random));
    }
    messages
}

/// An agent whose actions are texts, and whose results are user messages.
pub(crate) fn text_agent(random: &mut Random) -> Vec<Value> {
    let mut messages = instructions(random);
    for _ in 0..2 + random.below(4) {
        let text = random.text(60);
        messages.push(said("user", text, random));
        for _ in 0..random.below(25) {
            let text = format!("Action: {}", random.text(40));
            messages.push(said("assistant", text, random));
            let text = format!("Observation: {}", random.text(250));
            messages.push(said("user", text, random));
        }
        let text = random.text(60);
        messages.push(said("assistant", text, random));
    }
    messages
}

/// An agent that calls tools, up to three at once, until it answers.
pub(crate) fn agent(random: &mut Random) -> Vec<Value> {
    let mut messages = instructions(random);
    let (questions, steps) = [(1, 60), (3, 30), (8, 8), (20, 3)][random.below(4)];
    for question in 0..questions {
        let text = random.text(80);
        messages.push(said("user", text, random));
        for step in 0..random.below(steps) {
            let ids: Vec<String> =
                (0..1 + random.below(3)).map(|call| format!("call_{question}_{step}_{call}")).collect();
            let call = |id: &String| {
                let function = json!({ "name": "shell", "arguments": "{}" });
                json!({ "id": id, "type": "function", "function": function })
            };
            let calls: Vec<Value> = ids.iter().map(call).collect();
            messages.push(json!({ "role": "assistant", "content": random.text(30), "tool_calls": calls }));
            for id in ids {
                messages.push(json!({ "role": "tool", "tool_call_id": id, "content": random.text(200) }));
            }
        }
        let text = random.text(60);
        messages.push(said("assistant", text, random));
    }
    messages
}
