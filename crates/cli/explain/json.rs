//! A JSON value that is only written.

use std::fmt::{self, Display, Formatter, Write};

/// Members keep the order in which they are given: people read this too.
#[derive(Debug)]
pub(super) enum Json {
    Null,
    Flag(bool),
    Count(u64),
    Price(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl From<bool> for Json {
    fn from(flag: bool) -> Json {
        Json::Flag(flag)
    }
}

impl From<u64> for Json {
    fn from(count: u64) -> Json {
        Json::Count(count)
    }
}

impl From<usize> for Json {
    fn from(count: usize) -> Json {
        Json::Count(count as u64)
    }
}

impl From<f64> for Json {
    fn from(price: f64) -> Json {
        Json::Price(price)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Json {
        value.map_or(Json::Null, Into::into)
    }
}

impl<T: Into<Json>> FromIterator<T> for Json {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Json {
        Json::List(values.into_iter().map(Into::into).collect())
    }
}

impl Display for Json {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f, 0)?;
        f.write_char('\n')
    }
}

impl Json {
    fn write(&self, f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Flag(flag) => write!(f, "{flag}"),
            Json::Count(count) => write!(f, "{count}"),
            // JSON has no word for the others.
            Json::Price(price) if !price.is_finite() => f.write_str("null"),
            Json::Price(price) => write!(f, "{price}"),
            Json::Text(text) => write_text(f, text),
            Json::List(items) => write_all(f, depth, ['[', ']'], items, |f, item| item.write(f, depth + 1)),
            Json::Object(members) => write_all(f, depth, ['{', '}'], members, |f, (name, value)| {
                write_text(f, name)?;
                f.write_str(": ")?;
                value.write(f, depth + 1)
            }),
        }
    }
}

fn write_all<T>(
    f: &mut Formatter<'_>,
    depth: usize,
    [open, close]: [char; 2],
    items: &[T],
    one: impl Fn(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    f.write_char(open)?;
    for (position, item) in items.iter().enumerate() {
        let comma = if position == 0 { "" } else { "," };
        write!(f, "{comma}\n{:width$}", "", width = 2 * (depth + 1))?;
        one(f, item)?;
    }
    if !items.is_empty() {
        write!(f, "\n{:width$}", "", width = 2 * depth)?;
    }
    f.write_char(close)
}

fn write_text(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(f, "\\{letter}")?,
            // Escaped although JSON asks it of the first of them only: a terminal obeys them all.
            letter if letter.is_control() => write!(f, "\\u{:04x}", u32::from(letter))?,
            letter => f.write_char(letter)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_back_as_it_was_meant() {
        let value = Json::Object(vec![
            ("text", "a\"b\\c\n\u{1b}\u{9f}é".into()),
            ("none", None::<u64>.into()),
            ("list", [1.25, 2.0, f64::NAN].into_iter().collect()),
            ("empty", Vec::<u64>::new().into_iter().collect()),
            ("flag", true.into()),
        ]);
        let read: serde_json::Value = serde_json::from_str(&value.to_string()).unwrap();
        let meant = serde_json::json!({
            "text": "a\"b\\c\n\u{1b}\u{9f}é", "none": null, "list": [1.25, 2, null], "empty": [], "flag": true
        });
        assert_eq!(read, meant);
    }
}
