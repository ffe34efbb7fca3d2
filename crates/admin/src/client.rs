//! Asking for conversations from a command.

use crate::api;
use crate::find::Filter;
use crate::page::{ConversationPage, MemoryPage, MessagePage, TurnPage};
use crate::reply::{JSON, LINES, TEXT};
use crate::target::{MOST, ROOT};
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

/// Whoever can tell about conversations.
pub enum Source {
    /// The process that listens on this admin address.
    Running { address: SocketAddr, token: Option<String> },
    /// A store that this process has opened. It is asked by the code that answers over HTTP.
    Opened(Arc<Conversations>),
}

/// Why there is no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AdminError {
    #[error("cannot ask {address}: {reason}")]
    Unreachable { address: SocketAddr, reason: String },
    #[error("{address} answers, but not as the admin address of a Tidegate does")]
    Foreign { address: SocketAddr },
    /// The message and the code are of the answer.
    #[error("{message}")]
    Refused { status: u16, code: String, message: String },
    #[error("the store gave an answer that cannot be read")]
    Garbled,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The other side waits ten seconds for its store, and then has much to send.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

impl Source {
    /// The process that listens there; none if nobody does.
    pub async fn reach(address: SocketAddr, token: Option<String>) -> Result<Option<Source>, AdminError> {
        match connect(address).await {
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
        self.read(&target("", &parameters)).await
    }

    /// A conversation and its turns from `offset` on.
    pub async fn conversation(
        &self,
        id: &str,
        tenant: Option<&str>,
        offset: usize,
    ) -> Result<TurnPage, AdminError> {
        let (offset, limit) = (offset.to_string(), MOST.to_string());
        let parameters =
            [("tenant", tenant), ("turns_offset", Some(offset.as_str())), ("turns_limit", Some(&limit))];
        self.read(&target(&format!("/{}", escaped(id)), &parameters)).await
    }

    /// The messages of a conversation from `offset` on.
    pub async fn messages(
        &self,
        id: &str,
        tenant: Option<&str>,
        offset: usize,
    ) -> Result<MessagePage, AdminError> {
        let (offset, limit) = (offset.to_string(), MOST.to_string());
        let parameters = [("tenant", tenant), ("offset", Some(offset.as_str())), ("limit", Some(&limit))];
        self.read(&target(&format!("/{}/messages", escaped(id)), &parameters)).await
    }

    /// Every branch as one line of JSON.
    pub async fn export(&self, id: &str, tenant: Option<&str>) -> Result<Bytes, AdminError> {
        let target = target(&format!("/{}/export", escaped(id)), &[("tenant", tenant)]);
        let answer = self.ask(Method::GET, &target, None).await?;
        self.accepted(answer, LINES)
    }

    /// Forgets a conversation. `id` must be whole.
    pub async fn delete(&self, id: &str, tenant: Option<&str>) -> Result<(), AdminError> {
        let target = target(&format!("/{}", escaped(id)), &[("tenant", tenant)]);
        let answer = self.ask(Method::DELETE, &target, None).await?;
        self.done(&answer)
    }

    /// What is pinned to a conversation.
    pub async fn pinned(&self, id: &str, tenant: Option<&str>) -> Result<MemoryPage, AdminError> {
        self.read(&memory(id, tenant)).await
    }

    /// Pins a text to a conversation, in the place of the one that was; none takes it away.
    pub async fn pin(&self, id: &str, tenant: Option<&str>, text: Option<&str>) -> Result<(), AdminError> {
        let method = if text.is_some() { Method::PUT } else { Method::DELETE };
        let answer = self.ask(method, &memory(id, tenant), text).await?;
        self.done(&answer)
    }

    async fn read<T: DeserializeOwned>(&self, target: &str) -> Result<T, AdminError> {
        let answer = self.ask(Method::GET, target, None).await?;
        let body = self.accepted(answer, JSON)?;
        serde_json::from_slice(&body).map_err(|_| self.garbled())
    }

    fn accepted(&self, answer: Response<Bytes>, kind: &str) -> Result<Bytes, AdminError> {
        if answer.status() != StatusCode::OK {
            return Err(self.refused(&answer));
        }
        // Another server may well have a page for any path.
        let is_expected =
            answer.headers().get(CONTENT_TYPE).is_some_and(|given| given.as_bytes() == kind.as_bytes());
        if is_expected { Ok(answer.into_body()) } else { Err(self.garbled()) }
    }

    fn done(&self, answer: &Response<Bytes>) -> Result<(), AdminError> {
        if answer.status() == StatusCode::NO_CONTENT { Ok(()) } else { Err(self.refused(answer)) }
    }

    fn refused(&self, answer: &Response<Bytes>) -> AdminError {
        #[derive(Deserialize)]
        struct Envelope {
            error: Detail,
        }
        #[derive(Deserialize)]
        struct Detail {
            message: String,
            code: String,
        }
        let status = answer.status().as_u16();
        match serde_json::from_slice(answer.body()) {
            Ok(Envelope { error: Detail { message, code } }) => AdminError::Refused { status, code, message },
            Err(_) => self.garbled(),
        }
    }

    fn garbled(&self) -> AdminError {
        match self {
            Source::Running { address, .. } => AdminError::Foreign { address: *address },
            Source::Opened(_) => AdminError::Garbled,
        }
    }

    /// Asks, with a text behind the question if there is one.
    async fn ask(
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
        let request = request.body(body).map_err(|_| AdminError::Garbled)?;
        match self {
            Source::Running { address, token } => {
                let asked = timeout(ANSWER_TIMEOUT, over_http(*address, token.as_deref(), request));
                let answer = asked.await.unwrap_or_else(|_| Err("it did not answer in time".to_owned()));
                answer.map_err(|reason| AdminError::Unreachable { address: *address, reason })
            }
            Source::Opened(conversations) => {
                let answer = api::answer(conversations, None, request).await;
                whole(answer.unwrap_or_else(|problem| problem.response())).await
            }
        }
    }
}

/// The token stays out of logs.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Running { address, .. } => write!(f, "Running({address})"),
            Source::Opened(conversations) => write!(f, "Opened({conversations:?})"),
        }
    }
}

async fn whole(answer: Response<Full<Bytes>>) -> Result<Response<Bytes>, AdminError> {
    let (parts, body) = answer.into_parts();
    let Ok(body) = body.collect().await;
    Ok(Response::from_parts(parts, body.to_bytes()))
}

async fn over_http(
    address: SocketAddr,
    token: Option<&str>,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, String> {
    let stream = connect(address).await.map_err(|error| error.to_string())?;
    let http = http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) = http;
    // It ends with the sender, and what goes wrong is told to whoever waits for the answer.
    tokio::spawn(async move { drop(connection.await) });
    let value = |text: String| {
        HeaderValue::from_str(&text)
            .map_err(|_| "the admin token has characters that a header cannot carry".to_owned())
    };
    request.headers_mut().insert(HOST, value(address.to_string())?);
    if let Some(token) = token {
        request.headers_mut().insert(AUTHORIZATION, value(format!("Bearer {token}"))?);
    }
    let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.map_err(|error| error.to_string())?;
    Ok(Response::from_parts(parts, body.to_bytes()))
}

async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    timeout(CONNECT_TIMEOUT, TcpStream::connect(address))
        .await
        .unwrap_or_else(|_| Err(std::io::Error::new(ErrorKind::TimedOut, "it did not answer in time")))
}

/// The path and the parameters that are given.
fn target(path: &str, parameters: &[(&str, Option<&str>)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    format!("{ROOT}{path}?{}", query.finish())
}

fn memory(id: &str, tenant: Option<&str>) -> String {
    target(&format!("/{}/memory", escaped(id)), &[("tenant", tenant)])
}

fn escaped(id: &str) -> String {
    utf8_percent_encode(id, NON_ALPHANUMERIC).to_string()
}
