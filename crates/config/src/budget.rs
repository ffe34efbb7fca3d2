use crate::section::Section;
use crate::value;
use tidegate_engine::{BudgetPolicy, OutputReserve, OverheadReserve, Tokens};

/// The engine's own defaults, so that the arithmetic and the file cannot disagree.
pub(crate) fn read(section: &mut Section<'_>) -> BudgetPolicy {
    let default = BudgetPolicy::default();
    BudgetPolicy {
        fallback_window: section.some_tokens("fallback_window", default.fallback_window.0),
        safety_ratio: section.ratio("safety_ratio", default.safety_ratio),
        window_cap: section.optional("window_cap", value::some_tokens),
        max_context_ratio: section.ratio("max_context_ratio", default.max_context_ratio),
        max_input: section.optional("max_input", value::some_tokens),
        output_reserve: section.section("output_reserve", |reserve| output(reserve, default.output_reserve)),
        overhead_reserve: section
            .section("overhead_reserve", |reserve| overhead(reserve, default.overhead_reserve)),
    }
}

fn output(section: &mut Section<'_>, default: OutputReserve) -> OutputReserve {
    let show = |cap: &Option<Tokens>| cap.map_or_else(|| "none".to_owned(), |cap| cap.0.to_string());
    OutputReserve {
        cap: section.or("cap", default.cap, |node| value::tokens(node).map(Some), show),
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
