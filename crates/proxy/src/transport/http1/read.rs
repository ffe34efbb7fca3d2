use crate::transport::stream::Stream;
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

thread_local! {
    /// The worker's connections share one read buffer, so that an idle connection needs none.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; 64 * 1024].into());
}

/// Reads once and passes what has arrived to `consume`. Returns the number of bytes, 0 at the end of the stream.
pub(super) fn poll_read(
    stream: &mut Stream,
    cx: &mut Context<'_>,
    consume: impl FnOnce(&[u8]),
) -> Poll<io::Result<usize>> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut buffer = ReadBuf::new(scratch);
        ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
        consume(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    })
}
