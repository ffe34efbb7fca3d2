use crate::transport::BoxError;
use crate::transport::body::UploadError;
use std::io;
use thiserror::Error;

/// Why a connection gave no answer, or not all of it.
#[derive(Debug, Error)]
pub(crate) enum Http1Error {
    #[error("cannot connect")]
    Connect(#[source] BoxError),
    #[error("the connection failed")]
    Io(#[from] io::Error),
    #[error("the connection ended too early")]
    Ended,
    #[error("the answer is not HTTP/1")]
    Malformed,
    #[error("the request could not be sent")]
    Upload(#[source] UploadError),
}
