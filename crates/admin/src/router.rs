//! Routes every request on the admin address to its handler.

use crate::api::{self, Explainer};
use crate::auth::{authorize, authorize_public};
use crate::configuration::ConfigurationPage;
use crate::error::ApiError;
use crate::event_stream::EventStream;
use crate::explain::{self, PageParams};
use crate::history::{History, Range, SAMPLE_INTERVAL};
use crate::overview::{Overview, OverviewQuery, OverviewUpdate, Process};
use crate::response::{self, AdminResponse, FullResponse};
use crate::serve::{Admin, Readiness};
use crate::shared_history::{SHARE_INTERVAL, SharedHistory};
use crate::target::{QueryParams, ROOT};
use crate::windows::WindowsPage;
use crate::{assets, session};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use hyper::body::Body;
use std::sync::Arc;
use tidegate_store::{Degraded, wall_clock};
use tidegate_wire::Reader;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{MissedTickBehavior, interval};

/// State shared by all admin requests.
#[derive(Debug)]
pub(crate) struct Router {
    admin: Admin,
    /// Milliseconds since 1970.
    started: u64,
    /// The store URL in use. A changed URL takes effect only after a restart.
    store: String,
    history: History,
    shared_history: Mutex<SharedHistory>,
    /// Separate from the proxy's reader, so that explained requests do not evict its token cache.
    reader: Arc<Reader>,
    /// Limits open event streams.
    stream_permits: Arc<Semaphore>,
    /// Limits concurrent explanations, so that they cannot starve proxied requests of CPU.
    cpu_permits: Arc<Semaphore>,
    /// Limits the explain requests held in memory while they wait for a CPU permit.
    explain_permits: Semaphore,
}

/// A few people explain a few requests.
const READER_CACHE: u64 = 16 << 20;

const MAX_EVENT_STREAMS: usize = 32;
const MAX_CPU_TASKS: usize = 2;
const MAX_PENDING_EXPLAINS: usize = 8;

/// The API description served at `/api/openapi.json`.
const OPENAPI: &str = include_str!("openapi.json");

impl Router {
    pub(crate) fn new(admin: Admin) -> Router {
        Router {
            store: (admin.settings)().store.url.to_string(),
            admin,
            started: wall_clock(),
            history: History::new(),
            shared_history: Mutex::new(SharedHistory::new()),
            reader: Arc::new(Reader::with_cache(READER_CACHE)),
            stream_permits: Arc::new(Semaphore::new(MAX_EVENT_STREAMS)),
            cpu_permits: Arc::new(Semaphore::new(MAX_CPU_TASKS)),
            explain_permits: Semaphore::new(MAX_PENDING_EXPLAINS),
        }
    }

    /// Tells the store what was counted, and takes over what others have told it, every [`SHARE_INTERVAL`]. Never returns.
    pub(crate) async fn share_forever(&self) {
        let mut ticks = interval(SHARE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            self.share().await;
        }
    }

    pub(crate) async fn share(&self) {
        self.shared_history.lock().await.exchange(&self.history, &self.admin.conversations).await;
    }

    /// Tells the store what was counted since.
    pub(crate) async fn save(&self) {
        self.sample();
        // Nobody is left to try again.
        let _ = self.shared_history.lock().await.save(&self.history, &self.admin.conversations).await;
    }

    /// Samples the tallies every [`SAMPLE_INTERVAL`]. Never returns.
    pub(crate) async fn sample_forever(&self) {
        let mut ticks = interval(SAMPLE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            self.sample();
        }
    }

    /// Adds everything counted since the previous sample to the history.
    pub(crate) fn sample(&self) {
        self.history.record(wall_clock(), (self.admin.tallies)());
    }

    pub(crate) async fn handle<B: Body<Data = Bytes>>(
        self: &Arc<Self>,
        request: Request<B>,
    ) -> AdminResponse {
        let method = request.method();
        let result = match request.uri().path() {
            "/healthz" => {
                require_get(method).map(|()| response::with_body(StatusCode::OK, response::TEXT, "ok\n"))
            }
            "/readyz" => require_get(method).map(|()| self.readyz()),
            "/api/session" => self.session(request).await,
            "/api/overview/live" => {
                return self.live(&request).unwrap_or_else(|error| response::full(error.response()));
            }
            path => match assets::find(path) {
                Some(name) => self.asset(name, &request),
                None => self.handle_authenticated(request).await,
            },
        };
        response::full(result.unwrap_or_else(|error| error.response()))
    }

    /// Handles everything that needs authentication. Unknown paths are included, so that an unauthenticated
    /// client cannot discover which paths exist.
    async fn handle_authenticated<B: Body<Data = Bytes>>(
        &self,
        request: Request<B>,
    ) -> Result<FullResponse, ApiError> {
        self.authorize(&request)?;
        let (method, uri) = (request.method(), request.uri());
        match uri.path() {
            "/metrics" => {
                require_get(method)?;
                Ok(response::with_body(StatusCode::OK, response::METRICS, (self.admin.metrics)()))
            }
            "/api/windows" => {
                require_get(method)?;
                QueryParams::parse(uri, &[])?;
                response::json(&WindowsPage::new((self.admin.windows)()))
            }
            "/api/openapi.json" => {
                require_get(method)?;
                QueryParams::parse(uri, &[])?;
                Ok(response::with_body(StatusCode::OK, response::JSON, OPENAPI))
            }
            "/api/overview" => {
                require_get(method)?;
                let query = overview_query(uri)?;
                response::json(&Overview::new(&self.history, &query, self.process(), wall_clock()))
            }
            "/api/config" => {
                require_get(method)?;
                QueryParams::parse(uri, &[])?;
                response::json(&ConfigurationPage::new(&(self.admin.settings)(), &self.admin.reloads))
            }
            "/api/explain" => self.explain(request).await,
            path if path.starts_with(ROOT) => {
                let explainer = Explainer {
                    settings: (self.admin.settings)(),
                    reader: self.reader.clone(),
                    cpu_permits: self.cpu_permits.clone(),
                };
                api::handle(&self.admin.conversations, Some(explainer), request).await
            }
            _ => Err(ApiError::UnknownPath),
        }
    }

    fn authorize<B>(&self, request: &Request<B>) -> Result<(), ApiError> {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        authorize(self.admin.token.as_ref(), method, uri, headers, wall_clock())
    }

    /// Serves the dashboard's static files without a token: the sign-in form is one of them.
    fn asset<B>(&self, name: &str, request: &Request<B>) -> Result<FullResponse, ApiError> {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        require_get(method)?;
        authorize_public(self.admin.token.as_ref(), method, uri, headers)?;
        assets::respond(name, headers).ok_or(ApiError::UnknownPath)
    }

    async fn session<B: Body<Data = Bytes>>(&self, request: Request<B>) -> Result<FullResponse, ApiError> {
        let token = self.admin.token.as_ref();
        authorize_public(token, request.method(), request.uri(), request.headers())?;
        QueryParams::parse(request.uri(), &[])?;
        match *request.method() {
            Method::GET | Method::HEAD => response::json(&session::SessionStatus {
                token_required: token.is_some(),
                admitted: self.authorize(&request).is_ok(),
                version: env!("CARGO_PKG_VERSION"),
            }),
            Method::POST => {
                let (head, body) = request.into_parts();
                session::sign_in(token, &head.headers, body, wall_clock()).await
            }
            Method::DELETE => Ok(session::sign_out(token)),
            _ => Err(ApiError::MethodNotAllowed { allow: "GET, HEAD, POST, DELETE" }),
        }
    }

    /// Streams the overview as server-sent events.
    fn live<B>(self: &Arc<Self>, request: &Request<B>) -> Result<AdminResponse, ApiError> {
        self.authorize(request)?;
        require_get(request.method())?;
        let query = overview_query(request.uri())?;
        if request.method() == Method::HEAD {
            return Ok(response::full(response::with_body(StatusCode::OK, response::EVENTS, "")));
        }
        let permit = self.stream_permits.clone().try_acquire_owned().map_err(|_| ApiError::TooManyStreams)?;
        let router = self.clone();
        Ok(response::event_stream(EventStream::start(self.history.subscribe(), permit, move |sampled_at| {
            // Uses the time of the sample: the current time may already be in the next step, which has no
            // data yet.
            let now = if sampled_at == 0 { wall_clock() } else { sampled_at };
            let update = OverviewUpdate::new(&router.history, &query, router.process(), now);
            serde_json::to_string(&update).ok()
        })))
    }

    async fn explain<B: Body<Data = Bytes>>(&self, request: Request<B>) -> Result<FullResponse, ApiError> {
        if *request.method() != Method::POST {
            return Err(ApiError::MethodNotAllowed { allow: "POST" });
        }
        let page = PageParams::parse(&QueryParams::parse(request.uri(), &["offset", "limit"])?)?;
        let (settings, reader) = ((self.admin.settings)(), self.reader.clone());
        let _pending = self.explain_permits.try_acquire().map_err(|_| ApiError::Busy)?;
        let (head, body) = request.into_parts();
        let body = explain::read_body(&head.headers, body, &settings).await?;
        let permit = self.cpu_permits.clone().acquire_owned().await;
        api::run_blocking(move || {
            // Held by the task itself: if the client disconnects, the work still runs to its end.
            let _permit = permit;
            response::json(&explain::explain(&body, &settings, &reader, page)?)
        })
        .await
    }

    fn process(&self) -> Process {
        let Admin { conversations, readiness, .. } = &self.admin;
        Process {
            version: env!("CARGO_PKG_VERSION"),
            started: self.started,
            shares_figures: conversations.is_shared(),
            store: self.store.clone(),
            store_degraded: conversations.degraded().map(Degraded::reason),
            records_messages: conversations.records_messages(),
            draining: readiness() == Readiness::Draining,
            in_flight: (self.admin.in_flight)(),
        }
    }

    /// Reports a degraded store or an overload but stays ready: requests are still served, and replicas that share the store or the
    /// load would otherwise all become unready at once.
    fn readyz(&self) -> FullResponse {
        match ((self.admin.readiness)(), self.admin.conversations.degraded()) {
            (Readiness::Draining, _) => {
                response::with_body(StatusCode::SERVICE_UNAVAILABLE, response::TEXT, "draining\n")
            }
            (Readiness::Overloaded, _) => {
                response::with_body(StatusCode::OK, response::TEXT, "ready, overloaded\n")
            }
            (Readiness::Ready, None) => response::with_body(StatusCode::OK, response::TEXT, "ready\n"),
            (Readiness::Ready, Some(degraded)) => response::with_body(
                StatusCode::OK,
                response::TEXT,
                format!("ready, store degraded: {}\n", degraded.reason()),
            ),
        }
    }
}

fn overview_query(uri: &Uri) -> Result<OverviewQuery, ApiError> {
    let parameters = QueryParams::parse(uri, &["range", "route", "model"])?;
    let text = |name| Ok::<_, ApiError>(parameters.text(name)?.map(str::to_owned));
    let range = parameters.choice("range", &Range::NAMES)?;
    Ok(OverviewQuery { range, route: text("route")?, model: text("model")? })
}

fn require_get(method: &Method) -> Result<(), ApiError> {
    let allow = "GET, HEAD";
    if [Method::GET, Method::HEAD].contains(method) {
        Ok(())
    } else {
        Err(ApiError::MethodNotAllowed { allow })
    }
}
