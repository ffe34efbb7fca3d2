//! A client of the conversations API, for commands.

use crate::api;
use crate::find::Filter;
use crate::page::{ConversationPage, MemoryPage, MessagePage, TurnPage};
use crate::response::{JSON, NDJSON, TEXT};
use crate::target::{MAX_LIMIT, ROOT};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tidegate_store::Conversations;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Where a command reads conversations from.
pub enum Source {
    /// A running process, through its admin address.
    Running { address: SocketAddr, token: Option<String> },
    /// A store opened by this process. It goes through the same code that serves HTTP.
    Opened(Arc<Conversations>),
}

/// Why a request to the admin API failed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AdminError {
    #[error("cannot reach the admin address {address}: {reason}")]
    Unreachable { address: SocketAddr, reason: String },
    #[error("{address} responded, but is not the admin address of a Tidegate process")]
    NotTidegate { address: SocketAddr },
    /// The message and code of the error response.
    #[error("{message}")]
    Refused { status: u16, code: String, message: String },
    #[error("cannot parse the response from the store")]
    InvalidResponse,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The server waits up to ten seconds for its store, and the response may be large.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

impl Source {
    /// Connects to the process at `address`. Returns `None` if the connection is refused.
    pub async fn connect(address: SocketAddr, token: Option<String>) -> Result<Option<Source>, AdminError> {
        match open_stream(address).await {
            Ok(_) => Ok(Some(Source::Running { address, token })),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(None),
            Err(error) => Err(AdminError::Unreachable { address, reason: error.to_string() }),
        }
    }

    pub async fn list(
        &self,
        filter: &Filter,
        offset: usize,
        limit: usize,
    ) -> Result<ConversationPage, AdminError> {
        let (offset, limit) = (offset.to_string(), limit.to_string());
        let parameters = [
            ("offset", Some(offset.as_str())),
            ("limit", Some(&limit)),
            ("tenant", filter.tenant.as_deref()),
            ("name", filter.name.as_deref()),
            ("route", filter.route.as_deref()),
            ("model", filter.model.as_deref()),
            ("strategy", filter.strategy.as_deref()),
            ("search", filter.search.as_deref()),
            ("hint", filter.with_hint.then_some("1")),
        ];
        self.get_json(&target("", &parameters)).await
    }

    /// Returns a conversation and a page of its turns, starting at `offset`.
    pub async fn conversation(
        &self,
        id: &str,
        tenant: Option<&str>,
        offset: usize,
    ) -> Result<TurnPage, AdminError> {
        let (offset, limit) = (offset.to_string(), MAX_LIMIT.to_string());
        let parameters =
            [("tenant", tenant), ("turns_offset", Some(offset.as_str())), ("turns_limit", Some(&limit))];
        self.get_json(&target(&format!("/{}", escaped(id)), &parameters)).await
    }

    /// Returns a page of a conversation's messages, starting at `offset`.
    pub async fn messages(
        &self,
        id: &str,
        tenant: Option<&str>,
        offset: usize,
    ) -> Result<MessagePage, AdminError> {
        let (offset, limit) = (offset.to_string(), MAX_LIMIT.to_string());
        let parameters = [("tenant", tenant), ("offset", Some(offset.as_str())), ("limit", Some(&limit))];
        self.get_json(&target(&format!("/{}/messages", escaped(id)), &parameters)).await
    }

    /// Exports every branch as one line of JSON.
    pub async fn export(&self, id: &str, tenant: Option<&str>) -> Result<Bytes, AdminError> {
        let target = target(&format!("/{}/export", escaped(id)), &[("tenant", tenant)]);
        let response = self.send(Method::GET, &target, None).await?;
        self.expect_ok(response, NDJSON)
    }

    /// Deletes a conversation. `id` must be its full 32 digits.
    pub async fn delete(&self, id: &str, tenant: Option<&str>) -> Result<(), AdminError> {
        let target = target(&format!("/{}", escaped(id)), &[("tenant", tenant)]);
        let response = self.send(Method::DELETE, &target, None).await?;
        self.expect_no_content(&response)
    }

    /// Returns the memory pinned to a conversation.
    pub async fn pinned(&self, id: &str, tenant: Option<&str>) -> Result<MemoryPage, AdminError> {
        self.get_json(&memory_target(id, tenant)).await
    }

    /// Pins a memory to a conversation, replacing any previous one. `None` removes it.
    pub async fn pin(&self, id: &str, tenant: Option<&str>, text: Option<&str>) -> Result<(), AdminError> {
        let method = if text.is_some() { Method::PUT } else { Method::DELETE };
        let response = self.send(method, &memory_target(id, tenant), text).await?;
        self.expect_no_content(&response)
    }

    async fn get_json<T: DeserializeOwned>(&self, target: &str) -> Result<T, AdminError> {
        let response = self.send(Method::GET, target, None).await?;
        let body = self.expect_ok(response, JSON)?;
        serde_json::from_slice(&body).map_err(|_| self.invalid_response())
    }

    fn expect_ok(&self, response: Response<Bytes>, kind: &str) -> Result<Bytes, AdminError> {
        if response.status() != StatusCode::OK {
            return Err(self.refused(&response));
        }
        // Another server may respond to any path with a page of its own.
        let is_expected =
            response.headers().get(CONTENT_TYPE).is_some_and(|given| given.as_bytes() == kind.as_bytes());
        if is_expected { Ok(response.into_body()) } else { Err(self.invalid_response()) }
    }

    fn expect_no_content(&self, response: &Response<Bytes>) -> Result<(), AdminError> {
        if response.status() == StatusCode::NO_CONTENT { Ok(()) } else { Err(self.refused(response)) }
    }

    fn refused(&self, response: &Response<Bytes>) -> AdminError {
        #[derive(Deserialize)]
        struct Envelope {
            error: Detail,
        }
        #[derive(Deserialize)]
        struct Detail {
            message: String,
            code: String,
        }
        let status = response.status().as_u16();
        match serde_json::from_slice(response.body()) {
            Ok(Envelope { error: Detail { message, code } }) => AdminError::Refused { status, code, message },
            Err(_) => self.invalid_response(),
        }
    }

    fn invalid_response(&self) -> AdminError {
        match self {
            Source::Running { address, .. } => AdminError::NotTidegate { address: *address },
            Source::Opened(_) => AdminError::InvalidResponse,
        }
    }

    /// Sends a request, with a plain-text body if given.
    async fn send(
        &self,
        method: Method,
        target: &str,
        text: Option<&str>,
    ) -> Result<Response<Bytes>, AdminError> {
        let mut request = Request::builder().method(method).uri(target);
        if text.is_some() {
            request = request.header(CONTENT_TYPE, TEXT);
        }
        let body = Full::from(text.unwrap_or_default().to_owned());
        let request = request.body(body).map_err(|_| AdminError::InvalidResponse)?;
        match self {
            Source::Running { address, token } => {
                let sent = timeout(RESPONSE_TIMEOUT, over_http(*address, token.as_deref(), request));
                let response = sent.await.unwrap_or_else(|_| Err("timed out".to_owned()));
                response.map_err(|reason| AdminError::Unreachable { address: *address, reason })
            }
            Source::Opened(conversations) => {
                let response = api::handle(conversations, None, request).await;
                collect(response.unwrap_or_else(|error| error.response())).await
            }
        }
    }
}

/// Omits the token, so that it cannot reach a log.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Running { address, .. } => write!(f, "Running({address})"),
            Source::Opened(conversations) => write!(f, "Opened({conversations:?})"),
        }
    }
}

async fn collect(response: Response<Full<Bytes>>) -> Result<Response<Bytes>, AdminError> {
    let (parts, body) = response.into_parts();
    let Ok(body) = body.collect().await;
    Ok(Response::from_parts(parts, body.to_bytes()))
}

async fn over_http(
    address: SocketAddr,
    token: Option<&str>,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, String> {
    let stream = open_stream(address).await.map_err(|error| error.to_string())?;
    let http = http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) = http;
    // Ends when the sender is dropped. Errors reach the caller through `send_request`.
    tokio::spawn(async move { drop(connection.await) });
    let value = |text: String| {
        HeaderValue::from_str(&text)
            .map_err(|_| "the admin token contains characters that are not allowed in a header".to_owned())
    };
    request.headers_mut().insert(HOST, value(address.to_string())?);
    if let Some(token) = token {
        request.headers_mut().insert(AUTHORIZATION, value(format!("Bearer {token}"))?);
    }
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(|error| error.to_string())?;
    Ok(Response::from_parts(parts, body.to_bytes()))
}

async fn open_stream(address: SocketAddr) -> std::io::Result<TcpStream> {
    timeout(CONNECT_TIMEOUT, TcpStream::connect(address))
        .await
        .unwrap_or_else(|_| Err(std::io::Error::new(ErrorKind::TimedOut, "timed out")))
}

/// Builds a request target from a path and the parameters that have a value.
fn target(path: &str, parameters: &[(&str, Option<&str>)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    format!("{ROOT}{path}?{}", query.finish())
}

fn memory_target(id: &str, tenant: Option<&str>) -> String {
    target(&format!("/{}/memory", escaped(id)), &[("tenant", tenant)])
}

fn escaped(id: &str) -> String {
    utf8_percent_encode(id, NON_ALPHANUMERIC).to_string()
}
