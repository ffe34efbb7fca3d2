use anyhow::{Context, anyhow};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// Binds `address`. The error says why it is not available and how to choose another.
pub(crate) fn listen(address: SocketAddr, key: &str, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => "another process is listening there",
            ErrorKind::PermissionDenied => "ports below 1024 need privileges",
            ErrorKind::AddrNotAvailable => "this machine does not have that address",
            _ => "see the system error",
        };
        // Not added as context, because the reason belongs before the hint.
        anyhow!(
            "cannot listen on {address}: {error}\n  hint: {hint}; choose an address with {flag} or `{key}`"
        )
    })
}

/// The address to connect to for a process that listens on `address`, which may be unspecified.
pub(crate) fn connect_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Requires a token unless the admin address is loopback.
pub(crate) fn require_token(address: SocketAddr, variable: &str) -> anyhow::Result<()> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    token(variable).map(drop).with_context(|| {
        format!(
            "`admin.listen` is {address}, which is not loopback, but `{variable}` is not set\n  \
             hint: set {variable}, or listen on 127.0.0.1"
        )
    })
}

/// The admin token, or `None` if the variable is unset or empty. Trimmed, because tokens from files often end
/// with a newline.
pub(crate) fn token(variable: &str) -> Option<String> {
    let token = std::env::var(variable).ok()?.trim().to_owned();
    (!token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_unspecified_address_is_reached_over_loopback() {
        let connect_address = |address: &str| super::connect_address(address.parse().unwrap()).to_string();
        assert_eq!(connect_address("0.0.0.0:9090"), "127.0.0.1:9090");
        assert_eq!(connect_address("[::]:9090"), "[::1]:9090");
        assert_eq!(connect_address("10.1.2.3:9090"), "10.1.2.3:9090");
    }
}
