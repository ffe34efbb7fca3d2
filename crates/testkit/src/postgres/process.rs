//! A server process with its port and directory.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;

use super::account::{Account, programs};
use crate::loopback::{free_port, missing, until};
use rustix::process::{Pid, Signal, kill_process};

#[derive(Debug)]
pub(super) struct Process {
    port: u16,
    directory: tempfile::TempDir,
    account: Account,
    programs: PathBuf,
    child: Mutex<Option<Child>>,
}

pub(super) const PASSWORD: &str = "the-password-of-the-superuser";

/// How often a start is tried again that found shared memory in use.
const RELEASE_INTERVAL: std::time::Duration = std::time::Duration::from_millis(50);

impl Process {
    /// `prepare` adds the files that the configuration names to the data directory.
    pub(super) async fn start(prepare: impl FnOnce(&Path, &Account), config: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("there is a place for temporary files");
        let (account, programs) = (Account::find(), programs());
        account.own(directory.path());
        let mut process = Process { port: 0, directory, account, programs, child: Mutex::new(None) };
        process.initialize();
        prepare(&process.data(), &process.account);
        for _ in 0..5 {
            process.port = free_port();
            process.configure(config);
            match process.try_run().await {
                Ok(()) => return process,
                // Another test took the port.
                Err(log) if log.contains("Address already in use") => {}
                // Another test's data directory had the same inode, which names the shared memory.
                Err(log) if log.contains("pre-existing shared memory block") => {}
                Err(log) => panic!("postgres did not start:\n{log}"),
            }
        }
        panic!("postgres found no free port in five attempts")
    }

    fn initialize(&self) {
        let password = self.directory.path().join("password");
        self.account.write(&password, PASSWORD);
        let mut command = self.account.command(&self.programs.join("initdb"));
        command.args(["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]);
        command.args(["--no-sync", "--no-instructions"]);
        command.arg("--pwfile").arg(&password).arg("--pgdata").arg(self.data());
        let output = command.current_dir("/").stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| missing(&error, "setpriv", "util-linux"));
        assert!(output.status.success(), "initdb failed: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn configure(&self, config: &[&str]) {
        let mut text = format!("port = {}\nlisten_addresses = '127.0.0.1'\n", self.port);
        text += &format!("unix_socket_directories = '{}'\n", self.directory.path().display());
        // Committed data survives the end of the process, but not a crash of the machine.
        text += "fsync = off\nfull_page_writes = off\nautovacuum = off\nshared_buffers = 16MB\n";
        for line in config {
            text.push_str(line);
            text.push('\n');
        }
        self.account.write(&self.data().join("postgresql.auto.conf"), &text);
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Starts the process, and returns once it answers.
    pub(super) async fn run(&self) {
        let mut started = self.try_run().await;
        // The shared memory of a server that was killed is released a moment after its processes have ended.
        while started.as_ref().is_err_and(|log| log.contains("pre-existing shared memory block")) {
            tokio::time::sleep(RELEASE_INTERVAL).await;
            started = self.try_run().await;
        }
        started.unwrap_or_else(|log| panic!("postgres did not start:\n{log}"));
    }

    /// Starts the process. Returns its log if it ends instead of answering.
    async fn try_run(&self) -> Result<(), String> {
        let path = self.directory.path().join("log");
        let log = std::fs::File::create(&path).expect("a temporary file can be written");
        let mut command = self.account.command(&self.programs.join("postgres"));
        command.arg("-D").arg(self.data()).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().unwrap_or_else(|error| missing(&error, "setpriv", "util-linux"));
        self.child.lock().expect("no holder panics").replace(child);
        let mut has_ended = false;
        until("postgres answers", async || {
            let is_over = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
            has_ended = self.child.lock().expect("no holder panics").as_mut().is_some_and(is_over);
            // Another test's server, with another data directory, may answer on this port while ours fails to bind it.
            let answer = self.psql("select current_setting('data_directory')").await;
            has_ended || answer.is_ok_and(|answer| Path::new(&answer) == self.data())
        })
        .await;
        if has_ended { Err(std::fs::read_to_string(&path).unwrap_or_default()) } else { Ok(()) }
    }

    pub(super) async fn psql(&self, sql: &str) -> Result<String, String> {
        let mut command = tokio::process::Command::new(self.programs.join("psql"));
        command.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postgres"]);
        command.args(["-p", &self.port.to_string(), "-d", "postgres", "-c", sql]);
        command.env("PGPASSWORD", PASSWORD).env("PGCONNECT_TIMEOUT", "10").stdin(Stdio::null());
        let output = command.kill_on_drop(true).output().await;
        let output = output.unwrap_or_else(|error| missing(&error, "psql", "postgresql"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// Stops the parent first, so that it cannot start further workers.
    pub(super) fn freeze(&self) {
        let server = self.id().expect("the server runs");
        signal(server, Signal::STOP);
        workers(server).into_iter().for_each(|worker| signal(worker, Signal::STOP));
    }

    pub(super) fn thaw(&self) {
        let server = self.id().expect("the server runs");
        workers(server).into_iter().for_each(|worker| signal(worker, Signal::CONT));
        signal(server, Signal::CONT);
    }

    pub(super) fn kill(&self) {
        let Some(mut child) = self.child.lock().expect("no holder panics").take() else { return };
        let server = Pid::from_child(&child);
        // Once stopped, it starts no further workers. A worker that survived would keep the shared memory in use, and the next
        // start would fail.
        signal(server, Signal::STOP);
        let workers = workers(server);
        child.kill().expect("the process can be ended");
        workers.into_iter().for_each(|worker| signal(worker, Signal::KILL));
        child.wait().expect("the process can be waited for");
    }

    /// Shuts down, and waits until the process has ended.
    pub(super) async fn stop(&self) {
        signal(self.id().expect("the server runs"), Signal::INT);
        until("postgres stops", async || {
            let mut child = self.child.lock().expect("no holder panics");
            child.as_mut().is_none_or(|child| child.try_wait().is_ok_and(|status| status.is_some()))
        })
        .await;
        self.child.lock().expect("no holder panics").take();
    }

    fn id(&self) -> Option<Pid> {
        self.child.lock().expect("no holder panics").as_ref().map(Pid::from_child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ignores errors, because a worker may just have ended.
fn signal(process: Pid, signal: Signal) {
    let _ = kill_process(process, signal);
}

/// The child processes of a server.
fn workers(server: Pid) -> Vec<Pid> {
    let parent = server.as_raw_nonzero().to_string();
    let processes = std::fs::read_dir("/proc").expect("/proc is readable").flatten();
    let children = processes.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The state and the parent follow the name, which is in parentheses and may contain anything.
        let (_, behind) = stat.rsplit_once(')')?;
        (behind.split_whitespace().nth(1)? == parent).then(|| Pid::from_raw(id))?
    });
    children.collect()
}
