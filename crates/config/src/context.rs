use crate::choice::{Choice, choices};
use crate::fold::at_least_one;
use crate::section::Section;
use crate::tree::{Node, Value};
use crate::value::{self, Wrong};
use crate::{Blocks, Fold, Glob, Limits, Pattern, Prune, Window, budget, profile};
use tidegate_engine::{BudgetPolicy, Keep, MaskPolicy, Pace, Strategy, Tokens};

/// The policy of a route: what may happen to the messages of its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    pub strategy: Strategy,
    pub profile: Option<String>,
    pub history: History,
    pub unit: Unit,
    /// Decide and report, but forward what the client sent.
    pub observe: bool,
    pub allow_headers: AllowHeaders,
    pub budget: BudgetPolicy,
    /// Windows of models that are other ones on this route than elsewhere.
    pub windows: Vec<ModelWindow>,
    pub observations: Observations,
    pub mask: Mask,
    pub fold: Fold,
    pub prune: Prune,
    pub window: Window,
    pub blocks: Blocks,
    pub limits: Limits,
}

/// Who holds the history of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// The client resends all of it.
    Client,
    /// The client sends what is new.
    Proxy,
}

/// What lengths are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Tokens,
    Words,
}

/// The request headers by which a client may change the policy of its own request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowHeaders {
    /// `x-tidegate-strategy`
    pub strategy: bool,
    /// `x-tidegate-bypass`
    pub bypass: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observations {
    /// User messages that match are observations.
    pub user_pattern: Option<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    pub policy: MaskPolicy,
    /// What the content of a masked observation becomes.
    pub placeholder: String,
    /// Tools whose results are never masked.
    pub exclude_tools: Vec<Glob>,
}

choices!(History { "client" => Client, "proxy" => Proxy });
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

/// A strategy as the file and the headers write it.
#[must_use]
pub fn strategy_name(strategy: Strategy) -> &'static str {
    strategy.name()
}

/// The strategy that a header names.
#[must_use]
pub fn strategy_named(name: &str) -> Option<Strategy> {
    Strategy::ALL.iter().find(|(known, _)| *known == name).map(|(_, strategy)| *strategy)
}

const PLACEHOLDER: &str = "[OMITTED_OBSERVATION: too old; available in memory store]";

impl Context {
    /// `summarizers` are the names that `fold.summarizer` may have.
    pub(crate) fn read(section: &mut Section<'_>, summarizers: &[&str]) -> Context {
        let (budget, windows) = section.section("budget", budget::read);
        Context {
            strategy: section.choice("strategy", Strategy::Masking),
            profile: section.optional("profile", profile::name),
            history: section.choice("history", History::Client),
            unit: section.choice("unit", Unit::Tokens),
            observe: section.flag("observe", false),
            allow_headers: AllowHeaders::read(section),
            budget,
            windows,
            observations: section.section("observations", Observations::read),
            mask: section.section("mask", Mask::read),
            fold: section.section("fold", |fold| Fold::read(fold, summarizers)),
            prune: section.section("prune", Prune::read),
            window: section.section("window", Window::read),
            blocks: section.section("blocks", Blocks::read),
            limits: section.section("limits", Limits::read),
        }
    }
}

/// The window of some models on one route.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelWindow {
    pub models: Glob,
    pub window: Tokens,
    /// Whether the route has it from its profile.
    pub is_profiles: bool,
}

impl Context {
    /// The window that this route says a model has. What its profile says counts only if the operator has not said so for the
    /// `model` itself, in `[models]`.
    #[must_use]
    pub fn window_of(&self, model: &str, is_said_elsewhere: bool) -> Option<Tokens> {
        let counts =
            |rule: &&ModelWindow| rule.models.matches(model) && !(rule.is_profiles && is_said_elsewhere);
        self.windows.iter().find(counts).map(|rule| rule.window)
    }
}

const STRATEGY_HEADER: &str = "x-tidegate-strategy";
const BYPASS_HEADER: &str = "x-tidegate-bypass";

impl AllowHeaders {
    fn read(section: &mut Section<'_>) -> AllowHeaders {
        let default = AllowHeaders { strategy: true, bypass: true };
        section.or("allow_headers", default, AllowHeaders::parse, |_| {
            format!("[\"{STRATEGY_HEADER}\", \"{BYPASS_HEADER}\"]")
        })
    }

    fn parse(node: &Node) -> Result<AllowHeaders, Wrong> {
        let must = format!("must be a list of `{STRATEGY_HEADER}`, `{BYPASS_HEADER}`");
        let wrong =
            || Wrong::new(must.clone(), "write `[]` to let no client change the policy of its requests");
        let Value::List(items) = &node.value else { return Err(wrong()) };
        let mut allow = AllowHeaders { strategy: false, bypass: false };
        for item in items {
            match value::header(item).map_err(|_| wrong())?.as_str() {
                STRATEGY_HEADER => allow.strategy = true,
                BYPASS_HEADER => allow.bypass = true,
                _ => return Err(wrong()),
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

fn pattern(node: &Node) -> Result<Pattern, Wrong> {
    let source = value::text(node)?;
    Pattern::new(&source).map_err(|error| {
        // The message repeats the pattern, and its last line alone says what is wrong.
        let message = error.to_string();
        let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
        let reason = if node.expanded { "" } else { reason };
        let must = format!("must be a regular expression: {reason}");
        Wrong::new(
            must.trim_end_matches(": "),
            "single quotes keep backslashes as they are: `'^Observation:'`",
        )
    })
}

impl Mask {
    fn read(section: &mut Section<'_>) -> Mask {
        let policy = MaskPolicy {
            keep: section.keep("keep", Keep::Turns(at_least_one(10))),
            pace: section.pace("pace", Pace::BreakEven),
        };
        Mask {
            policy,
            placeholder: section.text("placeholder", PLACEHOLDER, value::text),
            exclude_tools: section.or("exclude_tools", Vec::new(), value::globs, |_| "[]".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_has_a_name() {
        use Strategy::{Hybrid, Masking, Passthrough, Summarization, Window};
        for strategy in [Passthrough, Masking, Summarization, Hybrid, Window] {
            assert_eq!(strategy_named(strategy_name(strategy)), Some(strategy));
        }
        assert_eq!(strategy_named("Masking"), None);
    }
}
