//! An LLM summarizer that returns the summaries a test sets.

use serde_json::{Value, json};
use tidegate_testkit::{Answer, MockUpstream};

pub(crate) struct Summarizer(MockUpstream);

impl Summarizer {
    /// Starts a summarizer that always returns this summary.
    pub(crate) async fn start(summary: &Value) -> Summarizer {
        let summarizer = Summarizer(MockUpstream::start().await);
        summarizer.writes(summary);
        summarizer
    }

    /// Starts a summarizer that always fails.
    pub(crate) async fn broken() -> Summarizer {
        let summarizer = Summarizer(MockUpstream::start().await);
        summarizer.breaks();
        summarizer
    }

    pub(crate) fn breaks(&self) {
        self.0.answer(Answer::new(500));
    }

    pub(crate) fn writes(&self, summary: &Value) {
        self.0.answer(Answer::chat(&summary.to_string()));
    }

    /// The configuration that uses it, with these lines in `[context.fold]`.
    pub(crate) fn settings(&self, fold: &str) -> String {
        format!(
            "[context.fold]\nsummarizer = \"small\"\n{fold}\n[upstreams.summarizer]\nurl = \"{}\"\n\
             [summarizers.small]\nkind = \"llm\"\nupstream = \"summarizer\"\nmodel = \"gpt-4o-mini\"\ntimeout = \"5s\"\n",
            self.0.url()
        )
    }

    /// The instructions and the material of each call so far.
    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        let text = |body: &Value, role: &str| {
            let all = body["messages"].as_array().unwrap();
            let one = all.iter().find(|message| message["role"] == role).unwrap();
            one["content"].as_str().unwrap().to_owned()
        };
        let bodies = self.0.requests().into_iter().map(|request| request.json());
        bodies.map(|body| (text(&body, "system"), text(&body, "user"))).collect()
    }
}

/// A short summary with one fact in it.
pub(crate) fn with_fact(fact: &str) -> Value {
    json!({ "summary_text": "Piers were measured.", "key_facts": [{ "text": fact }] })
}
