use crate::choice::Choice;
use crate::policy;
use crate::report::Report;
use crate::tree::{Node, Table, Value, join, quoted};
use crate::value::{self, InvalidValue, nearest};
use crate::{ConfigError, Origin, units};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_engine::{Keep, Pace, SummaryLimit, Tokens, Trigger};

/// A reader of one table. Reading a key declares it, so the code that reads a section is its schema: a key that was not read is
/// an error.
pub(crate) struct Section<'a> {
    report: &'a Report,
    node: Option<&'a Node>,
    /// The path that the values apply to, for example `routes[1].context`, even if they come from `[context]`.
    path: String,
    /// The path without indices and names, for example `routes[].match` or `models.*`. It is `context` for every route's policy.
    schema: String,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// Reads `node` with `read`, then reports the unknown keys.
    pub(crate) fn read<T>(
        report: &'a Report,
        node: Option<&'a Node>,
        path: &str,
        schema: &str,
        read: impl FnOnce(&mut Section<'a>) -> T,
    ) -> T {
        let node = node.filter(|node| entries(report, node).is_some());
        let mut section =
            Section { report, node, path: path.to_owned(), schema: schema.to_owned(), known: Vec::new() };
        let out = read(&mut section);
        section.report_unknown_keys();
        out
    }

    /// Reads a nested section.
    pub(crate) fn section<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Section<'a>) -> T) -> T {
        self.known.push(key);
        let node = self.node.and_then(|node| node.get(key));
        Section::read(self.report, node, &join(&self.path, key), &join(&self.schema, key), read)
    }

    /// Reads one section per name, such as `[models."my-model"]`.
    pub(crate) fn named<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&str, &mut Section<'a>) -> T,
    ) -> BTreeMap<String, T> {
        self.known.push(key);
        let (path, schema) = (join(&self.path, key), format!("{}.*", join(&self.schema, key)));
        let Some(entries) =
            self.node.and_then(|node| node.get(key)).and_then(|node| entries(self.report, node))
        else {
            return BTreeMap::new();
        };
        let entries = entries.iter().map(|(name, node)| {
            let path = join(&path, name);
            (name.clone(), Section::read(self.report, Some(node), &path, &schema, |entry| read(name, entry)))
        });
        entries.collect()
    }

    /// Returns the entries of a list of sections, such as `[[routes]]`.
    pub(crate) fn list(&mut self, key: &'static str) -> &'a [Node] {
        match self.take(key) {
            Some(Node { value: Value::List(items), .. }) => items,
            Some(node) => {
                self.report.error(
                    InvalidValue::new("must be a list of sections", format!("write `[[{key}]]`")).at(node),
                );
                &[]
            }
            None => &[],
        }
    }

    /// Reads a table of strings whose keys the operator chooses.
    pub(crate) fn texts(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str, &Node) -> Result<String, InvalidValue>,
    ) -> Vec<(String, String)> {
        let Some(node) = self.take(key) else { return Vec::new() };
        let Value::Table(entries) = &node.value else {
            self.report.error(
                InvalidValue::new("must be a table", "for example, `{ x-team = \"search\" }`").at(node),
            );
            return Vec::new();
        };
        let mut out = Vec::new();
        for (name, value) in entries {
            if let Some(text) = self.accept(value, parse(name, value)) {
                self.report.resolved(
                    join(&join(&self.path, key), name),
                    value.written.clone(),
                    value.origin.clone(),
                );
                out.push((name.clone(), text));
            }
        }
        out
    }

    /// Reads a key without a default.
    pub(crate) fn optional<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&Node) -> Result<T, InvalidValue>,
    ) -> Option<T> {
        let (value, node) = self.fetch(key, parse)?;
        self.report.resolved(join(&self.path, key), node.written.clone(), node.origin.clone());
        Some(value)
    }

    /// Reads a key with a default. `show` formats the value as TOML.
    pub(crate) fn with_default<T>(
        &mut self,
        key: &'static str,
        default: T,
        parse: impl FnOnce(&Node) -> Result<T, InvalidValue>,
        show: impl FnOnce(&T) -> String,
    ) -> T {
        let (value, shown, origin) = match self.fetch(key, parse) {
            // A value that extends the layer below is written with its own keys only.
            Some((value, node)) if node.extends => (value, None, node.origin.clone()),
            Some((value, node)) => (value, Some(node.written.clone()), node.origin.clone()),
            None => (default, None, Origin::Default),
        };
        let shown = shown.unwrap_or_else(|| show(&value));
        self.report.resolved(join(&self.path, key), shown, origin);
        value
    }

    /// Reads a key that must be set if the section exists.
    pub(crate) fn required<T>(
        &mut self,
        key: &'static str,
        hint: &str,
        parse: impl FnOnce(&Node) -> Result<T, InvalidValue>,
    ) -> Option<T> {
        if let Some(node) = self.node
            && node.get(key).is_none()
        {
            let (at, path) = (node.origin.clone(), join(&node.path, key));
            self.report.error(ConfigError::Missing { at, path, hint: hint.to_owned() });
        }
        self.optional(key, parse)
    }

    pub(crate) fn ratio(&mut self, key: &'static str, default: f64) -> f64 {
        self.with_default(key, default, value::ratio, |ratio| format!("{ratio:?}"))
    }

    pub(crate) fn fraction(&mut self, key: &'static str, default: f64) -> f64 {
        self.with_default(key, default, value::fraction, |fraction| format!("{fraction:?}"))
    }

    pub(crate) fn duration(&mut self, key: &'static str, default: Duration) -> Duration {
        self.with_default(key, default, value::duration, |duration| units::show_duration(*duration))
    }

    pub(crate) fn bytes(&mut self, key: &'static str, default: u64, min: u64, max: u64) -> u64 {
        self.with_default(
            key,
            default,
            |node| value::bytes(node, min..=max),
            |bytes| units::show_size(*bytes),
        )
    }

    pub(crate) fn tokens(&mut self, key: &'static str, default: u64) -> Tokens {
        self.with_default(key, Tokens(default), value::tokens, |tokens| tokens.0.to_string())
    }

    pub(crate) fn summary_limit(&mut self, key: &'static str, default: SummaryLimit) -> SummaryLimit {
        self.with_default(key, default, policy::summary_limit, policy::show_summary_limit)
    }

    pub(crate) fn count(&mut self, key: &'static str, default: NonZeroU32) -> NonZeroU32 {
        self.with_default(key, default, value::count, NonZeroU32::to_string)
    }

    /// Reads a string or a list of strings.
    pub(crate) fn strings(
        &mut self,
        key: &'static str,
        default: &[&str],
        parse: impl Fn(&Node) -> Result<String, InvalidValue>,
    ) -> Vec<String> {
        let default = default.iter().map(|item| (*item).to_owned()).collect();
        let show = |items: &Vec<String>| {
            let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
            format!("[{}]", items.join(", "))
        };
        self.with_default(key, default, |node| value::list(node, parse), show)
    }

    pub(crate) fn flag(&mut self, key: &'static str, default: bool) -> bool {
        self.with_default(key, default, value::boolean, bool::to_string)
    }

    pub(crate) fn text(
        &mut self,
        key: &'static str,
        default: &str,
        parse: impl FnOnce(&Node) -> Result<String, InvalidValue>,
    ) -> String {
        self.with_default(key, default.to_owned(), parse, |text| quoted(text))
    }

    pub(crate) fn choice<T: Choice>(&mut self, key: &'static str, default: T) -> T {
        self.with_default(key, default, value::choice, |choice| quoted(choice.name()))
    }

    pub(crate) fn keep(&mut self, key: &'static str, default: Keep) -> Keep {
        self.with_default(key, default, policy::keep, policy::show_keep)
    }

    pub(crate) fn trigger(&mut self, key: &'static str, default: Trigger) -> Trigger {
        self.with_default(key, default, |node| policy::trigger(node, default), policy::show_trigger)
    }

    pub(crate) fn pace(&mut self, key: &'static str, default: Pace) -> Pace {
        self.with_default(key, default, policy::pace, policy::show_pace)
    }

    /// Parses a path, relative to the directory of the file.
    pub(crate) fn path(&self) -> impl FnOnce(&Node) -> Result<PathBuf, InvalidValue> + use<'a> {
        let directory = &self.report.directory;
        move |node| value::text(node).map(|text| directory.join(text))
    }

    /// Reports a value that is invalid only in combination with another one, at the first of `keys` that is set.
    pub(crate) fn reject(&self, keys: &[&str], must: impl Into<String>, hint: &str) {
        let set = keys.iter().find_map(|key| self.node.and_then(|node| node.get(key)));
        if let Some(node) = set {
            self.report.error(InvalidValue::new(must, hint).at(node));
        }
    }

    /// Whether any layer has this section, even without a key.
    pub(crate) fn exists(&self) -> bool {
        self.node.is_some()
    }

    /// Declares keys that are not read because the section does not exist.
    pub(crate) fn declare(&mut self, keys: &[&'static str]) {
        for key in keys {
            self.take(key);
        }
    }

    /// Whether any layer sets a key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.node.is_some_and(|node| node.get(key).is_some())
    }

    /// Declares a section and returns it unread.
    pub(crate) fn child(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.node.and_then(|node| node.get(key))
    }

    fn fetch<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&Node) -> Result<T, InvalidValue>,
    ) -> Option<(T, &'a Node)> {
        let node = self.take(key)?;
        let value = self.accept(node, parse(node))?;
        Some((value, node))
    }

    fn accept<T>(&self, node: &Node, parsed: Result<T, InvalidValue>) -> Option<T> {
        if node.is_broken() {
            return None;
        }
        parsed.map_err(|invalid| self.report.error(invalid.at(node))).ok()
    }

    fn take(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        let node = self.node.and_then(|node| node.get(key));
        self.report.record_key(join(&self.schema, key), node.is_some());
        node.filter(|node| !matches!(node.value, Value::Broken))
    }

    fn report_unknown_keys(&self) {
        let Some(Value::Table(entries)) = self.node.map(|node| &node.value) else { return };
        for (key, node) in entries.iter().filter(|(key, _)| !self.known.contains(&key.as_str())) {
            let hint = match nearest(key, self.known.iter().copied()) {
                Some(known) => format!("did you mean `{known}`?"),
                None => format!("expected one of: {}", self.known.join(", ")),
            };
            let (at, path) = (node.origin.clone(), node.path.clone());
            self.report.error(ConfigError::UnknownKey { at, path, hint });
        }
    }
}

fn entries<'a>(report: &Report, node: &'a Node) -> Option<&'a Table> {
    match &node.value {
        Value::Table(entries) => Some(entries),
        Value::Broken => None,
        _ => {
            let hint = format!("write `[{}]` and put its keys on the lines below", node.path);
            report.error(InvalidValue::new("must be a section", hint).at(node));
            None
        }
    }
}
