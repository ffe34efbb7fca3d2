use crate::layers::Layers;
use crate::report::Report;
use crate::section::Section;
use crate::tree::{Node, quoted};
use crate::value::{self, InvalidValue, nearest};
use crate::{ConfigError, Context, Glob, Upstream};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which requests go to which upstream, and under which policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    pub name: String,
    pub matcher: Matcher,
    pub upstream: Arc<Upstream>,
    pub context: Arc<Context>,
}

/// A request matches if its path, its model and all headers match. An empty list matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    pub paths: Vec<Glob>,
    pub models: Vec<Glob>,
    /// Header names are in lowercase.
    pub headers: Vec<(String, Glob)>,
}

/// OpenAI's own path, Azure's, and those of the many gateways that speak the same protocol below a path of their own.
/// Anthropic's own path, and those of gateways that have its whole API below a path of their own.
const MANAGED: [&str; 4] = ["*/chat/completions", "*/v1/messages", "*/anthropic/messages", "*/responses"];

/// Reads the routes, or returns the default route if there are none.
pub(crate) fn read(
    report: &Report,
    nodes: &[Node],
    layers: &Layers<'_>,
    upstreams: &BTreeMap<String, Arc<Upstream>>,
    default_upstream: &Arc<Upstream>,
) -> Vec<Route> {
    let nodes: Vec<Option<&Node>> =
        if nodes.is_empty() { vec![None] } else { nodes.iter().map(Some).collect() };
    let mut routes: Vec<Route> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let path = format!("routes[{index}]");
        let route = Section::read(report, *node, &path, "routes[]", |section| {
            let default = if node.is_none() { "default".to_owned() } else { format!("route-{}", index + 1) };
            let name = section.text("name", &default, |node| route_name(node, &routes));
            let matcher = section.section("match", Matcher::read);
            let upstream = section.with_default(
                "upstream",
                Arc::clone(default_upstream),
                |node| known_upstream(node, upstreams),
                |upstream| quoted(&upstream.name),
            );
            let own = section.child("context");
            let context = layers.read(report, own, &format!("{path}.context"));
            Route { name, matcher, upstream, context: Arc::new(context) }
        });
        if let Some(node) = node
            && let Some(earlier) = routes.iter().find(|earlier| earlier.matcher.covers(&route.matcher))
        {
            let (name, first) = (&route.name, &earlier.name);
            report.warning(format!(
                "{}: route `{name}` never matches, because `{first}` matches first",
                node.origin
            ));
        }
        if let Some(node) = node
            && node.get("name").is_none()
            && routes.iter().any(|earlier| earlier.name == route.name)
        {
            let hint = format!("its default name, `{}`, is taken by an earlier route", route.name);
            report.error(ConfigError::Missing {
                at: node.origin.clone(),
                path: format!("{path}.name"),
                hint,
            });
        }
        routes.push(route);
    }
    routes
}

/// Looks up the upstream that a value names.
pub(crate) fn known_upstream(
    node: &Node,
    upstreams: &BTreeMap<String, Arc<Upstream>>,
) -> Result<Arc<Upstream>, InvalidValue> {
    let name = value::text(node)?;
    upstreams.get(&name).cloned().ok_or_else(|| {
        let hint = match nearest(&name, upstreams.keys().map(String::as_str)) {
            Some(known) => format!("did you mean `{known}`?"),
            None => "add a section `[upstreams.NAME]` with its `url`".to_owned(),
        };
        InvalidValue::new("no upstream has that name", hint)
    })
}

impl Matcher {
    fn read(section: &mut Section<'_>) -> Matcher {
        let managed = MANAGED.map(Glob::new).to_vec();
        Matcher {
            paths: section.with_default("path", managed, paths, |globs| list(globs)),
            models: section.optional("models", value::nonempty_globs).unwrap_or_default(),
            headers: section.texts("headers", header_match).into_iter().map(header_glob).collect(),
        }
    }

    /// Whether `self` matches every request that `other` matches.
    fn covers(&self, other: &Matcher) -> bool {
        let headers = self.headers.iter().all(|(name, glob)| {
            other.headers.iter().any(|(other_name, other)| name == other_name && covers(glob, other))
        });
        headers && all_covered(&self.paths, &other.paths) && all_covered(&self.models, &other.models)
    }
}

fn all_covered(globs: &[Glob], others: &[Glob]) -> bool {
    let everything = globs.is_empty() || globs.iter().any(Glob::is_everything);
    let each = !others.is_empty() && others.iter().all(|other| globs.iter().any(|glob| covers(glob, other)));
    everything || each
}

/// Whether `glob` matches every text that `other` matches. It matches the star of `other` as a character, which only a star of
/// `glob` can match, and that star then matches whatever the star of `other` does.
fn covers(glob: &Glob, other: &Glob) -> bool {
    glob.matches(other.as_str())
}

fn paths(node: &Node) -> Result<Vec<Glob>, InvalidValue> {
    let globs = value::nonempty_globs(node)?;
    if globs.iter().all(|glob| glob.as_str().starts_with(['/', '*'])) {
        return Ok(globs);
    }
    Err(InvalidValue::new("must begin with `/`", "write only the path, for example `/v1/chat/completions`"))
}

fn list(globs: &[Glob]) -> String {
    let globs: Vec<String> = globs.iter().map(|glob| quoted(glob.as_str())).collect();
    format!("[{}]", globs.join(", "))
}

fn header_match(name: &str, node: &Node) -> Result<String, InvalidValue> {
    if !value::is_header(name) {
        return Err(InvalidValue::new(
            "its key must be a header name",
            "for example, `{ x-team = \"search\" }`",
        ));
    }
    value::text(node)
}

fn header_glob((name, glob): (String, String)) -> (String, Glob) {
    (name.to_ascii_lowercase(), Glob::new(glob))
}

fn route_name(node: &Node, earlier: &[Route]) -> Result<String, InvalidValue> {
    let name = value::text(node)?;
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        return Err(InvalidValue::new(
            "must consist of lowercase letters, digits and dashes",
            "for example, `name = \"agents\"`",
        ));
    }
    if earlier.iter().any(|route| route.name == name) {
        return Err(InvalidValue::new(
            "must be unique, and an earlier route has this name",
            "choose another one; it appears in headers and metrics",
        ));
    }
    Ok(name)
}
