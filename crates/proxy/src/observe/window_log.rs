//! Logs the arithmetic of the `window` strategy, the sizes of blocks, and the fallback to words.

use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_context::{BlockSizes, Outcome, TurnInput};
use tidegate_engine::{Budget, Cut, Plan, WindowFigures};
use tracing::{debug, info, warn};

pub(crate) fn log_turn(model: &str, input: &TurnInput, outcome: &Outcome) {
    if input.falls_back_to_words() {
        warn_of_words();
    }
    log_window(model, &outcome.assessment.decision.plan);
    if let Some(sizes) = &outcome.figures.blocks {
        log_blocks(sizes);
    }
}

fn warn_of_words() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Ordering::Relaxed) {
        warn!("no tokenizer for a model; its block limits are counted in words");
    }
}

fn log_window(model: &str, plan: &Plan) {
    let Some(WindowFigures { scaffold, room, history, cut }) = plan.window else { return };
    let Budget { window, safe, output, overhead, .. } = plan.budget;
    // Without a window, everything fits.
    let (Some(window), Some(safe)) = (window.tokens(), safe) else { return };
    let Some(Cut { average, head_room, tail_room, planned, kept }) = cut else {
        debug!(%model, model_limit = window.0, safe_budget = safe.0, scaffold = (scaffold + overhead).0, output_reserve = output.0,
            story_budget = room.0, actual_story = history.0, "window budget: everything fits");
        return;
    };
    info!(%model, model_limit = window.0, safe_budget = safe.0, scaffold = (scaffold + overhead).0, scaffold_raw = scaffold.0,
        fixed_reserve = overhead.0, output_reserve = output.0, story_budget = room.0, actual_story = history.0,
        "window budget exceeded");
    info!(
        average = average.0,
        start_budget = head_room.0,
        start_turns = planned.0,
        end_budget = tail_room.0,
        end_turns = planned.1,
        "head and tail by their shares"
    );
    if kept != planned {
        warn!(
            "adaptive truncation reduced head and tail to {}+{} (from {}+{}) to fit the budget",
            kept.0, kept.1, planned.0, planned.1
        );
    }
}

fn log_blocks(sizes: &BlockSizes) {
    debug!(
        memory_before = sizes.memory_before,
        memory_after = sizes.memory_after,
        summary_before = sizes.summary_before,
        summary_after = sizes.summary_after,
        history_before = sizes.history_before,
        history_after = sizes.history_after,
        removed_lines = sizes.removed_lines,
        fell_back_to_words = sizes.fell_back_to_words,
        "block sizes"
    );
}
