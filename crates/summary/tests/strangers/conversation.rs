//! Conversations of 60 turns, made from a book and a seed.

use tidegate_summary::{Call, MessageRef, Source, Speaker};

use crate::book::{Book, By, Change, Fact, Reach, Twins};

pub(crate) const TURNS: usize = 60;
const FACTS: usize = 10;
const CHANGES: usize = 3;
const TWINS: usize = 2;

#[derive(Debug)]
pub(crate) struct Conversation {
    /// The messages of each turn.
    pub(crate) turns: Vec<Vec<Source<'static>>>,
    /// A value each, and the word beside it.
    pub(crate) facts: Vec<(String, &'static str)>,
    pub(crate) changes: Vec<Changed>,
    /// Words that must all survive.
    pub(crate) twins: Vec<&'static str>,
}

#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) old: &'static str,
    pub(crate) new: &'static str,
    /// What was said first and last, to read when it went wrong.
    pub(crate) said: [String; 2],
}

impl Conversation {
    pub(crate) fn generate(book: &'static Book, seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Generator { state, number: 0, book, plan: vec![Vec::new(); TURNS] }.conversation()
    }
}

struct Generator {
    state: u64,
    number: u32,
    book: &'static Book,
    /// What is to be said in each turn besides filler.
    plan: Vec<Vec<(By, String)>>,
}

impl Generator {
    fn conversation(mut self) -> Conversation {
        // The generator needs some rounds until near seeds are far apart.
        (0..8).for_each(|_| {
            self.below(2);
        });
        let changes = self.several(self.book.changes, CHANGES);
        let changes = changes.into_iter().map(|change| self.change(change)).collect();
        let twins = self.several(self.book.twins, TWINS);
        let twins = twins.into_iter().flat_map(|twins| self.twins(twins)).collect();
        let facts = self.several(self.book.facts, FACTS);
        let facts = facts.into_iter().map(|fact| self.fact(fact)).collect();
        let plan = std::mem::take(&mut self.plan);
        let turns = plan.into_iter().enumerate().map(|(turn, said)| self.turn(turn, said)).collect();
        Conversation { turns, facts, changes, twins }
    }

    fn fact(&mut self, fact: Fact) -> (String, &'static str) {
        let value = self.one(fact.values);
        let turn = 4 + self.below(52);
        self.plan[turn].push((fact.by, fact.text.replace("{v}", value)));
        (value.to_lowercase(), fact.beside)
    }

    fn twins(&mut self, twins: Twins) -> [&'static str; 2] {
        let first = 5 + self.below(25);
        let second = first + 1 + self.below(25);
        self.plan[first].push((By::User, twins.first.0.into()));
        self.plan[second].push((By::User, twins.second.0.into()));
        [twins.first.1, twins.second.1]
    }

    fn change(&mut self, change: Change) -> Changed {
        let values = self.several(change.values, 2);
        let (old, new) = (values[0], values[1]);
        let (first, last) = match change.reach {
            Reach::Near => {
                let first = 5 + self.below(45);
                (first, first + 1)
            }
            Reach::Far => {
                let first = 5 + self.below(18);
                (first, first + 8 + self.below(25))
            }
        };
        let settled = spoken(self.one(change.settled), old, old);
        let revised = spoken(self.one(change.revised), new, old);
        let said = [settled.1.clone(), revised.1.clone()];
        if change.reach == Reach::Far && self.below(4) == 0 {
            self.plan[first + 3].push((By::Assistant, format!("To recap: {}", settled.1)));
        }
        self.settle(first, settled, old);
        self.settle(last, revised, new);
        Changed { old, new, said }
    }

    fn settle(&mut self, turn: usize, said: (By, String), value: &str) {
        let echoed = said.0 == By::User && self.below(3) > 0;
        self.plan[turn].push(said);
        if echoed {
            let echo = self.one(self.book.echoes).replace("{v}", value);
            self.plan[turn].push((By::Assistant, echo));
        }
    }

    fn turn(&mut self, turn: usize, said: Vec<(By, String)>) -> Vec<Source<'static>> {
        let of = |by: By| said.iter().filter(move |(other, _)| *other == by).map(|(_, text)| text.clone());
        let mut user: Vec<String> = of(By::User).collect();
        let mut assistant: Vec<String> = of(By::Assistant).collect();
        let mut tool: Vec<String> = of(By::Tool).collect();
        if turn == 0 {
            user.insert(0, self.one(self.book.tasks).into());
        } else if user.is_empty() || self.below(3) == 0 {
            user.insert(0, self.filler(self.book.user_filler));
        }
        if assistant.is_empty() || self.below(2) == 0 {
            assistant.push(self.filler(self.book.assistant_filler));
        }
        let has_tool = !tool.is_empty() || self.below(3) == 0;
        if tool.is_empty() {
            let times = 1 + self.below(5);
            tool.push(self.filler(self.book.tool_filler).repeat(times));
        } else if self.below(2) == 0 {
            tool.insert(0, self.filler(self.book.tool_filler).trim_end().into());
        }
        let separator = if self.below(3) == 0 { "\n\n" } else { " " };
        let mut messages = vec![self.message(Speaker::User, spaced(&user, separator))];
        if has_tool {
            let mut call = self.message(Speaker::Assistant, String::new());
            let arguments = format!(r#"{{"command":"./step --number {turn}"}}"#);
            call.calls.push(Call { tool: "shell".into(), arguments: arguments.into() });
            messages.push(call);
            messages.push(self.message(Speaker::Observation { tool: Some("shell") }, tool.join("\n")));
        }
        messages.push(self.message(Speaker::Assistant, spaced(&assistant, separator)));
        messages
    }

    fn message(&mut self, speaker: Speaker<'static>, text: String) -> Source<'static> {
        self.number += 1;
        Source { number: MessageRef(self.number), speaker, text: text.into(), calls: vec![] }
    }

    fn filler(&mut self, phrases: &[&str]) -> String {
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

/// Several things that one message says. Who ends a sentence without a full stop starts a new line instead.
fn spaced(parts: &[String], separator: &str) -> String {
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() {
            text.push_str(if text.ends_with(['.', '!', '?']) { separator } else { "\n" });
        }
        text.push_str(part);
    }
    text
}

fn spoken(phrase: &str, value: &str, old: &str) -> (By, String) {
    let (by, phrase) = match phrase.strip_prefix("assistant>") {
        Some(phrase) => (By::Assistant, phrase),
        None => (By::User, phrase),
    };
    let text = phrase.replace("{v}", value).replace("{o}", old);
    let begins_sentence = phrase.starts_with('{') && phrase.ends_with(['.', '!', '?']);
    (by, if begins_sentence { capitalized(&text) } else { text })
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
