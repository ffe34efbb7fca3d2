use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::families;
use crate::{Model, ModelOverride};

/// The known models: the built-in rows, and on top of them the operator's settings.
///
/// A pattern is a model name. It matches that name with or without a release suffix: a date, a number of at least three digits, or a
/// word like `latest` or `preview`. So `gpt-4o` matches `gpt-4o-2024-08-06` but not `gpt-4o-mini`. A pattern that ends in `*` matches
/// every name that begins with it.
///
/// A name matches with or without a gateway's prefix (`openai/`, `azure/`, `us.anthropic.`). A fine-tune (`ft:gpt-4o:acme::id`)
/// matches as `ft:gpt-4o` or `gpt-4o`. If several patterns match, one without a star wins, then the longest. Case is ignored.
#[derive(Debug)]
pub struct ModelTable {
    overrides: Vec<(String, ModelOverride)>,
    cache: Cache<String, Arc<Model>>,
}

impl ModelTable {
    /// The built-in rows alone.
    #[must_use]
    pub fn builtin() -> ModelTable {
        ModelTable { overrides: Vec::new(), cache: Cache::new(CACHED_NAMES) }
    }

    /// Adds the operator's entries, by pattern. The most specific one that matches applies, on top of the built-in row of the name.
    #[must_use]
    pub fn with(mut self, overrides: impl IntoIterator<Item = (String, ModelOverride)>) -> ModelTable {
        let named = overrides.into_iter().map(|(pattern, entry)| (pattern.to_ascii_lowercase(), entry));
        self.overrides.extend(named);
        self.cache.clear();
        self
    }

    /// Looks up a model. An unknown one has no window and no prices.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Arc<Model> {
        // Clients choose the names, so an absurdly long one must not occupy memory.
        if name.len() > MAX_NAME_LENGTH {
            return Arc::new(self.find(""));
        }
        if let Some(model) = self.cache.get(name) {
            return model;
        }
        let model = Arc::new(self.find(name));
        self.cache.insert(name.to_owned(), Arc::clone(&model));
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

/// The maximum number of cached lookups.
const CACHED_NAMES: usize = 1_000;

/// Longer than any provider's model names.
const MAX_NAME_LENGTH: usize = 256;

fn builtin(name: &str) -> Option<Model> {
    let rows = families::all().map(|family| (family.pattern, family));
    if let Some(family) = most_specific(rows, &spellings(name)) {
        return Some(family.model());
    }
    // `model:free` and `model:nitro` are known models at an unknown price.
    let (base, _variant) = name.rsplit_once(':')?;
    builtin(base).map(|model| Model { prices: None, ..model })
}

/// Returns the forms of a name that patterns are matched with, in lowercase.
pub(crate) fn spellings(name: &str) -> Vec<String> {
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
            // Gateways write `us.anthropic.claude-…`, and versions with a dot.
            spellings.push(spelling[at..].replace('.', "-"));
        }
    }
    spellings
}

/// Returns the entry with the most specific pattern that matches one of the spellings.
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

/// Returns how specific a pattern is (whether it has no star, then its length), or `None` if it does not match the name.
fn specificity(pattern: &str, name: &str) -> Option<(bool, usize)> {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix).then_some((false, prefix.len())),
        None => is_release(name.strip_prefix(pattern)?).then_some((true, pattern.len())),
    }
}

/// Whether a suffix is empty or names a release: `-2024-08-06`, `-latest`, `-preview-09-2025`, `@20250929`, `-20250219-v1:0`.
fn is_release(suffix: &str) -> bool {
    let Some(marks) = suffix.strip_prefix(['-', '@', ':']) else { return suffix.is_empty() };
    marks.split(['-', '@', ':']).enumerate().all(|(position, mark)| {
        let digits = mark.strip_prefix('v').unwrap_or(mark);
        let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // A short number right after the name is another model (`claude-opus-4-1`), unless it is a version like `v1`.
        let leads = position > 0 || mark.len() >= 3 || mark.starts_with('v');
        (number && leads) || STAGES.contains(&mark)
    })
}

const STAGES: [&str; 6] = ["latest", "preview", "beta", "exp", "experimental", "instruct"];
