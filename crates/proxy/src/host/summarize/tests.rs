//! Tests of the summarizer against a mock upstream.

mod answers;
mod dialects;
mod keys;
mod passes;
mod small;

use super::*;
use crate::host::identity::Secret;
use crate::host::shared::Gateway;
use http::HeaderMap;
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_config::{Flags, Source as ConfigSource, load};
use tidegate_context::{OwnedSource, OwnedSpeaker};
use tidegate_store::{Conversations, MemoryStore, Options};
use tidegate_summary::{Entry, MessageRef};
use tidegate_telemetry::{Format, LogSink};
use tidegate_testkit::{Answer, MockUpstream};

/// Longer than any test runs, unless it advances the clock.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A configured summarizer.
struct Fixture {
    clients: Clients,
    lane: Lane,
    snapshot: Arc<Snapshot>,
    /// Its threads do the work.
    _gateway: Gateway,
}

impl Fixture {
    fn new(config: &str) -> Fixture {
        let settings = load(ConfigSource::new("proxy.toml", config), &Flags::default(), &|_| None).unwrap();
        let options = Options { timeout: TIMEOUT, ttl: TIMEOUT, raw: false, keyring: None };
        let conversations = Conversations::new(Arc::new(MemoryStore::new(TIMEOUT)), options);
        let (lines, _) = LogSink::to_memory();
        let gateway = Gateway::new(settings, conversations, Secret::new(None), lines, Format::Json).unwrap();
        let (lane, snapshot) = (gateway.heavy.own_lane(), gateway.snapshot());
        Fixture { clients: Clients::default(), lane, snapshot, _gateway: gateway }
    }

    /// The summarizer `small` at the upstream `default`. Accepted dialects are remembered per process, so each test uses a model of
    /// its own.
    fn at(upstream: &MockUpstream, model: &str, keys: &str) -> Fixture {
        let url = upstream.url();
        Fixture::new(&format!(
            "[upstreams.default]\nurl = \"{url}\"\n[summarizers.small]\nkind = \"llm\"\nmodel = \"{model}\"\n{keys}\n"
        ))
    }

    async fn summarize_for(
        &self,
        material: Material,
        caller: &CallerKey,
        timeout: Duration,
    ) -> Result<Summarized, Failure> {
        let summarizer = &self.snapshot.settings.summarizers["small"];
        summarize(
            (&self.clients, &self.lane),
            &self.snapshot,
            summarizer,
            material,
            caller,
            Instant::now() + timeout,
        )
        .await
    }

    async fn summarize(&self, material: Material) -> Result<Summarized, Failure> {
        self.summarize_for(material, &self.no_key(), TIMEOUT).await
    }

    /// A caller without a key.
    fn no_key(&self) -> CallerKey {
        CallerKey::of(&HeaderMap::new(), &self.snapshot.settings.upstreams["default"])
    }
}

fn message(number: u32, speaker: OwnedSpeaker, text: &str) -> OwnedSource {
    OwnedSource { number: MessageRef(number), speaker, text: text.to_owned(), calls: Vec::new() }
}

fn material() -> Material {
    let sources = vec![
        message(1, OwnedSpeaker::User, "Move the index to redb. The archive has 48,000 files."),
        message(2, OwnedSpeaker::Assistant, "Where should it be?"),
        message(3, OwnedSpeaker::User, "Let's use /data/index."),
    ];
    Material { previous: None, sources, max_tokens: 500 }
}

/// A valid response with this decision.
fn state(decision: &str) -> Value {
    json!({
        "summary_text": "The index moves.", "key_facts": [], "goals": [],
        "decisions": [{ "text": decision, "rests_on": [3, 99] }],
        "open_questions": [], "action_items": [], "artifacts": [],
    })
}

fn valid_answer(decision: &str) -> Answer {
    Answer::chat(&state(decision).to_string())
}

fn decisions(decision: &str) -> Vec<Entry> {
    vec![Entry::new(decision, [MessageRef(3)])]
}
