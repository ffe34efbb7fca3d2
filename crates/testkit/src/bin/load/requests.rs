//! What a lane sends: one request again and again, or conversations that grow.

use crate::target::Target;
use serde_json::json;
use tidegate_testkit::Trajectory;

/// The requests of one lane, in order.
pub(crate) enum Requests<'t> {
    Same(&'t Target, Vec<u8>),
    Growing(Growing<'t>),
    Held(Held<'t>),
}

/// A client whose history the proxy keeps: each request has one new message, and a header names the conversation.
pub(crate) struct Held<'t> {
    target: &'t Target,
    turns: usize,
    length: usize,
    seed: u64,
    sent: usize,
    request: Vec<u8>,
}

/// An agent at work: each request is the previous one with another call and its result. After the last turn, another
/// conversation begins. No two conversations are the same.
pub(crate) struct Growing<'t> {
    target: &'t Target,
    turns: usize,
    seed: u64,
    /// The messages of the conversation, as JSON, and the number of them in the last request.
    messages: Vec<String>,
    sent: usize,
    /// The messages of the last request, as they stand in its body.
    list: String,
    request: Vec<u8>,
}

/// A result has about 1.2 KB.
const RESULT_TOKENS: f64 = 290.0;

impl<'t> Requests<'t> {
    /// `lane` makes the conversations of each lane different.
    pub(crate) fn of(target: &'t Target, lane: u64) -> Requests<'t> {
        let seed = target.seed.wrapping_add(lane << 32);
        match (target.turns, target.held) {
            (None, _) => Requests::Same(target, target.request.clone()),
            (Some(turns), Some(length)) => {
                Requests::Held(Held { target, turns, length, seed, sent: 0, request: Vec::new() })
            }
            (Some(turns), None) => Requests::Growing(Growing {
                target,
                turns,
                seed,
                messages: Vec::new(),
                sent: 0,
                list: String::new(),
                request: Vec::new(),
            }),
        }
    }

    /// The next request. `number` makes it unique if its body has the placeholder for a number.
    pub(crate) fn next(&mut self, number: u64) -> &[u8] {
        match self {
            Requests::Same(target, request) => {
                target.number(request, number);
                request
            }
            Requests::Growing(growing) => growing.next(),
            Requests::Held(held) => held.next(),
        }
    }
}

impl Held<'_> {
    fn next(&mut self) -> &[u8] {
        if self.sent == self.turns {
            (self.seed, self.sent) = (self.seed + 1, 0);
        }
        self.sent += 1;
        let text = format!("Turn {} of {}. ", self.sent, self.seed);
        let text: String = text.chars().chain("The tide is in. ".chars().cycle()).take(self.length).collect();
        let body = self.target.spelling.body(&json!({"role": "user", "content": text}).to_string());
        self.request.clear();
        let header = format!("x-conversation-id: held-{}\r\n", self.seed);
        self.target.write_with(&mut self.request, &header, body.as_bytes());
        &self.request
    }
}

impl Growing<'_> {
    fn next(&mut self) -> &[u8] {
        // A turn is a call and its result; the instructions and the task come before the first.
        let until = if self.sent == 0 { 2 } else { self.sent + 2 };
        if until > self.messages.len() {
            self.begin();
            return self.next();
        }
        for message in &self.messages[self.sent..until] {
            if !self.list.is_empty() {
                self.list.push(',');
            }
            self.list.push_str(message);
        }
        self.sent = until;
        let body = self.target.spelling.body(&self.list);
        self.request.clear();
        self.target.write(&mut self.request, body.as_bytes());
        &self.request
    }

    fn begin(&mut self) {
        self.seed += 1;
        let shape = Trajectory {
            turns: self.turns.saturating_sub(1),
            output: RESULT_TOKENS,
            spread: 0.0,
            system: 300,
            ..Trajectory::default()
        };
        let messages = shape.messages(self.seed);
        // The last one is the answer to the last request. The task is unique, as a conversation's first words are.
        let spelled = |message| self.target.spelling.message(message);
        self.messages = messages[..messages.len() - 1].iter().map(spelled).collect();
        self.messages[1] = format!(r#"{{"role":"user","content":"Task {}: mend berth 7."}}"#, self.seed);
        self.sent = 0;
        self.list.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn body(request: &[u8]) -> Value {
        let end = request.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        serde_json::from_slice(&request[end + 4..]).unwrap()
    }

    #[test]
    fn each_request_is_the_previous_one_and_a_turn() {
        let target = Target::growing("http://127.0.0.1:80/v1", 4, 1).unwrap();
        let mut requests = Requests::of(&target, 0);
        let bodies: Vec<Value> = (0..5).map(|number| body(requests.next(number))).collect();
        let lists: Vec<&Vec<Value>> =
            bodies.iter().map(|body| body["messages"].as_array().unwrap()).collect();
        assert_eq!(lists.iter().map(|list| list.len()).collect::<Vec<_>>(), [2, 4, 6, 8, 2]);
        for pair in lists[..4].windows(2) {
            assert_eq!(pair[0][..], pair[1][..pair[0].len()]);
            assert_eq!(pair[1].last().unwrap()["role"], "tool");
        }
        assert_ne!(lists[0][1], lists[4][1]);
    }

    #[test]
    fn lanes_have_different_conversations() {
        let target = Target::growing("http://127.0.0.1:80/v1", 2, 1).unwrap();
        let [first, second] = [0, 1].map(|lane| body(Requests::of(&target, lane).next(0)));
        assert_ne!(first, second);
    }

    #[test]
    fn only_a_new_message_is_sent_of_a_history_that_is_held() {
        let mut target = Target::growing("http://127.0.0.1:80/v1", 2, 1).unwrap();
        target.held = Some(100);
        let mut requests = Requests::of(&target, 0);
        let texts: Vec<(String, Value)> = (0..3)
            .map(|number| {
                let request = requests.next(number);
                (String::from_utf8(request.to_vec()).unwrap(), body(request))
            })
            .collect();
        let named =
            |at: usize| texts[at].0.lines().find(|line| line.starts_with("x-conversation-id: ")).unwrap();
        assert_eq!((named(0), named(0) == named(2)), (named(1), false));
        for (_, body) in &texts {
            let messages = body["messages"].as_array().unwrap();
            assert_eq!((messages.len(), messages[0]["content"].as_str().unwrap().len()), (1, 100));
        }
    }
}
