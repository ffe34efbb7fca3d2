//! A response body that a task of its own writes.

use crate::transport::BoxError;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// Dropping it ends the task, and with it whatever the task waits for.
#[derive(Debug)]
pub(crate) struct DrivenBody {
    frames: mpsc::Receiver<Result<Bytes, BoxError>>,
    length: Option<u64>,
    _task: Option<AbortOnDropHandle<()>>,
}

/// Where the task writes to.
pub(crate) type Frames = mpsc::Sender<Result<Bytes, BoxError>>;

impl DrivenBody {
    /// One chunk waits for the client at a time, so that a slow client slows the upstream down.
    pub(crate) fn spawn<F>(task: impl FnOnce(Frames) -> F) -> DrivenBody
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, frames) = mpsc::channel(1);
        let task = tokio::spawn(task(sender));
        DrivenBody { frames, length: None, _task: Some(AbortOnDropHandle::new(task)) }
    }

    /// A body that is known already.
    pub(crate) fn whole(bytes: Bytes) -> DrivenBody {
        let (sender, frames) = mpsc::channel(1);
        let length = Some(bytes.len() as u64);
        // The channel is empty, so it takes one.
        let _ = sender.try_send(Ok(bytes));
        DrivenBody { frames, length, _task: None }
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.frames.poll_recv(cx).map(|next| next.map(|bytes| bytes.map(Frame::data)))
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.frames.is_closed() && self.frames.is_empty()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
