use crate::transport::body::UploadError;
use h2::Reason;
use thiserror::Error;

/// Why a stream delivered no response, or only part of one.
#[derive(Debug, Error)]
pub(crate) enum Http2Error {
    /// The connection took no request any more.
    #[error("the connection was closing")]
    NotSent(#[source] h2::Error),
    #[error("the stream failed")]
    Stream(#[source] h2::Error),
    #[error("the upstream sends interim responses without end")]
    TooManyInterim,
    #[error("the request could not be sent")]
    Upload(#[source] UploadError),
}

impl Http2Error {
    /// Whether the upstream has certainly not processed the request: it was never sent, the upstream refused its stream, or said
    /// when it closed the connection that it did not get to it.
    pub(crate) fn is_unprocessed(&self) -> bool {
        match self {
            Http2Error::NotSent(_) => true,
            Http2Error::Stream(error) => {
                let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
                error.is_remote() && (is_refused || error.is_go_away())
            }
            Http2Error::TooManyInterim | Http2Error::Upload(_) => false,
        }
    }

    /// Whether the connection takes no further requests.
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            Http2Error::NotSent(_) => true,
            Http2Error::Stream(error) => error.is_go_away() || error.is_io(),
            Http2Error::TooManyInterim | Http2Error::Upload(_) => false,
        }
    }
}
