//! The mock upstream as a separate process, for SDK suites and benchmarks.
//!
//! `mock-upstream [--listen 127.0.0.1:0] [--threads 2] [--kind http1|h2c|tls|tls-http1] [--ca FILE] [--coding gzip|deflate|br|zstd]
//! [--chunked]`: with TLS, its CA is written to the file; answers are compressed for clients that accept it. For benchmarks `--bench-response BYTES`
//! and `--bench-events N`: see [`mod@bench`].

#![allow(clippy::print_stdout, reason = "the address on standard output is this program's interface")]

mod bench;

use std::net::SocketAddr;
use std::path::PathBuf;

use tidegate_testkit::flags::Flags;
use tidegate_testkit::{Coding, Listen, MockUpstream, Recording};

const USAGE: &str = "\
The mock upstream as a separate process, on loopback only. Prints its address.

Usage: mock-upstream [--listen ADDR] [--threads N] [--kind http1|h2c|tls|tls-http1] [--ca FILE]
                     [--coding gzip|deflate|br|zstd] [--chunked]
                     [--bench-response BYTES] [--bench-events N]";

fn main() -> std::io::Result<()> {
    let mut flags = Flags::from_env(USAGE);
    let address: SocketAddr = flags.value("listen").unwrap_or_else(|| ([127, 0, 0, 1], 0).into());
    let threads: usize = flags.value("threads").unwrap_or(2);
    let listen: Listen = flags.value("kind").unwrap_or(Listen::Http1);
    let ca: Option<PathBuf> = flags.value("ca");
    let coding: Option<Coding> = flags.value("coding");
    let is_chunked = flags.switch("chunked");
    let response: Option<usize> = flags.value("bench-response");
    let events: Option<usize> = flags.value("bench-events");
    flags.finish();
    assert!(address.ip().is_loopback(), "the mock upstream listens on loopback only, not on {address}");

    if response.is_some() || events.is_some() {
        let plan = bench::Plan::new(response, events);
        return bench::run(address, threads, plan, |address| println!("listening on http://{address}"));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    runtime.block_on(async {
        let upstream = MockUpstream::bind(address, listen, Recording::Off).await;
        upstream.encode(coding, is_chunked);
        if let Some(ca) = ca {
            std::fs::write(ca, upstream.ca_pem())?;
        }
        println!("listening on {}", upstream.url());
        // Run until a signal ends the process.
        std::future::pending().await
    })
}
