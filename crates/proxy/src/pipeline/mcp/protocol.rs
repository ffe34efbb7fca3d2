//! The envelope of MCP: JSON-RPC over POST, in the versions that begin with a handshake and in those whose requests stand alone.

use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

/// Versions that begin with `initialize`, the newest last.
const HANDSHAKE: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// The version in which each request says who asks and in which version.
const MODERN: &str = "2026-07-28";

/// The members of `_meta` and the headers in which a modern request repeats itself.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";

/// How long a client may keep the list of tools, which changes only with the version of this program.
const LIST_TTL_MS: u64 = 60 * 60 * 1000;

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(super) enum Asked {
    Answer(RpcRequest),
    /// A notification, or an answer to a question that was never asked.
    Nothing,
}

#[derive(Debug, PartialEq)]
pub(super) struct RpcRequest {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Value,
    pub(super) is_modern: bool,
}

/// Why a request has no result.
#[derive(Debug, PartialEq)]
pub(super) enum RpcError {
    NotJson,
    NoRequest,
    NoMethod(String),
    NoTool(String),
    /// A header contradicts the body.
    Header(&'static str),
    Version(String),
}

/// Reads a message. An error names the id of the request, as far as it is known.
pub(super) fn read(body: &[u8], headers: &HeaderMap) -> Result<Asked, (Value, RpcError)> {
    let mut message: Value = serde_json::from_slice(body).map_err(|_| (Value::Null, RpcError::NotJson))?;
    let id = message.get("id").cloned().unwrap_or_default();
    let is_answer = message.get("result").is_some() || message.get("error").is_some();
    let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
    if message["jsonrpc"] != "2.0" || (method.is_none() && !is_answer) {
        return Err((id, RpcError::NoRequest));
    }
    let (Some(method), Value::String(_) | Value::Number(_)) = (method, &id) else {
        return Ok(Asked::Nothing);
    };
    let params = message.get_mut("params").map(Value::take).unwrap_or_default();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let named = params.pointer("/_meta").and_then(|meta| meta.get(VERSION_KEY)).and_then(Value::as_str);
    let fault = match (named, header(VERSION_HEADER)) {
        (Some(version), sent) if sent != Some(version) => Some(RpcError::Header(VERSION_HEADER)),
        (Some(_), _) if header(METHOD_HEADER) != Some(&method) => Some(RpcError::Header(METHOD_HEADER)),
        (Some(version), _) if version != MODERN => Some(RpcError::Version(version.to_owned())),
        // A client offers its own version before it knows ours.
        (None, Some(version)) if method != "initialize" && !HANDSHAKE.contains(&version) => {
            Some(RpcError::Version(version.to_owned()))
        }
        _ => None,
    };
    match fault {
        Some(fault) => Err((id, fault)),
        None => Ok(Asked::Answer(RpcRequest { is_modern: named.is_some(), id, method, params })),
    }
}

/// The result of the handshake: the version that the client offers, or the newest that we know.
pub(super) fn initialized(request: &RpcRequest) -> Value {
    let offered = request.params["protocolVersion"].as_str().unwrap_or_default();
    let newest = HANDSHAKE[HANDSHAKE.len() - 1];
    let version = HANDSHAKE.iter().find(|known| **known == offered).copied().unwrap_or(newest);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    })
}

/// What a modern client learns instead.
pub(super) fn discovered() -> Value {
    let versions: Vec<&str> = HANDSHAKE.into_iter().chain([MODERN]).collect();
    json!({
        "supportedVersions": versions,
        "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS,
        "_meta": { SERVER_KEY: server_info() },
    })
}

const INSTRUCTIONS: &str = "Earlier tool results of this conversation may have been shortened to save context. Markers in their place name \
                            a reference, by which `recall` returns the original. `search_history` finds what was said at any time.";

fn server_info() -> Value {
    json!({ "name": "tidegate", "version": env!("CARGO_PKG_VERSION") })
}

impl RpcRequest {
    /// A response with this result.
    pub(super) fn result(&self, mut result: Value) -> Value {
        if let Some(members) = result.as_object_mut().filter(|_| self.is_modern) {
            members.insert("resultType".to_owned(), "complete".into());
            if matches!(self.method.as_str(), "server/discover" | "tools/list") {
                members.insert("ttlMs".to_owned(), LIST_TTL_MS.into());
                members.insert("cacheScope".to_owned(), "public".into());
            }
        }
        json!({ "jsonrpc": "2.0", "id": self.id, "result": result })
    }
}

impl RpcError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            RpcError::NoMethod(_) => StatusCode::NOT_FOUND,
            RpcError::NotJson
            | RpcError::NoRequest
            | RpcError::NoTool(_)
            | RpcError::Header(_)
            | RpcError::Version(_) => StatusCode::BAD_REQUEST,
        }
    }

    pub(super) fn body(&self, id: &Value) -> Value {
        let versions: Vec<&str> = HANDSHAKE.into_iter().chain([MODERN]).collect();
        let (code, message, data) = match self {
            RpcError::NotJson => (-32700, "The body is not JSON.".to_owned(), None),
            RpcError::NoRequest => (-32600, "The body is not one message of JSON-RPC 2.0.".to_owned(), None),
            RpcError::NoMethod(method) => (-32601, format!("There is no method `{method}`."), None),
            RpcError::NoTool(tool) => (-32602, format!("There is no tool `{tool}`."), None),
            RpcError::Header(name) => {
                (-32020, format!("The header `{name}` does not match the request in the body."), None)
            }
            RpcError::Version(version) => {
                let data = json!({ "supported": versions, "requested": version });
                (-32022, format!("Unsupported protocol version `{version}`."), Some(data))
            }
        };
        let mut error = json!({ "code": code, "message": message });
        if let Some(data) = data {
            error["data"] = data;
        }
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn modern(version: &str) -> String {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": { VERSION_KEY: version } } })
            .to_string()
    }

    #[test]
    fn notifications_and_answers_ask_for_nothing() {
        for message in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        ] {
            assert_eq!(read(message.as_bytes(), &HeaderMap::new()), Ok(Asked::Nothing), "{message}");
        }
        for (message, error) in [
            ("{", RpcError::NotJson),
            ("[]", RpcError::NoRequest),
            ("7", RpcError::NoRequest),
            (r#"{"id":1,"method":"ping"}"#, RpcError::NoRequest),
        ] {
            assert_eq!(read(message.as_bytes(), &HeaderMap::new()).unwrap_err().1, error, "{message}");
        }
    }

    #[test]
    fn a_modern_request_repeats_itself_in_headers() {
        let read = |version: &str, all: &[(&'static str, &'static str)]| match read(
            modern(version).as_bytes(),
            &headers(all),
        ) {
            Ok(Asked::Answer(request)) => Ok(request.is_modern),
            Ok(Asked::Nothing) => panic!("a request"),
            Err((_, error)) => Err(error),
        };
        let method = ("mcp-method", "tools/list");
        assert_eq!(read(MODERN, &[(VERSION_HEADER, MODERN), method]), Ok(true));
        assert_eq!(read(MODERN, &[method]), Err(RpcError::Header(VERSION_HEADER)));
        assert_eq!(read(MODERN, &[(VERSION_HEADER, MODERN)]), Err(RpcError::Header(METHOD_HEADER)));
        let future = "2030-01-01";
        assert_eq!(
            read(future, &[(VERSION_HEADER, future), method]),
            Err(RpcError::Version(future.to_owned()))
        );
    }

    #[test]
    fn the_handshake_agrees_on_a_version() {
        let ask = |version: &str| RpcRequest {
            id: 1.into(),
            method: "initialize".to_owned(),
            params: json!({ "protocolVersion": version }),
            is_modern: false,
        };
        assert_eq!(initialized(&ask("2025-06-18"))["protocolVersion"], "2025-06-18");
        assert_eq!(initialized(&ask("2019-01-01"))["protocolVersion"], "2025-11-25");
        let later = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let read = |version| read(later.as_bytes(), &headers(&[(VERSION_HEADER, version)]));
        assert!(read("2025-06-18").is_ok() && read("2019-01-01").is_err());
    }
}
