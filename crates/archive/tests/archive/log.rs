//! Captures log lines.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

/// The log lines of this thread since `capture`. Each test's runtime runs all tasks on the thread of the test.
pub(super) struct Log(());

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Log {
    pub(super) fn capture() -> Log {
        static INSTALLED: Once = Once::new();
        // One subscriber for all threads: `tracing` caches per call site whether a line is enabled.
        INSTALLED.call_once(|| {
            tracing_subscriber::fmt()
                .with_max_level(tracing::Level::TRACE)
                .with_ansi(false)
                .with_writer(|| ThisThread)
                .init();
        });
        LINES.take();
        Log(())
    }

    pub(super) fn text(&self) -> String {
        LINES.with_borrow(|lines| String::from_utf8(lines.clone()).unwrap())
    }
}

struct ThisThread;

impl io::Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.with_borrow_mut(|lines| lines.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
