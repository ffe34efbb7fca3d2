use crate::listen::{connect_address, token};
use crate::store;
use anyhow::bail;
use std::time::Duration;
use tidegate_admin::Source;
use tidegate_config::{Settings, StoreUrl};
use tidegate_store::Conversations;

/// Connects to the running process, or opens its store if none is running. Never creates a new store: with a
/// wrong directory, an empty one would look like lost conversations.
pub(super) async fn open(settings: &Settings) -> anyhow::Result<Source> {
    let address = connect_address(settings.admin.listen);
    // Port 0 means any free port, which is unknown here.
    if address.port() != 0
        && let Some(running) = Source::connect(address, token(&settings.admin.token_env)).await?
    {
        return Ok(running);
    }
    let not_running = format!("no process listens on {address}");
    let hint = "set the admin address of the running process with --admin";
    match &settings.store.url {
        StoreUrl::Memory => bail!("{not_running}, and a memory store ends with its process\n  hint: {hint}"),
        StoreUrl::Embedded(directory) if !directory.is_dir() => bail!(
            "{not_running}, and there is no directory `{}`\n  hint: {hint}, or its store with --store embedded:DIR",
            directory.display()
        ),
        StoreUrl::Embedded(_) | StoreUrl::Redis(_) | StoreUrl::Sentinel(_) | StoreUrl::Cluster(_) => {}
    }
    let mut without_expiry = settings.clone();
    if let StoreUrl::Embedded(_) = without_expiry.store.url {
        // An open store deletes expired conversations. Without the process's configuration file, this command
        // may have a shorter `store.ttl` and would delete conversations by listing them.
        without_expiry.store.ttl = Duration::MAX;
    }
    match store::open(&without_expiry) {
        Ok(store) => Ok(Source::Opened(Conversations::new(store, store::options(settings)?))),
        // Not added as context, because the reason belongs before the hint.
        Err(error) => {
            bail!("{not_running}, and {} cannot be opened: {error}\n  hint: {hint}", settings.store.url)
        }
    }
}
