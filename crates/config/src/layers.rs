use crate::Context;
use crate::profile;
use crate::report::Report;
use crate::section::Section;
use crate::tree::Node;

/// The layers that all routes share. From bottom to top, a route's policy consists of the defaults (in the code that reads each
/// key), the profile that a layer above names, `[context]`, the route's own section, and the environment.
pub(crate) struct Layers<'a> {
    pub(crate) context: Option<&'a Node>,
    pub(crate) environment: Option<Node>,
    /// The valid values of `fold.summarizer`.
    pub(crate) summarizers: Vec<&'a str>,
    /// Whether the store may hold raw messages.
    pub(crate) stores_raw: bool,
}

impl Layers<'_> {
    /// Reads the policy of the route whose own section is `own`.
    pub(crate) fn read(&self, report: &Report, own: Option<&Node>, path: &str) -> Context {
        let given = [self.context, own, self.environment.as_ref()];
        let profile = profile::layer(given.into_iter().flatten());
        let layers = [profile.as_ref()].into_iter().chain(given);
        let merged = layers.flatten().fold(None, |below: Option<Node>, layer| match below {
            Some(below) => Some(below.overlaid_with(layer)),
            None => Some(layer.clone()),
        });
        if let (Some(profile), Some(merged)) = (&profile, &merged)
            && !profile::shows(profile, merged)
        {
            let name = merged.get("profile").map(|node| node.written.clone()).unwrap_or_default();
            report.warning(format!(
                "`{path}.profile` is {name}, but every key of that profile is set otherwise, so it changes nothing\n  hint: remove or \
                 comment out the keys that it should set"
            ));
        }
        Section::read(report, merged.as_ref(), path, "context", |section| {
            Context::read(section, &self.summarizers, self.stores_raw)
        })
    }

    /// Reports mistakes in `[context]` itself. Reading the routes does not find those in keys that every route overrides.
    pub(crate) fn check_context(&self, report: &Report) {
        let alone = Report::default();
        Section::read(&alone, self.context, "context", "context", |section| {
            Context::read(section, &self.summarizers, self.stores_raw)
        });
        for error in alone.into_findings().errors {
            report.error(error);
        }
    }
}
