use crate::transport::body::UploadError;
use std::io;
use thiserror::Error;

/// Why a connection delivered no response, or only part of one.
#[derive(Debug, Error)]
pub(crate) enum Http1Error {
    #[error("the connection failed")]
    Io(#[from] io::Error),
    #[error("the upstream closed the connection early")]
    Ended,
    #[error("the response is not valid HTTP/1")]
    Malformed,
    #[error("the upstream sends interim responses without end")]
    TooManyInterim,
    #[error("the request could not be sent")]
    Upload(#[source] UploadError),
}
