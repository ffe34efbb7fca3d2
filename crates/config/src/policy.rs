use crate::tree::{Node, Value};
use crate::value::{Wrong, count, ratio, some_tokens};
use tidegate_engine::{Keep, Pace, Trigger};

/// `{ turns = 10 }`: exactly one unit.
pub(crate) fn keep(node: &Node) -> Result<Keep, Wrong> {
    let units = "must name exactly one of `turns`, `user_turns`, `messages`, `tokens`";
    let wrong = || Wrong::new(units, "such as `{ turns = 10 }`");
    let Value::Table(entries) = &node.value else { return Err(wrong()) };
    let mut entries = entries.iter();
    let (Some((unit, value)), None) = (entries.next(), entries.next()) else { return Err(wrong()) };
    let keep = match unit.as_str() {
        "turns" => Keep::Turns(count(value)?),
        "user_turns" => Keep::UserTurns(count(value)?),
        "messages" => Keep::Messages(count(value)?),
        "tokens" => Keep::Tokens(some_tokens(value)?),
        _ => return Err(wrong()),
    };
    Ok(keep)
}

pub(crate) fn show_keep(keep: &Keep) -> String {
    match keep {
        Keep::Turns(count) => format!("{{ turns = {count} }}"),
        Keep::UserTurns(count) => format!("{{ user_turns = {count} }}"),
        Keep::Messages(count) => format!("{{ messages = {count} }}"),
        Keep::Tokens(tokens) => format!("{{ tokens = {} }}", tokens.0),
    }
}

/// `{ budget_ratio = 0.70, user_turns = 8 }`: at least one condition. A layer that extends adds its conditions to the
/// default.
pub(crate) fn trigger(node: &Node, default: Trigger) -> Result<Trigger, Wrong> {
    let conditions = "must name at least one of `budget_ratio`, `tokens`, `messages`, `turns`, `user_turns`";
    let wrong = || Wrong::new(conditions, "such as `{ budget_ratio = 0.70, user_turns = 8 }`");
    let Value::Table(entries) = &node.value else { return Err(wrong()) };
    if entries.is_empty() {
        return Err(wrong());
    }
    let mut trigger = if node.extends { default } else { Trigger::default() };
    for (condition, value) in entries {
        match condition.as_str() {
            "budget_ratio" => trigger.budget_ratio = Some(ratio(value)?),
            "tokens" => trigger.tokens = Some(some_tokens(value)?),
            "messages" => trigger.messages = Some(count(value)?),
            "turns" => trigger.turns = Some(count(value)?),
            "user_turns" => trigger.user_turns = Some(count(value)?),
            _ => return Err(wrong()),
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

/// `"every_turn"`, `"break_even"` or `{ batch = 5 }`.
pub(crate) fn pace(node: &Node) -> Result<Pace, Wrong> {
    let wrong =
        || Wrong::new("must be `break_even`, `every_turn` or `{ batch = n }`", "`break_even` suits most");
    match &node.value {
        Value::Text(text) if text == "every_turn" => Ok(Pace::EveryTurn),
        Value::Text(text) if text == "break_even" => Ok(Pace::BreakEven),
        Value::Table(entries) if entries.len() == 1 => {
            let batch = entries.get("batch").ok_or_else(wrong)?;
            count(batch).map(Pace::Batch)
        }
        _ => Err(wrong()),
    }
}

pub(crate) fn show_pace(pace: &Pace) -> String {
    match pace {
        Pace::EveryTurn => "\"every_turn\"".to_owned(),
        Pace::Batch(count) => format!("{{ batch = {count} }}"),
        Pace::BreakEven => "\"break_even\"".to_owned(),
    }
}
