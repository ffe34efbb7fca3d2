//! What the server's refusals mean to us.

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

/// Whether the connection is of no more use: it is broken, it speaks something else than Redis, or its server is no longer
/// the master.
pub(super) fn is_fatal(error: &RedisError) -> bool {
    error.is_io_error() || error.kind() == ErrorKind::Parse || is_demoted(error)
}

/// Whether the server was a master and is one no more.
pub(super) fn is_demoted(error: &RedisError) -> bool {
    code(error) == "READONLY"
}

/// Whether some of the keys are on one server of a cluster and some on another.
pub(super) fn is_torn(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::TryAgain)
}

pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

pub(super) fn is_forbidden(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm)
}

/// Keeps the kind of an I/O error and says where it happened. The system's own patience with a connection attempt is not a
/// deadline of ours.
pub(super) fn at(place: &str, error: &io::Error) -> RedisError {
    let kind = match error.kind() {
        io::ErrorKind::TimedOut => io::ErrorKind::HostUnreachable,
        kind => kind,
    };
    io::Error::new(kind, format!("{place}: {error}")).into()
}

/// Servers before version 7 answer `ERR` when a command inside of a script fails, and name the reason further on.
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

/// A server that does not know a command repeats its arguments: a password, or what a conversation says.
fn text(error: &RedisError) -> String {
    let text = error.to_string();
    text.split(", with args").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(answer: &str) -> &'static str {
        let value = redis::parse_redis_value(format!("-{answer}\r\n").as_bytes()).unwrap();
        store_error(value.extract_error().unwrap_err()).reason()
    }

    #[test]
    fn each_refusal_has_its_reason() {
        for (answer, expected) in [
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
            assert_eq!(reason(answer), expected, "{answer}");
        }
        assert_eq!(store_error(io::Error::from(io::ErrorKind::TimedOut).into()), StoreError::Timeout);
        assert_eq!(
            store_error(at("db:1", &io::Error::from(io::ErrorKind::TimedOut))).reason(),
            "store_unreachable"
        );
    }

    #[test]
    fn arguments_that_a_server_repeats_are_left_out() {
        let answer = "-ERR unknown command 'AUTH', with args beginning with: 'tide' 'hunter2'\r\n";
        let error = redis::parse_redis_value(answer.as_bytes()).unwrap().extract_error().unwrap_err();
        let text = store_error(error).to_string();
        assert!(text.contains("AUTH") && !text.contains("hunter2"), "{text}");
    }
}
