use crate::tree::{Node, Value};
use crate::value::{InvalidValue, count, positive_tokens, ratio, tokens};
use tidegate_engine::{Keep, Pace, SummaryLimit, Trigger};

/// Parses `{ turns = 10 }`, with exactly one unit.
pub(crate) fn keep(node: &Node) -> Result<Keep, InvalidValue> {
    let units = "must set exactly one of `turns`, `user_turns`, `messages`, `tokens`, `ratio`";
    let invalid = || InvalidValue::new(units, "for example, `{ turns = 10 }`");
    let Value::Table(entries) = &node.value else { return Err(invalid()) };
    let mut entries = entries.iter();
    let (Some((unit, value)), None) = (entries.next(), entries.next()) else { return Err(invalid()) };
    let keep = match unit.as_str() {
        "turns" => Keep::Turns(count(value)?),
        "user_turns" => Keep::UserTurns(count(value)?),
        "messages" => Keep::Messages(count(value)?),
        "tokens" => Keep::Tokens(positive_tokens(value)?),
        "ratio" => Keep::Ratio(ratio(value)?),
        _ => return Err(invalid()),
    };
    Ok(keep)
}

pub(crate) fn show_keep(keep: &Keep) -> String {
    match keep {
        Keep::Turns(count) => format!("{{ turns = {count} }}"),
        Keep::UserTurns(count) => format!("{{ user_turns = {count} }}"),
        Keep::Messages(count) => format!("{{ messages = {count} }}"),
        Keep::Tokens(tokens) => format!("{{ tokens = {} }}", tokens.0),
        Keep::Ratio(ratio) => format!("{{ ratio = {ratio:?} }}"),
    }
}

/// Parses a number of tokens or `{ ratio = 0.10, min = 1500 }`.
pub(crate) fn summary_limit(node: &Node) -> Result<SummaryLimit, InvalidValue> {
    let Value::Table(entries) = &node.value else {
        return positive_tokens(node).map(SummaryLimit::Tokens);
    };
    let invalid = || {
        let must = "must be a number of tokens, or set `ratio` and `min`";
        InvalidValue::new(must, "for example, `1500` or `{ ratio = 0.10, min = 1500 }`")
    };
    let (mut share, mut min) = (None, None);
    for (key, value) in entries {
        match key.as_str() {
            "ratio" => share = Some(ratio(value)?),
            "min" => min = Some(positive_tokens(value)?),
            _ => return Err(invalid()),
        }
    }
    let (Some(ratio), Some(min)) = (share, min) else { return Err(invalid()) };
    Ok(SummaryLimit::Share { ratio, min })
}

pub(crate) fn show_summary_limit(limit: &SummaryLimit) -> String {
    match limit {
        SummaryLimit::Tokens(tokens) => tokens.0.to_string(),
        SummaryLimit::Share { ratio, min } => format!("{{ ratio = {ratio:?}, min = {} }}", min.0),
    }
}

/// Parses `{ budget_ratio = 0.70, user_turns = 8 }`, with at least one condition. A node that extends the layer below adds its
/// conditions to the default.
pub(crate) fn trigger(node: &Node, default: Trigger) -> Result<Trigger, InvalidValue> {
    let conditions = "must set at least one of `budget_ratio`, `tokens`, `messages`, `turns`, `user_turns`";
    let invalid = || InvalidValue::new(conditions, "for example, `{ budget_ratio = 0.70, user_turns = 8 }`");
    let Value::Table(entries) = &node.value else { return Err(invalid()) };
    if entries.is_empty() {
        return Err(invalid());
    }
    let mut trigger = if node.extends { default } else { Trigger::default() };
    for (condition, value) in entries {
        match condition.as_str() {
            "budget_ratio" => trigger.budget_ratio = Some(ratio(value)?),
            "tokens" => trigger.tokens = Some(positive_tokens(value)?),
            "messages" => trigger.messages = Some(count(value)?),
            "turns" => trigger.turns = Some(count(value)?),
            "user_turns" => trigger.user_turns = Some(count(value)?),
            _ => return Err(invalid()),
        }
    }
    Ok(trigger)
}

pub(crate) fn show_trigger(trigger: &Trigger) -> String {
    let Trigger { budget_ratio, tokens, messages, turns, user_turns } = trigger;
    let conditions = [
        budget_ratio.map(|ratio| format!("budget_ratio = {ratio:?}")),
        tokens.map(|tokens| format!("tokens = {}", tokens.0)),
        messages.map(|count| format!("messages = {count}")),
        turns.map(|count| format!("turns = {count}")),
        user_turns.map(|count| format!("user_turns = {count}")),
    ];
    format!("{{ {} }}", conditions.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// Parses `"every_turn"`, `"break_even"` or `{ batch = 5 }`.
pub(crate) fn pace(node: &Node) -> Result<Pace, InvalidValue> {
    let invalid = || {
        InvalidValue::new(
            "must be `break_even`, `every_turn` or `{ batch = n }`",
            "`break_even` is right for most routes",
        )
    };
    match &node.value {
        Value::Text(text) if text == "every_turn" => Ok(Pace::EveryTurn),
        Value::Text(text) if text == "break_even" => Ok(Pace::BreakEven),
        Value::Table(entries) if entries.len() == 1 => {
            let batch = entries.get("batch").ok_or_else(invalid)?;
            count(batch).map(Pace::Batch)
        }
        _ => Err(invalid()),
    }
}

pub(crate) fn show_pace(pace: &Pace) -> String {
    match pace {
        Pace::EveryTurn => "\"every_turn\"".to_owned(),
        Pace::Batch(count) => format!("{{ batch = {count} }}"),
        Pace::BreakEven => "\"break_even\"".to_owned(),
    }
}

/// The most identifiers that a placeholder may name.
const MAX_HINT: u64 = 1_000;

/// Parses `{ identifiers = 60 }`.
pub(crate) fn hint(node: &Node) -> Result<usize, InvalidValue> {
    let must = format!("must be `{{ identifiers = n }}` with n from 0 to {MAX_HINT}");
    let invalid = || InvalidValue::new(must.clone(), "for example, `{ identifiers = 60 }`, or 0 for none");
    let Value::Table(entries) = &node.value else { return Err(invalid()) };
    let number = entries.get("identifiers").filter(|_| entries.len() == 1).ok_or_else(invalid)?;
    let number = tokens(number)?.0;
    if number <= MAX_HINT { usize::try_from(number).map_err(|_| invalid()) } else { Err(invalid()) }
}

pub(crate) fn show_hint(hint: &usize) -> String {
    format!("{{ identifiers = {hint} }}")
}
