use crate::choice::Choice;
use crate::section::Section;
use crate::tree::{Node, Value};
use crate::value::{self, InvalidValue};
use crate::{Glob, ModelWindow, Origin};
use tidegate_engine::{BudgetPolicy, OutputReserve, OverheadReserve, RefuseAt, Tokens};

/// `[context.budget]`, as it was read.
pub(crate) struct BudgetSection {
    pub(crate) policy: BudgetPolicy,
    pub(crate) windows: Vec<ModelWindow>,
    pub(crate) rescue: bool,
}

impl Choice for RefuseAt {
    const ALL: &'static [(&'static str, RefuseAt)] =
        &[("window", RefuseAt::Window), ("budget", RefuseAt::Budget)];
}

/// Reads `[context.budget]`. The defaults are the engine's own.
pub(crate) fn read(section: &mut Section<'_>) -> BudgetSection {
    let default = BudgetPolicy::default();
    let policy = BudgetPolicy {
        fallback_window: section.with_default("fallback_window", default.fallback_window, fallback, show_cap),
        refuse_at: section.choice("refuse_at", default.refuse_at),
        safety_ratio: section.ratio("safety_ratio", default.safety_ratio),
        window_cap: section.optional("window_cap", value::positive_tokens),
        max_context_ratio: section.ratio("max_context_ratio", default.max_context_ratio),
        max_input: section.optional("max_input", value::positive_tokens),
        output_reserve: section.section("output_reserve", |reserve| output(reserve, default.output_reserve)),
        overhead_reserve: section
            .section("overhead_reserve", |reserve| overhead(reserve, default.overhead_reserve)),
    };
    BudgetSection {
        policy,
        rescue: section.flag("rescue", true),
        windows: section.optional("windows", windows).unwrap_or_default(),
    }
}

/// Parses `{ "gpt-*" = 128000 }`. Longer patterns come first, so that a model can differ from its family.
fn windows(node: &Node) -> Result<Vec<ModelWindow>, InvalidValue> {
    let Value::Table(entries) = &node.value else {
        return Err(InvalidValue::new("must be a table", "for example, `{ \"my-model\" = 32768 }`"));
    };
    let rule = |(name, node): (&String, &Node)| {
        let from_profile = matches!(node.origin, Origin::Profile(_));
        Ok(ModelWindow { models: Glob::new(name), window: value::positive_tokens(node)?, from_profile })
    };
    let mut windows = entries.iter().map(rule).collect::<Result<Vec<_>, InvalidValue>>()?;
    windows.sort_by_key(|rule| std::cmp::Reverse(rule.models.as_str().len()));
    Ok(windows)
}

/// Parses a positive number of tokens, or `"none"`.
fn fallback(node: &Node) -> Result<Option<Tokens>, InvalidValue> {
    match &node.value {
        Value::Text(text) if text == "none" => Ok(None),
        _ => value::positive_tokens(node).map(Some),
    }
}

fn show_cap(cap: &Option<Tokens>) -> String {
    cap.map_or_else(|| "\"none\"".to_owned(), |cap| cap.0.to_string())
}

/// Parses a number of tokens, or `"none"`.
fn cap(node: &Node) -> Result<Option<Tokens>, InvalidValue> {
    match &node.value {
        Value::Text(text) if text == "none" => Ok(None),
        _ => value::tokens(node).map(Some),
    }
}

fn output(section: &mut Section<'_>, default: OutputReserve) -> OutputReserve {
    OutputReserve {
        cap: section.with_default("cap", default.cap, cap, show_cap),
        ratio: section.fraction("ratio", default.ratio),
        min: section.tokens("min", default.min.0),
    }
}

fn overhead(section: &mut Section<'_>, default: OverheadReserve) -> OverheadReserve {
    OverheadReserve {
        min: section.tokens("min", default.min.0),
        ratio: section.fraction("ratio", default.ratio),
        fixed: section.tokens("fixed", default.fixed.0),
    }
}
