//! Opens the configured store.

use anyhow::{Context, bail};
use std::path::Path;
use std::sync::Arc;
use tidegate_archive::{Archive, ArchiveOptions};
use tidegate_config::{Settings, StoreUrl};
use tidegate_proxy::{CacheSizes, Secret};
use tidegate_store::{
    Conversations, EmbeddedStore, Keyring, MemoryStore, Options, RedisStore, Store, StoreError,
};
use tracing::warn;

/// Opens the configured store. An unreachable server is not an error: requests are served without it until it
/// responds.
pub(crate) fn conversations(settings: &Settings) -> anyhow::Result<Arc<Conversations>> {
    let store = open(settings).or_else(|error| fall_back(settings, error))?;
    Ok(Conversations::with_cache(store, options(settings)?, CacheSizes::of_system().conversations))
}

/// Opens the configured archive, if there is one. It connects in the background.
pub(crate) fn archive(settings: &Settings) -> anyhow::Result<Option<Archive>> {
    let Some(archive) = &settings.archive else { return Ok(None) };
    let archive = Archive::open(&archive.url, ArchiveOptions::default());
    archive.map(Some).context("invalid `archive.url`")
}

/// The secret key for hashing tenants.
pub(crate) fn secret(settings: &Settings) -> Secret {
    Secret::new(variable(&settings.conversation.secret_env).as_deref())
}

pub(crate) fn options(settings: &Settings) -> anyhow::Result<Options> {
    let name = &settings.store.key_env;
    let keyring = variable(name).map(|keys| keys.parse::<Keyring>()).transpose();
    let keyring = keyring.with_context(|| format!("invalid keys in `{name}` (`store.key_env`)"))?;
    let store = &settings.store;
    Ok(Options { timeout: store.timeout, ttl: store.ttl, raw: store.raw, keyring })
}

pub(crate) fn open(settings: &Settings) -> Result<Arc<dyn Store>, StoreError> {
    let store = &settings.store;
    // Only Redis has none, and does not ask.
    let max_size = store.max_size.unwrap_or(u64::MAX);
    Ok(match &store.url {
        StoreUrl::Memory => Arc::new(MemoryStore::bounded(store.ttl, max_size)),
        StoreUrl::Embedded(directory) => {
            Arc::new(EmbeddedStore::open_bounded(directory, store.ttl, max_size)?)
        }
        StoreUrl::Redis(url) | StoreUrl::Sentinel(url) | StoreUrl::Cluster(url) => {
            Arc::new(RedisStore::open(url, store.ttl, store.timeout)?)
        }
    })
}

/// Refuses a store that cannot be opened, without opening it: a running process may have it open.
pub(crate) fn check(settings: &Settings) -> anyhow::Result<()> {
    let checked = match &settings.store.url {
        StoreUrl::Memory => Ok(()),
        url if *url == StoreUrl::default() => Ok(()),
        StoreUrl::Embedded(directory) => usable(directory),
        StoreUrl::Redis(_) | StoreUrl::Sentinel(_) | StoreUrl::Cluster(_) => open(settings).map(drop),
    };
    checked.or_else(|error| unopened(settings, &error))
}

/// Whether there is a directory, or may be one.
fn usable(directory: &Path) -> Result<(), StoreError> {
    let existing = directory.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    match existing.metadata() {
        Ok(metadata) if !metadata.is_dir() => {
            Err(StoreError::Failed(format!("{} is not a directory", existing.display())))
        }
        Ok(metadata) if metadata.permissions().readonly() => {
            Err(StoreError::ReadOnly(format!("{} cannot be written to", existing.display())))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Falls back to memory if the default store cannot be opened, for example next to another Tidegate or on a
/// read-only file system. A store that was configured explicitly must open.
fn fall_back(settings: &Settings, error: StoreError) -> anyhow::Result<Arc<dyn Store>> {
    let store = &settings.store;
    if store.url == StoreUrl::default() {
        warn!(%error, url = %store.url, "cannot open the default store; keeping conversations in memory until restart");
        return Ok(Arc::new(MemoryStore::new(store.ttl)));
    }
    unopened(settings, &error)
}

fn unopened<T>(settings: &Settings, error: &StoreError) -> anyhow::Result<T> {
    // Not added as context, because the reason belongs before the hint.
    bail!(
        "cannot open `store.url` {}: {error}\n  hint: choose another store with --store, or use `memory:`",
        settings.store.url
    )
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
