use crate::choice::choices;
use crate::layers::Layers;
use crate::report::{Findings, Report};
use crate::section::Section;
use crate::tree::{self, Node, Table, Value, quoted, without_password};
use crate::value::{self, InvalidValue};
use crate::{
    Admin, ConfigErrors, History, Log, ModelSettings, Origin, Resolved, Route, Server, Source, Store,
    StoreUrl, Summarizer, Telemetry, Upstream, environment, route,
};
use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

/// The settings from `proxy.toml`, the environment and the command line, checked and complete.
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
    /// By name. There is always one named `default`.
    pub upstreams: BTreeMap<String, Arc<Upstream>>,
    pub summarizers: BTreeMap<String, Summarizer>,
    /// In the order in which they are matched; never empty.
    pub routes: Vec<Route>,
    /// Every value with its origin.
    pub resolved: Vec<Resolved>,
    pub warnings: Vec<String>,
}

/// The long-term archive.
#[derive(Clone, PartialEq, Eq)]
pub struct Archive {
    /// `postgres://…`, including the password.
    pub url: String,
}

/// Hides the password, so that it does not appear in logs.
impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").field("url", &without_password(&self.url)).finish()
    }
}

/// How a request's conversation and tenant are identified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The header that names the conversation, in lowercase.
    pub header: String,
    /// The headers in which clients send a session id of their own, in lowercase. The first one present counts.
    pub session_headers: Vec<String>,
    /// The members of a body that name a session, where no header does: `session_id`, `litellm_session_id`, `metadata` or `prompt_cache_key`.
    pub session_fields: Vec<String>,
    /// The headers with credentials, in lowercase. The hash of the first one present is the tenant.
    pub tenant: Vec<String>,
    /// Where requests without credentials have a conversation.
    pub anonymous: Anonymous,
    /// The environment variable that holds the secret key of the tenant hash.
    pub secret_env: String,
    /// How long a request waits for its turn where the history is kept here.
    pub turn_timeout: Duration,
}

/// The settings from the command line. Each has the name that it was set by: `--listen` or `TIDEGATE_LISTEN`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub listen: Option<(String, &'static str)>,
    pub admin: Option<(String, &'static str)>,
    pub upstream: Option<(String, &'static str)>,
    pub store: Option<(String, &'static str)>,
    /// The name of the flag, if every route is to observe.
    pub observe: Option<&'static str>,
}

/// Resolves the file, the flags and the environment to settings, or returns every mistake in them.
pub fn load(
    source: Source,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, ConfigErrors> {
    let (settings, findings) = read_all(&source, flags, env)?;
    if findings.errors.is_empty() {
        Ok(Settings { resolved: findings.resolved, warnings: findings.warnings, ..settings })
    } else {
        Err(ConfigErrors::sorted(findings.errors))
    }
}

/// Reads everything, even if there are mistakes. The settings are valid only if the findings have no errors.
pub(crate) fn read_all(
    source: &Source,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<(Settings, Findings), ConfigErrors> {
    let report = Report::new(source.directory.clone());
    let file = tree::parse(source, env, &report)?;
    let root = file.overlaid_with(&flags.layer());
    let environment = environment::layer(env, flags.observe, &report);
    let settings = Section::read(&report, Some(&root), "", "", |section| {
        Settings::read(section, &report, &root, environment)
    });
    Ok((settings, report.into_findings()))
}

impl Settings {
    /// Leaves `resolved` and `warnings` empty; the report has them.
    fn read<'a>(
        section: &mut Section<'a>,
        report: &'a Report,
        root: &'a Node,
        environment: Option<Node>,
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
            environment,
            summarizers: iter::once("extractive").chain(names).collect(),
            stores_raw: store.raw,
        };
        layers.check_context(report);
        let routes = route::read(report, section.list("routes"), &layers, &upstreams, &default);
        check_histories(&routes, &store, root, report);
        check_size(&store, report);

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
            let hint = "for example, `postgres://tidegate@db.example.com/tidegate?sslmode=require`";
            if known {
                Ok(url)
            } else {
                Err(InvalidValue::new("must be the URL of a PostgreSQL database", hint))
            }
        });
        url.map(|url| Archive { url })
    }
}

/// Where clients without credentials, who cannot be told apart, have conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// On a listener that only this machine reaches.
    Loopback,
    Anywhere,
}

choices!(Anonymous { "loopback" => Loopback, "anywhere" => Anywhere });

/// What Claude Code, Codex, opencode and others send.
/// Those with underscores are of older versions of Codex.
const SESSION_HEADERS: &[&str] = &[
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "conversation_id",
    "x-session-id",
    "x-opencode-session",
    "x-session-affinity",
];

/// The members of a body that can name a session, the most specific first.
const SESSION_FIELDS: &[&str] = &["session_id", "litellm_session_id", "metadata", "prompt_cache_key"];

const TENANT: &[&str] = &["authorization", "api-key", "x-api-key", "x-goog-api-key"];

fn session_field(node: &Node) -> Result<String, InvalidValue> {
    let name = value::text(node)?;
    if SESSION_FIELDS.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(InvalidValue::new(
        "must be a member of the body that can name a session",
        "use any of `session_id`, `litellm_session_id`, `metadata`, `prompt_cache_key`",
    ))
}

impl Conversation {
    fn read(section: &mut Section<'_>) -> Conversation {
        Conversation {
            header: section.text("header", "x-conversation-id", value::header),
            session_headers: section.strings("session_headers", SESSION_HEADERS, value::header),
            session_fields: section.strings("session_fields", SESSION_FIELDS, session_field),
            tenant: section.strings("tenant", TENANT, value::header),
            anonymous: section.choice("anonymous", Anonymous::Loopback),
            secret_env: section.text("secret_env", "TIDEGATE_SECRET", value::variable),
            turn_timeout: section.duration("turn_timeout", Duration::from_secs(6)),
        }
    }
}

impl Flags {
    /// Converts the flags to a layer on top of the file.
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

/// Reports `store.raw = false` if a route needs the stored messages to rebuild its history.
fn check_histories(routes: &[Route], store: &Store, root: &Node, report: &Report) {
    let needs_raw = routes.iter().any(|route| route.context.history == History::Proxy);
    let raw = root.get("store").and_then(|store| store.get("raw"));
    if let Some(raw) = raw.filter(|_| needs_raw && !store.raw) {
        let must = "must be `true` because a route has `history = \"proxy\"`";
        report
            .error(InvalidValue::new(must, "the history is rebuilt from the messages in the store").at(raw));
    }
}

/// Reports a size that nothing enforces. Not an error, because a flag may choose another store than the file does.
fn check_size(store: &Store, report: &Report) {
    let is_elsewhere = matches!(store.url, StoreUrl::Redis(_) | StoreUrl::Sentinel(_) | StoreUrl::Cluster(_));
    if is_elsewhere && store.max_size.is_some() {
        report.warning(
            "`store.max_size` has no effect with Redis, which has a limit of its own: set its `maxmemory`"
                .to_owned(),
        );
    }
}

/// Reports two listeners on one port. Otherwise the second one would fail to bind after the first has begun to serve.
fn check_listeners(server: &Server, admin: &Admin, root: &Node, report: &Report) {
    let (a, b) = (server.listen, admin.listen);
    let same_host = a.ip() == b.ip() || a.ip().is_unspecified() || b.ip().is_unspecified();
    if a.port() == 0 || a.port() != b.port() || !same_host {
        return;
    }
    let listen = |section| root.get(section).and_then(|section: &Node| section.get("listen"));
    if let Some(node) = listen("admin").or_else(|| listen("server")) {
        let must = "`server.listen` and `admin.listen` cannot share a port";
        report.error(
            InvalidValue::new(must, "give the admin listener its own port, for example 9090").at(node),
        );
    }
}
