//! Classifies errors of the server and the connection.

use crate::StoreError;
use redis::{ErrorKind, RedisError, ServerErrorKind};
use std::io;

pub(super) fn store_error(error: RedisError) -> StoreError {
    let text = text(&error);
    match error.kind() {
        ErrorKind::Io if error.is_timeout() => StoreError::Timeout,
        ErrorKind::Io | ErrorKind::MasterNameNotFoundBySentinel | ErrorKind::ClusterConnectionNotFound => {
            StoreError::Unreachable(text)
        }
        ErrorKind::AuthenticationFailed => StoreError::Denied(text),
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => StoreError::Corrupt(text),
        ErrorKind::Server(_) | ErrorKind::Extension => match code(&error).as_str() {
            "READONLY" | "MISCONF" | "NOREPLICAS" => StoreError::ReadOnly(text),
            "OOM" => StoreError::Full(text),
            "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "BUSY" => StoreError::Loading(text),
            "NOAUTH" | "WRONGPASS" | "NOPERM" => StoreError::Denied(text),
            "WRONGTYPE" => StoreError::Corrupt(text),
            _ => StoreError::Failed(text),
        },
        _ => StoreError::Failed(text),
    }
}

/// Whether the connection must be discarded: it is broken, the peer does not speak Redis, or the server is no longer the master.
pub(super) fn is_fatal(error: &RedisError) -> bool {
    error.is_io_error() || error.kind() == ErrorKind::Parse || is_demoted(error)
}

/// Whether the server is no longer the master.
pub(super) fn is_demoted(error: &RedisError) -> bool {
    code(error) == "READONLY"
}

/// Whether the keys of the command are split between two servers of a cluster.
pub(super) fn is_migrating(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::TryAgain)
}

pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

pub(super) fn is_forbidden(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm)
}

/// Adds the server to an I/O error. A timeout of the operating system's connection attempt is not one of our deadlines, so it
/// becomes `HostUnreachable`.
pub(super) fn at(server: &str, error: &io::Error) -> RedisError {
    let kind = match error.kind() {
        io::ErrorKind::TimedOut => io::ErrorKind::HostUnreachable,
        kind => kind,
    };
    io::Error::new(kind, format!("{server}: {error}")).into()
}

/// Servers before version 7 report `ERR` if a command inside a script fails, with the real code in the text.
fn code(error: &RedisError) -> String {
    let code = error.code().unwrap_or_default();
    if code == "ERR"
        && let Some(detail) = error.detail()
        && detail.starts_with("Error running script")
        && let Some(inner) = ["READONLY", "OOM", "WRONGTYPE"].into_iter().find(|inner| detail.contains(inner))
    {
        return inner.to_owned();
    }
    code.to_owned()
}

/// The text of an error without quoted arguments. A server that does not know a command quotes them, which may reveal a password
/// or content.
fn text(error: &RedisError) -> String {
    let text = error.to_string();
    text.split(", with args").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(response: &str) -> &'static str {
        let value = redis::parse_redis_value(format!("-{response}\r\n").as_bytes()).unwrap();
        store_error(value.extract_error().unwrap_err()).reason()
    }

    #[test]
    fn each_error_code_has_its_reason() {
        for (response, expected) in [
            ("READONLY You can't write against a read only replica.", "store_readonly"),
            ("MISCONF Redis is configured to save RDB snapshots", "store_readonly"),
            ("NOREPLICAS Not enough good replicas to write.", "store_readonly"),
            ("OOM command not allowed when used memory > 'maxmemory'.", "store_full"),
            (
                "ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed",
                "store_full",
            ),
            ("LOADING Redis is loading the dataset in memory", "store_loading"),
            ("MASTERDOWN Link with MASTER is down", "store_loading"),
            ("CLUSTERDOWN The cluster is down", "store_loading"),
            ("TRYAGAIN Multiple keys request during rehashing of slot", "store_loading"),
            ("NOAUTH Authentication required.", "store_denied"),
            ("WRONGPASS invalid username-password pair or user is disabled.", "store_denied"),
            ("NOPERM this user has no permissions to run the 'evalsha' command", "store_denied"),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", "store_corrupt"),
            ("ERR value is not an integer or out of range", "store_failed"),
        ] {
            assert_eq!(reason(response), expected, "{response}");
        }
        assert_eq!(store_error(io::Error::from(io::ErrorKind::TimedOut).into()), StoreError::Timeout);
        assert_eq!(
            store_error(at("db:1", &io::Error::from(io::ErrorKind::TimedOut))).reason(),
            "store_unreachable"
        );
    }

    #[test]
    fn quoted_arguments_are_omitted() {
        let response = "-ERR unknown command 'AUTH', with args beginning with: 'tide' 'hunter2'\r\n";
        let error = redis::parse_redis_value(response.as_bytes()).unwrap().extract_error().unwrap_err();
        let text = store_error(error).to_string();
        assert!(text.contains("AUTH") && !text.contains("hunter2"), "{text}");
    }
}
