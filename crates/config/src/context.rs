use crate::budget::BudgetSection;
use crate::choice::{Choice, choices};
use crate::fold::nonzero;
use crate::section::Section;
use crate::tree::{Node, Value};
use crate::value::{self, InvalidValue};
use crate::{Blocks, Fold, Glob, Limits, Pattern, Prune, Recall, Trim, Window, budget, policy, profile};
use tidegate_engine::{BudgetPolicy, Keep, MaskPolicy, Pace, Strategy, Tokens};

/// The context policy of a route.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    pub strategy: Strategy,
    pub profile: Option<String>,
    pub history: History,
    pub unit: Unit,
    pub native: Native,
    /// Whether to decide and report, but forward the request unchanged.
    pub observe: bool,
    pub allow_headers: AllowHeaders,
    pub budget: BudgetPolicy,
    /// Windows that differ from the model table on this route, the most specific pattern first.
    pub windows: Vec<ModelWindow>,
    /// Whether a request that the upstream refuses as too long is planned again and sent once more.
    pub rescue: bool,
    pub observations: Observations,
    pub mask: Mask,
    /// `None` if long observations stay whole until they are masked.
    pub trim: Option<Trim>,
    pub fold: Fold,
    pub prune: Prune,
    pub recall: Recall,
    pub window: Window,
    pub blocks: Blocks,
    pub limits: Limits,
}

/// Who stores the history of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// The client, which resends it with every request.
    Client,
    /// The proxy. The client sends only new messages.
    Proxy,
}

/// How to treat a request that asks the provider to manage its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Native {
    /// Leave its messages to the provider.
    Defer,
    /// Manage it like any other.
    Ignore,
}

/// The unit of the block limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Tokens,
    Words,
}

/// The request headers with which a client may change the policy of a single request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowHeaders {
    /// `x-tidegate-strategy`.
    pub strategy: bool,
    /// `x-tidegate-bypass`.
    pub bypass: bool,
}

/// Which messages are observations, besides tool results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observations {
    /// User messages that match are observations, too.
    pub user_pattern: Option<Pattern>,
}

/// How observations are masked.
#[derive(Clone, Debug, PartialEq)]
pub struct Mask {
    pub policy: MaskPolicy,
    /// The text that replaces the content of a masked observation.
    pub placeholder: String,
    /// How many of the identifiers that first appeared in a result its placeholder names.
    pub hint: usize,
    /// Tools whose results are never masked.
    pub exclude_tools: Vec<Glob>,
}

choices!(History { "client" => Client, "proxy" => Proxy });
choices!(Native { "defer" => Defer, "ignore" => Ignore });
choices!(Unit { "tokens" => Tokens, "words" => Words });

impl Choice for Strategy {
    const ALL: &'static [(&'static str, Strategy)] = &[
        ("passthrough", Strategy::Passthrough),
        ("masking", Strategy::Masking),
        ("summarization", Strategy::Summarization),
        ("hybrid", Strategy::Hybrid),
        ("window", Strategy::Window),
    ];
}

/// Returns the name of a strategy in the file and in headers.
#[must_use]
pub fn strategy_name(strategy: Strategy) -> &'static str {
    strategy.name()
}

/// Parses the name of a strategy; the inverse of [`strategy_name`].
#[must_use]
pub fn strategy_from_name(name: &str) -> Option<Strategy> {
    Strategy::ALL.iter().find(|(known, _)| *known == name).map(|(_, strategy)| *strategy)
}

const PLACEHOLDER: &str = "[OMITTED_OBSERVATION: too old; available in memory store]";

/// How many identifiers a placeholder names where the model can ask for the result.
const HINT: usize = 60;

impl Context {
    /// `summarizers` are the valid values of `fold.summarizer`; `stores_raw` is `store.raw`.
    pub(crate) fn read(section: &mut Section<'_>, summarizers: &[&str], stores_raw: bool) -> Context {
        let BudgetSection { policy, windows, rescue } = section.section("budget", budget::read);
        let recall = section.section("recall", |recall| Recall::read(recall, stores_raw));
        Context {
            strategy: section.choice("strategy", Strategy::Masking),
            profile: section.optional("profile", profile::name),
            history: section.choice("history", History::Client),
            unit: section.choice("unit", Unit::Tokens),
            native: section.choice("native", Native::Defer),
            observe: section.flag("observe", false),
            allow_headers: AllowHeaders::read(section),
            budget: policy,
            windows,
            rescue,
            observations: section.section("observations", Observations::read),
            mask: section.section("mask", |mask| Mask::read(mask, recall)),
            trim: section.section("trim", Trim::read),
            fold: section.section("fold", |fold| Fold::read(fold, summarizers)),
            prune: section.section("prune", Prune::read),
            recall,
            window: section.section("window", Window::read),
            blocks: section.section("blocks", Blocks::read),
            limits: section.section("limits", Limits::read),
        }
    }
}

/// The context window of some models on one route.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelWindow {
    pub models: Glob,
    pub window: Tokens,
    /// Whether the value comes from the route's profile.
    pub from_profile: bool,
}

impl Context {
    /// Returns the window that this route sets for a model. A window from the profile does not apply if the operator has set one in
    /// `[models]` (`is_in_models`).
    #[must_use]
    pub fn window_of(&self, model: &str, is_in_models: bool) -> Option<Tokens> {
        let applies =
            |rule: &&ModelWindow| rule.models.matches(model) && !(rule.from_profile && is_in_models);
        self.windows.iter().find(applies).map(|rule| rule.window)
    }
}

const STRATEGY_HEADER: &str = "x-tidegate-strategy";
const BYPASS_HEADER: &str = "x-tidegate-bypass";

impl AllowHeaders {
    fn read(section: &mut Section<'_>) -> AllowHeaders {
        let default = AllowHeaders { strategy: true, bypass: true };
        section.with_default("allow_headers", default, AllowHeaders::parse, |_| {
            format!("[\"{STRATEGY_HEADER}\", \"{BYPASS_HEADER}\"]")
        })
    }

    fn parse(node: &Node) -> Result<AllowHeaders, InvalidValue> {
        let must = format!("must be a list of `{STRATEGY_HEADER}` and `{BYPASS_HEADER}`");
        let invalid = || InvalidValue::new(must.clone(), "write `[]` to allow neither");
        let Value::List(items) = &node.value else { return Err(invalid()) };
        let mut allow = AllowHeaders { strategy: false, bypass: false };
        for item in items {
            match value::header(item).map_err(|_| invalid())?.as_str() {
                STRATEGY_HEADER => allow.strategy = true,
                BYPASS_HEADER => allow.bypass = true,
                _ => return Err(invalid()),
            }
        }
        Ok(allow)
    }
}

impl Observations {
    fn read(section: &mut Section<'_>) -> Observations {
        Observations { user_pattern: section.optional("user_pattern", pattern) }
    }
}

fn pattern(node: &Node) -> Result<Pattern, InvalidValue> {
    let source = value::text(node)?;
    Pattern::new(&source).map_err(|error| {
        // The error shows the pattern first. Its last line is the reason.
        let message = error.to_string();
        let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
        let reason = if node.expanded { "" } else { reason };
        let must = format!("must be a regular expression: {reason}");
        InvalidValue::new(
            must.trim_end_matches(": "),
            "use single quotes to keep backslashes as they are: `'^Observation:'`",
        )
    })
}

impl Mask {
    fn read(section: &mut Section<'_>, recall: Recall) -> Mask {
        // Without a way to ask for a result, naming what is in it helps less than it costs.
        let hint = if recall.tool { HINT } else { 0 };
        let policy = MaskPolicy {
            keep: section.keep("keep", Keep::Turns(nonzero(10))),
            pace: section.pace("pace", Pace::BreakEven),
        };
        Mask {
            policy,
            placeholder: section.text("placeholder", PLACEHOLDER, value::text),
            hint: section.with_default("hint", hint, policy::hint, policy::show_hint),
            exclude_tools: section
                .with_default("exclude_tools", Vec::new(), value::globs, |_| "[]".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_name_parses_to_its_strategy() {
        use Strategy::{Hybrid, Masking, Passthrough, Summarization, Window};
        for strategy in [Passthrough, Masking, Summarization, Hybrid, Window] {
            assert_eq!(strategy_from_name(strategy_name(strategy)), Some(strategy));
        }
        assert_eq!(strategy_from_name("Masking"), None);
    }
}
