//! A small load generator. It speaks HTTP/1.1 to loopback addresses only, and every run is bounded by time.
//!
//! - Closed loop: `load --url URL --connections 64 --seconds 5 --body-bytes 1000`. Each connection sends its next
//!   request when the last one is answered. Reports requests per second, p50 and p99.
//! - Open loop: `… --rate 200`. Requests are sent at fixed times, and latency is measured from the scheduled time, so that a
//!   slow response cannot hide the delay of later requests. Reports p50, p90 and p99. Twelve `@` in the body become a unique
//!   number.
//! - Holding: `… --hold 5000 --seconds 10`. Opens this many streams, reports when each has its first event, and keeps them
//!   open.
//!
//! Common flags: `--body FILE`, `--body-bytes N` or `--growing TURNS` (every lane runs conversations that grow by a call and a result of 1.2 KB per
//! request, each different, as the API at the end of the URL spells them; with `--held BYTES` only a new message of that length is sent,
//! and a header names the conversation), `--stream`, `--header "name: value"`, `--threads N`, `--json`,
//! `--warmup-ms N`, `--count N` (stop after this many requests).

#![allow(clippy::print_stdout, reason = "the report on standard output is this program's purpose")]

mod closed_loop;
mod hold;
mod open_loop;
mod report;
mod requests;
mod response;
mod spelling;
mod target;

use std::time::Duration;

use tidegate_testkit::flags::Flags;

const USAGE: &str = "\
A small load generator for loopback addresses.

Usage: load --url URL [--connections N] [--seconds S] [--rate N | --hold N] [--body FILE | --body-bytes N]
            [--stream] [--header 'name: value'] [--threads N] [--warmup-ms N] [--count N] [--json]";

fn main() -> std::io::Result<()> {
    let mut flags = Flags::from_env(USAGE);
    let target = target::Target::from_flags(&mut flags)?;
    let duration = Duration::from_secs_f64(flags.value("seconds").unwrap_or(5.0));
    let warmup = Duration::from_millis(flags.value("warmup-ms").unwrap_or(300));
    let connections: usize = flags.value("connections").unwrap_or(64);
    let threads: usize = flags.value("threads").unwrap_or(1);
    let count: u64 = flags.value("count").unwrap_or(u64::MAX);
    let rate: Option<f64> = flags.value("rate");
    let hold: Option<usize> = flags.value("hold");
    let json = flags.switch("json");
    flags.finish();

    if let Some(streams) = hold {
        return hold::run(&target, streams, duration, json);
    }
    let report = match rate {
        Some(rate) => open_loop::run(&target, rate, warmup, duration, count)?,
        None => closed_loop::run(&target, connections, threads, warmup, duration, count)?,
    };
    println!("{}", if json { report.json() } else { report.text() });
    Ok(())
}
