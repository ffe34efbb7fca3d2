use crate::layers::Layers;
use crate::report::{Findings, Report};
use crate::section::Section;
use crate::tree::{self, Node, Table, Value, quoted, without_password};
use crate::value::{self, Wrong};
use crate::{
    Admin, ConfigErrors, History, Log, ModelSettings, Origin, Resolved, Route, Server, Source, Store,
    Summarizer, Telemetry, Upstream, environment, route,
};
use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

/// Everything that `proxy.toml`, the environment and the command line say, checked and complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub server: Server,
    pub admin: Admin,
    pub log: Log,
    pub store: Store,
    pub archive: Option<Archive>,
    pub telemetry: Telemetry,
    pub conversation: Conversation,
    pub models: BTreeMap<String, ModelSettings>,
    /// Always has `default`.
    pub upstreams: BTreeMap<String, Arc<Upstream>>,
    pub summarizers: BTreeMap<String, Summarizer>,
    /// In the order in which they are tried; never empty.
    pub routes: Vec<Route>,
    /// Every value that was read, and where it came from.
    pub resolved: Vec<Resolved>,
    pub warnings: Vec<String>,
}

/// Where every turn is written for good.
#[derive(Clone, PartialEq, Eq)]
pub struct Archive {
    /// `postgres://…`, with its password.
    pub url: String,
}

/// The password stays out of logs.
impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").field("url", &without_password(&self.url)).finish()
    }
}

/// How requests are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The header that names the conversation, in lower case.
    pub header: String,
    /// The header whose hash is the tenant, in lower case.
    pub tenant: String,
    /// The environment variable that holds the secret under which tenants are hashed.
    pub secret_env: String,
}

/// What the command line sets, each with the name that it was set by: `--listen` or `TIDEGATE_LISTEN`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub listen: Option<(String, &'static str)>,
    pub admin: Option<(String, &'static str)>,
    pub upstream: Option<(String, &'static str)>,
    pub store: Option<(String, &'static str)>,
}

/// Resolves the file, the flags and the environment to settings, or says everything that is wrong with them.
pub fn load(
    source: Source,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, ConfigErrors> {
    let (settings, findings) = examine(&source, flags, env)?;
    if findings.errors.is_empty() {
        Ok(Settings { resolved: findings.resolved, warnings: findings.warnings, ..settings })
    } else {
        Err(ConfigErrors::sorted(findings.errors))
    }
}

/// Reads all of it, wrong or not. The settings count only if there are no errors.
pub(crate) fn examine(
    source: &Source,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<(Settings, Findings), ConfigErrors> {
    let report = Report::new(source.directory.clone());
    let file = tree::parse(source, env, &report)?;
    let root = file.under(&flags.layer());
    let settings =
        Section::read(&report, Some(&root), "", "", |section| Settings::read(section, &report, &root, env));
    Ok((settings, report.into_findings()))
}

impl Settings {
    /// Without what the report holds.
    fn read<'a>(
        section: &mut Section<'a>,
        report: &'a Report,
        root: &'a Node,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Settings {
        let server = section.section("server", Server::read);
        let admin = section.section("admin", Admin::read);
        check_listeners(&server, &admin, root, report);
        let log = section.section("log", Log::read);
        let store = section.section("store", Store::read);
        let archive = section.section("archive", Archive::read);
        let telemetry = section.section("telemetry", Telemetry::read);
        let conversation = section.section("conversation", Conversation::read);
        let models = section.named("models", |_, model| ModelSettings::read(model));

        let mut upstreams =
            section.named("upstreams", |name, upstream| Arc::new(Upstream::read(name, upstream)));
        let default = upstreams.entry("default".to_owned()).or_insert_with(|| {
            let path = "upstreams.default";
            Arc::new(Section::read(report, None, path, "upstreams.*", |section| {
                Upstream::read("default", section)
            }))
        });
        let default = Arc::clone(default);

        let summarizers =
            section.named("summarizers", |name, entry| Summarizer::read(name, entry, &upstreams, &default));
        let names = summarizers.keys().map(String::as_str);
        let layers = Layers {
            context: section.child("context"),
            environment: environment::layer(env, report),
            summarizers: iter::once("extractive").chain(names).collect(),
        };
        layers.check_context(report);
        let routes = route::read(report, section.list("routes"), &layers, &upstreams, &default);
        check_histories(&routes, &store, root, report);

        let summarizers = summarizers.into_iter().filter_map(|(name, summarizer)| Some((name, summarizer?)));
        Settings {
            server,
            admin,
            log,
            store,
            archive,
            telemetry,
            conversation,
            models,
            upstreams,
            summarizers: summarizers.collect(),
            routes,
            resolved: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl Archive {
    fn read(section: &mut Section<'_>) -> Option<Archive> {
        let url = section.optional("url", |node| {
            let url = value::text(node)?;
            let known = ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme));
            let hint = "such as `postgres://tidegate@db.example.com/tidegate?sslmode=require`";
            if known { Ok(url) } else { Err(Wrong::new("must be the URL of a PostgreSQL database", hint)) }
        });
        url.map(|url| Archive { url })
    }
}

impl Conversation {
    fn read(section: &mut Section<'_>) -> Conversation {
        Conversation {
            header: section.text("header", "x-conversation-id", value::header),
            tenant: section.text("tenant", "authorization", value::header),
            secret_env: section.text("secret_env", "TIDEGATE_SECRET", value::variable),
        }
    }
}

impl Flags {
    /// The flags as a layer on top of the file.
    fn layer(&self) -> Node {
        let flags = [
            (&self.listen, ["server", "listen"].as_slice()),
            (&self.admin, &["admin", "listen"]),
            (&self.upstream, &["upstreams", "default", "url"]),
            (&self.store, &["store", "url"]),
        ];
        let mut root = Table::new();
        for (flag, path) in flags {
            if let Some((value, name)) = flag {
                let written = quoted(&without_password(value));
                let origin = Origin::Flag((*name).to_owned());
                let node = Node::new(Value::Text(value.clone()), &path.join("."), origin, written);
                environment::put(&mut root, "", path, node);
            }
        }
        Node::table("", Origin::Default, root)
    }
}

/// A history that the proxy holds is made of the messages in the store.
fn check_histories(routes: &[Route], store: &Store, root: &Node, report: &Report) {
    let holds = routes.iter().any(|route| route.context.history == History::Proxy);
    let raw = root.get("store").and_then(|store| store.get("raw"));
    if let Some(raw) = raw.filter(|_| holds && !store.raw) {
        let must = "must be `true` where a route has `history = \"proxy\"`";
        report.error(Wrong::new(must, "the history is rebuilt from the messages in the store").at(raw));
    }
}

/// Two listeners on one port: the second to bind would fail, and only after the first has begun to serve.
fn check_listeners(server: &Server, admin: &Admin, root: &Node, report: &Report) {
    let (a, b) = (server.listen, admin.listen);
    let same_host = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
    if a.port() == 0 || a.port() != b.port() || !same_host {
        return;
    }
    let listen = |section| root.get(section).and_then(|section: &Node| section.get("listen"));
    if let Some(node) = listen("admin").or_else(|| listen("server")) {
        let must = "`server.listen` and `admin.listen` cannot share a port";
        report.error(Wrong::new(must, "give the admin listener a port of its own, such as 9090").at(node));
    }
}
