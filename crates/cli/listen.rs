use anyhow::Context;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

/// Binds `address`. The error says why it is not available and how to choose another.
pub(crate) fn listen(address: SocketAddr, key: &str, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => "another process is listening there",
            ErrorKind::PermissionDenied => "ports below 1024 need privileges",
            ErrorKind::AddrNotAvailable => "this machine does not have that address",
            _ => "see the system error",
        };
        anyhow::Error::new(error).context(format!(
            "cannot listen on {address}\n  hint: {hint}; choose an address with {flag} or `{key}`"
        ))
    })
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
