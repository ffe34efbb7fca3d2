//! What is reported of a request: the access log, metrics and spans.

pub(crate) mod request;
pub(crate) mod request_id;
pub(crate) mod spans;
pub(crate) mod window_log;
