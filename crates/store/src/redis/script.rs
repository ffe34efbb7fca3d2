//! Atomic changes, as Lua scripts.
//!
//! Transactions would not do: what a change adds depends on existing data, which a transaction cannot read.

use super::keys::Slot;
use redis::{Arg, Cmd, ToRedisArgs};
use std::sync::LazyLock;

pub(super) static JOURNAL: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("journal.lua")));
pub(super) static FOLD: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("fold.lua")));
pub(super) static APPEND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("append.lua")));
pub(super) static NOTE_DELIVERY: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("note_delivery.lua")));
pub(super) static DELETE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("delete.lua")));
pub(super) static EXCHANGE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("exchange.lua")));
pub(super) static PIN: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("pin.lua")));
pub(super) static ACQUIRE_LEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("acquire_lease.lua")));
pub(super) static ACQUIRE_TURN_LEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("acquire_turn_lease.lua")));
pub(super) static RELEASE_LEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("release_lease.lua")));
pub(super) static COUNT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("count.lua")));
pub(super) static ENLIST: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("enlist.lua")));
pub(super) static DELIST: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("delist.lua")));

#[derive(Debug)]
pub(super) struct Script {
    source: &'static str,
    hash: String,
}

/// A script with its keys and arguments.
#[derive(Debug)]
pub(super) struct Invocation {
    script: &'static Script,
    key: String,
    by_hash: Cmd,
}

impl Script {
    fn new(source: &'static str) -> Script {
        Script { source, hash: redis::Script::new(source).get_hash().to_owned() }
    }

    /// The keys must belong to one slot.
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

    /// The command by hash, which works only if the server knows the script.
    pub(super) fn by_hash(&self) -> &Cmd {
        &self.by_hash
    }

    /// The command with the source, from which the server learns the script.
    pub(super) fn by_source(&self) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(self.script.source);
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
    fn both_commands_have_the_same_arguments() {
        let invocation = DELIST.on(&["{a}:1".to_owned()]).arg(b"x\0y").arg(5);
        let simple = |command: &Cmd| {
            command
                .args_iter()
                .map(|argument| if let Arg::Simple(bytes) = argument { bytes.to_vec() } else { Vec::new() })
                .collect::<Vec<_>>()
        };
        let (hash, source) = (simple(invocation.by_hash()), simple(&invocation.by_source()));
        assert_eq!((hash[0].as_slice(), source[0].as_slice()), (&b"EVALSHA"[..], &b"EVAL"[..]));
        assert_eq!((hash[1].len(), source[1].as_slice()), (40, DELIST.source.as_bytes()));
        assert_eq!(hash[2..], [b"1".to_vec(), b"{a}:1".to_vec(), b"x\0y".to_vec(), b"5".to_vec()]);
        assert_eq!(hash[2..], source[2..]);
    }
}
