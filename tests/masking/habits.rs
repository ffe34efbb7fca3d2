//! Clients with every habit, without a name for their conversation: it is recognised by its content, and masked as well as with a name.

use crate::support::agent::send;
use crate::support::tidegate::Tidegate;
use serde_json::Value;
use std::collections::HashMap;
use tidegate_config::{Flags, Settings, Source, load};
use tidegate_context::model_table;
use tidegate_replay::{Provider, Regime};
use tidegate_testkit::{Habit, MockUpstream, Trajectory};

/// Cached input costs a tenth, so that a cache that is lost is dear.
const SETTINGS: &str = "[store]\nurl = \"memory:\"\n[models.\"gpt-4.1\"]\ncached_input = 0.2\n\
                        [models.\"gpt-4.1-nano\"]\ncached_input = 0.01\n";

/// At most this much more than the same client with a name. One that edits a message far back once is found by an older decision, and then
/// masked anew.
const OF_NAMED: f64 = 1.20;

/// At most this much more than the same client going direct. These are two short runs; `crates/replay/tests/habits` has more.
const OF_DIRECT: f64 = 1.20;

const SEEDS: [u64; 2] = [11, 12];

fn run(seed: u64) -> Trajectory {
    let question_every = if seed.is_multiple_of(2) { 3 } else { 0 };
    let model = "gpt-4.1".to_owned();
    Trajectory { model, turns: 45, output: 300.0, system: 1_100, question_every, ..Trajectory::default() }
}

/// What the provider of each model would bill, in dollars.
fn billed<'a>(requests: impl Iterator<Item = &'a [u8]>) -> f64 {
    let settings: Settings = load(Source::new("proxy.toml", SETTINGS), &Flags::default(), &|_| None).unwrap();
    let table = model_table(&settings.models);
    let mut providers = HashMap::new();
    let mut sum = 0.0;
    for (now, request) in requests.enumerate() {
        let body: Value = serde_json::from_slice(request).unwrap();
        let name = body["model"].as_str().unwrap().to_owned();
        let model = table.lookup(&name);
        let provider = providers.entry(name).or_insert_with(|| Provider::new(model.clone(), &settings));
        sum += Regime::Table.cost(&model, &provider.bill(request, now as u64).unwrap()).usd;
    }
    sum
}

/// What is billed for what reaches the upstream.
async fn through(requests: &[Vec<u8>], name: &[(&'static str, &str)]) -> f64 {
    let upstream = MockUpstream::start().await;
    let tidegate = Tidegate::start(SETTINGS, &upstream).await;
    let mut arrived = Vec::new();
    for request in requests {
        let request = std::str::from_utf8(request).unwrap();
        arrived.push(send(&tidegate, &upstream, name, request).await.1);
    }
    billed(arrived.iter().map(|request| request.as_bytes()))
}

#[tokio::test]
async fn clients_without_a_name_are_billed_like_those_with_one() {
    let mut dearer = Vec::new();
    for habit in Habit::ALL {
        let (mut direct, mut named, mut unnamed) = (0.0, 0.0, 0.0);
        for seed in SEEDS {
            let requests = habit.requests(&run(seed), seed);
            direct += billed(requests.iter().map(Vec::as_slice));
            named += through(&requests, &[("x-conversation-id", "named")]).await;
            unnamed += through(&requests, &[]).await;
        }
        let (to_direct, to_named) = (unnamed / direct, unnamed / named);
        if to_direct > OF_DIRECT || to_named > OF_NAMED {
            dearer.push(format!("{}: {to_direct:.3} of direct, {to_named:.3} of named", habit.name()));
        }
    }
    assert!(dearer.is_empty(), "{dearer:#?}");
}
