use crate::section::Section;
use crate::tree::{Node, Value};
use crate::value::{self, Wrong};
use crate::{Glob, ModelWindow, Origin};
use tidegate_engine::{BudgetPolicy, OutputReserve, OverheadReserve, Tokens};

/// The engine's own defaults, so that the arithmetic and the file cannot disagree.
pub(crate) fn read(section: &mut Section<'_>) -> (BudgetPolicy, Vec<ModelWindow>) {
    let default = BudgetPolicy::default();
    let policy = BudgetPolicy {
        fallback_window: section.some_tokens("fallback_window", default.fallback_window.0),
        safety_ratio: section.ratio("safety_ratio", default.safety_ratio),
        window_cap: section.optional("window_cap", value::some_tokens),
        max_context_ratio: section.ratio("max_context_ratio", default.max_context_ratio),
        max_input: section.optional("max_input", value::some_tokens),
        output_reserve: section.section("output_reserve", |reserve| output(reserve, default.output_reserve)),
        overhead_reserve: section
            .section("overhead_reserve", |reserve| overhead(reserve, default.overhead_reserve)),
    };
    (policy, section.optional("windows", windows).unwrap_or_default())
}

/// `{ "gpt-*" = 128000 }`: the longest name that matches wins, so that one model can be told from its family.
fn windows(node: &Node) -> Result<Vec<ModelWindow>, Wrong> {
    let Value::Table(entries) = &node.value else {
        return Err(Wrong::new("must be a table", "such as `{ \"my-model\" = 32768 }`"));
    };
    let one = |(name, node): (&String, &Node)| {
        let is_profiles = matches!(node.origin, Origin::Profile(_));
        Ok(ModelWindow { models: Glob::new(name), window: value::some_tokens(node)?, is_profiles })
    };
    let mut windows = entries.iter().map(one).collect::<Result<Vec<_>, Wrong>>()?;
    windows.sort_by_key(|rule| std::cmp::Reverse(rule.models.as_str().len()));
    Ok(windows)
}

/// A number of tokens, or `"none"`.
fn cap(node: &Node) -> Result<Option<Tokens>, Wrong> {
    match &node.value {
        Value::Text(text) if text == "none" => Ok(None),
        _ => value::tokens(node).map(Some),
    }
}

fn output(section: &mut Section<'_>, default: OutputReserve) -> OutputReserve {
    let show = |cap: &Option<Tokens>| cap.map_or_else(|| "\"none\"".to_owned(), |cap| cap.0.to_string());
    OutputReserve {
        cap: section.or("cap", default.cap, cap, show),
        ratio: section.share("ratio", default.ratio),
        min: section.tokens("min", default.min.0),
    }
}

fn overhead(section: &mut Section<'_>, default: OverheadReserve) -> OverheadReserve {
    OverheadReserve {
        min: section.tokens("min", default.min.0),
        ratio: section.share("ratio", default.ratio),
        fixed: section.tokens("fixed", default.fixed.0),
    }
}
