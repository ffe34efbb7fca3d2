//! In every request of generated conversations, under any policy, each message is forwarded, masked, covered by the summary, or
//! counted by the marker.

use super::forwarded::{Forwarded, is_marker, is_summary};
use super::scene::{ask, assert_fits, degraded, send, start, summarizer, upstream, with_summarizer};
use crate::support::chat::{assistant, calls, result, system, user};
use crate::support::reply::{Reply, edited};
use serde_json::Value;
use std::collections::HashSet;
use tidegate_testkit::{Answer, MockUpstream};

const PLACEHOLDER: &str = "[OMITTED_OBSERVATION: too old; available in memory store]";

/// SplitMix64, so that every run has the same conversations.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }

    fn words(&mut self, limit: usize) -> String {
        const WORDS: [&str; 8] =
            ["pier", "tide", "decided", "must", "error", "src/quay.rs", "42", "\u{1f30a}"];
        let count = 1 + self.below(limit);
        let words: Vec<&str> = (0..count).map(|_| WORDS[self.below(WORDS.len())]).collect();
        words.join(" ")
    }
}

/// A conversation, and the number of messages of each of its requests.
fn generate(seed: u64) -> (Vec<String>, Vec<usize>) {
    let mut random = Random(seed);
    let (mut messages, mut ends) = (Vec::new(), Vec::new());
    for number in 0..random.below(3) {
        messages.push(system(&format!("Rule {number} {}", random.words(20))));
    }
    while ends.len() < 14 {
        let number = messages.len();
        if ends.is_empty() || random.below(3) > 0 {
            messages.push(user(&format!("Said {number} {}", random.words(60))));
            ends.push(messages.len());
        }
        for step in 0..random.below(3) {
            let ids: Vec<String> =
                (0..=random.below(3)).map(|which| format!("c{number}_{step}_{which}")).collect();
            messages.push(calls(&ids));
            for id in &ids {
                messages.push(result(id, &format!("Result {id} {}", random.words(150))));
            }
            ends.push(messages.len());
        }
        if random.below(8) == 0 {
            messages.push(system(&format!("Rule {number} {}", random.words(10))));
        }
        messages.push(assistant(&format!("Answer {number} {}", random.words(60))));
    }
    (messages, ends)
}

/// A message with masked content, or unchanged if it cannot be masked.
pub(crate) fn masked(message: &str) -> String {
    let value: Value = serde_json::from_str(message).unwrap();
    if value["role"] != "tool" {
        return message.to_owned();
    }
    let written = serde_json::to_string(&value["content"]).unwrap();
    message.replace(&written, &format!("\"{PLACEHOLDER}\""))
}

fn role(message: &str) -> String {
    let value: Value = serde_json::from_str(message).unwrap();
    value["role"].as_str().unwrap().to_owned()
}

/// The number of client messages by what happened to them.
#[derive(Debug, Default)]
struct Account {
    masked: usize,
    folded: usize,
    dropped: usize,
}

fn account(messages: &[String], forwarded: &Forwarded, reply: &Reply) -> Account {
    let covered = forwarded.summary().map_or(0, |summary| summary.covered);
    let ours = |message: &String| is_summary(message) || is_marker(message);
    let mut theirs = forwarded.messages.iter().filter(|message| !ours(message)).peekable();
    let (mut account, mut spoken) = (Account::default(), 0);
    let mut dropped_turns = 0;
    let (mut first_dropped, mut behind_drop) = (None, None);
    for message in messages {
        let is_instruction = role(message) == "system";
        if let Some(sent) = theirs.next_if(|sent| **sent == *message || **sent == masked(message)) {
            account.masked += usize::from(sent != message);
            if first_dropped.is_some() && behind_drop.is_none() {
                behind_drop = Some(sent.clone());
            }
        } else {
            assert!(!is_instruction, "an instruction was removed: {message}");
            if spoken < covered {
                account.folded += 1;
            } else {
                account.dropped += 1;
                dropped_turns += usize::from(role(message) == "assistant");
                first_dropped.get_or_insert(message.clone());
            }
        }
        spoken += usize::from(!is_instruction);
    }
    assert_eq!(theirs.next(), None, "a message is not the client's, or out of order");
    match forwarded.marker() {
        Some((_, turns)) => {
            assert_eq!(turns, dropped_turns.max(1), "the marker has the wrong count");
            let reason = degraded(reply).unwrap_or_default();
            assert!(
                reason.starts_with("summarizer_"),
                "dropped although no summary failed: {:?}",
                reply.headers
            );
        }
        None => assert_eq!(account.dropped, 0, "dropped without a marker: {first_dropped:?}"),
    }
    account
}

/// Asserts that every call is followed by all its results, and every result preceded by its call.
fn assert_paired(forwarded: &Forwarded) {
    let mut open: HashSet<String> = HashSet::new();
    for message in &forwarded.messages {
        let value: Value = serde_json::from_str(message).unwrap();
        if value["role"] == "tool" {
            let id = value["tool_call_id"].as_str().unwrap();
            assert!(open.remove(id), "a result without its call: {id}");
            continue;
        }
        assert!(open.is_empty(), "calls without results: {open:?}");
        let calls = value["tool_calls"].as_array().into_iter().flatten();
        open = calls.map(|call| call["id"].as_str().unwrap().to_owned()).collect();
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

/// Asserts that the last request, the unresolved end and a pinned task are unchanged.
fn assert_protected_messages(messages: &[String], forwarded: &Forwarded, pinned: bool) {
    let is = |what: &'static str| move |message: &&String| role(message) == what;
    let request = messages.iter().rev().find(is("user")).unwrap();
    assert!(forwarded.messages.contains(request), "the last request was removed: {request}");
    if let Some(end) = messages.iter().rposition(|message| role(message) == "assistant") {
        let end = &messages[end..];
        assert!(forwarded.messages.ends_with(end), "the unresolved end was changed");
    }
    if pinned {
        let task = messages.iter().find(is("user")).unwrap();
        assert!(forwarded.messages.contains(task), "the task was removed: {task}");
    }
}

/// What a strict chat template would refuse in messages of these roles.
fn clashes(messages: &[String]) -> HashSet<(String, String)> {
    let roles: Vec<String> = messages.iter().map(|message| role(message)).collect();
    let talk: Vec<&String> = roles.iter().filter(|role| *role != "system").collect();
    let start = talk.first().map(|first| ("nothing".to_owned(), (*first).clone()));
    let pairs = talk.windows(2).map(|pair| (pair[0].clone(), pair[1].clone()));
    let is_clash = |(before, after): &(String, String)| {
        let pair = (before.as_str(), after.as_str());
        matches!(pair, ("user" | "tool", "user") | ("nothing" | "assistant", "assistant"))
    };
    start.into_iter().chain(pairs).filter(is_clash).collect()
}

const CONVERSATIONS: u64 = 4;

/// Sends all conversations under one policy. Returns the total of masked, folded and dropped messages.
async fn play(settings: &str, pinned: bool, upstream: &MockUpstream) -> Account {
    let tidegate = start(settings, upstream).await;
    let mut all = Account::default();
    for seed in 0..CONVERSATIONS {
        let (messages, ends) = generate(seed);
        let name = format!("seed-{seed}");
        for end in ends {
            let messages = &messages[..end];
            let reply = ask(tidegate.address, &name, messages).await;
            assert_eq!(reply.status, 200, "seed {seed}, {end} messages: {}", reply.text());
            let forwarded = Forwarded::new(String::from_utf8(upstream.next_request().await.body).unwrap());
            let account = account(messages, &forwarded, &reply);
            let reported = ["masked", "folded", "dropped"].map(|what| edited(&reply, what));
            assert_eq!(
                reported,
                [account.masked, account.folded, account.dropped],
                "seed {seed}, {end} messages"
            );
            assert_paired(&forwarded);
            // A summary that is a system message is no question before an answer.
            let new: Vec<_> = clashes(&forwarded.whole).difference(&clashes(messages)).cloned().collect();
            assert!(
                new.is_empty() || settings.contains("role = \"system\""),
                "seed {seed}, {end} messages: {new:?}"
            );
            assert_protected_messages(messages, &forwarded, pinned);
            assert_fits(&reply);
            // A retry forwards the same bytes.
            if end % 3 == 0 {
                let (_, again) = send(&tidegate, upstream, &name, messages).await;
                assert_eq!(again.body, forwarded.body, "seed {seed}, {end} messages: a retry");
            }
            all.masked += account.masked;
            all.folded += account.folded;
            all.dropped += account.dropped;
        }
    }
    all
}

fn policy(strategy: &str, fold: &str, budget: usize) -> String {
    format!(
        "[store]\nurl = \"memory:\"\n[context]\nstrategy = \"{strategy}\"\n[context.recall]\nauto = false\n[context.budget]\nmax_input = {budget}\n[context.mask]\n\
         keep = {{ turns = 2 }}\npace = {{ batch = 2 }}\n[context.fold]\n{fold}"
    )
}

#[tokio::test]
async fn no_message_is_lost_by_inline_folds() {
    let upstream = upstream().await;
    for fold in [
        "mode = \"inline\"\nwhen = { turns = 4 }\nkeep = { turns = 1 }\n",
        "mode = \"inline\"\nwhen = { messages = 8 }\nkeep = { messages = 3 }\npin_task = true\n",
        "mode = \"inline\"\nwhen = { user_turns = 3 }\nkeep = { tokens = 400 }\nrole = \"system\"\n",
    ] {
        let pinned = fold.contains("pin_task");
        let folded = play(&policy("summarization", fold, 20_000), pinned, &upstream).await;
        assert!(folded.folded > 50 && folded.masked == 0 && folded.dropped == 0, "{fold}: {folded:?}");
        let both = play(&policy("hybrid", fold, 20_000), pinned, &upstream).await;
        assert!(both.folded > 50 && both.masked > 0 && both.dropped == 0, "{fold}: {both:?}");
    }
}

#[tokio::test]
async fn no_message_is_lost_over_budget() {
    let upstream = upstream().await;
    for keep in [2, 6] {
        let fold = format!(
            "when = {{ budget_ratio = 0.6 }}\nkeep = {{ turns = {keep} }}\nmax_tokens = 300\n[context.prune]\nkeep = {{ turns = 1 }}\n"
        );
        for strategy in ["summarization", "hybrid"] {
            let account = play(&policy(strategy, &fold, 2200), false, &upstream).await;
            assert!(account.folded > 50 && account.dropped == 0, "{strategy}, {keep} turns: {account:?}");
        }
    }
}

#[tokio::test]
async fn no_message_is_lost_at_the_break_even_pace() {
    let upstream = upstream().await;
    let fold = "mode = \"inline\"\nwhen = { turns = 3 }\nkeep = { turns = 1 }\npace = \"break_even\"\n";
    let waiting = play(&policy("summarization", fold, 20_000), false, &upstream).await;
    let at_once =
        play(&policy("summarization", &fold.replace("break_even", "at_trigger"), 20_000), false, &upstream)
            .await;
    assert!(waiting.dropped == 0 && at_once.dropped == 0);
    assert!(0 < waiting.folded && waiting.folded < at_once.folded, "{waiting:?} against {at_once:?}");
}

#[tokio::test]
async fn no_message_is_lost_with_an_llm_summarizer() {
    let (upstream, summarizer) = (upstream().await, summarizer().await);
    let fold = "when = { budget_ratio = 0.6, user_turns = 4 }\nkeep = { turns = 2 }\nmax_tokens = 300\n";
    let settings = with_summarizer(&policy("hybrid", fold, 2500), &summarizer, "5s");
    let account = play(&settings, false, &upstream).await;
    assert!(account.folded > 50 && account.dropped == 0, "{account:?}");
}

#[tokio::test]
async fn no_message_is_lost_with_a_failing_summarizer() {
    let (upstream, summarizer) = (upstream().await, MockUpstream::start().await);
    summarizer.answer(Answer::new(500));
    let fold = "when = { budget_ratio = 0.6 }\nkeep = { turns = 2 }\nmax_tokens = 20\n";
    for strategy in ["summarization", "hybrid"] {
        let settings = with_summarizer(&policy(strategy, fold, 2200), &summarizer, "5s");
        let account = play(&settings, false, &upstream).await;
        assert!(account.folded == 0 && account.dropped > 0, "{strategy}: {account:?}");
    }
}

/// A summarizer that fails four times: the built-in one stands in, so nothing is dropped.
#[tokio::test]
async fn no_message_is_lost_with_a_summarizer_that_recovers() {
    let (upstream, summarizer) = (upstream().await, summarizer().await);
    for _ in 0..4 {
        summarizer.then(Answer::new(500));
    }
    let fold = "when = { budget_ratio = 0.6 }\nkeep = { turns = 2 }\nmax_tokens = 300\n";
    let settings = with_summarizer(&policy("hybrid", fold, 2200), &summarizer, "5s");
    let account = play(&settings, false, &upstream).await;
    assert!(account.folded > 0 && account.dropped == 0, "{account:?}");
}
