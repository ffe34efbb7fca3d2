//! The process under test.

use super::command::command;
use super::within;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use tempfile::TempDir;
use tidegate_testkit::{Listen, MockUpstream, default_ca_pem};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// A running `tidegate serve` in its own directory. Dropping it kills the process.
pub(crate) struct Tidegate {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    child: Child,
    lines: watch::Receiver<Vec<String>>,
    directory: TempDir,
}

/// A process to start.
pub(crate) struct Setup {
    directory: TempDir,
    command: Command,
}

impl Setup {
    pub(crate) fn new(config: &str) -> Setup {
        Setup::listening(config, "127.0.0.1:0")
    }

    /// A process whose clients reach it at another address.
    pub(crate) fn listening(config: &str, address: &str) -> Setup {
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("proxy.toml"), config).unwrap();
        let mut command = command(directory.path());
        if let Some(ca) = default_ca_pem() {
            let path = directory.path().join("system-roots.pem");
            std::fs::write(&path, ca).unwrap();
            command.env("SSL_CERT_FILE", path);
        }
        command.args(["serve", "--listen", address, "--admin", "127.0.0.1:0"]);
        Setup { directory, command }
    }

    pub(crate) fn upstream(mut self, url: &str) -> Setup {
        self.command.args(["--upstream", url]);
        self
    }

    /// The same for a mock, in the protocol that it speaks.
    pub(crate) fn before(self, upstream: &MockUpstream) -> Setup {
        if upstream.listen() == Listen::H2c {
            let file = self.directory.path().join("proxy.toml");
            let config = std::fs::read_to_string(&file).unwrap();
            std::fs::write(file, speaking_http2(&config)).unwrap();
        }
        self.upstream(&upstream.url())
    }

    pub(crate) fn config(mut self, path: &str) -> Setup {
        self.command.args(["--config", path]);
        self
    }

    /// Runs the process with a clock that is off by this much, for example `+60s`.
    pub(crate) fn faketime(self, offset: &str) -> Setup {
        let library = ["/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"]
            .map(|directory| format!("{directory}/faketime/libfaketime.so.1"))
            .into_iter()
            .find(|path| Path::new(path).exists());
        let library = library.expect("libfaketime is installed (package `faketime`)");
        self.env("LD_PRELOAD", &library).env("FAKETIME", offset).env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Setup {
        self.command.env(name, value);
        self
    }

    /// Writes a file next to the configuration, which can refer to it by a relative path.
    pub(crate) fn file(self, name: &str, text: &str) -> Setup {
        std::fs::write(self.directory.path().join(name), text).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Starts the process for a test that reads standard error itself. Its directory must outlive it.
    pub(crate) fn spawn(self) -> (Child, TempDir) {
        let Setup { directory, mut command } = self;
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        (child, directory)
    }

    pub(crate) async fn start(self) -> Tidegate {
        let (mut child, directory) = self.spawn();
        let mut output = BufReader::new(child.stderr.take().unwrap()).lines();
        let (sender, mut lines) = watch::channel(Vec::new());
        tokio::spawn(async move {
            while let Ok(Some(line)) = output.next_line().await {
                sender.send_modify(|lines: &mut Vec<String>| lines.push(line));
            }
        });
        let greeting =
            wait_for(&mut lines, "tidegate is listening", |line| line["message"] == "tidegate is listening");
        let greeting = greeting.await;
        let address = |key: &str| -> SocketAddr {
            let url = greeting[key].as_str().unwrap();
            url.rsplit('/').next().unwrap().parse().unwrap()
        };
        Tidegate { address: address("listen"), admin: address("admin"), child, lines, directory }
    }
}

/// The configuration, made to speak HTTP/2 to an upstream that does not negotiate it.
fn speaking_http2(config: &str) -> String {
    const SECTION: &str = "[upstreams.default]\n";
    if config.contains("protocol = ") {
        return config.to_owned();
    }
    let protocol = format!("{SECTION}protocol = \"http2\"\n");
    if config.contains(SECTION) {
        config.replacen(SECTION, &protocol, 1)
    } else {
        format!("{config}\n{protocol}")
    }
}

impl Tidegate {
    /// Starts with this configuration in front of this upstream.
    pub(crate) async fn start(config: &str, upstream: &MockUpstream) -> Tidegate {
        Setup::new(config).before(upstream).start().await
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.directory.path().join("proxy.toml")
    }

    /// Everything written to standard error so far.
    pub(crate) fn output(&self) -> String {
        self.lines.borrow().join("\n")
    }

    /// Waits for a log line. A line that is not JSON is passed as `null`.
    pub(crate) async fn logged(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait_for(&mut self.lines, what, wanted).await
    }

    pub(crate) async fn logged_message(&mut self, text: &str) -> Value {
        self.logged(text, |line| line["message"].as_str().is_some_and(|message| message.contains(text))).await
    }

    /// Waits until this text has been logged this many times.
    pub(crate) async fn logged_times(&mut self, text: &str, count: usize) {
        let enough = |lines: &Vec<String>| lines.iter().filter(|line| line.contains(text)).count() >= count;
        let waited = within(&format!("{count} times in the log: {text}"), self.lines.wait_for(enough)).await;
        assert!(waited.is_ok(), "tidegate ended");
    }

    /// Waits until the access log has this many lines, and returns them.
    pub(crate) async fn access_log(&mut self, count: usize) -> Vec<Value> {
        let enough = self.lines.wait_for(|lines| access_lines(lines).len() >= count);
        let lines =
            within(&format!("{count} lines in the access log"), enough).await.map(|lines| lines.clone());
        access_lines(&lines.expect("tidegate ended"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().expect("tidegate has ended")).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// The number of read system calls of the process so far.
    pub(crate) fn system_reads(&self) -> u64 {
        let pid = self.child.id().expect("tidegate has ended");
        let counters = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
        let reads = counters.lines().find_map(|line| line.strip_prefix("syscr: ")).unwrap();
        reads.parse().unwrap()
    }

    /// The resident memory of the process in bytes, now and at most so far.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let pid = self.child.id().expect("tidegate has ended");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let kib = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
        };
        (kib("VmRSS:") * 1024, kib("VmHWM:") * 1024)
    }

    /// The number of open files of the process.
    pub(crate) fn open_files(&self) -> usize {
        let pid = self.child.id().expect("tidegate has ended");
        std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
    }

    /// The number of threads of the process.
    pub(crate) fn threads(&self) -> usize {
        let pid = self.child.id().expect("tidegate has ended");
        std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().count()
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        within("tidegate ends", self.child.wait()).await.unwrap()
    }

    /// Shuts down gracefully, so that every line is written, and returns the output.
    pub(crate) async fn stop(mut self) -> String {
        self.signal(Signal::TERM);
        self.ended().await;
        // The sender is dropped at the end of the pipe.
        while self.lines.changed().await.is_ok() {}
        self.output()
    }
}

async fn wait_for(
    lines: &mut watch::Receiver<Vec<String>>,
    what: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Value {
    let find = |lines: &Vec<String>| lines.iter().map(|line| parse(line)).find(|line| wanted(line));
    let found = within(&format!("the log line: {what}"), lines.wait_for(|lines| find(lines).is_some())).await;
    let found = found.map(|lines| find(&lines));
    match found {
        Ok(line) => line.unwrap(),
        Err(_) => panic!("tidegate ended before the log line: {what}\n{}", lines.borrow().join("\n")),
    }
}

fn access_lines(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| parse(line)).filter(|line| line["target"] == "access").collect()
}

fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_default()
}
