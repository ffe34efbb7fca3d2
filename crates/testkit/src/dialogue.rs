//! Dialogues in six languages with facts in them, and decisions that are revoked, to measure what a memory keeps.
//!
//! Some facts are about one thing. Most are about one of many things of a kind, and differ from the others only in their numbers. Among
//! them the user tells stories, in words that are as rare.
//!
//! Nothing here is random: a language and a number give the same dialogue everywhere.

mod phrases;

use self::phrases::{LANGUAGES, Phrases};

/// A dialogue of a user and an assistant, the user first.
#[derive(Clone, Debug)]
pub struct Dialogue {
    pub language: &'static str,
    /// The messages in turns, each with whether the user says it.
    pub messages: Vec<(bool, String)>,
    pub facts: Vec<Fact>,
    pub changes: Vec<Change>,
}

/// Something that the user says once.
#[derive(Clone, Debug)]
pub struct Fact {
    pub question: String,
    pub answer: String,
}

/// Something that is settled twice.
#[derive(Clone, Debug)]
pub struct Change {
    pub old: String,
    pub new: String,
}

/// The languages that there are dialogues in.
pub fn languages() -> impl Iterator<Item = &'static str> {
    LANGUAGES.iter().map(|language| language.name)
}

impl Dialogue {
    /// Generates a dialogue of `turns` turns. `None` if there is no such language.
    #[must_use]
    pub fn generate(language: &str, seed: u64, turns: usize) -> Option<Dialogue> {
        let phrases = LANGUAGES.iter().find(|phrases| phrases.name == language)?;
        Some(Generator { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, phrases }.dialogue(turns))
    }
}

/// How many turns there are for one fact of a series.
const SERIES_EVERY: usize = 3;

struct Generator {
    state: u64,
    phrases: &'static Phrases,
}

impl Generator {
    fn dialogue(mut self, turns: usize) -> Dialogue {
        let Phrases { name, facts, matters, settled, revised, user_chatter, assistant_chatter, task, .. } =
            *self.phrases;
        let mut said: Vec<Vec<String>> = vec![Vec::new(); turns];
        let mut planted = Vec::new();
        for (number, (statement, question, values)) in facts.iter().enumerate() {
            let answer = self.value(values, number);
            said[1 + self.below(turns - 2)].push(statement.replace("{v}", &answer));
            planted.push(Fact { question: (*question).to_owned(), answer });
        }
        planted.extend(self.series(&mut said));
        let mut changes = Vec::new();
        for (matter, values) in matters {
            let first = self.below(values.len());
            let (old, new) = (values[first], values[(first + 1) % values.len()]);
            let (earlier, later) = (1 + self.below(turns / 2 - 1), turns / 2 + self.below(turns / 2 - 1));
            let fill = |text: &str, value: &str| {
                text.replace("{m}", matter).replace("{o}", old).replace("{v}", value)
            };
            let (settled, revised) = (self.one(settled), self.one(revised));
            said[earlier].push(fill(settled, old));
            said[later].push(fill(revised, new));
            changes.push(Change { old: old.to_owned(), new: new.to_owned() });
        }
        let mut messages = Vec::new();
        for (turn, mut said) in said.into_iter().enumerate() {
            if turn == 0 {
                said.push(task.to_owned());
            }
            let talk = if turn % 2 == 0 { self.one(user_chatter).to_owned() } else { self.story() };
            let at = self.below(said.len() + 1);
            said.insert(at, talk);
            messages.push((true, said.join(" ")));
            let answer = [self.one(assistant_chatter), self.one(assistant_chatter)].join(" ");
            messages.push((false, answer));
        }
        Dialogue { language: name, messages, facts: planted, changes }
    }

    /// Plants facts that differ in their numbers: one in every third turn.
    fn series(&mut self, said: &mut [Vec<String>]) -> Vec<Fact> {
        let (series, turns) = (self.phrases.series, said.len());
        let facts = (0..turns / SERIES_EVERY).map(|number| {
            let (statement, question) = series[number % series.len()];
            let which = (number / series.len() + 1).to_string();
            // No two are the same, nor the beginning of another.
            let answer = (1_000 + number * 37 + self.below(37)).to_string();
            let fill = |text: &str| text.replace("{i}", &which).replace("{v}", &answer);
            said[1 + self.below(turns - 1)].push(fill(statement));
            Fact { question: fill(question), answer: answer.clone() }
        });
        facts.collect()
    }

    fn story(&mut self) -> String {
        let Phrases { stories, things, .. } = *self.phrases;
        let (one, other) = (self.one(things), self.one(things));
        self.one(stories).replace("{a}", one).replace("{b}", other)
    }

    /// A value of its own for each fact: `#` is a digit.
    fn value(&mut self, values: &[&str], number: usize) -> String {
        let pattern = values[(number + self.below(values.len())) % values.len()];
        let digit = |generator: &mut Self| char::from(b'1' + u8::try_from(generator.below(9)).unwrap_or(0));
        pattern.chars().map(|c| if c == '#' { digit(self) } else { c }).collect()
    }

    fn one(&mut self, list: &[&'static str]) -> &'static str {
        list[self.below(list.len())]
    }

    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 33).unwrap_or(0) % limit
    }
}
