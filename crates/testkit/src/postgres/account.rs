//! The user that runs PostgreSQL. It refuses to run as root, so root runs it as the user of its package.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;

/// The user that runs the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Account {
    Ourselves,
    Other { uid: u32, gid: u32 },
}

impl Account {
    pub(super) fn find() -> Account {
        if !geteuid().is_root() {
            return Account::Ourselves;
        }
        let users = std::fs::read_to_string("/etc/passwd").expect("/etc/passwd is readable");
        let ids = users.lines().find_map(|line| match line.split(':').collect::<Vec<_>>()[..] {
            ["postgres", _, uid, gid, ..] => Some((uid.parse().ok()?, gid.parse().ok()?)),
            _ => None,
        });
        let (uid, gid) = ids.unwrap_or_else(|| panic!("there is no user `postgres`: apt install postgresql"));
        Account::Other { uid, gid }
    }

    /// A command that runs as this user. Its process is the program itself, so it can be signalled.
    pub(super) fn command(&self, program: &Path) -> Command {
        match self {
            Account::Ourselves => Command::new(program),
            Account::Other { uid, gid } => {
                let mut command = Command::new("setpriv");
                command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}")).arg("--clear-groups");
                command.arg("--").arg(program);
                command
            }
        }
    }

    /// Writes a file that no other user can read, which the server requires for its key.
    pub(super) fn write(&self, path: &Path, text: &str) {
        std::fs::write(path, text).expect("a temporary file can be written");
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).expect("the file is ours");
        self.own(path);
    }

    pub(super) fn own(&self, path: &Path) {
        if let Account::Other { uid, gid } = self {
            chown(path, Some(*uid), Some(*gid)).expect("root can give a file away");
        }
    }
}

/// Debian's directory with the programs of the newest installed version, which are not on the path.
pub(super) fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let numbered = versions.filter_map(|entry| {
        let version = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let programs = entry.path().join("bin");
        programs.join("initdb").exists().then_some((version, programs))
    });
    let newest = numbered.max();
    newest.unwrap_or_else(|| panic!("PostgreSQL's server is not installed: apt install postgresql")).1
}
