//! What the machine, the container and the process's own limits allow.

use rustix::process::{Resource, getrlimit, setrlimit};
use std::fs::read_to_string;

/// Files that are not client connections: the store, the log, and upstream connections when clients use HTTP/2.
const OTHER_FILES: u64 = 64;

/// The default where the number of open files is not limited.
const UNLIMITED_CONNECTIONS: u64 = 50_000;

/// About what an idle connection takes, with its share of the kernel's buffers.
pub(super) const CONNECTION_BYTES: u64 = 16 * 1024;

/// The memory of the cgroup or the machine in bytes, whichever is less; `None` where the system does not say.
pub(crate) fn memory() -> Option<u64> {
    let read = |path: &str| read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let machine = read_to_string("/proc/meminfo").ok().and_then(|info| total(&info));
    groups.into_iter().filter_map(read).chain(machine).min()
}

/// The `MemTotal` of `/proc/meminfo`.
fn total(info: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Three quarters of the files that the process may open: the rest is for upstreams, whose connections are pooled. And no more than an eighth
/// of the memory has room for.
pub(super) fn default_connections() -> usize {
    let files = file_limit();
    let by_files = files.map_or(UNLIMITED_CONNECTIONS, |files| files.saturating_sub(OTHER_FILES) / 4 * 3);
    let most = by_files.min(memory().map_or(UNLIMITED_CONNECTIONS, connections_in));
    usize::try_from(most.clamp(64, UNLIMITED_CONNECTIONS)).unwrap_or(usize::MAX)
}

fn connections_in(memory: u64) -> u64 {
    memory / 8 / CONNECTION_BYTES
}

/// Raises the limit of open files as far as the process may, and returns it. The usual 1,024 is for programs that call `select`.
fn file_limit() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    limit.current = limit.maximum;
    if setrlimit(Resource::Nofile, limit).is_ok() { limit.current } else { before }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_container_takes_fewer_connections() {
        assert_eq!(connections_in(512 << 20), 4_096);
        assert!(connections_in(16 << 30) > UNLIMITED_CONNECTIONS);
    }

    #[test]
    fn the_total_of_meminfo_is_read() {
        assert_eq!(total("MemTotal:       24576 kB\nMemFree: 1 kB\n"), Some(24_576 * 1024));
        assert_eq!(total("nothing"), None);
        assert!(memory().is_none_or(|bytes| bytes > 1 << 20));
    }
}
