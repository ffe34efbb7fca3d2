//! Every question that the admin address takes, and who answers it.

use crate::api::{self, Explainer};
use crate::auth::{admit, admit_stranger};
use crate::chronicle::{Chronicle, Range, TICK};
use crate::configuration::ConfigurationPage;
use crate::live::Live;
use crate::overview::{Overview, Process, Tick, View};
use crate::problem::Problem;
use crate::reply::{self, Answer, AnyAnswer};
use crate::serve::{Admin, Readiness};
use crate::target::{Parameters, ROOT};
use crate::try_it::{self, Page};
use crate::{assets, session};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use hyper::body::Body;
use std::sync::Arc;
use tidegate_store::{Degraded, wall_clock};
use tidegate_wire::Reader;
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval};

/// What answers are made from.
#[derive(Debug)]
pub(crate) struct Desk {
    admin: Admin,
    started: u64,
    /// The one in use: another one in the configuration needs a restart.
    store: String,
    chronicle: Chronicle,
    /// Of its own: what somebody tries here pushes nothing out of what requests have been counted with.
    reader: Arc<Reader>,
    /// Who may listen at once, and who may have something worked out: the machine is there for requests.
    listeners: Arc<Semaphore>,
    thinkers: Arc<Semaphore>,
    /// Who may bring something to be worked out: it waits in memory for its turn.
    visitors: Semaphore,
}

const MOST_LISTENERS: usize = 32;
const MOST_THINKERS: usize = 2;
const MOST_VISITORS: usize = 8;

/// The API, described for machines.
const OPENAPI: &str = include_str!("openapi.json");

impl Desk {
    pub(crate) fn new(admin: Admin) -> Desk {
        Desk {
            store: (admin.settings)().store.url.to_string(),
            admin,
            started: wall_clock(),
            chronicle: Chronicle::new(),
            reader: Arc::new(Reader::default()),
            listeners: Arc::new(Semaphore::new(MOST_LISTENERS)),
            thinkers: Arc::new(Semaphore::new(MOST_THINKERS)),
            visitors: Semaphore::new(MOST_VISITORS),
        }
    }

    /// Looks at the tallies from time to time, for ever.
    pub(crate) async fn keep_time(&self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            self.look();
        }
    }

    /// Keeps what has been counted since the last look.
    pub(crate) fn look(&self) {
        self.chronicle.note(wall_clock(), (self.admin.tallies)());
    }

    pub(crate) async fn answer<B: Body<Data = Bytes>>(self: &Arc<Self>, request: Request<B>) -> AnyAnswer {
        let method = request.method();
        let answer = match request.uri().path() {
            "/healthz" => reading(method).map(|()| reply::of(StatusCode::OK, reply::TEXT, "ok\n")),
            "/readyz" => reading(method).map(|()| self.ready()),
            "/api/session" => self.session(request).await,
            "/api/overview/live" => {
                return self.live(&request).unwrap_or_else(|problem| reply::whole(problem.response()));
            }
            path => match assets::named(path) {
                Some(name) => self.asset(name, &request),
                None => self.guarded(request).await,
            },
        };
        reply::whole(answer.unwrap_or_else(|problem| problem.response()))
    }

    /// What not everybody may ask. Whether there is such a path is part of it.
    async fn guarded<B: Body<Data = Bytes>>(&self, request: Request<B>) -> Result<Answer, Problem> {
        self.admit(&request)?;
        let (method, uri) = (request.method(), request.uri());
        match uri.path() {
            "/metrics" => {
                reading(method)?;
                Ok(reply::of(StatusCode::OK, reply::METRICS, (self.admin.metrics)()))
            }
            "/api/openapi.json" => {
                reading(method)?;
                Parameters::of(uri, &[])?;
                Ok(reply::of(StatusCode::OK, reply::JSON, OPENAPI))
            }
            "/api/overview" => {
                reading(method)?;
                let view = view(uri)?;
                reply::json(&Overview::of(&self.chronicle, &view, self.process(), wall_clock()))
            }
            "/api/config" => {
                reading(method)?;
                Parameters::of(uri, &[])?;
                reply::json(&ConfigurationPage::of(&(self.admin.settings)(), &self.admin.reloads))
            }
            "/api/explain" => self.explain(request).await,
            path if path.starts_with(ROOT) => {
                let explainer = Explainer {
                    settings: (self.admin.settings)(),
                    reader: self.reader.clone(),
                    thinkers: self.thinkers.clone(),
                };
                api::answer(&self.admin.conversations, Some(explainer), request).await
            }
            _ => Err(Problem::UnknownPath),
        }
    }

    fn admit<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        admit(self.admin.token.as_ref(), method, uri, headers, wall_clock())
    }

    /// The page and its files hold nothing but themselves, and one of them asks for the token.
    fn asset<B>(&self, name: &str, request: &Request<B>) -> Result<Answer, Problem> {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        reading(method)?;
        admit_stranger(self.admin.token.as_ref(), method, uri, headers)?;
        assets::answer(name, headers).ok_or(Problem::UnknownPath)
    }

    async fn session<B: Body<Data = Bytes>>(&self, request: Request<B>) -> Result<Answer, Problem> {
        let token = self.admin.token.as_ref();
        admit_stranger(token, request.method(), request.uri(), request.headers())?;
        Parameters::of(request.uri(), &[])?;
        match *request.method() {
            Method::GET | Method::HEAD => reply::json(&session::State {
                token_required: token.is_some(),
                admitted: self.admit(&request).is_ok(),
                version: env!("CARGO_PKG_VERSION"),
            }),
            Method::POST => {
                let (head, body) = request.into_parts();
                session::sign_in(token, &head.headers, body, wall_clock()).await
            }
            Method::DELETE => Ok(session::sign_out(token)),
            _ => Err(Problem::Method { allow: "GET, HEAD, POST, DELETE" }),
        }
    }

    /// Figures while they change.
    fn live<B>(self: &Arc<Self>, request: &Request<B>) -> Result<AnyAnswer, Problem> {
        self.admit(request)?;
        reading(request.method())?;
        let view = view(request.uri())?;
        if request.method() == Method::HEAD {
            return Ok(reply::whole(reply::of(StatusCode::OK, reply::EVENTS, "")));
        }
        let place = self.listeners.clone().try_acquire_owned().map_err(|_| Problem::TooManyListeners)?;
        let desk = self.clone();
        Ok(reply::events(Live::begin(self.chronicle.ticks(), place, move |noted| {
            // As of when it was noted: a moment later may be another step, of which nothing is known yet.
            let now = if noted == 0 { wall_clock() } else { noted };
            let tick = Tick::of(&desk.chronicle, &view, desk.process(), now);
            serde_json::to_string(&tick).ok()
        })))
    }

    async fn explain<B: Body<Data = Bytes>>(&self, request: Request<B>) -> Result<Answer, Problem> {
        if *request.method() != Method::POST {
            return Err(Problem::Method { allow: "POST" });
        }
        let page = Page::of(&Parameters::of(request.uri(), &["offset", "limit"])?)?;
        let (settings, reader) = ((self.admin.settings)(), self.reader.clone());
        let _visit = self.visitors.try_acquire().map_err(|_| Problem::Busy)?;
        let (head, body) = request.into_parts();
        let sent = try_it::sent(&head.headers, body, &settings).await?;
        let place = self.thinkers.clone().acquire_owned().await;
        api::aside(move || {
            // Who asked may be gone by now; the work is not, and keeps its place.
            let _place = place;
            reply::json(&try_it::explained(&sent, &settings, &reader, page)?)
        })
        .await
    }

    fn process(&self) -> Process {
        let Admin { conversations, readiness, .. } = &self.admin;
        Process {
            version: env!("CARGO_PKG_VERSION"),
            started: self.started,
            store: self.store.clone(),
            store_degraded: conversations.degraded().map(Degraded::reason),
            records_messages: conversations.records_messages(),
            draining: readiness() == Readiness::Draining,
        }
    }

    /// A store that fails is said but is no reason to get no requests: they are still answered, and all replicas that share
    /// the store would go at once.
    fn ready(&self) -> Answer {
        match ((self.admin.readiness)(), self.admin.conversations.degraded().map(Degraded::reason)) {
            (Readiness::Draining, _) => reply::of(StatusCode::SERVICE_UNAVAILABLE, reply::TEXT, "draining\n"),
            (Readiness::Ready, None) => reply::of(StatusCode::OK, reply::TEXT, "ready\n"),
            (Readiness::Ready, Some(reason)) => {
                reply::of(StatusCode::OK, reply::TEXT, format!("ready, store degraded: {reason}\n"))
            }
        }
    }
}

fn view(uri: &Uri) -> Result<View, Problem> {
    let parameters = Parameters::of(uri, &["range", "route", "model"])?;
    let given = |name| Ok::<_, Problem>(parameters.text(name)?.map(str::to_owned));
    let range = parameters.choice("range", &Range::NAMES)?;
    Ok(View { range, route: given("route")?, model: given("model")? })
}

fn reading(method: &Method) -> Result<(), Problem> {
    let allow = "GET, HEAD";
    if [Method::GET, Method::HEAD].contains(method) { Ok(()) } else { Err(Problem::Method { allow }) }
}
