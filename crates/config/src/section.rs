use crate::choice::Choice;
use crate::policy;
use crate::report::Report;
use crate::tree::{Node, Table, Value, join, quoted};
use crate::value::{self, Wrong, nearest};
use crate::{ConfigError, Origin, units};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_engine::{Keep, Pace, Tokens, Trigger};

/// A cursor over one table. Whoever asks for a key makes it known, so the code that reads a section is its schema: what
/// nobody asked for is an error.
pub(crate) struct Section<'a> {
    report: &'a Report,
    node: Option<&'a Node>,
    /// Where the values count: `routes[1].context`, also for those that come from `[context]`.
    path: String,
    /// The same for every entry of a list or map: `routes[].match`, `models.*`; `context` for every route's.
    schema: String,
    asked: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// Reads `node` with `read`, then reports the keys that were not asked for.
    pub(crate) fn read<T>(
        report: &'a Report,
        node: Option<&'a Node>,
        path: &str,
        schema: &str,
        read: impl FnOnce(&mut Section<'a>) -> T,
    ) -> T {
        let node = node.filter(|node| entries(report, node).is_some());
        let mut section =
            Section { report, node, path: path.to_owned(), schema: schema.to_owned(), asked: Vec::new() };
        let out = read(&mut section);
        section.report_unknown_keys();
        out
    }

    pub(crate) fn section<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Section<'a>) -> T) -> T {
        self.asked.push(key);
        let node = self.node.and_then(|node| node.get(key));
        Section::read(self.report, node, &join(&self.path, key), &join(&self.schema, key), read)
    }

    /// A section for each name: `[models."my-model"]`.
    pub(crate) fn named<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&str, &mut Section<'a>) -> T,
    ) -> BTreeMap<String, T> {
        self.asked.push(key);
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

    /// The entries of a list of tables: `[[routes]]`.
    pub(crate) fn list(&mut self, key: &'static str) -> &'a [Node] {
        match self.take(key) {
            Some(Node { value: Value::List(items), .. }) => items,
            Some(node) => {
                self.report
                    .error(Wrong::new("must be a list of sections", format!("write `[[{key}]]`")).at(node));
                &[]
            }
            None => &[],
        }
    }

    /// The texts of a table whose keys are the operator's own.
    pub(crate) fn texts(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str, &Node) -> Result<String, Wrong>,
    ) -> Vec<(String, String)> {
        let Some(node) = self.take(key) else { return Vec::new() };
        let Value::Table(entries) = &node.value else {
            self.report.error(Wrong::new("must be a table", "such as `{ x-team = \"search\" }`").at(node));
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

    /// A key that may be absent.
    pub(crate) fn optional<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&Node) -> Result<T, Wrong>,
    ) -> Option<T> {
        let (value, node) = self.fetch(key, parse)?;
        self.report.resolved(join(&self.path, key), node.written.clone(), node.origin.clone());
        Some(value)
    }

    /// A key with a default.
    pub(crate) fn or<T>(
        &mut self,
        key: &'static str,
        default: T,
        parse: impl FnOnce(&Node) -> Result<T, Wrong>,
        show: impl FnOnce(&T) -> String,
    ) -> T {
        let (value, shown, origin) = match self.fetch(key, parse) {
            // What extends the layer below says only what it adds.
            Some((value, node)) if node.extends => (value, None, node.origin.clone()),
            Some((value, node)) => (value, Some(node.written.clone()), node.origin.clone()),
            None => (default, None, Origin::Default),
        };
        let shown = shown.unwrap_or_else(|| show(&value));
        self.report.resolved(join(&self.path, key), shown, origin);
        value
    }

    /// A key that the section makes no sense without.
    pub(crate) fn required<T>(
        &mut self,
        key: &'static str,
        hint: &str,
        parse: impl FnOnce(&Node) -> Result<T, Wrong>,
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
        self.or(key, default, value::ratio, |ratio| format!("{ratio:?}"))
    }

    pub(crate) fn share(&mut self, key: &'static str, default: f64) -> f64 {
        self.or(key, default, value::share, |share| format!("{share:?}"))
    }

    pub(crate) fn duration(&mut self, key: &'static str, default: Duration) -> Duration {
        self.or(key, default, value::duration, |duration| units::show_duration(*duration))
    }

    pub(crate) fn bytes(&mut self, key: &'static str, default: u64, least: u64, most: u64) -> u64 {
        self.or(key, default, |node| value::bytes(node, least..=most), |bytes| units::show_size(*bytes))
    }

    pub(crate) fn tokens(&mut self, key: &'static str, default: u64) -> Tokens {
        self.or(key, Tokens(default), value::tokens, |tokens| tokens.0.to_string())
    }

    pub(crate) fn some_tokens(&mut self, key: &'static str, default: u64) -> Tokens {
        self.or(key, Tokens(default), value::some_tokens, |tokens| tokens.0.to_string())
    }

    pub(crate) fn count(&mut self, key: &'static str, default: NonZeroU32) -> NonZeroU32 {
        self.or(key, default, value::count, NonZeroU32::to_string)
    }

    pub(crate) fn flag(&mut self, key: &'static str, default: bool) -> bool {
        self.or(key, default, value::boolean, bool::to_string)
    }

    pub(crate) fn text(
        &mut self,
        key: &'static str,
        default: &str,
        parse: impl FnOnce(&Node) -> Result<String, Wrong>,
    ) -> String {
        self.or(key, default.to_owned(), parse, |text| quoted(text))
    }

    pub(crate) fn choice<T: Choice>(&mut self, key: &'static str, default: T) -> T {
        self.or(key, default, value::choice, |choice| quoted(choice.name()))
    }

    pub(crate) fn keep(&mut self, key: &'static str, default: Keep) -> Keep {
        self.or(key, default, policy::keep, policy::show_keep)
    }

    pub(crate) fn trigger(&mut self, key: &'static str, default: Trigger) -> Trigger {
        self.or(key, default, |node| policy::trigger(node, default), policy::show_trigger)
    }

    pub(crate) fn pace(&mut self, key: &'static str, default: Pace) -> Pace {
        self.or(key, default, policy::pace, policy::show_pace)
    }

    /// A path; a relative one starts at the directory of the file.
    pub(crate) fn path(&self) -> impl FnOnce(&Node) -> Result<PathBuf, Wrong> + use<'a> {
        let directory = &self.report.directory;
        move |node| value::text(node).map(|text| directory.join(text))
    }

    /// Reports a value that is wrong only beside another one: at the first of `keys` that somebody set.
    pub(crate) fn blame(&self, keys: &[&str], must: impl Into<String>, hint: &str) {
        let set = keys.iter().find_map(|key| self.node.and_then(|node| node.get(key)));
        if let Some(node) = set {
            self.report.error(Wrong::new(must, hint).at(node));
        }
    }

    /// Whether any layer says something about a key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.node.is_some_and(|node| node.get(key).is_some())
    }

    /// A section that somebody else reads.
    pub(crate) fn child(&mut self, key: &'static str) -> Option<&'a Node> {
        self.asked.push(key);
        self.node.and_then(|node| node.get(key))
    }

    fn fetch<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&Node) -> Result<T, Wrong>,
    ) -> Option<(T, &'a Node)> {
        let node = self.take(key)?;
        let value = self.accept(node, parse(node))?;
        Some((value, node))
    }

    fn accept<T>(&self, node: &Node, parsed: Result<T, Wrong>) -> Option<T> {
        if node.is_broken() {
            return None;
        }
        parsed.map_err(|wrong| self.report.error(wrong.at(node))).ok()
    }

    fn take(&mut self, key: &'static str) -> Option<&'a Node> {
        self.asked.push(key);
        let node = self.node.and_then(|node| node.get(key));
        self.report.asked(join(&self.schema, key), node.is_some());
        node.filter(|node| !matches!(node.value, Value::Broken))
    }

    fn report_unknown_keys(&self) {
        let Some(Value::Table(entries)) = self.node.map(|node| &node.value) else { return };
        for (key, node) in entries.iter().filter(|(key, _)| !self.asked.contains(&key.as_str())) {
            let hint = match nearest(key, self.asked.iter().copied()) {
                Some(known) => format!("did you mean `{known}`?"),
                None => format!("the keys here are {}", self.asked.join(", ")),
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
            let hint = format!("write `[{}]` and its keys on the lines below", node.path);
            report.error(Wrong::new("must be a section", hint).at(node));
            None
        }
    }
}
