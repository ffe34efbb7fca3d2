use crate::Origin;
use crate::report::Report;
use crate::tree::{Node, Table, Value, join, quoted};
use crate::value::InvalidValue;

/// Returns the layer of the environment variables and the flag that change the policy of every route, or `None` if none of them is set.
pub(crate) fn layer(
    env: &dyn Fn(&str) -> Option<String>,
    observe: Option<&'static str>,
    report: &Report,
) -> Option<Node> {
    let vars = Variables { env, report };
    let mut context = Table::new();
    let flag = observe.map(|flag| switch("context.observe", true, Origin::Flag(flag.to_owned())));
    if let Some(observe) = flag.or_else(|| vars.switch("TIDEGATE_OBSERVE", "context.observe")) {
        put(&mut context, "context", &["observe"], observe);
    }
    if let Some(strategy) = vars.text("AGENT_CONTEXT_STRATEGY", "context.strategy") {
        put(&mut context, "context", &["strategy"], strategy);
    }
    if let Some(turns) = vars.number("AGENT_CONTEXT_MASKING_WINDOW", "context.mask.keep.turns") {
        let keep = Table::from([("turns".to_owned(), turns.clone())]);
        put(&mut context, "context", &["mask", "keep"], Node::table("context.mask.keep", turns.origin, keep));
    }
    if let Some(reserved) = vars.number("AGENT_CONTEXT_RESERVED", "context.budget.output_reserve") {
        let all = Node { value: Value::Float(1.0), written: "1.0".to_owned(), ..reserved.clone() };
        put(&mut context, "context", &["budget", "output_reserve", "ratio"], all);
        put(&mut context, "context", &["budget", "output_reserve", "min"], reserved.clone());
        put(&mut context, "context", &["budget", "output_reserve", "cap"], reserved);
    }
    if let Some(cap) = vars.number("CONTEXT_MAX_OUTPUT_TOKENS", "context.budget.output_reserve.cap") {
        put(&mut context, "context", &["budget", "output_reserve", "cap"], cap);
    }
    if let Some(turns) = vars.number("AGENT_CONTEXT_SUMMARY_TURNS", "context.fold.when.turns") {
        put(&mut context, "context", &["fold", "when", "turns"], turns);
    }
    if let Some(tokens) = vars.number("AGENT_CONTEXT_SUMMARY_TOKENS", "context.fold.when.tokens") {
        put(&mut context, "context", &["fold", "when", "tokens"], tokens);
    }
    if let Some(turns) = vars.number("AGENT_CONTEXT_MAX_TURNS", "context.limits.max_turns") {
        put(&mut context, "context", &["limits", "max_turns"], turns);
    }
    (!context.is_empty())
        .then(|| Node::table("context", Origin::Environment("environment".to_owned()), context))
}

/// Inserts a value at a path of nested tables. `parent` is the path of `table` itself. A `when` on the path extends the layer below,
/// because each variable sets one condition and leaves the others as they are.
pub(crate) fn put(table: &mut Table, parent: &str, path: &[&str], node: Node) {
    match path {
        [] => {}
        [key] => {
            table.insert((*key).to_owned(), node);
        }
        [key, rest @ ..] => {
            let mut entries = match table.remove(*key).map(|node| node.value) {
                Some(Value::Table(entries)) => entries,
                Some(_) | None => Table::new(),
            };
            let (parent, origin) = (join(parent, key), node.origin.clone());
            put(&mut entries, &parent, rest, node);
            let inner = Node { extends: *key == "when", ..Node::table(&parent, origin, entries) };
            table.insert((*key).to_owned(), inner);
        }
    }
}

fn switch(path: &str, is_on: bool, origin: Origin) -> Node {
    Node::new(Value::Bool(is_on), path, origin, is_on.to_string())
}

struct Variables<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
    report: &'a Report,
}

impl Variables<'_> {
    /// Returns a variable and its origin. An empty variable counts as unset, because `docker compose` passes one for `VAR=`.
    fn get(&self, name: &str) -> Option<(String, Origin)> {
        let value = (self.env)(name).filter(|value| !value.is_empty())?;
        Some((value, Origin::Environment(name.to_owned())))
    }

    fn text(&self, name: &str, path: &str) -> Option<Node> {
        let (value, origin) = self.get(name)?;
        let written = quoted(&value);
        Some(Node::new(Value::Text(value), path, origin, written))
    }

    fn switch(&self, name: &str, path: &str) -> Option<Node> {
        let (value, origin) = self.get(name)?;
        match value.trim() {
            "true" | "1" => Some(switch(path, true, origin)),
            "false" | "0" => Some(switch(path, false, origin)),
            _ => {
                let node = Node::new(Value::Broken, path, origin, value);
                self.report
                    .error(InvalidValue::new("must be `true` or `false`", "for example, `true`").at(&node));
                None
            }
        }
    }

    fn number(&self, name: &str, path: &str) -> Option<Node> {
        let (value, origin) = self.get(name)?;
        match value.trim().parse::<u64>() {
            Ok(number) => Some(Node::new(Value::Integer(number.into()), path, origin, number.to_string())),
            Err(_) => {
                let node = Node::new(Value::Broken, path, origin, value);
                self.report.error(InvalidValue::new("must be a whole number", "for example, `10`").at(&node));
                None
            }
        }
    }
}
