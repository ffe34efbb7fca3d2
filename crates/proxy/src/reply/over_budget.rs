//! The text of `context_budget_exceeded`.

use std::fmt::Write;
use tidegate_context::Figures;
use tidegate_engine::{Budget, ContextWindow, Tokens};
use tidegate_wire::Dialect;

/// Says how far a request is over its limit, where the limit comes from, and what to do.
pub(crate) fn message(dialect: Dialect, figures: &Figures) -> String {
    let Figures { before, after, budget, masked, postponed, bound, .. } = *figures;
    let mut text = format!("The request needs {after} input tokens");
    if masked > 0 {
        // Writing into a string does not fail.
        let _ = write!(text, " even with {masked} observations masked ({before} as sent)");
    }
    text.push_str(&limit(&budget));
    text.push_str(source(budget.window));
    if bound > 0 {
        let _ = write!(
            text,
            " The first {bound} messages cannot be edited, because the model's thinking behind them is bound to them."
        );
    }
    text.push_str(" Shorten the input, start a new conversation, ");
    if masked == 0 && postponed == 0 {
        let _ = write!(text, "ask for a shorter answer (`{}`), ", dialect.output_limit_key());
    } else {
        text.push_str("keep fewer turns unmasked (`context.mask.keep`), ");
    }
    text.push_str(match budget.window {
        ContextWindow::Configured(_) | ContextWindow::Known(_) => "or use a model with a larger window.",
        ContextWindow::Learnt(_)
        | ContextWindow::Typical(_)
        | ContextWindow::Fallback(_)
        | ContextWindow::Unknown => "or set the model's real window in `[models.\"NAME\"] window = …`.",
    });
    text
}

/// The limit and its arithmetic.
fn limit(budget: &Budget) -> String {
    let Budget { window, safe, output, overhead, input, refuse_above } = *budget;
    let (Some(size), Some(input)) = (window.tokens(), input) else {
        return format!(
            ", and {} may be used (`context.budget.max_input`).",
            refuse_above.unwrap_or_default()
        );
    };
    let most = refuse_above.unwrap_or_default();
    let unreserved = safe.unwrap_or(size).saturating_sub(output).saturating_sub(overhead);
    if most == input && input < unreserved {
        return format!(
            ", and {input} may be used: `context.budget.max_input` or `context.budget.max_context_ratio` allows no more of a window of {size}."
        );
    }
    if most == input {
        let used = safe.filter(|safe| *safe < size);
        let used = used.map_or_else(String::new, |safe| format!(", {safe} of it in use,"));
        return format!(
            ", and {input} may be used: a window of {size}{used} less {output} reserved for the answer and {overhead} for overhead."
        );
    }
    let asked = size.saturating_sub(most);
    if most > size {
        format!(", which cannot fit a window of {size}, even if that is an overestimate.")
    } else if asked > Tokens::ZERO {
        format!(
            ", and {most} may be used: a window of {size} less the {asked} that it asks for as its answer."
        )
    } else {
        format!(", and {size} may be used: its whole window.")
    }
}

/// Who says how large the window is.
fn source(window: ContextWindow) -> &'static str {
    match window {
        ContextWindow::Configured(_) => " The window is the configured one.",
        ContextWindow::Known(_) => " The window is the one that the model's provider has published.",
        ContextWindow::Learnt(_) => " The window is the one that the upstream has named.",
        ContextWindow::Typical(_) => " The window is the usual one of the model's family.",
        ContextWindow::Fallback(_) => {
            " The window is `context.budget.fallback_window`, because this model is unknown."
        }
        ContextWindow::Unknown => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_engine::{Accuracy, BudgetPolicy, Capacity, RefuseAt};

    fn text(policy: &BudgetPolicy, capacity: &Capacity) -> String {
        limit(&policy.budget(capacity))
    }

    #[test]
    fn the_text_names_the_limit_and_where_it_comes_from() {
        let strict = BudgetPolicy {
            refuse_at: RefuseAt::Budget,
            fallback_window: Some(Tokens(8192)),
            ..BudgetPolicy::default()
        };
        let unknown = text(&strict, &Capacity::of(ContextWindow::Unknown));
        assert!(unknown.contains("and 5530 may be used: a window of 8192 less 1638"), "{unknown}");
        let loose = BudgetPolicy::default();
        let known = Capacity { requested_output: Some(Tokens(1000)), ..Capacity::known(Tokens(8192)) };
        let asked = text(&loose, &known);
        assert!(asked.contains("7192 may be used: a window of 8192 less"), "{asked}");
        assert!(asked.contains("less the 1000 that it asks for"), "{asked}");
        let whole = text(&loose, &Capacity::of(ContextWindow::Configured(Tokens(8192))));
        assert!(whole.contains("8192 may be used: its whole window"), "{whole}");
        for refuse_at in [RefuseAt::Window, RefuseAt::Budget] {
            let capped = BudgetPolicy { refuse_at, max_input: Some(Tokens(3000)), ..BudgetPolicy::default() };
            let capped = text(&capped, &Capacity::known(Tokens(128_000)));
            assert!(capped.contains("3000 may be used: `context.budget.max_input`"), "{capped}");
            assert!(!capped.contains("less"), "its arithmetic would be wrong: {capped}");
        }
        let estimated = Capacity { accuracy: Accuracy::Within(4.0), ..known };
        assert!(text(&loose, &estimated).contains("overestimate"));
    }
}
