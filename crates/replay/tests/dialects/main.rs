//! The promises about forwarded bytes, for each dialect. The same generated agent runs are spelled as chat completions, as Anthropic's
//! messages and as OpenAI's responses, with odd white space and unknown members, and go through every strategy.
//!
//! [`spelling`] writes the requests, and [`reading`] compares what is forwarded with what was sent, without using the code under test.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic in a test is its failure message")]

mod reading;
mod spelling;

use bytes::Bytes;
use reading::{Fate, Items, fates};
use serde_json::Value;
use spelling::{Run, Spelling};
use std::collections::HashMap;
use tidegate_config::{Flags, Source, load};
use tidegate_replay::{Policy, Recorded, Replayed, Setup, Shown, Stage};
use tidegate_testkit::{messages_api, responses_api};

const SPELLINGS: [Spelling; 4] = [Spelling::Chat, Spelling::Messages, Spelling::Claude, Spelling::Responses];
const POLICIES: [&str; 6] = ["raw", "masking", "masking:every_turn", "summarization", "hybrid", "window"];
const RUNS: u64 = 3;
const SMALL: &str = "[context.budget]\nmax_input = 4000\n";

/// Replays runs of one dialect under every policy.
fn replay(spelling: Spelling, config: &str, mut shown: impl FnMut(u64, Shown<'_>)) -> Vec<Replayed> {
    let text = format!("[context.fold]\nmode = \"inline\"\n{config}");
    let settings = load(Source::new("proxy.toml", &*text), &Flags::default(), &|_| None).unwrap();
    let policies: Vec<Policy> = POLICIES.iter().map(|name| name.parse().unwrap()).collect();
    let setup = Setup { settings, main: 1, policies, regimes: vec!["0.1".parse().unwrap()], gap: 20_000 };
    let mut stage = Stage::new(&setup);
    let replayed = (1..=RUNS).map(|seed| {
        let bodies: Vec<Bytes> = Run::new(seed).requests(spelling).into_iter().map(Bytes::from).collect();
        bodies.iter().for_each(|body| assert_valid(spelling, &parse(body)));
        let recorded = Recorded::from_bodies(format!("run-{seed}"), bodies);
        stage.watch(&recorded, Some(&mut |request: Shown<'_>| shown(seed, request)))
    });
    replayed.collect()
}

fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn assert_valid(spelling: Spelling, request: &Value) {
    match spelling {
        Spelling::Chat => reading::assert_valid_chat(request),
        Spelling::Messages | Spelling::Claude => messages_api::assert_valid(request),
        Spelling::Responses => responses_api::assert_valid(request),
    }
}

/// Promises 1, 2, 3 and 5: every byte is the client's but for the planned edits, the request is valid, the end of it is untouched, and
/// what is left keeps its order.
#[test]
fn forwarded_requests_are_the_clients_but_for_the_planned_edits() {
    for spelling in SPELLINGS {
        let (mut masked, mut removed) = (0, 0);
        for config in ["", SMALL] {
            replay(spelling, config, |seed, shown| {
                let Some(forwarded) = shown.forwarded.filter(|bytes| bytes != shown.sent) else { return };
                let (sent, forwarded) = (Items::of(spelling, shown.sent), Items::of(spelling, &forwarded));
                let place = format!("{spelling:?}, {}, run {seed}, request {}", shown.policy, shown.request);
                assert_eq!((sent.before, sent.behind), (forwarded.before, forwarded.behind), "{place}");
                assert_valid(spelling, &parse(forwarded.body));
                if spelling == Spelling::Responses {
                    responses_api::assert_kept_together(&parse(sent.body), &parse(forwarded.body));
                }
                let fates =
                    fates(spelling, &sent, &forwarded).unwrap_or_else(|item| panic!("{place}: {item}"));
                masked += fates.iter().filter(|fate| **fate == Fate::Masked).count();
                removed += fates.iter().filter(|fate| **fate == Fate::Removed).count();
                let is_whole = matches!(fates.last(), Some(Fate::Kept | Fate::Extended));
                assert!(is_whole, "{place}: the last item was changed");
            });
        }
        assert!(masked > 300 && removed > 300, "{spelling:?}: {masked} masked, {removed} removed");
    }
}

/// Promise 8: what was forwarded is the beginning of what is forwarded next, unless more is masked; and nothing is unmasked.
#[test]
fn the_forwarded_prefix_changes_only_with_a_decision() {
    for spelling in SPELLINGS {
        let mut last: HashMap<(u64, String), (Vec<Fate>, Vec<String>)> = HashMap::new();
        let (mut decisions, mut requests) = (0, 0);
        replay(spelling, "", |seed, shown| {
            let policy = shown.policy.to_string();
            if !policy.starts_with("masking") {
                return;
            }
            let forwarded = shown.forwarded.unwrap();
            let (sent, forwarded) = (Items::of(spelling, shown.sent), Items::of(spelling, &forwarded));
            let fates = fates(spelling, &sent, &forwarded).unwrap();
            let items: Vec<String> = forwarded.items.iter().map(|item| (*item).to_owned()).collect();
            if let Some((before, earlier)) = last.get(&(seed, policy.clone())) {
                let mut pairs = before.iter().zip(&fates);
                assert!(pairs.all(|(before, now)| *before != Fate::Masked || *now == Fate::Masked));
                match fates.starts_with(before) {
                    // A question may have been added to the last of Anthropic's messages since.
                    true => {
                        assert_eq!(items[..earlier.len()], earlier[..], "{spelling:?}, {policy}, run {seed}")
                    }
                    false => decisions += usize::from(!policy.contains("every")),
                }
                requests += usize::from(!policy.contains("every"));
            }
            last.insert((seed, policy), (fates, items));
        });
        assert!(decisions > 0 && decisions * 4 < requests, "{spelling:?}: {decisions} of {requests}");
    }
}

/// Promise 7.
#[test]
fn the_same_requests_give_the_same_bytes() {
    for spelling in SPELLINGS {
        let forwarded = || {
            let mut all = Vec::new();
            replay(spelling, SMALL, |_, shown| all.push(shown.forwarded));
            all
        };
        assert!(forwarded() == forwarded(), "{spelling:?}");
    }
}

/// Promise 9: where nothing forces an edit, strategies cost hardly more than forwarding everything.
#[test]
fn no_strategy_costs_more_than_none() {
    for spelling in SPELLINGS {
        let replayed = replay(spelling, "", |_, _| {});
        for (at, name) in POLICIES.iter().enumerate().filter(|(_, name)| !name.contains("every_turn")) {
            let ratio = |run: &Replayed| run.figures[0][at].cost.units / run.figures[0][0].cost.units;
            let ratios: Vec<f64> = replayed.iter().map(ratio).collect();
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            assert!(
                mean <= 1.03 && ratios.iter().all(|ratio| *ratio <= 1.2),
                "{spelling:?}, {name}: {ratios:?}"
            );
        }
    }
}
