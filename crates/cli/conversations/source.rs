use crate::listen::token;
use crate::store;
use anyhow::bail;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tidegate_admin::Source;
use tidegate_config::{Settings, StoreUrl};
use tidegate_store::Conversations;

/// The running Tidegate, or its store if nobody runs. Never a new and empty store: a wrong directory would look like a
/// conversation that was lost.
pub(super) async fn open(settings: &Settings) -> anyhow::Result<Source> {
    let address = dialled(settings.admin.listen);
    // Port 0 asks the system for any port: nobody can know which one it gave.
    if address.port() != 0
        && let Some(running) = Source::connect(address, token(&settings.admin.token_env)).await?
    {
        return Ok(running);
    }
    let nobody = format!("nobody listens on {address}");
    let hint = "name the admin address of a running Tidegate with --admin";
    match &settings.store.url {
        StoreUrl::Memory => bail!("{nobody}, and a store in memory ends with its process\n  hint: {hint}"),
        StoreUrl::Embedded(directory) if !directory.is_dir() => bail!(
            "{nobody}, and there is no directory `{}`\n  hint: {hint}, or its store with --store embedded:DIR",
            directory.display()
        ),
        StoreUrl::Embedded(_) | StoreUrl::Redis(_) | StoreUrl::Sentinel(_) | StoreUrl::Cluster(_) => {}
    }
    let mut lasting = settings.clone();
    if let StoreUrl::Embedded(_) = lasting.store.url {
        // An open store removes what has expired. A command that is run without the file that the process had, and so with
        // another `store.ttl`, would remove conversations by listing them.
        lasting.store.ttl = Duration::MAX;
    }
    match store::open(&lasting) {
        Ok(store) => Ok(Source::Opened(Conversations::new(store, store::options(settings)?))),
        // Not as a context: the reason belongs before the hint.
        Err(error) => bail!("{nobody}, and {} cannot be opened: {error}\n  hint: {hint}", settings.store.url),
    }
}

/// Where to find somebody who listens on `address`, which may stand for all addresses of this machine.
fn dialled(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_everywhere_is_found_here() {
        let dialled = |address: &str| dialled(address.parse().unwrap()).to_string();
        assert_eq!(dialled("0.0.0.0:9090"), "127.0.0.1:9090");
        assert_eq!(dialled("[::]:9090"), "[::1]:9090");
        assert_eq!(dialled("10.1.2.3:9090"), "10.1.2.3:9090");
    }
}
