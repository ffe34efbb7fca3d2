//! `tidegate health`: whether the running process is alive or ready, for images without a shell.

use crate::args::HealthArgs;
use crate::exit::Exit;
use crate::listen::connect_address;
use crate::settings;
use anyhow::{Context, anyhow};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long the process may take to connect, and to answer.
const TIMEOUT: Duration = Duration::from_secs(3);

/// More than any answer has.
const MAX_ANSWER: u64 = 64 * 1024;

pub(crate) fn run(args: &HealthArgs) -> anyhow::Result<Exit> {
    let address = connect_address(admin_address(args)?);
    // A draining process is not ready, but it must be allowed to finish, so only `--ready` asks for that.
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let (is_well, answer) = ask(address, path).with_context(|| format!("no process answers on {address}"))?;
    // Ignores a closed pipe.
    let _ = writeln!(std::io::stdout(), "{answer}");
    Ok(if is_well { Exit::Success } else { Exit::Unhealthy })
}

/// A given address is used without reading the file: the file may have become invalid while the process still runs with what
/// it had read before.
fn admin_address(args: &HealthArgs) -> anyhow::Result<SocketAddr> {
    match args.config.flags.admin.as_ref().and_then(|(address, _)| address.parse().ok()) {
        Some(address) => Ok(address),
        None => Ok(settings::read(&args.config)?.admin.listen),
    }
}

/// Whether the process answers with 200, and what it says.
fn ask(address: SocketAddr, path: &str) -> anyhow::Result<(bool, String)> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| anyhow!("the answer is not HTTP"))?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    Ok((status == "200", body.trim().to_owned()))
}
