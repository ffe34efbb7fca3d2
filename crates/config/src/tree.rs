use crate::expansion::{Expanded, expand};
use crate::report::Report;
use crate::{ConfigError, ConfigErrors, Origin, Source};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its position, so that an error names the line even after layers were merged.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) path: String,
    pub(crate) origin: Origin,
    /// The value as the operator wrote it, on one line and without passwords.
    pub(crate) written: String,
    /// Whether the string contained `${…}`. If so, it may be a number, and its value must not be shown.
    pub(crate) expanded: bool,
    /// Whether the keys are added to the layer below even if the value is one of [`ATOMIC`].
    pub(crate) extends: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i128),
    Float(f64),
    Bool(bool),
    List(Vec<Node>),
    Table(Table),
    /// A date or time. No setting has this type.
    Datetime,
    /// An invalid value whose error has been reported. The reader continues with the default.
    Broken,
}

pub(crate) type Table = BTreeMap<String, Node>;

/// Tables that a layer replaces as a whole. Merging the keys of two layers would give a value that neither of them meant.
const ATOMIC: [&str; 4] = ["keep", "when", "pace", "max_tokens"];

impl Node {
    pub(crate) fn new(value: Value, path: &str, origin: Origin, written: String) -> Node {
        Node { value, path: path.to_owned(), origin, written, expanded: false, extends: false }
    }

    pub(crate) fn table(path: &str, origin: Origin, entries: Table) -> Node {
        let written = entries.iter().map(|(key, node)| format!("{} = {}", join("", key), node.written));
        let written = format!("{{ {} }}", written.collect::<Vec<_>>().join(", "));
        Node::new(Value::Table(entries), path, origin, written)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.get(key),
            Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Bool(_) => None,
            Value::List(_) | Value::Datetime | Value::Broken => None,
        }
    }

    /// Whether an error in the value, or in a part of it, has been reported.
    pub(crate) fn is_broken(&self) -> bool {
        match &self.value {
            Value::Broken => true,
            Value::List(items) => items.iter().any(Node::is_broken),
            Value::Table(entries) => entries.values().any(Node::is_broken),
            Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Bool(_) | Value::Datetime => false,
        }
    }

    /// Merges the layer `upper` on top of this one, key by key.
    pub(crate) fn overlaid_with(&self, upper: &Node) -> Node {
        let (below, above) = match (&self.value, &upper.value) {
            (Value::Table(below), Value::Table(above)) => (below, above),
            // The lower layer should have been a table. Keep it, so that reading it reports the mistake.
            (_, Value::Table(_)) => return self.clone(),
            _ => return upper.clone(),
        };
        let mut entries = below.clone();
        for (key, node) in above {
            let merged = match below.get(key) {
                Some(lower) if node.extends => {
                    Node { origin: node.origin.clone(), ..lower.overlaid_with(node) }
                }
                Some(lower) if !ATOMIC.contains(&key.as_str()) => lower.overlaid_with(node),
                Some(_) | None => node.clone(),
            };
            entries.insert(key.clone(), merged);
        }
        Node::table(&self.path, self.origin.clone(), entries)
    }
}

/// Appends a key to a dotted path, quoted if TOML requires it.
pub(crate) fn join(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let key = if bare { key.to_owned() } else { quoted(key) };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// Formats a string as TOML.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// Parses the file and expands `${…}`.
pub(crate) fn parse(
    source: &Source,
    env: &dyn Fn(&str) -> Option<String>,
    report: &Report,
) -> Result<Node, ConfigErrors> {
    let reader = Reader { text: &source.text, name: source.name.as_str().into(), env, report };
    match DeTable::parse(&source.text) {
        Ok(root) => Ok(reader.table(root.get_ref(), "", reader.origin(0))),
        Err(error) => {
            let start = error.span().map_or(0, |span| span.start).min(source.text.len());
            let before = source.text.get(..start).unwrap_or_default();
            let column = before.chars().rev().take_while(|&char| char != '\n').count() + 1;
            let (at, message) = (reader.origin(start), error.message().to_owned());
            Err(ConfigError::Syntax { at, column, message }.into())
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    name: Arc<str>,
    env: &'a dyn Fn(&str) -> Option<String>,
    report: &'a Report,
}

impl Reader<'_> {
    fn origin(&self, offset: usize) -> Origin {
        let newlines = self.text.bytes().take(offset).filter(|&byte| byte == b'\n').count();
        Origin::File { name: Arc::clone(&self.name), line: newlines + 1 }
    }

    fn table(&self, table: &DeTable<'_>, path: &str, origin: Origin) -> Node {
        let entries = table.iter().map(|(key, value)| {
            let name = key.get_ref().as_ref();
            (name.to_owned(), self.node(value, &join(path, name), key.span().start))
        });
        Node::table(path, origin, entries.collect())
    }

    fn node(&self, value: &Spanned<DeValue<'_>>, path: &str, offset: usize) -> Node {
        let origin = self.origin(offset);
        let written = self.written(value.span());
        let simple = |value: Value| Node::new(value, path, origin.clone(), written.clone());
        match value.get_ref() {
            DeValue::String(text) => self.text_node(text, simple(Value::Broken)),
            DeValue::Integer(integer) => match i128::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(integer) => simple(Value::Integer(integer)),
                // More than 128 bits: saturate, because it is out of every range anyway.
                Err(_) if integer.as_str().starts_with('-') => simple(Value::Integer(i128::MIN)),
                Err(_) => simple(Value::Integer(i128::MAX)),
            },
            DeValue::Float(float) => simple(Value::Float(float.as_str().parse().unwrap_or(f64::NAN))),
            DeValue::Boolean(flag) => simple(Value::Bool(*flag)),
            DeValue::Datetime(_) => simple(Value::Datetime),
            DeValue::Array(items) => {
                let items = items.iter().enumerate();
                let items =
                    items.map(|(i, item)| self.node(item, &format!("{path}[{i}]"), item.span().start));
                let items: Vec<Node> = items.collect();
                if written.contains('\n') {
                    let shown: Vec<&str> = items.iter().map(|item| item.written.as_str()).collect();
                    let shown = format!("[{}]", shown.join(", "));
                    return Node::new(Value::List(items), path, origin, shown);
                }
                simple(Value::List(items))
            }
            DeValue::Table(table) => {
                let node = self.table(table, path, origin);
                if written.starts_with('{') && !written.contains('\n') {
                    Node { written, ..node }
                } else {
                    node
                }
            }
        }
    }

    fn text_node(&self, text: &str, node: Node) -> Node {
        let node = if node.written.contains('\n') {
            Node { written: quoted(&without_password(text)), ..node }
        } else {
            node
        };
        match expand(text, self.env) {
            Ok(Expanded::Plain(text)) => Node { value: Value::Text(text), ..node },
            Ok(Expanded::Filled(text)) => Node { value: Value::Text(text), expanded: true, ..node },
            Err(invalid) => {
                self.report.error(invalid.at(&node));
                node
            }
        }
    }

    fn written(&self, span: Range<usize>) -> String {
        without_password(self.text.get(span).unwrap_or_default())
    }
}

/// Replaces everything between `://` and the last `@` with `***`. A password can contain any character, so this hides too much
/// rather than too little.
pub(crate) fn without_password(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => format!("{}***{}", &text[..scheme + 3], &text[at..]),
        _ => text.to_owned(),
    }
}
