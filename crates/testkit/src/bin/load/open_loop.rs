//! Sends requests at fixed times, whatever happens to earlier ones.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::report::Report;
use crate::requests::Requests;
use crate::response::{Progress, ResponseReader};
use crate::target::Target;

/// The number of concurrent requests. A request that has to wait for a lane has the wait in its latency.
const LANES: u32 = 4;

/// A sleep ends late by up to the kernel's timer slack, which would exceed a proxy's latency. So the rest of the wait is spent
/// spinning.
const SPIN: Duration = Duration::from_micros(120);

const GRACE: Duration = Duration::from_secs(10);

/// Uses threads and not tasks: tokio's timers tick in milliseconds, which is ten times the measured latency.
pub(crate) fn run(
    target: &Target,
    rate: f64,
    warmup: Duration,
    duration: Duration,
    count: u64,
) -> io::Result<Report> {
    let interval = Duration::from_secs_f64(1.0 / rate);
    let start = Instant::now() + Duration::from_millis(20);
    let schedule = Schedule { start, interval, from: start + warmup, until: start + warmup + duration };
    let lane_count = count.div_ceil(u64::from(LANES));
    let mut total = Report::new();
    std::thread::scope(|scope| {
        let lanes: Vec<_> =
            (0..LANES).map(|lane| scope.spawn(move || drive(target, schedule, lane, lane_count))).collect();
        for lane in lanes {
            total.merge(&lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(total)
    })
}

#[derive(Clone, Copy)]
struct Schedule {
    start: Instant,
    interval: Duration,
    from: Instant,
    until: Instant,
}

fn drive(target: &Target, schedule: Schedule, lane: u32, count: u64) -> io::Result<Report> {
    let mut report = Report::new();
    let mut stream = connect(target)?;
    let mut reader = ResponseReader::default();
    let mut measured = 0;
    let mut requests = Requests::of(target, u64::from(lane));
    // Later runs have different numbers.
    let first = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64 * 1000;
    for number in (lane..).step_by(LANES as usize) {
        let due = schedule.start + schedule.interval * number;
        if due >= schedule.until || measured >= count {
            break;
        }
        let request = requests.next(first + u64::from(number));
        wait_until(due);
        match exchange(&mut stream, &mut reader, request) {
            Ok((status, events)) if due >= schedule.from => {
                report.answer(status, events, due.elapsed());
                measured += 1;
            }
            Ok(_) => {}
            Err(_) => {
                report.error();
                reader = ResponseReader::default();
                stream = connect(target)?;
            }
        }
    }
    report.finished_after(schedule.until - schedule.from);
    Ok(report)
}

fn wait_until(due: Instant) {
    let early = due.saturating_duration_since(Instant::now());
    if early > SPIN {
        std::thread::sleep(early - SPIN);
    }
    while Instant::now() < due {
        std::hint::spin_loop();
    }
}

fn connect(target: &Target) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(target.address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(GRACE))?;
    Ok(stream)
}

fn exchange(stream: &mut TcpStream, reader: &mut ResponseReader, request: &[u8]) -> io::Result<(u16, usize)> {
    stream.write_all(request)?;
    let mut block = [0; 16 * 1024];
    loop {
        let count = stream.read(&mut block)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        reader.buffer.extend_from_slice(&block[..count]);
        match reader.progress() {
            Progress::Partial { .. } => {}
            Progress::Whole { status, events } => return Ok((status, events)),
            Progress::Invalid => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
