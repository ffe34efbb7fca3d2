//! A route's policy as editable text: writes it out, and reads it back to see what a change would do.

use crate::layers::Layers;
use crate::report::Report;
use crate::section::Section;
use crate::{ConfigErrors, Origin, Settings, Source, tree};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::iter;

impl Settings {
    /// Writes the resolved policy of a route as TOML, under `[context]`. Values from its profile are comments.
    /// [`Settings::with_policy`] reads it back to the same policy.
    #[must_use]
    pub fn policy_text(&self, route: usize) -> String {
        let prefix = format!("routes[{route}].context.");
        let mut sections: BTreeMap<&str, Vec<(&str, &str, bool)>> = BTreeMap::new();
        for value in &self.resolved {
            let Some(key) = value.path.strip_prefix(&prefix) else { continue };
            let (section, key) = key.split_once('.').unwrap_or(("", key));
            let from_profile = matches!(value.origin, Origin::Profile(_));
            sections.entry(section).or_default().push((key, &value.value, from_profile));
        }
        let mut text = String::new();
        for (section, values) in sections {
            let dot = if section.is_empty() { "" } else { "." };
            let gap = if text.is_empty() { "" } else { "\n" };
            // Writing into a string does not fail.
            let _ = writeln!(text, "{gap}[context{dot}{section}]");
            for (key, value, from_profile) in values {
                // The text names the profile, which sets this value. Written out, it would no longer be the profile's.
                let mark = if from_profile { "# " } else { "" };
                let _ = writeln!(text, "{mark}{key} = {value}");
            }
        }
        text
    }

    /// Returns these settings with the policy of one route replaced by `[context]` in `source`. Only the defaults and the profile that
    /// it names apply below it, and neither the file nor the environment.
    pub fn with_policy(&self, route: usize, source: &Source) -> Result<Settings, ConfigErrors> {
        let report = Report::new(source.directory.clone());
        let root = tree::parse(source, &|_| None, &report)?;
        let names = self.summarizers.keys().map(String::as_str);
        let summarizers = iter::once("extractive").chain(names).collect();
        let context = Section::read(&report, Some(&root), "", "", |section| {
            let (context, stores_raw) = (section.child("context"), self.store.raw);
            let layers = Layers { context, environment: None, summarizers, stores_raw };
            layers.read(&report, None, &format!("routes[{route}].context"))
        });
        let findings = report.into_findings();
        if !findings.errors.is_empty() {
            return Err(ConfigErrors::sorted(findings.errors));
        }
        let mut edited = self.clone();
        if let Some(route) = edited.routes.get_mut(route) {
            route.context = context.into();
        }
        let prefix = format!("routes[{route}].context.");
        edited.resolved.retain(|value| !value.path.starts_with(&prefix));
        edited.resolved.extend(findings.resolved);
        Ok(edited)
    }
}

#[cfg(test)]
mod tests {
    use crate::Source;
    use crate::tests::loaded;

    #[test]
    fn policy_text_reads_back_to_the_same_policy() {
        let file = "[summarizers.small]\nkind = \"llm\"\nmodel = \"m\"\n[context]\nstrategy = \"hybrid\"\n[context.fold]\nsummarizer = \"small\"\n\
             [context.budget]\nwindow_cap = 9000\n[context.observations]\nuser_pattern = '^OUT\\b \"'\n\
             [[routes]]\nname = \"a\"\n[routes.context.budget.windows]\n\"gpt-4*\" = 8000\n[routes.context.mask]\nkeep = { tokens = 500 }\npace = { batch = 3 }\nexclude_tools = [\"plan\"]\n\
             [[routes]]\nname = \"b\"\n[routes.context]\nprofile = \"assistant\"\n[[routes]]\nname = \"c\"\n[routes.context]\nprofile = \"story\"\n";
        let settings = loaded(file);
        for (index, route) in settings.routes.iter().enumerate() {
            let text = settings.policy_text(index);
            let again = settings.with_policy(index, &Source::new("policy", text.clone())).unwrap();
            assert_eq!(again.routes[index].context, route.context, "{text}");
            assert_eq!(again.policy_text(index), text);
        }
    }

    #[test]
    fn a_changed_policy_applies_and_a_mistake_names_its_line() {
        let settings = loaded("");
        let edited =
            settings.with_policy(0, &Source::new("policy", "[context.mask]\nkeep = { turns = 3 }\n"));
        let edited = edited.unwrap();
        let shown = |settings: &crate::Settings| {
            let found = settings.resolved.iter().filter(|value| value.path == "routes[0].context.mask.keep");
            found.map(|value| value.value.clone()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&edited), ["{ turns = 3 }"]);
        assert_eq!(shown(&settings), ["{ turns = 10 }"]);
        for (text, expected) in [
            (
                "[context.mask]\nkeep = { turns = 0 }",
                "policy:2: `context.mask.keep` is `{ turns = 0 }` but must",
            ),
            ("[context]\nstategy = 1", "policy:2: unknown key `context.stategy`"),
            ("[server]\nlisten = \"x\"", "policy:1: unknown key `server`"),
            ("[context\n", "policy:1: not valid TOML"),
            ("[context.fold]\nsummarizer = \"nobody\"", "policy:2: `context.fold.summarizer`"),
            ("[context.mask]\nplaceholder = \"${HOME}\"", "policy:2: `context.mask.placeholder`"),
        ] {
            let error = settings.with_policy(0, &Source::new("policy", text)).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
