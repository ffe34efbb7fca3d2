use crate::transport::BoxError;
use crate::transport::body::UploadError;
use std::io;
use thiserror::Error;

/// Why a connection delivered no response, or only part of one.
#[derive(Debug, Error)]
pub(crate) enum Http1Error {
    #[error("cannot connect")]
    Connect(#[source] BoxError),
    #[error("the connection failed")]
    Io(#[from] io::Error),
    #[error("the upstream closed the connection early")]
    Ended,
    #[error("the response is not valid HTTP/1")]
    Malformed,
    #[error("the request could not be sent")]
    Upload(#[source] UploadError),
}
