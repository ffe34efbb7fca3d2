//! One server of ours, its port and its directory.

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

impl Process {
    /// `furnish` puts into the data directory what the configuration names.
    pub(super) async fn start(furnish: impl FnOnce(&Path, &Account), config: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("there is a place for temporary files");
        let (account, programs) = (Account::find(), programs());
        account.own(directory.path());
        let mut process = Process { port: 0, directory, account, programs, child: Mutex::new(None) };
        process.initialize();
        furnish(&process.data(), &process.account);
        for _ in 0..5 {
            process.port = free_port();
            process.configure(config);
            match process.try_run().await {
                Ok(()) => return process,
                // Another test was quicker.
                Err(log) if log.contains("Address already in use") => {}
                Err(log) => panic!("postgres did not start:\n{log}"),
            }
        }
        panic!("five free ports were taken before postgres could have them")
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
        // What is committed survives the end of every process, if not that of the machine.
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

    /// Returns when it answers.
    pub(super) async fn run(&self) {
        self.try_run().await.unwrap_or_else(|log| panic!("postgres did not start:\n{log}"));
    }

    /// If it ends instead of answering, its log.
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
            // Another test's server may answer at this port while ours finds it taken; it holds other data.
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

    /// First the one that starts the others, so that none is missed.
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
        // Stopped first, it starts nobody whom we would miss. Whoever was missed would keep its memory in use, and the next
        // start from succeeding.
        signal(server, Signal::STOP);
        let workers = workers(server);
        child.kill().expect("a process of ours can be ended");
        workers.into_iter().for_each(|worker| signal(worker, Signal::KILL));
        child.wait().expect("a process of ours can be waited for");
    }

    /// Waits until it has ended.
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

/// A worker may have ended by itself a moment ago.
fn signal(process: Pid, signal: Signal) {
    let _ = kill_process(process, signal);
}

/// The processes that a server has started.
fn workers(server: Pid) -> Vec<Pid> {
    let parent = server.as_raw_nonzero().to_string();
    let processes = std::fs::read_dir("/proc").expect("there is a list of processes").flatten();
    let children = processes.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // Behind the name, which stands in parentheses and may hold anything: the state and the parent.
        let (_, behind) = stat.rsplit_once(')')?;
        (behind.split_whitespace().nth(1)? == parent).then(|| Pid::from_raw(id))?
    });
    children.collect()
}
