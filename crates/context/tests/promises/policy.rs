//! Generates policies, and writes them as an operator would.

use crate::conversation::{Sent, Speaker, TOOLS};
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::Arc;
use tidegate_config::{Context, Flags, Glob, Source, load};
use tidegate_context::model_table;
use tidegate_tokens::Model;

#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) masks: bool,
    pub(crate) observe: bool,
    keep: String,
    pub(crate) pace: String,
    pub(crate) placeholder: &'static str,
    exclude: Vec<&'static str>,
    pattern: bool,
    pub(crate) window: u64,
    pub(crate) prices: Prices,
    pub(crate) max_input: Option<u64>,
    pub(crate) trim: Option<Trim>,
    hint: usize,
    recall: bool,
}

/// How long results are trimmed.
#[derive(Clone, Debug)]
pub(crate) struct Trim {
    after: u32,
    min_tokens: u64,
    keep_tokens: u64,
    pace: String,
}

/// The model's prices per token, and the lifetime of its cache in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prices {
    pub(crate) input: f64,
    pub(crate) cached: f64,
    pub(crate) write: f64,
    pub(crate) cache_life: u64,
}

/// A policy after loading its configuration.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) context: Arc<Context>,
    pub(crate) model: Arc<Model>,
}

pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    let keep = prop_oneof![
        4 => (1u32..6).prop_map(|count| format!("{{ turns = {count} }}")),
        1 => (1u32..4).prop_map(|count| format!("{{ user_turns = {count} }}")),
        1 => (1u32..12).prop_map(|count| format!("{{ messages = {count} }}")),
        1 => (1u32..3000).prop_map(|count| format!("{{ tokens = {count} }}")),
    ];
    let pace = prop_oneof![
        2 => Just("\"every_turn\"".to_owned()),
        2 => (1u32..5).prop_map(|count| format!("{{ batch = {count} }}")),
        3 => Just("\"break_even\"".to_owned()),
    ];
    let placeholder = select(
        &[
            "[OMITTED_OBSERVATION: too old; available in memory store]",
            "\"quoted\\\" \n\u{1f30a} Observation: gone",
            "-",
        ][..],
    );
    let exclude = prop_oneof![
        3 => Just(Vec::new()), 1 => Just(vec!["search"]), 1 => Just(vec!["*e*", "none"]), 1 => Just(vec!["sm\u{f6}*"])
    ];
    let prices = select(&[(1.0, 1.0, 1.0), (1.0, 0.5, 1.0), (1.0, 0.1, 1.0), (1.0, 0.1, 1.25)][..])
        .prop_map(|(input, cached, write)| Prices { input, cached, write, cache_life: 300_000 });
    let window = prop_oneof![2 => 2_000u64..12_000, 3 => Just(200_000)];
    let figures = (window, prices, prop::option::weighted(0.1, 500u64..4_000));
    let trim_pace = select(&["\"every_turn\"", "{ batch = 2 }", "\"break_even\"", "\"break_even\""][..]);
    let trim = (1u32..4, 120u64..600, 80u64..400, trim_pace).prop_map(|(after, min_tokens, keep, pace)| {
        Trim { after, min_tokens, keep_tokens: keep.min(min_tokens - 1), pace: pace.to_owned() }
    });
    let shortening =
        (prop::option::weighted(0.6, trim), prop_oneof![Just(0), 1usize..80], prop::bool::weighted(0.4));
    (
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.1),
        keep,
        pace,
        placeholder,
        exclude,
        any::<bool>(),
        (figures, shortening),
    )
        .prop_map(
            |(masks, observe, keep, pace, placeholder, exclude, pattern, (figures, shortening))| Policy {
                masks,
                observe,
                keep,
                pace,
                placeholder,
                exclude,
                pattern,
                window: figures.0,
                prices: figures.1,
                max_input: figures.2,
                trim: shortening.0,
                hint: shortening.1,
                recall: shortening.2,
            },
        )
}

impl Policy {
    pub(crate) fn resolve(&self) -> Resolved {
        // A JSON string is a TOML string as well.
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        let Prices { input, cached, write, cache_life } = self.prices;
        let mut text = format!(
            "[upstreams.default]\nurl = \"http://127.0.0.1:1\"\n\
             [models.\"tide-1\"]\nwindow = {}\nencoding = \"o200k_base\"\ninput = {input:?}\ncached_input = {cached:?}\n\
             cache_write = {write:?}\ncache_ttl = \"{}s\"\n\
             [context]\nstrategy = \"{}\"\nobserve = {}\n\
             [context.mask]\nkeep = {}\npace = {}\nplaceholder = {}\nexclude_tools = [{}]\n\
             hint = {{ identifiers = {} }}\n[context.recall]\ntool = {}\n",
            self.window,
            cache_life / 1000,
            if self.masks { "masking" } else { "passthrough" },
            self.observe,
            self.keep,
            self.pace,
            quoted(self.placeholder),
            self.exclude.iter().map(|glob| quoted(glob)).collect::<Vec<_>>().join(","),
            self.hint,
            self.recall,
        );
        if let Some(Trim { after, min_tokens, keep_tokens, pace }) = &self.trim {
            text.push_str(&format!(
                "[context.trim]\nafter = {{ turns = {after} }}\nmin_tokens = {min_tokens}\nkeep_tokens = {keep_tokens}\npace = {pace}\n"
            ));
        }
        if self.pattern {
            text.push_str("[context.observations]\nuser_pattern = '^Observation:'\n");
        }
        if let Some(most) = self.max_input {
            text.push_str(&format!("[context.budget]\nmax_input = {most}\n"));
        }
        let settings = load(Source::new("proxy.toml", &text), &Flags::default(), &|_| None)
            .unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let model = model_table(&settings.models).lookup("tide-1");
        Resolved { context: settings.routes[0].context.clone(), model }
    }

    /// Whether a request with tools gets another one, with which its model asks for what was masked.
    pub(crate) fn adds_tool(&self) -> bool {
        self.recall && self.masks && !self.observe
    }

    /// Whether the policy lets this message be masked at all, however old it is.
    pub(crate) fn may_mask(&self, sent: &Sent) -> bool {
        let is_observation = match sent.speaker {
            Speaker::Tool | Speaker::Function => true,
            Speaker::User => sent.tagged || (sent.reports && self.pattern),
            Speaker::System | Speaker::Developer | Speaker::Assistant => false,
        };
        let is_excluded =
            sent.tool.is_some_and(|tool| self.exclude.iter().any(|glob| Glob::new(*glob).matches(tool)));
        self.masks && is_observation && sent.has_content && !is_excluded
    }

    /// The documented input budget (section "Budget and triggers") with the default reserves.
    pub(crate) fn input_budget(&self, asked: Option<u64>) -> u64 {
        let output = asked.unwrap_or_else(|| 2048.min(self.window / 5));
        let overhead = 1024.max(self.window / 20);
        let budget = self.window.saturating_sub(output).saturating_sub(overhead);
        self.max_input.map_or(budget, |most| budget.min(most))
    }
}

/// Fails if the names of the tools change without the globs above.
#[test]
fn the_globs_match_the_generated_tools() {
    let matching = |glob: &str| TOOLS.iter().filter(|tool| Glob::new(glob).matches(tool)).count();
    assert_eq!([matching("search"), matching("*e*"), matching("sm\u{f6}*")], [1, 3, 1]);
}
