//! How often the model needed what was shortened.
//!
//! A recorded answer was made with the whole conversation in view. If it uses an identifier that stands in a masked or trimmed result
//! and nowhere in the forwarded request, then a model that sees only that request could not have written it. Identifiers also recur by
//! chance, so the same is counted with the shortened results of another conversation in place of the conversation's own.

use crate::input::{Defaults, InputError, InputItem, Recorded, read_file};
use crate::run::{Setup, Shown, Stage};
use std::path::PathBuf;
use tidegate_wire::{Dialect, Outline, identifiers, message_texts, split};

/// How many answers needed what one policy had shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    pub answers: u64,
    /// Answers that use an identifier which only a masked or trimmed result held.
    pub needed: u64,
    /// Answers that use an identifier which only such a result of another conversation held.
    pub by_chance: u64,
    pub conversations: u64,
    /// Conversations with at least one answer that needed something.
    pub conversations_in_need: u64,
}

impl Need {
    #[must_use]
    pub fn share(&self) -> f64 {
        self.needed as f64 / self.answers.max(1) as f64
    }

    #[must_use]
    pub fn chance(&self) -> f64 {
        self.by_chance as f64 / self.answers.max(1) as f64
    }
}

/// Replays all conversations of all files at the first price and measures the need under each of the requested policies.
pub fn measure_need(files: &[PathBuf], setup: &Setup, defaults: &Defaults) -> Result<Vec<Need>, InputError> {
    let mut setup = setup.clone();
    setup.regimes.truncate(1);
    setup.policies.truncate(setup.main);
    let mut needs = vec![Need::default(); setup.policies.len()];
    let mut others = vec![Others::default(); setup.policies.len()];
    let mut stage = Stage::new(&setup);
    for file in files {
        read_file(file, defaults, |item, _| {
            let conversation = match item {
                InputItem::Conversation(conversation) => *conversation,
                // The comparison has already read every line without an error.
                InputItem::Line(line) => match line.conversation(defaults) {
                    Ok(conversation) => conversation,
                    Err(_) => return true,
                },
            };
            count(&mut stage, &setup, &conversation, &mut needs, &mut others);
            true
        })?;
    }
    Ok(needs)
}

fn count(
    stage: &mut Stage<'_>,
    setup: &Setup,
    conversation: &Recorded,
    needs: &mut [Need],
    others: &mut [Others],
) {
    let dialect = conversation.dialect();
    let mut in_need = vec![false; needs.len()];
    let mut held_last = vec![String::new(); needs.len()];
    let mut show = |shown: Shown<'_>| {
        let Some(policy) = setup.policies.iter().position(|policy| policy == shown.policy) else { return };
        let Some(forwarded) = &shown.forwarded else { return };
        let Some(answer) = answer(conversation, dialect, shown.request, shown.sent) else { return };
        needs[policy].answers += 1;
        if shown.shortened.is_empty() {
            return;
        }
        let held = texts(dialect, shown.sent, |index| shown.shortened.contains(&index));
        let visible = texts(dialect, forwarded, |_| true);
        let unseen: Vec<&str> = identifiers(&answer).filter(|name| !visible.contains(*name)).collect();
        let is_needed = unseen.iter().any(|name| held.contains(*name));
        needs[policy].needed += u64::from(is_needed);
        needs[policy].by_chance += others[policy].uses(&unseen);
        in_need[policy] |= is_needed;
        held_last[policy] = held;
    };
    stage.watch(conversation, Some(&mut show));
    for (index, need) in needs.iter_mut().enumerate() {
        need.conversations += 1;
        need.conversations_in_need += u64::from(in_need[index]);
        need.by_chance += others[index].follow(std::mem::take(&mut held_last[index]));
    }
}

/// The shortened results of another conversation: the one before or, for the first, the one after it.
#[derive(Clone, Debug, Default)]
struct Others {
    held: String,
    /// What answers of the first conversations use, until there is another one.
    waiting: Vec<Vec<String>>,
}

impl Others {
    /// Returns 1 if an answer that uses these identifiers would have found one of them there.
    fn uses(&mut self, unseen: &[&str]) -> u64 {
        if self.held.is_empty() {
            self.waiting.push(unseen.iter().map(|name| (*name).to_owned()).collect());
        }
        u64::from(unseen.iter().any(|name| self.held.contains(name)))
    }

    /// Goes on to what the next conversation is compared with, and returns how many answers that waited for it use it.
    fn follow(&mut self, held: String) -> u64 {
        if held.is_empty() {
            return 0;
        }
        let is_first = self.held.is_empty();
        self.held = held;
        if is_first {
            return 0;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let is_chance = |unseen: &&Vec<String>| unseen.iter().any(|name| self.held.contains(name));
        waiting.iter().filter(is_chance).count() as u64
    }
}

/// The texts of the answer to a request, which is the next message of the following request.
fn answer(conversation: &Recorded, dialect: Dialect, request: usize, sent: &[u8]) -> Option<String> {
    if request + 1 >= conversation.len() {
        return None;
    }
    let at = split(dialect, sent).ok()?.messages.len();
    Some(texts(dialect, &conversation.body(request + 1), |index| index == at))
}

/// The texts of some messages of a body, and of everything around them if all are wanted.
fn texts(dialect: Dialect, body: &[u8], is_wanted: impl Fn(usize) -> bool) -> String {
    let Ok(Outline { messages, extras, .. }) = split(dialect, body) else { return String::new() };
    let mut all = String::new();
    if is_wanted(usize::MAX) {
        extras.iter().for_each(|extra| all.push_str(&String::from_utf8_lossy(extra.span.of(body))));
    }
    let wanted = messages.iter().enumerate().filter(|(index, _)| is_wanted(*index));
    for (_, span) in wanted {
        let Ok(view) = dialect.read_message(span.of(body)) else { continue };
        for text in message_texts(&view) {
            all.push('\n');
            all.push_str(&text);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::Regime;
    use serde_json::json;
    use tidegate_config::{Flags, Source, load};

    /// A run that reads a result with an id, does ten other things, and uses the id at the end.
    fn run(id: &str) -> String {
        run_using(id, id)
    }

    /// The same, but it uses another id.
    fn run_using(id: &str, used: &str) -> String {
        let mut messages = vec![json!({"role": "user", "content": "go"})];
        let mut turn = |number: usize, say: &str, output: String| {
            let call = json!({"id": format!("call{number}"), "type": "function",
                "function": {"name": "look", "arguments": json!({"at": say}).to_string()}});
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            messages
                .push(json!({"role": "tool", "tool_call_id": format!("call{number}"), "content": output}));
        };
        turn(0, "start", format!("{} the key is {id}", "word ".repeat(400)));
        (1..13).for_each(|number| turn(number, "other", "nothing here ".repeat(20)));
        turn(13, used, "done".to_owned());
        turn(14, "end", "done".to_owned());
        json!({"id": id, "model": "gpt-4o", "messages": messages}).to_string()
    }

    fn needs(runs: &[String], policies: &[&str]) -> Vec<Need> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        std::fs::write(&path, runs.join("\n")).unwrap();
        let settings = load(Source::none(), &Flags::default(), &|_| None).unwrap();
        let policies: Vec<_> = policies.iter().map(|name| name.parse().unwrap()).collect();
        let setup = Setup { settings, main: policies.len(), policies, regimes: vec![Regime::Table], gap: 0 };
        measure_need(&[path], &setup, &Defaults { model: None }).unwrap()
    }

    #[test]
    fn an_answer_needs_what_only_a_masked_result_held() {
        let runs = [run("key_alpha_17"), run("key_beta_99")];
        let needs = needs(&runs, &["raw", "masking:every_turn", "coding-agent"]);
        assert_eq!(needs[0], Need { answers: 28, conversations: 2, ..Need::default() });
        assert_eq!(
            (needs[1].needed, needs[1].by_chance, needs[1].conversations_in_need),
            (2, 0, 2),
            "{needs:?}"
        );
        assert_eq!(needs[2].needed, 0, "the placeholder names it: {needs:?}");
    }

    #[test]
    fn chance_counts_for_the_first_conversation_too() {
        let runs = [run_using("key_alpha_17", "key_beta_99"), run_using("key_beta_99", "key_gamma_3")];
        let needs = needs(&runs, &["masking:every_turn"]);
        assert_eq!((needs[0].needed, needs[0].by_chance), (0, 1), "{needs:?}");
    }
}
