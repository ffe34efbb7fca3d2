use crate::Context;
use crate::profile;
use crate::report::Report;
use crate::section::Section;
use crate::tree::Node;

/// What the policy of every route is made of: `[context]` below, the environment above, the route's own between them.
/// Below them is the profile that they name, and below that are the defaults, which stand where each key is read.
pub(crate) struct Layers<'a> {
    pub(crate) context: Option<&'a Node>,
    pub(crate) environment: Option<Node>,
    pub(crate) summarizers: Vec<&'a str>,
}

impl Layers<'_> {
    /// The policy of the route whose own section is `own`.
    pub(crate) fn read(&self, report: &Report, own: Option<&Node>, path: &str) -> Context {
        let given = [self.context, own, self.environment.as_ref()];
        let profile = profile::layer(given.into_iter().flatten());
        let layers = [profile.as_ref()].into_iter().chain(given);
        let merged = layers.flatten().fold(None, |below: Option<Node>, layer| match below {
            Some(below) => Some(below.under(layer)),
            None => Some(layer.clone()),
        });
        Section::read(report, merged.as_ref(), path, "context", |section| {
            Context::read(section, &self.summarizers)
        })
    }

    /// Reports what is wrong with `[context]` itself: where every route overrides a key, no route would.
    pub(crate) fn check_context(&self, report: &Report) {
        let alone = Report::default();
        Section::read(&alone, self.context, "context", "context", |section| {
            Context::read(section, &self.summarizers)
        });
        for error in alone.into_findings().errors {
            report.error(error);
        }
    }
}
