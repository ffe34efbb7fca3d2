//! Renders the explanation for people.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::fmt::Write;
use std::io::IsTerminal;
use tidegate_config::strategy_name;
use tidegate_context::{Place, PlacedExcerpt};
use tidegate_engine::{Kind, Tokens};
use tidegate_explain::figures::{Source, duration, printable, tokens};
use tidegate_explain::{Case, Ending, Fate, Insertion, figures, folding, grouped, recalling};
use tidegate_tokens::Fit;

pub(super) fn render(name: &str, case: &Case<'_>) -> String {
    let mut out = String::new();
    let (route, upstream) = (&case.request.route.name, &case.request.route.upstream.name);
    let _ = writeln!(
        out,
        "{name}: route `{route}`, upstream `{upstream}`, strategy {}\n",
        strategy_name(case.request.strategy)
    );
    section(&mut out, None, messages(case));
    section(&mut out, Some("budget"), budget(case));
    if case.request.strategy.masks() {
        section(&mut out, Some("masking"), masking(case));
        notes(&mut out, &[figures::note(case).to_owned()]);
    }
    if case.request.strategy.folds() {
        section(&mut out, Some("folding"), fold(case));
        notes(&mut out, &folding::notes(case));
    }
    if case.recalls() && !case.assessment.excerpts.is_empty() {
        let _ = writeln!(out, "recall\n {}", recalling::recall_note(case));
        for excerpt in &case.assessment.excerpts {
            let words = recalling::recalled_for(case, excerpt).join(", ");
            let _ = writeln!(out, " in message {}: {words}", excerpt.message);
        }
        out.push('\n');
    }
    section(&mut out, Some("model"), model(case));
    let _ = writeln!(out, "verdict: {}", figures::verdict(case));
    if case.ending() == Ending::Refused {
        let _ = writeln!(out, "  hint: {}", hint(case));
    }
    out
}

fn section(out: &mut String, title: Option<&str>, table: Table) {
    if let Some(title) = title {
        let _ = writeln!(out, "{title}");
    }
    let _ = writeln!(out, "{}\n", table.trim_fmt());
}

/// Notes go directly under their table, before the empty line that ends it.
fn notes(out: &mut String, notes: &[String]) {
    out.pop();
    for note in notes {
        let _ = writeln!(out, " {note}");
    }
    out.push('\n');
}

/// An empty table without borders.
fn table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        // A pipe has no width: print one message per line, never wrapped.
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    table
}

fn align_right(table: &mut Table, columns: &[usize]) {
    for &column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn messages(case: &Case<'_>) -> Table {
    let mut table = table();
    table.set_header(["#", "role", "kind", "tokens", "action", "why"]);
    let insertions = case.insertions();
    for (index, fate) in case.fates.iter().enumerate() {
        for (place, insertion) in insertions.iter().filter(|(place, _)| place.before() == index) {
            table.add_row(inserted(case, *place, *insertion));
        }
        let excerpts = case.assessment.excerpts.iter().filter(|excerpt| excerpt.message == index);
        excerpts.for_each(|excerpt| _ = table.add_row(quoted(excerpt)));
        let count = if fate.after == fate.tokens {
            tokens(fate.tokens)
        } else {
            format!("{} → {}", tokens(fate.tokens), tokens(fate.after))
        };
        let why = figures::why(case, fate.why);
        let row = [&index.to_string(), fate.role, &kind(fate), &count, fate.action.name(), &why];
        table.add_row(row);
    }
    align_right(&mut table, &[0, 3]);
    table
}

/// The row of a text of our own, which has no index. It stands before the row of the message that it is in.
fn inserted(case: &Case<'_>, place: Place, insertion: Insertion) -> [String; 6] {
    let (role, kind, size, why) = match insertion {
        Insertion::Summary { tokens: size, covered } => {
            let why = format!("replaces {}", figures::counted(covered, "message"));
            (case.fold_role(), "summary", tokens(size), why)
        }
        Insertion::Memory { tokens: size } => {
            (case.fold_role(), "memory", tokens(size), "pinned to the conversation".to_owned())
        }
        Insertion::Marker => ("user", "marker", String::new(), "replaces dropped messages".to_owned()),
    };
    let action = match place {
        Place::Before(_) | Place::Joined(_) => "insert".to_owned(),
        Place::In(message) => format!("add to {message}"),
    };
    ["+".to_owned(), role.to_owned(), kind.to_owned(), size, action, why]
}

/// The row of an excerpt, which stands in the message below it.
fn quoted(excerpt: &PlacedExcerpt) -> [String; 6] {
    let sources: Vec<String> = excerpt.sources.iter().map(usize::to_string).collect();
    let why = format!("quotes {}, which this message is about", sources.join(", "));
    let row = ["+", "user", "excerpt", &tokens(excerpt.tokens), "insert", &why];
    row.map(str::to_owned)
}

fn kind(fate: &Fate) -> String {
    let calls: Vec<String> = fate.calls.iter().map(|tool| printable(tool)).collect();
    match (fate.kind, &fate.tool) {
        (Kind::Observation, Some(tool)) => format!("result of {}", printable(tool)),
        (Kind::Observation, None) => "observation".to_owned(),
        (Kind::Speech, _) if !calls.is_empty() => format!("calls {}", calls.join(", ")),
        (Kind::Speech, _) => String::new(),
    }
}

fn budget(case: &Case<'_>) -> Table {
    let plan = &case.assessment.decision.plan;
    let (policy, budget) = (&case.request.route.context.budget, &plan.budget);
    let window = match figures::sources(case).1 {
        Source::Route => "budget.windows".to_owned(),
        Source::Config => format!("models.\"{}\".window", printable(&case.request.model.name)),
        Source::Table => format!("built-in table, entry `{}`", printable(&case.request.model.name)),
        Source::Learnt => "named by the upstream".to_owned(),
        Source::Fallback => "budget.fallback_window, because the model is unknown".to_owned(),
        Source::Unknown => "unknown: set it in `[models]`; the upstream judges".to_owned(),
    };
    let mut safe = format!("safety_ratio {} of the window", policy.safety_ratio);
    if let Some(cap) = policy.window_cap {
        let _ = write!(safe, ", at most window_cap {}", tokens(cap));
    }
    let saved = if case.request.route.context.observe && plan.after != plan.before {
        "not applied: observe = true".to_owned()
    } else {
        figures::savings(case)
    };
    let sent: Tokens = case.assessment.chat.messages.iter().map(|message| message.tokens).sum();
    let mut table = table();
    table.add_rows([
        ["", "window", &figures::limit(budget.window.tokens()), &window],
        ["", "safe", &figures::limit(budget.safe), &safe],
        ["-", "output reserve", &tokens(budget.output), &output(case)],
        ["-", "overhead reserve", &tokens(budget.overhead), &overhead(case)],
        ["=", "input budget", &figures::limit(budget.input), &limit(case)],
        ["", "", "", ""],
        ["", "messages", &tokens(sent), ""],
        ["+", "tools, format, reply", &tokens(case.assessment.chat.fixed), ""],
        ["=", "used before", &tokens(plan.before), ""],
        ["-", "saved", &tokens(plan.before.saturating_sub(plan.after)), &saved],
        ["=", "used after", &tokens(plan.after), &share(plan.after, budget.input)],
    ]);
    align_right(&mut table, &[2]);
    table
}

fn output(case: &Case<'_>) -> String {
    let reserve = &case.request.route.context.budget.output_reserve;
    if let Some(limit) = case.request.outline.output_limit {
        return format!("the request's {}", limit.key);
    }
    let cap = reserve.cap.map_or(String::new(), |cap| format!(", at most cap {}", tokens(cap)));
    format!("ratio {} of safe{cap}, at least min {}", reserve.ratio, tokens(reserve.min))
}

fn overhead(case: &Case<'_>) -> String {
    let reserve = &case.request.route.context.budget.overhead_reserve;
    let (min, fixed) = (tokens(reserve.min), tokens(reserve.fixed));
    format!("ratio {} of the window, at least min {min}, plus fixed {fixed}", reserve.ratio)
}

/// The setting that limits the input further than the reserves do.
fn limit(case: &Case<'_>) -> String {
    let (policy, budget) = (&case.request.route.context.budget, &case.assessment.decision.plan.budget);
    let (Some(safe), Some(input)) = (budget.safe, budget.input) else {
        return budget.input.map_or_else(String::new, |_| "max_input".to_owned());
    };
    let left = safe.saturating_sub(budget.output).saturating_sub(budget.overhead);
    match policy.max_input {
        _ if left == Tokens::ZERO => "the reserves take the whole window".to_owned(),
        _ if input == left => String::new(),
        Some(max) if input == max => format!("limited by max_input, otherwise {}", tokens(left)),
        _ => format!(
            "max_context_ratio {} of the window, otherwise {}",
            policy.max_context_ratio,
            tokens(left)
        ),
    }
}

fn share(used: Tokens, budget: Option<Tokens>) -> String {
    let Some(budget) = budget.filter(|budget| *budget > Tokens::ZERO) else { return String::new() };
    format!("{:.1} % of the input budget", used.0 as f64 * 100.0 / budget.0 as f64)
}

fn masking(case: &Case<'_>) -> Table {
    let mut table = table();
    table.add_rows([
        ["mask.keep", case.setting("mask.keep")],
        ["mask.pace", case.setting("mask.pace")],
        ["cause", &figures::cause(case)],
    ]);
    table
}

fn fold(case: &Case<'_>) -> Table {
    let mut table = table();
    for key in ["fold.when", "fold.keep", "fold.mode", "fold.summarizer", "prune.when", "prune.keep"] {
        table.add_row([key, case.setting(key)]);
    }
    table.add_row(["cause", &folding::cause(case)]);
    table
}

fn model(case: &Case<'_>) -> Table {
    let model = case.request.model;
    let asked = case.request.outline.model.as_deref().map_or("none".to_owned(), printable);
    let entry = printable(&model.name);
    let matched = match figures::sources(case).0 {
        Source::Config => format!("models.\"{entry}\" of the configuration"),
        Source::Table => format!("built-in entry `{entry}`"),
        // A route configures windows, not models.
        Source::Route | Source::Learnt | Source::Fallback | Source::Unknown => {
            "none: describe it in `[models]`".to_owned()
        }
    };
    let fit = match model.fit {
        Fit::Exact => "exact",
        Fit::Nearest => "nearest match; a running proxy corrects the counts by what the upstream reports",
    };
    let prices = model.prices.map_or_else(
        || "unknown: cached input is assumed to cost a tenth".to_owned(),
        |prices| {
            let output = prices.output.map_or("unknown".to_owned(), usd);
            let (input, cached, written) = (usd(prices.input), usd(prices.cached()), usd(prices.written()));
            format!(
                "{input} input, {cached} cached, {written} written to the cache, {output} output, per million"
            )
        },
    );
    let mut table = table();
    table.add_rows([
        ["requested", &asked],
        ["matched", &matched],
        ["encoding", &format!("{}, {fit}", model.encoding)],
        ["prices", &prices],
        ["cache", model.caching.kind.name()],
        ["cache life", &duration(model.caching.ttl)],
    ]);
    table
}

/// At least two decimals, and more if the price has them.
fn usd(price: f64) -> String {
    let cents = format!("{price:.2}");
    let exact = price.to_string();
    format!("${}", if exact.len() > cents.len() { exact } else { cents })
}

fn hint(case: &Case<'_>) -> String {
    let plan = &case.assessment.decision.plan;
    let over = grouped(figures::over(plan).0);
    let window = match case.assessment.decision.plan.budget.window.certain() {
        Some(_) => "or use a model with a larger window",
        None => "or set the model's real window in `[models.\"NAME\"] window = …`",
    };
    let keep = if case.request.strategy.masks() { " keep less unmasked (`context.mask.keep`)," } else { "" };
    let limit = case.request.outline.dialect.output_limit_key();
    format!("it is {over} tokens over: send less, request a shorter response (`{limit}`),{keep} {window}")
}
