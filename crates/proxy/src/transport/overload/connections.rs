//! Counts open connections, all of them and those of one address.

use super::{Limit, system};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tidegate_config::{MAX_PUBLIC_CONNECTIONS, Server};

#[derive(Debug)]
pub(crate) struct Connections {
    most: usize,
    /// `None` for the default, which depends on the address.
    most_per_address: Option<usize>,
    open: AtomicUsize,
    /// The addresses whose connections are limited.
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    connections: Arc<Connections>,
    /// The address that it is counted under; `None` if that has no limit.
    address: Option<IpAddr>,
}

impl Connections {
    pub(super) fn new(settings: &Server) -> Arc<Connections> {
        let count = |count: NonZeroU32| usize::try_from(count.get()).unwrap_or(usize::MAX);
        let most = settings.max_connections.map_or_else(system::default_connections, count);
        Arc::new(Connections {
            most,
            most_per_address: settings.max_connections_per_address.map(count),
            open: AtomicUsize::new(0),
            by_address: Mutex::default(),
        })
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Whether connections that do nothing should be closed soon, because others need their place.
    pub(crate) fn is_crowded(&self) -> bool {
        self.open() * 4 > self.most * 3
    }

    /// Counts a connection until the permit is dropped.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<ConnectionPermit, Limit> {
        self.open.fetch_add(1, Ordering::Relaxed);
        let mut permit = ConnectionPermit { connections: self.clone(), address: None };
        if self.open() > self.most {
            return Err(Limit::Connections);
        }
        let address = network(address);
        let Some(most) = self.most_of(address) else { return Ok(permit) };
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let open = by_address.entry(address).or_default();
        if *open >= most {
            return Err(Limit::AddressConnections);
        }
        *open += 1;
        permit.address = Some(address);
        Ok(permit)
    }

    fn most_of(&self, address: IpAddr) -> Option<usize> {
        let default = usize::try_from(MAX_PUBLIC_CONNECTIONS).unwrap_or(usize::MAX);
        self.most_per_address.or((!is_private(address)).then_some(default))
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connections.open.fetch_sub(1, Ordering::Relaxed);
        let Some(address) = self.address else { return };
        let mut by_address = self.connections.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = by_address.get_mut(&address) {
            *open -= 1;
            if *open == 0 {
                by_address.remove(&address);
            }
        }
    }
}

/// What counts as one client: an IPv4 address, or the network that one IPv6 subscriber gets.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

/// Whether an address may stand for many clients: a load balancer, the containers of a host, this machine.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            address.is_loopback() || address.is_private() || address.is_link_local() || is_shared(address)
        }
        // The `/64` of the loopback address is that of nothing else.
        IpAddr::V6(address) => {
            address.is_unspecified() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

/// The space of carrier-grade NAT, which clouds use for their own networks.
fn is_shared(address: Ipv4Addr) -> bool {
    let [a, b, ..] = address.octets();
    a == 100 && (64..128).contains(&b)
}
