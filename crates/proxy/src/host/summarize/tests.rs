//! A summarizer behind the mock upstream.

mod answers;
mod dialects;
mod keys;
mod passes;
mod small;

use super::*;
use crate::host::identity::Secret;
use crate::host::shared::Gate;
use http::HeaderMap;
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_config::{Flags, Source as ConfigSource, load};
use tidegate_context::OwnedSpeaker;
use tidegate_store::{Conversations, MemoryStore, Options};
use tidegate_summary::{Entry, MessageRef};
use tidegate_telemetry::{Format, Lines};
use tidegate_testkit::{Answer, MockUpstream};

/// Longer than any test that does not wait for it.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a test asks its questions with.
struct Bench {
    clients: Clients,
    snapshot: Arc<Snapshot>,
}

impl Bench {
    fn new(config: &str) -> Bench {
        let settings = load(ConfigSource::new("proxy.toml", config), &Flags::default(), &|_| None).unwrap();
        let options = Options { timeout: PATIENCE, raw: false, keyring: None };
        let conversations = Conversations::new(Arc::new(MemoryStore::new(PATIENCE)), options);
        let (lines, _) = Lines::to_memory();
        let gate = Gate::new(settings, conversations, Secret::new(None), lines, Format::Json).unwrap();
        Bench { clients: Clients::default(), snapshot: gate.snapshot() }
    }

    /// The summarizer `small` at the upstream `default`. What endpoints understand is remembered for the process, so each
    /// test has a model of its own.
    fn at(upstream: &MockUpstream, model: &str, keys: &str) -> Bench {
        let url = upstream.url();
        Bench::new(&format!(
            "[upstreams.default]\nurl = \"{url}\"\n[summarizers.small]\nkind = \"llm\"\nmodel = \"{model}\"\n{keys}\n"
        ))
    }

    async fn ask(
        &self,
        material: Material,
        caller: &CallerKey,
        patience: Duration,
    ) -> Result<Summarized, Failure> {
        let summarizer = &self.snapshot.settings.summarizers["small"];
        summarize(&self.clients, &self.snapshot, summarizer, material, caller, Instant::now() + patience)
            .await
    }

    async fn summarize(&self, material: Material) -> Result<Summarized, Failure> {
        self.ask(material, &self.nobody(), PATIENCE).await
    }

    /// A caller without a key.
    fn nobody(&self) -> CallerKey {
        CallerKey::of(&HeaderMap::new(), &self.snapshot.settings.upstreams["default"])
    }
}

fn said(number: u32, speaker: OwnedSpeaker, text: &str) -> OwnedSource {
    OwnedSource { number: MessageRef(number), speaker, text: text.to_owned(), calls: Vec::new() }
}

fn material() -> Material {
    let sources = vec![
        said(1, OwnedSpeaker::User, "Move the index to redb. The archive has 48,000 files."),
        said(2, OwnedSpeaker::Assistant, "Where should it be?"),
        said(3, OwnedSpeaker::User, "Let's use /data/index."),
    ];
    Material { previous: None, sources, max_tokens: 500 }
}

/// What a model answers that was asked for this state.
fn state(decision: &str) -> Value {
    json!({
        "summary_text": "The index moves.", "key_facts": [], "goals": [],
        "decisions": [{ "text": decision, "rests_on": [3, 99] }],
        "open_questions": [], "action_items": [], "artifacts": [],
    })
}

fn good(decision: &str) -> Answer {
    Answer::chat(&state(decision).to_string())
}

fn decided(decision: &str) -> Vec<Entry> {
    vec![Entry::new(decision, [MessageRef(3)])]
}
