use crate::args::ServeArgs;
use crate::listen::{connect_address, listen, require_token, token};
use crate::reload::{ReloadCause, Reloader, settled, watch};
use crate::{settings, store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_admin::{Admin, Readiness, Reloads, Token};
use tidegate_config::{LogFormat, LogLevel, OtlpProtocol, Settings};
use tidegate_engine::Strategy;
use tidegate_proxy::{Gateway, Proxy};
use tidegate_store::{Conversations, wall_clock};
use tidegate_telemetry::{Format, Level, LogSink, Metrics, Otlp, Protocol, Semconv, Telemetry};
use tidegate_tokens::Encoding;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let settings = settings::read(&args.config)?;
    require_token(settings.admin.listen, &settings.admin.token_env)?;
    let format = match settings.log.format {
        LogFormat::Auto => Format::detect(),
        LogFormat::Human => Format::for_people(),
        LogFormat::Json => Format::Json,
    };
    let lines = LogSink::to_stderr();
    let telemetry = Telemetry::start(&otlp(&settings.telemetry), &|name| std::env::var(name).ok());
    tidegate_telemetry::init(&lines, format, level(settings.log.level), telemetry.layer())?;
    tidegate_telemetry::log_panics();
    for warning in &telemetry.warnings {
        warn!("{warning}");
    }
    // This runtime handles signals, reloads and the admin address; requests have runtimes of their own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let metrics = telemetry.metrics.clone();
    let result = runtime.block_on(serve(args, settings, metrics, lines.clone(), format));
    telemetry.shut_down();
    lines.flush();
    result
}

async fn serve(
    args: &ServeArgs,
    settings: Settings,
    metrics: Arc<Metrics>,
    lines: LogSink,
    format: Format,
) -> anyhow::Result<()> {
    let listener = listen(settings.server.listen, "server.listen", "--listen")?;
    let admin = listen(settings.admin.listen, "admin.listen", "--admin")?;
    let conversations = store::conversations(&settings)?;
    let secret = store::secret(&settings);
    let archive = store::archive(&settings)?;
    let gateway = Gateway::new(settings.clone(), conversations.clone(), secret, lines, format)?;
    let gateway = Arc::new(gateway.with_metrics(metrics).with_archive(archive.clone()));
    gateway.watch_windows();
    gateway.watch_load();
    let mut stop = StopSignals::new()?;
    let mut hangup = signal(SignalKind::hangup())?;
    let proxy = Proxy::start(&gateway, listener)?;
    if settings.routes.iter().any(|route| route.context.strategy != Strategy::Passthrough) {
        load_vocabulary();
    }
    // Started before the process reports that it is listening, so that no later change is missed.
    let (_watcher, mut changes) = watch(&args.config);
    let file = settings::path(&args.config).map(|path| path.display().to_string());
    let reloads = Arc::new(Reloads::new(file, wall_clock()));
    let mut reloader = Reloader::new(args.config.clone(), gateway.clone(), &settings, reloads.clone());
    log_start(args, &settings, &proxy, &admin, format);
    let trying_out = conversations.clone();
    tokio::spawn(async move { trying_out.try_out().await });

    let draining = Arc::new(AtomicBool::new(false));
    admin.set_nonblocking(true)?;
    let (state, loaded) = (draining.clone(), gateway.clone());
    let readiness = move || match (state.load(Ordering::Relaxed), loaded.is_overloaded()) {
        (true, _) => Readiness::Draining,
        (false, true) => Readiness::Overloaded,
        (false, false) => Readiness::Ready,
    };
    let token = token(&settings.admin.token_env).as_deref().map(Token::new);
    let service = admin_service(&gateway, conversations, token, reloads, readiness);
    let (end_admin, admin_ends) = tokio::sync::oneshot::channel::<()>();
    let ended = async { drop(admin_ends.await) };
    let serving = tokio::spawn(tidegate_admin::serve(TcpListener::from_std(admin)?, service, ended));

    loop {
        tokio::select! {
            () = stop.received() => break,
            _ = hangup.recv() => reloader.reload(ReloadCause::Signal),
            () = settled(&mut changes) => reloader.reload(ReloadCause::FileChanged),
        }
    }

    draining.store(true, Ordering::Relaxed);
    let drain = settings.server.drain_timeout;
    info!(timeout_s = drain.as_secs_f64(), "draining");
    tokio::select! {
        () = proxy.shut_down(drain) => info!("stopped"),
        () = stop.received() => {
            warn!("stopped at once by second signal");
            return Ok(());
        }
    }
    drop(end_admin);
    let _ = tokio::time::timeout(ADMIN_END_TIMEOUT, serving).await;
    if let Some(archive) = archive {
        let unwritten = archive.close(ARCHIVE_CLOSE_TIMEOUT).await;
        if unwritten > 0 {
            warn!(unwritten, "archive closed before all rows were written");
        }
    }
    Ok(())
}

/// Loads the vocabulary of most models while the process waits for its first request, which would otherwise wait for it.
fn load_vocabulary() {
    let loading = || tidegate_tokens::load(Encoding::O200k);
    if let Err(error) = std::thread::Builder::new().name("vocabulary".to_owned()).spawn(loading) {
        warn!(%error, "the first request loads the vocabulary");
    }
}

/// How long the archive may take to write its remaining rows after the last response.
const ARCHIVE_CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the last figures may take to reach the store.
const ADMIN_END_TIMEOUT: Duration = Duration::from_secs(2);

/// What the admin address serves for a running proxy.
pub(crate) fn admin_service(
    gateway: &Arc<Gateway>,
    conversations: Arc<Conversations>,
    token: Option<Token>,
    reloads: Arc<Reloads>,
    readiness: impl Fn() -> Readiness + Send + Sync + 'static,
) -> Admin {
    let (metrics, tallies, settings) = (gateway.clone(), gateway.clone(), gateway.clone());
    let (windows, requests) = (gateway.clone(), gateway.clone());
    Admin {
        readiness: Box::new(readiness),
        conversations,
        token,
        metrics: Box::new(move || metrics.metrics_text()),
        tallies: Box::new(move || tallies.tallies()),
        in_flight: Box::new(move || requests.requests_in_flight()),
        settings: Box::new(move || settings.settings()),
        reloads,
        windows: Box::new(move || windows.learnt_windows()),
    }
}

fn log_start(
    args: &ServeArgs,
    settings: &Settings,
    proxy: &Proxy,
    admin: &std::net::TcpListener,
    format: Format,
) {
    let scheme = if settings.server.tls.is_some() { "https" } else { "http" };
    let url = &settings.upstreams["default"].url;
    let upstream = format!("{}://{}{}", if url.https { "https" } else { "http" }, url.authority, url.path);
    let config = settings::path(&args.config)
        .map_or("built-in defaults".to_owned(), |path| path.display().to_string());
    let admin = admin.local_addr().unwrap_or(settings.admin.listen);
    for warning in &settings.warnings {
        warn!("{warning}");
    }
    let (version, store) = (env!("CARGO_PKG_VERSION"), &settings.store.url);
    let base_url = format!("{scheme}://{}/v1", connect_address(proxy.address()));
    let dashboard = format!("http://{}", connect_address(admin));
    match format {
        Format::Json => info!(
            version,
            base_url,
            dashboard,
            listen = format!("{scheme}://{}", proxy.address()),
            admin = format!("http://{admin}"),
            upstream,
            %store,
            config,
            "tidegate is listening"
        ),
        // One line would be too long to find the address in.
        Format::Human | Format::Terminal => info!(
            "tidegate {version} is listening\n  base URL   {base_url}   (set your client's base_url to this)\n  \
             dashboard  {dashboard}\n  upstream   {upstream}\n  store      {store}\n  config     {config}"
        ),
    }
}

struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn new() -> std::io::Result<StopSignals> {
        Ok(StopSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn otlp(settings: &tidegate_config::Telemetry) -> Otlp {
    Otlp {
        endpoint: settings.endpoint.clone(),
        protocol: settings.protocol.map(|protocol| match protocol {
            OtlpProtocol::Grpc => Protocol::Grpc,
            OtlpProtocol::Http => Protocol::Http,
        }),
        traces: settings.traces,
        metrics: settings.metrics,
        interval: settings.interval,
        service_name: settings.service_name.clone(),
        sample_ratio: settings.sample_ratio,
        semconv: match settings.semconv {
            tidegate_config::Semconv::Old => Semconv::Old,
            tidegate_config::Semconv::New => Semconv::New,
            tidegate_config::Semconv::Both => Semconv::Both,
        },
    }
}

fn level(level: LogLevel) -> Level {
    match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    }
}
