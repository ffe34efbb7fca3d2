//! What the server does at once.
//!
//! Scripts, not transactions: what a turn adds depends on what is there, which a transaction cannot look at.

use super::keys::Slot;
use redis::{Arg, Cmd, ToRedisArgs};
use std::sync::LazyLock;

pub(super) static JOURNAL: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("journal.lua")));
pub(super) static FOLD: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("fold.lua")));
pub(super) static PIN: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("pin.lua")));
pub(super) static CLAIM: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("claim.lua")));
pub(super) static RELEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("release.lua")));
pub(super) static COUNT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("count.lua")));
pub(super) static ENLIST: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("enlist.lua")));
pub(super) static DELIST: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("delist.lua")));

#[derive(Debug)]
pub(super) struct Script {
    body: &'static str,
    hash: String,
}

/// A script with what it is to work on.
#[derive(Debug)]
pub(super) struct Invocation {
    script: &'static Script,
    key: String,
    by_hash: Cmd,
}

impl Script {
    fn new(body: &'static str) -> Script {
        Script { body, hash: redis::Script::new(body).get_hash().to_owned() }
    }

    /// The keys must be of one slot.
    pub(super) fn on(&'static self, keys: &[String]) -> Invocation {
        let mut by_hash = redis::cmd("EVALSHA");
        by_hash.arg(&self.hash).arg(keys.len()).arg(keys);
        Invocation { script: self, key: keys.first().cloned().unwrap_or_default(), by_hash }
    }
}

impl Invocation {
    pub(super) fn arg(mut self, argument: impl ToRedisArgs) -> Invocation {
        self.by_hash.arg(argument);
        self
    }

    pub(super) fn slot(&self) -> Slot {
        Slot::of(&self.key)
    }

    /// Short, but works only where the script has run before.
    pub(super) fn by_hash(&self) -> &Cmd {
        &self.by_hash
    }

    /// The same with the script itself, which the server then knows.
    pub(super) fn by_body(&self) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.script.body);
        for argument in self.by_hash.args_iter().skip(2) {
            if let Arg::Simple(bytes) = argument {
                command.arg(bytes);
            }
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_takes_the_place_of_the_hash() {
        let invocation = DELIST.on(&["{a}:1".to_owned()]).arg(b"x\0y").arg(5);
        let simple = |command: &Cmd| {
            command
                .args_iter()
                .map(|argument| if let Arg::Simple(bytes) = argument { bytes.to_vec() } else { Vec::new() })
                .collect::<Vec<_>>()
        };
        let (hash, body) = (simple(invocation.by_hash()), simple(&invocation.by_body()));
        assert_eq!((hash[0].as_slice(), body[0].as_slice()), (&b"EVALSHA"[..], &b"EVAL"[..]));
        assert_eq!((hash[1].len(), body[1].as_slice()), (40, DELIST.body.as_bytes()));
        assert_eq!(hash[2..], [b"1".to_vec(), b"{a}:1".to_vec(), b"x\0y".to_vec(), b"5".to_vec()]);
        assert_eq!(hash[2..], body[2..]);
    }
}
