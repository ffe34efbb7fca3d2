//! Opening the store that the configuration names.

use anyhow::Context;
use std::sync::Arc;
use tidegate_archive::{Archive, ArchiveOptions};
use tidegate_config::{Settings, StoreUrl};
use tidegate_proxy::Secret;
use tidegate_store::{
    Conversations, EmbeddedStore, Keyring, MemoryStore, Options, RedisStore, Store, StoreError,
};
use tracing::warn;

/// The conversations of the configured store. A server that does not answer now is no error: requests go without it until
/// it does.
pub(crate) fn conversations(settings: &Settings) -> anyhow::Result<Arc<Conversations>> {
    let store = open(settings).or_else(|error| fall_back(settings, error))?;
    Ok(Conversations::new(store, options(settings)?))
}

/// The archive that the configuration names. It connects by itself, and nobody waits for it.
pub(crate) fn archive(settings: &Settings) -> anyhow::Result<Option<Archive>> {
    let Some(archive) = &settings.archive else { return Ok(None) };
    let archive = Archive::open(&archive.url, ArchiveOptions::default());
    archive.map(Some).context("`archive.url` is not usable")
}

/// The secret that tenants are hashed under.
pub(crate) fn secret(settings: &Settings) -> Secret {
    Secret::new(variable(&settings.conversation.secret_env).as_deref())
}

pub(crate) fn options(settings: &Settings) -> anyhow::Result<Options> {
    let name = &settings.store.key_env;
    let keyring = variable(name).map(|keys| keys.parse::<Keyring>()).transpose();
    let keyring = keyring.with_context(|| format!("`{name}` (`store.key_env`) is not usable"))?;
    Ok(Options { timeout: settings.store.timeout, raw: settings.store.raw, keyring })
}

pub(crate) fn open(settings: &Settings) -> Result<Arc<dyn Store>, StoreError> {
    let store = &settings.store;
    Ok(match &store.url {
        StoreUrl::Memory => Arc::new(MemoryStore::new(store.ttl)),
        StoreUrl::Embedded(directory) => Arc::new(EmbeddedStore::open(directory, store.ttl)?),
        StoreUrl::Redis(url) | StoreUrl::Sentinel(url) | StoreUrl::Cluster(url) => {
            Arc::new(RedisStore::open(url, store.ttl, store.timeout)?)
        }
    })
}

/// The default must work anywhere: beside another Tidegate, and on a file system that cannot be written to. Whoever names a
/// store wants that one.
fn fall_back(settings: &Settings, error: StoreError) -> anyhow::Result<Arc<dyn Store>> {
    let store = &settings.store;
    if store.url == StoreUrl::default() {
        warn!(%error, url = %store.url, "conversations are kept in the memory of this process: a restart forgets them");
        return Ok(Arc::new(MemoryStore::new(store.ttl)));
    }
    Err(error).with_context(|| {
        format!(
            "cannot open `store.url` {}\n  hint: name another one with --store, or use `memory:`",
            store.url
        )
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
