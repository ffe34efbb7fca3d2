use crate::choice::Choice;
use crate::expansion::is_variable;
use crate::tree::{Node, Value};
use crate::{ConfigError, Glob, units};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_engine::Tokens;

/// Why a value is invalid. `must` completes "`key` is `value` but …". It must not repeat the value, which may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidValue {
    must: String,
    hint: String,
    secret: bool,
}

impl InvalidValue {
    pub(crate) fn new(must: impl Into<String>, hint: impl Into<String>) -> InvalidValue {
        InvalidValue { must: must.into(), hint: hint.into(), secret: false }
    }

    /// Hides the value as written, for keys where people paste a secret by mistake.
    fn secret(self) -> InvalidValue {
        InvalidValue { secret: true, ..self }
    }

    pub(crate) fn at(self, node: &Node) -> ConfigError {
        let written = if self.secret { "***".to_owned() } else { shortened(&node.written) };
        let (at, path) = (node.origin.clone(), node.path.clone());
        ConfigError::Invalid { at, path, written, must: self.must, hint: self.hint }
    }
}

/// Shortens a value, so that an error fits on one line.
pub(crate) fn shortened(written: &str) -> String {
    const MAX_CHARS: usize = 80;
    match written.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &written[..end]),
        None => written.to_owned(),
    }
}

pub(crate) fn text(node: &Node) -> Result<String, InvalidValue> {
    match &node.value {
        Value::Text(text) if text.is_empty() => {
            Err(InvalidValue::new("must not be empty", "remove the key to use the default"))
        }
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Bool(_) | Value::List(_) => Err(not_string()),
        Value::Table(_) | Value::Datetime | Value::Broken => Err(not_string()),
    }
}

fn not_string() -> InvalidValue {
    InvalidValue::new("must be a string", "put it in quotes: `\"…\"`")
}

pub(crate) fn boolean(node: &Node) -> Result<bool, InvalidValue> {
    let invalid = || InvalidValue::new("must be `true` or `false`", "write it without quotes");
    match &node.value {
        Value::Bool(flag) => Ok(*flag),
        Value::Text(text) if node.expanded => text.trim().parse().map_err(|_| invalid()),
        _ => Err(invalid()),
    }
}

fn integer(node: &Node, range: RangeInclusive<u64>) -> Result<u64, InvalidValue> {
    let number = match &node.value {
        Value::Integer(integer) => *integer,
        Value::Text(text) if node.expanded => text.trim().parse().map_err(|_| not_integer())?,
        _ => return Err(not_integer()),
    };
    let (min, max) = (*range.start(), *range.end());
    if number < i128::from(min) {
        return Err(InvalidValue::new(format!("must be at least {min}"), format!("use {min} or more")));
    }
    match u64::try_from(number) {
        Ok(number) if number <= max => Ok(number),
        _ => Err(InvalidValue::new(format!("must be at most {max}"), "check the number of digits")),
    }
}

fn not_integer() -> InvalidValue {
    InvalidValue::new(
        "must be a whole number",
        "write it without quotes and without a unit, for example `2048`",
    )
}

const MAX_TOKENS: u64 = 1_000_000_000;

/// A number of tokens, possibly zero.
pub(crate) fn tokens(node: &Node) -> Result<Tokens, InvalidValue> {
    integer(node, 0..=MAX_TOKENS).map(Tokens)
}

/// A number of tokens, at least one.
pub(crate) fn positive_tokens(node: &Node) -> Result<Tokens, InvalidValue> {
    integer(node, 1..=MAX_TOKENS).map(Tokens)
}

pub(crate) fn count(node: &Node) -> Result<NonZeroU32, InvalidValue> {
    let number = integer(node, 1..=1_000_000)?;
    Ok(u32::try_from(number).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN))
}

pub(crate) fn workers(node: &Node) -> Result<NonZeroUsize, InvalidValue> {
    let number = integer(node, 1..=1024)?;
    Ok(usize::try_from(number).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MIN))
}

fn float(node: &Node) -> Result<f64, InvalidValue> {
    let invalid = || InvalidValue::new("must be a number", "write it without quotes, for example `0.7`");
    match &node.value {
        Value::Float(float) if float.is_finite() => Ok(*float),
        // Exact up to 2^53, which is above the range of every float setting.
        Value::Integer(integer) => Ok(*integer as f64),
        Value::Text(text) if node.expanded => match text.trim().parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(float),
            _ => Err(invalid()),
        },
        _ => Err(invalid()),
    }
}

/// A number above 0 and up to 1.
pub(crate) fn ratio(node: &Node) -> Result<f64, InvalidValue> {
    match float(node)? {
        ratio if ratio > 0.0 && ratio <= 1.0 => Ok(ratio),
        _ => Err(InvalidValue::new("must be more than 0 and at most 1", "write 70 % as `0.70`")),
    }
}

/// A number from 0 to 1, inclusive.
pub(crate) fn fraction(node: &Node) -> Result<f64, InvalidValue> {
    match float(node)? {
        fraction if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err(InvalidValue::new("must be between 0 and 1", "write 20 % as `0.20`")),
    }
}

/// A price in USD per million tokens.
pub(crate) fn price(node: &Node) -> Result<f64, InvalidValue> {
    match float(node)? {
        price if (0.0..=1_000_000.0).contains(&price) => Ok(price),
        _ => Err(InvalidValue::new("must be between 0 and 1000000", "prices are in USD per million tokens")),
    }
}

/// A limit in USD.
pub(crate) fn cost(node: &Node) -> Result<f64, InvalidValue> {
    match float(node)? {
        cost if cost > 0.0 => Ok(cost),
        _ => Err(InvalidValue::new("must be more than 0", "remove the key for no limit")),
    }
}

pub(crate) fn duration(node: &Node) -> Result<Duration, InvalidValue> {
    let hint = "write a number and a unit: `\"250ms\"`, `\"5s\"`, `\"10m\"`, `\"1h\"`, `\"7d\"`";
    let duration = match &node.value {
        Value::Text(text) => units::duration(text),
        _ => None,
    };
    match duration {
        Some(Duration::ZERO) => Err(InvalidValue::new("must be longer than zero", hint)),
        Some(duration) if duration > Duration::from_secs(3_660 * 86_400) => {
            Err(InvalidValue::new("must be at most ten years", hint))
        }
        Some(duration) => Ok(duration),
        None => Err(InvalidValue::new("must be a duration", hint)),
    }
}

/// A size in bytes within `range`.
pub(crate) fn bytes(node: &Node, range: RangeInclusive<u64>) -> Result<u64, InvalidValue> {
    let hint = "write a number and a unit, `\"32MiB\"`, `\"64KiB\"`, `\"1GB\"`, or a plain number of bytes";
    let size = match &node.value {
        Value::Integer(integer) if *integer >= 0 => u64::try_from(*integer).ok(),
        Value::Text(text) => units::size(text).or_else(|| text.parse().ok().filter(|_| node.expanded)),
        _ => None,
    };
    match size {
        None => Err(InvalidValue::new("must be a size", hint)),
        Some(size) if size < *range.start() => {
            Err(InvalidValue::new(format!("must be at least `{}`", units::show_size(*range.start())), hint))
        }
        Some(size) if size > *range.end() => {
            Err(InvalidValue::new(format!("must be at most `{}`", units::show_size(*range.end())), hint))
        }
        Some(size) => Ok(size),
    }
}

pub(crate) fn choice<T: Choice>(node: &Node) -> Result<T, InvalidValue> {
    let names: Vec<&str> = T::ALL.iter().map(|(name, _)| *name).collect();
    let word = one_of(node, &names)?;
    // `one_of` returns one of `names`, and those are the names in `ALL`.
    T::ALL.iter().find(|(name, _)| *name == word).map(|(_, value)| *value).ok_or_else(not_string)
}

/// A string that is one of `names`.
pub(crate) fn one_of<'n>(node: &Node, names: &[&'n str]) -> Result<&'n str, InvalidValue> {
    let text = text(node)?;
    if let Some(name) = names.iter().find(|name| **name == text) {
        return Ok(name);
    }
    let list = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let hint = match nearest(&text, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => "use one of these values".to_owned(),
    };
    Err(InvalidValue::new(format!("must be one of {list}"), hint))
}

/// Returns the known name that is most similar to `word`, or `None` if none is similar.
pub(crate) fn nearest<'n>(word: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let scored = known.map(|name| (strsim::normalized_damerau_levenshtein(word, name), name));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(score, _)| *score >= 0.5).map(|(_, name)| name)
}

/// A string or a list of strings.
pub(crate) fn globs(node: &Node) -> Result<Vec<Glob>, InvalidValue> {
    let items = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let invalid = |_| {
        InvalidValue::new(
            "must be a string or a list of strings",
            "for example, `\"gpt-*\"` or `[\"gpt-*\", \"o3\"]`",
        )
    };
    items.iter().map(|item| text(item).map(Glob::new).map_err(invalid)).collect()
}

/// Like [`globs`], but not empty: a match with an empty list would never match.
pub(crate) fn nonempty_globs(node: &Node) -> Result<Vec<Glob>, InvalidValue> {
    let globs = globs(node)?;
    if globs.is_empty() {
        return Err(InvalidValue::new("must not be empty", "remove the key to use the default"));
    }
    Ok(globs)
}

/// A string or a list of strings, each of which `parse` accepts.
pub(crate) fn list<T>(
    node: &Node,
    parse: impl Fn(&Node) -> Result<T, InvalidValue>,
) -> Result<Vec<T>, InvalidValue> {
    match &node.value {
        Value::List(items) => items.iter().map(parse).collect(),
        _ => parse(node).map(|item| vec![item]),
    }
}

/// A host name, converted to lowercase.
pub(crate) fn host(node: &Node) -> Result<String, InvalidValue> {
    let name = text(node)?;
    let is_host =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]*".contains(&b));
    if is_host {
        return Ok(name.to_ascii_lowercase());
    }
    Err(InvalidValue::new("must be a host name", "for example, `llm.example.com`, without scheme and port"))
}

/// A header name, converted to lowercase.
pub(crate) fn header(node: &Node) -> Result<String, InvalidValue> {
    let name = text(node)?;
    if is_header(&name) {
        return Ok(name.to_ascii_lowercase());
    }
    Err(InvalidValue::new(
        "must be a header name",
        "use letters, digits and dashes, for example `x-conversation-id`",
    ))
}

pub(crate) fn is_header(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// The name of an environment variable that holds a secret.
pub(crate) fn variable(node: &Node) -> Result<String, InvalidValue> {
    let name = text(node)?;
    if is_variable(&name) {
        return Ok(name);
    }
    let hint = "write the name of the variable, for example `OPENAI_API_KEY`, and not the secret itself";
    Err(InvalidValue::new("must be the name of an environment variable", hint).secret())
}

/// `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`.
pub(crate) fn listen(node: &Node) -> Result<SocketAddr, InvalidValue> {
    let address = text(node)?;
    let local = address.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    if let Some(port) = local {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let hint = "for example, `127.0.0.1:8080`, or `0.0.0.0:8080` for every interface";
    address.parse().map_err(|_| InvalidValue::new("must be an IP address and a port", hint))
}
