use crate::choice::Choice;
use crate::expansion::is_variable;
use crate::tree::{Node, Value};
use crate::{ConfigError, Glob, units};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_engine::Tokens;

/// What is wrong with a value, in words that follow "is `…` but". They must not repeat the value: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    must: String,
    hint: String,
    secret: bool,
}

impl Wrong {
    pub(crate) fn new(must: impl Into<String>, hint: impl Into<String>) -> Wrong {
        Wrong { must: must.into(), hint: hint.into(), secret: false }
    }

    /// For a key where people paste a secret by mistake: the value as written is not shown either.
    fn secret(self) -> Wrong {
        Wrong { secret: true, ..self }
    }

    pub(crate) fn at(self, node: &Node) -> ConfigError {
        let written = if self.secret { "***".to_owned() } else { shortened(&node.written) };
        let (at, path) = (node.origin.clone(), node.path.clone());
        ConfigError::Invalid { at, path, written, must: self.must, hint: self.hint }
    }
}

/// An error is one line, however long the value is.
pub(crate) fn shortened(written: &str) -> String {
    const LONGEST: usize = 80;
    match written.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &written[..end]),
        None => written.to_owned(),
    }
}

pub(crate) fn text(node: &Node) -> Result<String, Wrong> {
    match &node.value {
        Value::Text(text) if text.is_empty() => {
            Err(Wrong::new("must not be empty", "leave the key out to get the default"))
        }
        Value::Text(text) => Ok(text.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Bool(_) | Value::List(_) => Err(not_text()),
        Value::Table(_) | Value::Moment | Value::Broken => Err(not_text()),
    }
}

fn not_text() -> Wrong {
    Wrong::new("must be a text", "put it in quotes: `\"…\"`")
}

pub(crate) fn boolean(node: &Node) -> Result<bool, Wrong> {
    let wrong = || Wrong::new("must be `true` or `false`", "write it without quotes");
    match &node.value {
        Value::Bool(flag) => Ok(*flag),
        Value::Text(text) if node.expanded => text.trim().parse().map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

fn integer(node: &Node, range: RangeInclusive<u64>) -> Result<u64, Wrong> {
    let number = match &node.value {
        Value::Integer(integer) => *integer,
        Value::Text(text) if node.expanded => text.trim().parse().map_err(|_| not_integer())?,
        _ => return Err(not_integer()),
    };
    let (least, most) = (*range.start(), *range.end());
    if number < i128::from(least) {
        return Err(Wrong::new(format!("must be at least {least}"), format!("use {least} or more")));
    }
    match u64::try_from(number) {
        Ok(number) if number <= most => Ok(number),
        _ => Err(Wrong::new(format!("must be at most {most}"), "check the number of digits")),
    }
}

fn not_integer() -> Wrong {
    Wrong::new("must be a whole number", "write it without quotes and without a unit, such as `2048`")
}

const MOST_TOKENS: u64 = 1_000_000_000;

/// Any number of tokens, also none.
pub(crate) fn tokens(node: &Node) -> Result<Tokens, Wrong> {
    integer(node, 0..=MOST_TOKENS).map(Tokens)
}

/// A number of tokens that is at least one.
pub(crate) fn some_tokens(node: &Node) -> Result<Tokens, Wrong> {
    integer(node, 1..=MOST_TOKENS).map(Tokens)
}

pub(crate) fn count(node: &Node) -> Result<NonZeroU32, Wrong> {
    let number = integer(node, 1..=1_000_000)?;
    Ok(u32::try_from(number).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN))
}

pub(crate) fn workers(node: &Node) -> Result<NonZeroUsize, Wrong> {
    let number = integer(node, 1..=1024)?;
    Ok(usize::try_from(number).ok().and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MIN))
}

fn float(node: &Node) -> Result<f64, Wrong> {
    let wrong = || Wrong::new("must be a number", "write it without quotes, such as `0.7`");
    match &node.value {
        Value::Float(float) if float.is_finite() => Ok(*float),
        // Exact up to 2^53, which is beyond every range that a float setting has.
        Value::Integer(integer) => Ok(*integer as f64),
        Value::Text(text) if node.expanded => match text.trim().parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(float),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

/// More than 0 and at most 1.
pub(crate) fn ratio(node: &Node) -> Result<f64, Wrong> {
    match float(node)? {
        ratio if ratio > 0.0 && ratio <= 1.0 => Ok(ratio),
        _ => Err(Wrong::new("must be more than 0 and at most 1", "70 % is `0.70`")),
    }
}

/// From 0 to 1: the share of a reserve, which may be nothing.
pub(crate) fn share(node: &Node) -> Result<f64, Wrong> {
    match float(node)? {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(Wrong::new("must be from 0 to 1", "20 % is `0.20`")),
    }
}

/// USD per million tokens.
pub(crate) fn price(node: &Node) -> Result<f64, Wrong> {
    match float(node)? {
        price if (0.0..=1_000_000.0).contains(&price) => Ok(price),
        _ => Err(Wrong::new("must be from 0 to 1000000", "prices are in USD per million tokens")),
    }
}

/// A limit in USD.
pub(crate) fn cost(node: &Node) -> Result<f64, Wrong> {
    match float(node)? {
        cost if cost > 0.0 => Ok(cost),
        _ => Err(Wrong::new("must be more than 0", "leave the key out for no limit")),
    }
}

pub(crate) fn duration(node: &Node) -> Result<Duration, Wrong> {
    let hint = "write a number and a unit: `\"250ms\"`, `\"5s\"`, `\"10m\"`, `\"1h\"`, `\"7d\"`";
    let duration = match &node.value {
        Value::Text(text) => units::duration(text),
        _ => None,
    };
    match duration {
        Some(Duration::ZERO) => Err(Wrong::new("must be longer than nothing", hint)),
        Some(duration) if duration > Duration::from_secs(3_660 * 86_400) => {
            Err(Wrong::new("must be at most ten years", hint))
        }
        Some(duration) => Ok(duration),
        None => Err(Wrong::new("must be a duration", hint)),
    }
}

/// A size within `range`, which the error states in bytes and units.
pub(crate) fn bytes(node: &Node, range: RangeInclusive<u64>) -> Result<u64, Wrong> {
    let hint = "write a number and a unit, `\"32MiB\"`, `\"64KiB\"`, `\"1GB\"`, or a plain number of bytes";
    let size = match &node.value {
        Value::Integer(integer) if *integer >= 0 => u64::try_from(*integer).ok(),
        Value::Text(text) => units::size(text).or_else(|| text.parse().ok().filter(|_| node.expanded)),
        _ => None,
    };
    match size {
        None => Err(Wrong::new("must be a size", hint)),
        Some(size) if size < *range.start() => {
            Err(Wrong::new(format!("must be at least `{}`", units::show_size(*range.start())), hint))
        }
        Some(size) if size > *range.end() => {
            Err(Wrong::new(format!("must be at most `{}`", units::show_size(*range.end())), hint))
        }
        Some(size) => Ok(size),
    }
}

pub(crate) fn choice<T: Choice>(node: &Node) -> Result<T, Wrong> {
    let names: Vec<&str> = T::ALL.iter().map(|(name, _)| *name).collect();
    let word = one_of(node, &names)?;
    // `one_of` returns a word of the list, and the list is `ALL`.
    T::ALL.iter().find(|(name, _)| *name == word).map(|(_, value)| *value).ok_or_else(not_text)
}

/// A text that is one of `names`.
pub(crate) fn one_of<'n>(node: &Node, names: &[&'n str]) -> Result<&'n str, Wrong> {
    let text = text(node)?;
    if let Some(name) = names.iter().find(|name| **name == text) {
        return Ok(name);
    }
    let list = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let hint = match nearest(&text, names.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => "write one of these words".to_owned(),
    };
    Err(Wrong::new(format!("must be one of {list}"), hint))
}

/// The word that was probably meant.
pub(crate) fn nearest<'n>(word: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let scored = known.map(|name| (strsim::normalized_damerau_levenshtein(word, name), name));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(score, _)| *score >= 0.5).map(|(_, name)| name)
}

/// One text or a list of texts.
pub(crate) fn globs(node: &Node) -> Result<Vec<Glob>, Wrong> {
    let items = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let wrong =
        |_| Wrong::new("must be a text or a list of texts", "such as `\"gpt-*\"` or `[\"gpt-*\", \"o3\"]`");
    items.iter().map(|item| text(item).map(Glob::new).map_err(wrong)).collect()
}

/// Like [`globs`], for a match: an empty list would match nothing, which nobody means.
pub(crate) fn some_globs(node: &Node) -> Result<Vec<Glob>, Wrong> {
    let globs = globs(node)?;
    if globs.is_empty() {
        return Err(Wrong::new("must not be empty", "leave the key out to get the default"));
    }
    Ok(globs)
}

/// The name of a header, in lower case.
pub(crate) fn header(node: &Node) -> Result<String, Wrong> {
    let name = text(node)?;
    if is_header(&name) {
        return Ok(name.to_ascii_lowercase());
    }
    Err(Wrong::new("must be the name of a header", "letters, digits and dashes, such as `x-conversation-id`"))
}

pub(crate) fn is_header(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// The name of an environment variable that holds a secret.
pub(crate) fn variable(node: &Node) -> Result<String, Wrong> {
    let name = text(node)?;
    if is_variable(&name) {
        return Ok(name);
    }
    let hint = "write the name of the variable, such as `OPENAI_API_KEY`, and not the secret itself";
    Err(Wrong::new("must be the name of an environment variable", hint).secret())
}

/// `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`.
pub(crate) fn listen(node: &Node) -> Result<SocketAddr, Wrong> {
    let address = text(node)?;
    let local = address.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    if let Some(port) = local {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let hint = "write it like `127.0.0.1:8080`, or `0.0.0.0:8080` for every interface";
    address.parse().map_err(|_| Wrong::new("must be an IP address and a port", hint))
}
