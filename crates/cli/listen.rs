use anyhow::Context;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

/// Binds `address`, or says who could have it and how to take another.
pub(crate) fn listen(address: SocketAddr, key: &str, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => "another process listens there",
            ErrorKind::PermissionDenied => "ports below 1024 need privileges",
            ErrorKind::AddrNotAvailable => "this machine has no such address",
            _ => "see the message",
        };
        anyhow::Error::new(error).context(format!(
            "cannot listen on {address}\n  hint: {hint}; choose an address with {flag} or `{key}`"
        ))
    })
}

/// An admin address that others can reach must not be open to them all.
pub(crate) fn require_token(address: SocketAddr, variable: &str) -> anyhow::Result<()> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    token(variable).map(drop).with_context(|| {
        format!(
            "`admin.listen` is {address}, which is not loopback, and there is no token in `{variable}`\n  \
             hint: set {variable}, or listen on 127.0.0.1"
        )
    })
}

/// The admin token; none if the variable is not set or empty. A line break at its end came from a file.
pub(crate) fn token(variable: &str) -> Option<String> {
    let token = std::env::var(variable).ok()?.trim().to_owned();
    (!token.is_empty()).then_some(token)
}
