//! A server or sentinel process with its port and directory.

use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use crate::loopback::{free_port, missing, until};
use rustix::process::{Pid, Signal, kill_process};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Server,
    Sentinel,
}

#[derive(Debug)]
pub(super) struct Process {
    program: Program,
    port: u16,
    directory: tempfile::TempDir,
    child: Mutex<Option<Child>>,
}

impl Process {
    pub(super) async fn start(program: Program, config: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("there is a place for temporary files");
        let mut process = Process { program, port: 0, directory, child: Mutex::new(None) };
        for _ in 0..5 {
            process.port = free_port();
            process.configure(config);
            match process.try_run().await {
                Ok(()) => return process,
                // Another test took the port.
                Err(log) if log.contains("already in use") => {}
                Err(log) => panic!("redis-server did not start:\n{log}"),
            }
        }
        panic!("redis-server found no free port in five attempts")
    }

    fn configure(&self, config: &[&str]) {
        let (port, path) = (self.port, self.directory.path());
        let mut text = format!("port {port}\nbind 127.0.0.1\ndir {0}\nlogfile {0}/log\n", path.display());
        for line in config {
            text.push_str(line);
            text.push('\n');
        }
        std::fs::write(path.join("redis.conf"), text).expect("a temporary file can be written");
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Starts the process, and returns once it answers.
    pub(super) async fn run(&self) {
        self.try_run().await.unwrap_or_else(|log| panic!("redis-server did not start:\n{log}"));
    }

    /// Starts the process. Returns its log if it ends instead of answering.
    async fn try_run(&self) -> Result<(), String> {
        let mut command = Command::new("redis-server");
        command.arg(self.directory.path().join("redis.conf"));
        if self.program == Program::Sentinel {
            command.arg("--sentinel");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| missing(&error, "redis-server", "redis-server"));
        let id = child.id();
        self.child.lock().expect("no holder panics").replace(child);
        let mut has_ended = false;
        until("redis-server answers", async || {
            let is_over = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
            has_ended = self.child.lock().expect("no holder panics").as_mut().is_some_and(is_over);
            // Another test's server may answer on this port while ours fails to bind it.
            let answer = self.cli(&["info", "server"]).await;
            has_ended || answer.starts_with("NOAUTH") || answer.contains(&format!("process_id:{id}\r"))
        })
        .await;
        let log = || std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        if has_ended { Err(log()) } else { Ok(()) }
    }

    pub(super) async fn cli(&self, arguments: &[&str]) -> String {
        let port = self.port.to_string();
        let mut command = tokio::process::Command::new("redis-cli");
        command.args(["-h", "127.0.0.1", "-p", &port]).args(arguments).stdin(Stdio::null());
        let output = command.kill_on_drop(true).output().await;
        let output = output.unwrap_or_else(|error| missing(&error, "redis-cli", "redis-tools"));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub(super) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(super) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    pub(super) fn kill(&self) {
        if let Some(mut child) = self.child.lock().expect("no holder panics").take() {
            child.kill().expect("the process can be ended");
            child.wait().expect("the process can be waited for");
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.child.lock().expect("no holder panics").is_some()
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.lock().expect("no holder panics");
        let child = child.as_ref().expect("the process runs");
        kill_process(Pid::from_child(child), signal).expect("the process can be signalled");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
