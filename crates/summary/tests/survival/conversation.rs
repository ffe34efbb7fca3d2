//! Conversations of 60 turns with things planted in their middle.

use tidegate_summary::{Call, MessageRef, Source, Speaker};

use crate::phrasebook::{Book, FactPhrase};

/// Something that a good summary of the conversation still says: both words, on one line.
#[derive(Clone, Debug)]
pub(crate) struct Planted {
    pub(crate) value: String,
    pub(crate) beside: String,
    /// The turn in which it was said.
    pub(crate) turn: usize,
}

#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) matter: &'static str,
}

#[derive(Debug)]
pub(crate) struct Conversation {
    /// The messages of each turn.
    pub(crate) turns: Vec<Vec<Source<'static>>>,
    pub(crate) planted: Vec<Planted>,
    pub(crate) changed: Changed,
}

pub(crate) const TURNS: usize = 60;

impl Conversation {
    pub(crate) fn generate(book: &'static Book, seed: u64) -> Self {
        Generator { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, number: 0, book }.conversation()
    }
}

struct Generator {
    state: u64,
    number: u32,
    book: &'static Book,
}

/// What is to be said in a turn besides chatter.
#[derive(Clone)]
enum Said {
    User(String),
    Assistant(String),
    Tool(String),
}

impl Generator {
    fn conversation(mut self) -> Conversation {
        let mut plan: Vec<Vec<Said>> = vec![Vec::new(); TURNS];
        let mut planted = Vec::new();
        for phrase in self.several(self.book.user_facts, 10) {
            self.plant(phrase, Said::User, &mut plan, &mut planted);
        }
        for phrase in self.several(self.book.decisions, 3) {
            self.plant(phrase, Said::User, &mut plan, &mut planted);
        }
        let phrase = self.one(self.book.assistant_facts);
        self.plant(phrase, Said::Assistant, &mut plan, &mut planted);
        let phrase = self.one(self.book.tool_facts);
        self.plant(phrase, Said::Tool, &mut plan, &mut planted);
        let changed = self.change(&mut plan);
        let turns = plan.into_iter().enumerate().map(|(turn, said)| self.turn(turn, said)).collect();
        Conversation { turns, planted, changed }
    }

    fn plant(
        &mut self,
        phrase: FactPhrase,
        by: fn(String) -> Said,
        plan: &mut [Vec<Said>],
        planted: &mut Vec<Planted>,
    ) {
        let value = self.one(phrase.values);
        let turn = 5 + self.below(50);
        plan[turn].push(by(phrase.text.replace("{v}", value)));
        planted.push(Planted { value: value.into(), beside: phrase.beside.into(), turn });
    }

    fn change(&mut self, plan: &mut [Vec<Said>]) -> Changed {
        let matter = self.one(self.book.matters);
        let values = self.several(matter.values, 2);
        let (old, new) = (values[0], values[1]);
        let earlier = 6 + self.below(20);
        let later = 30 + self.below(24);
        let say = |phrase: &str, value: &str| {
            let text = phrase.replace("{m}", matter.name).replace("{v}", value).replace("{o}", old);
            text[..1].to_uppercase() + &text[1..]
        };
        let settled = say(self.one(self.book.settled), old);
        let echo = say(self.one(self.book.echoes), old);
        let resettled = say(self.one(self.book.resettled), new);
        plan[earlier].push(Said::User(settled));
        plan[earlier].push(Said::Assistant(echo));
        plan[later].push(Said::User(resettled));
        let matter = matter.name.rsplit(' ').next().unwrap();
        Changed { old: old.into(), new: new.into(), matter }
    }

    fn turn(&mut self, turn: usize, said: Vec<Said>) -> Vec<Source<'static>> {
        let (mut user, mut assistant, mut tool) = (String::new(), String::new(), String::new());
        if turn == 0 {
            user.push_str(self.one(self.book.tasks));
        } else if said.is_empty() || self.below(2) == 0 {
            user.push_str(&self.chatter(self.book.user_chatter));
        }
        for said in said {
            let (text, line) = match said {
                Said::User(line) => (&mut user, line),
                Said::Assistant(line) => (&mut assistant, line),
                Said::Tool(line) => (&mut tool, line),
            };
            if !text.is_empty() {
                text.push_str(if self.below(3) == 0 { "\n\n" } else { " " });
            }
            text.push_str(&line);
        }
        let with_tool = !tool.is_empty() || self.below(3) == 0;
        if tool.is_empty() {
            let times = 1 + self.below(6);
            tool = self.chatter(self.book.tool_output).repeat(times);
        }
        if !assistant.is_empty() {
            assistant.push(' ');
        }
        assistant.push_str(&self.chatter(self.book.assistant_chatter));
        let mut messages = vec![self.message(Speaker::User, user)];
        if with_tool {
            let mut call = self.message(Speaker::Assistant, String::new());
            let arguments = format!(r#"{{"command":"./check.sh --part {turn}"}}"#);
            call.calls.push(Call { tool: "shell".into(), arguments: arguments.into() });
            messages.push(call);
            messages.push(self.message(Speaker::Observation { tool: Some("shell") }, tool));
        }
        messages.push(self.message(Speaker::Assistant, assistant));
        messages
    }

    fn message(&mut self, speaker: Speaker<'static>, text: String) -> Source<'static> {
        self.number += 1;
        Source { number: MessageRef(self.number), speaker, text: text.into(), calls: vec![] }
    }

    fn chatter(&mut self, phrases: &[&str]) -> String {
        let number = (2 + self.below(90)).to_string();
        self.one(phrases).replace("{n}", &number)
    }

    fn one<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn several<T: Copy>(&mut self, list: &[T], count: usize) -> Vec<T> {
        let mut rest = list.to_vec();
        (0..count).map(|_| rest.swap_remove(self.below(rest.len()))).collect()
    }

    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 20) as usize % limit
    }
}
