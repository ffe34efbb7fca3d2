//! `tidegate demo`: the real proxy between a simulated provider and a recorded agent.

pub(crate) mod args;
mod http;
mod ink;
mod play;
mod story;
mod translate;
mod upstream;

use crate::conversations::terminal;
use crate::serve::admin_service;
use crate::store;
use anyhow::Context;
use args::DemoArgs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegate_admin::{Readiness, Reloads};
use tidegate_config::{Flags, Settings, Source, load, strategy_name};
use tidegate_context::model_table;
use tidegate_proxy::{Gateway, Proxy};
use tidegate_replay::{Defaults, InputLine, Recorded};
use tidegate_store::wall_clock;
use tidegate_telemetry::{Format, LogSink};

/// A run of a coding agent that finds and fixes a bug. Every tool result is real output.
pub(crate) const RECORDING: &str = include_str!("demo/run.jsonl");

/// The recording of a client that uses the provider's cache, also where that has to be asked for.
pub(crate) fn cached_recording() -> String {
    RECORDING.replacen('{', "{\"cache_control\": {\"type\": \"ephemeral\"}, ", 1)
}

/// How long the proxy may take to shut down.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    if args.recording {
        terminal::print(translate::recording(args.dialect, RECORDING)?.as_bytes());
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run_demo(args))
}

async fn run_demo(args: &DemoArgs) -> anyhow::Result<()> {
    let recorded = recorded(args)?;
    let listener = free_port()?;
    let settings = settings(args, listener.local_addr()?)?;
    let model = model_table(&settings.models).lookup(&args.model);
    upstream::start(listener, args.dialect, RECORDING, model.clone(), &settings)?;

    let lines = LogSink::to_stderr();
    let conversations = store::conversations(&settings)?;
    let gateway = Gateway::new(
        settings.clone(),
        conversations.clone(),
        store::secret(&settings),
        lines,
        Format::Human,
    )?;
    let gateway = Arc::new(gateway);
    let proxy = Proxy::start(&gateway, free_port()?)?;
    let admin = free_port()?;
    let admin_address = admin.local_addr()?;
    admin.set_nonblocking(true)?;
    let reloads = Arc::new(Reloads::new(None, wall_clock()));
    let service = admin_service(&gateway, conversations, None, reloads, || Readiness::Ready);
    tokio::spawn(tidegate_admin::serve(
        tokio::net::TcpListener::from_std(admin)?,
        service,
        std::future::pending(),
    ));

    let (address, is_paced, dialect) = (proxy.address(), !args.exit, args.dialect);
    let run = move || play::play(&recorded, (address, dialect), &model, &settings, is_paced);
    tokio::task::spawn_blocking(run).await??;
    if !args.exit {
        terminal::print(next_steps(address, admin_address, &program()).as_bytes());
        tokio::signal::ctrl_c().await?;
    }
    proxy.shut_down(DRAIN_TIMEOUT).await;
    Ok(())
}

/// The recording, as if made with this model through this API.
fn recorded(args: &DemoArgs) -> anyhow::Result<Recorded> {
    let defaults = Defaults { model: Some(args.model.clone()) };
    let recording = translate::recording(args.dialect, &cached_recording())?;
    Ok(InputLine::new("the recording", 1, &recording).conversation(&defaults)?)
}

/// Ignores the environment and files, so that the demo is the same everywhere.
fn settings(args: &DemoArgs, upstream: SocketAddr) -> anyhow::Result<Settings> {
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[log]\naccess = false\n[store]\nurl = \"memory:\"\n\
         [upstreams.default]\nurl = \"http://{upstream}\"\n[context]\nstrategy = \"{}\"\n",
        strategy_name(args.strategy)
    );
    Ok(load(Source::new("demo", &text), &Flags::default(), &|_| None)?)
}

fn free_port() -> anyhow::Result<TcpListener> {
    TcpListener::bind("127.0.0.1:0").context("cannot bind a free port on 127.0.0.1")
}

/// What to do next. Each line fits 80 columns, also for a program in `target/release`.
fn next_steps(proxy: SocketAddr, admin: SocketAddr, program: &str) -> String {
    format!(
        "\nThe proxy is still running; press Ctrl-C to stop it.\n  \
         dashboard  http://{admin}   every turn, its plan, its diff\n  \
         proxy      http://{proxy}/v1   answers with the recording\n\n\
         What every policy would have made of it:\n  \
         {program} demo --recording | {program} replay -\n\n\
         Next, with your own key. Requests go to api.openai.com, or to --upstream URL,\n\
         and nothing is edited until you drop `--observe`:\n  \
         {program} serve --observe\n  \
         OPENAI_BASE_URL=http://127.0.0.1:8080/v1 your-agent\n  \
         http://127.0.0.1:9090 then shows what would have been saved.\n"
    )
}

/// How this program is started again from here: by its name if the shell finds it, else by its path.
fn program() -> String {
    let Ok(path) = std::env::current_exe() else { return "tidegate".to_owned() };
    let search = std::env::var_os("PATH").unwrap_or_default();
    let is_found =
        path.parent().is_some_and(|directory| std::env::split_paths(&search).any(|found| found == directory));
    let here = std::env::current_dir().unwrap_or_default();
    let shown = if is_found { path.file_name().map(Path::new) } else { path.strip_prefix(here).ok() };
    shown.unwrap_or(&path).display().to_string()
}
