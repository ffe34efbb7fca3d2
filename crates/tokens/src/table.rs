use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::families;
use crate::{Model, ModelOverride};

/// The models that Tidegate knows: the built-in rows, and over them what the configuration says.
///
/// A row's pattern is a name, and matches that name followed by the marks of a release: a date or a number of three digits
/// or more, and words like `latest` or `preview`. So `gpt-4o` matches `gpt-4o-2024-08-06` but not `gpt-4o-mini`. A pattern
/// that ends in `*` matches every name that begins with it.
///
/// A name is tried as it is and without the prefixes that gateways put before it (`openai/`, `azure/`,
/// `us.anthropic.`); a fine-tune (`ft:gpt-4o:acme::id`) is tried as `ft:gpt-4o`, then as `gpt-4o`. Of all the patterns that
/// match, one without a star wins over one with, and then the longer over the shorter. Case does not matter.
#[derive(Debug)]
pub struct ModelTable {
    overrides: Vec<(String, ModelOverride)>,
    found: Cache<String, Arc<Model>>,
}

impl ModelTable {
    /// The built-in rows alone.
    #[must_use]
    pub fn builtin() -> ModelTable {
        ModelTable { overrides: Vec::new(), found: Cache::new(REMEMBERED) }
    }

    /// The table with the operator's own entries, which have the same patterns. Among themselves the most specific wins; any
    /// of them wins over the built-in rows, and what it does not say comes from the built-in row of the name that
    /// was asked for.
    #[must_use]
    pub fn with(mut self, overrides: impl IntoIterator<Item = (String, ModelOverride)>) -> ModelTable {
        let named = overrides.into_iter().map(|(pattern, entry)| (pattern.to_ascii_lowercase(), entry));
        self.overrides.extend(named);
        self.found.clear();
        self
    }

    /// What is known of a model. An unknown name gives a model without a window and without prices.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Arc<Model> {
        // Clients choose the names, so that an absurd one must not occupy memory.
        if name.len() > LONGEST_NAME {
            return Arc::new(self.find(""));
        }
        if let Some(model) = self.found.get(name) {
            return model;
        }
        let model = Arc::new(self.find(name));
        self.found.insert(name.to_owned(), Arc::clone(&model));
        model
    }

    fn find(&self, name: &str) -> Model {
        let model = builtin(name).unwrap_or_else(|| Model::unknown(name));
        let own = self.overrides.iter().map(|(pattern, entry)| (pattern.as_str(), (pattern, entry)));
        match most_specific(own, &spellings(name)) {
            Some((pattern, entry)) => entry.apply(Model { name: pattern.clone(), is_known: true, ..model }),
            None => model,
        }
    }
}

/// How many names a table remembers the answer for.
const REMEMBERED: usize = 1_000;

/// No provider has a model with a longer name.
const LONGEST_NAME: usize = 256;

fn builtin(name: &str) -> Option<Model> {
    let rows = families::all().map(|family| (family.pattern, family));
    if let Some(family) = most_specific(rows, &spellings(name)) {
        return Some(family.model());
    }
    // `model:free`, `model:nitro`: a known model at a price that nobody told us.
    let (base, _variant) = name.rsplit_once(':')?;
    builtin(base).map(|model| Model { prices: None, ..model })
}

/// The ways to read a name, lower-cased.
fn spellings(name: &str) -> Vec<String> {
    let name = name.to_ascii_lowercase();
    let mut spellings = Vec::new();
    if let Some(tuned) = name.strip_prefix("ft:") {
        let base = tuned.split(':').next().unwrap_or(tuned);
        spellings.push(format!("ft:{base}"));
        spellings.push(base.to_owned());
    }
    let after_slash = name.match_indices('/').map(|(at, _)| &name[at + 1..]);
    for spelling in std::iter::once(name.as_str()).chain(after_slash) {
        spellings.push(spelling.to_owned());
        if let Some(at) = spelling.find("claude-") {
            // Gateways write `us.anthropic.claude-…`, and the version with a dot.
            spellings.push(spelling[at..].replace('.', "-"));
        }
    }
    spellings
}

/// The entry whose pattern says most about one of the spellings.
fn most_specific<'a, T>(entries: impl Iterator<Item = (&'a str, T)>, spellings: &[String]) -> Option<T> {
    entries
        .filter_map(|(pattern, entry)| {
            spellings
                .iter()
                .filter_map(|name| specificity(pattern, name))
                .max()
                .map(|specific| (specific, entry))
        })
        .max_by_key(|(specific, _)| *specific)
        .map(|(_, entry)| entry)
}

/// How much a pattern says about a name that it matches: whether it has no star, then its length.
fn specificity(pattern: &str, name: &str) -> Option<(bool, usize)> {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix).then_some((false, prefix.len())),
        None => is_release(name.strip_prefix(pattern)?).then_some((true, pattern.len())),
    }
}

/// Whether this is nothing, or only the date, number or stage of a release: `-2024-08-06`, `-latest`, `-preview-09-2025`,
/// `@20250929`, `-20250219-v1:0`.
fn is_release(suffix: &str) -> bool {
    let Some(marks) = suffix.strip_prefix(['-', '@', ':']) else { return suffix.is_empty() };
    marks.split(['-', '@', ':']).enumerate().all(|(position, mark)| {
        let digits = mark.strip_prefix('v').unwrap_or(mark);
        let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // A short number right after the name is another model (`claude-opus-4-1`), unless it is marked as a version.
        let leads = position > 0 || mark.len() >= 3 || mark.starts_with('v');
        (number && leads) || STAGES.contains(&mark)
    })
}

const STAGES: [&str; 6] = ["latest", "preview", "beta", "exp", "experimental", "instruct"];
