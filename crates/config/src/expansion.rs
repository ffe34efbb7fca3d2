use crate::value::InvalidValue;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expanded {
    /// The text contained no variables.
    Plain(String),
    /// The text contained variables, so its value may be a secret.
    Filled(String),
}

/// Expands `${VAR}` and `${VAR:-default}` in a text; `$${` is a literal `${`.
///
/// This runs on parsed values, so a variable cannot add a key or close a quote. As in a shell, the default also replaces an empty
/// variable.
pub(crate) fn expand(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Expanded, InvalidValue> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut filled = false;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = &from[2..];
            continue;
        }
        out.push_str(before);
        let Some((inner, after)) = from[2..].split_once('}') else {
            return Err(InvalidValue::new("must close `${` with `}`", "write `$${` for a literal `${`"));
        };
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if !is_variable(name) {
            let hint = "write `${NAME}` or `${NAME:-default}`, and `$${` for a literal `${`";
            return Err(InvalidValue::new("must name an environment variable inside `${…}`", hint));
        }
        match (env(name), default) {
            (Some(value), None) => out.push_str(&value),
            (Some(value), Some(_)) if !value.is_empty() => out.push_str(&value),
            (_, Some(default)) => out.push_str(default),
            (None, None) => {
                let hint = format!("set it, or give a default: `${{{name}:-…}}`");
                return Err(InvalidValue::new(format!("the environment variable `{name}` is not set"), hint));
            }
        }
        filled = true;
        rest = after;
    }
    out.push_str(rest);
    Ok(if filled { Expanded::Filled(out) } else { Expanded::Plain(out) })
}

pub(crate) fn is_variable(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("cache.internal".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    fn filled(text: &str) -> String {
        match expand(text, &env).unwrap() {
            Expanded::Filled(text) => text,
            Expanded::Plain(text) => panic!("nothing was filled into {text}"),
        }
    }

    #[test]
    fn expands_variables_and_defaults() {
        assert_eq!(filled("redis://${HOST}:6379"), "redis://cache.internal:6379");
        assert_eq!(filled("${HOST}${NONE:-:1}"), "cache.internal:1");
        assert_eq!(filled("${EMPTY:-x}"), "x");
        assert_eq!(filled("[${EMPTY}]"), "[]");
        assert_eq!(filled("${NONE:-}"), "");
    }

    #[test]
    fn two_dollars_are_a_literal_dollar() {
        assert_eq!(expand("$${HOST} costs $5", &env), Ok(Expanded::Plain("${HOST} costs $5".into())));
    }

    #[test]
    fn rejects_unset_unclosed_and_invalid_variables() {
        for text in ["${NONE}", "${HOST", "${}", "${1A}", "${A B}"] {
            assert!(expand(text, &env).is_err(), "{text}");
        }
    }
}
