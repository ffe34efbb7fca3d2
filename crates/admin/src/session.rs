//! Sessions for browsers, which cannot send the token in a header with every request.
//!
//! Signing in with the token sets a cookie with an expiry time and a signature that only a holder of the
//! token can make. The server keeps no session state, so the cookie is valid on all replicas with the same
//! token and survives restarts.

use crate::auth::Token;
use crate::body::{self, BodyFormat};
use crate::error::ApiError;
use crate::response::{self, FullResponse};
use bytes::Bytes;
use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use hyper::body::Body;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a session lasts.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);

/// The maximum size of a sign-in body.
const MAX_BODY_BYTES: usize = 16 * 1024;

/// The session status, readable without a token.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct SessionStatus {
    pub(crate) token_required: bool,
    /// Whether this request is authorized.
    pub(crate) admitted: bool,
    pub(crate) version: &'static str,
}

/// Checks the token and sets the session cookie.
pub(crate) async fn sign_in<B: Body<Data = Bytes>>(
    token: Option<&Token>,
    headers: &HeaderMap,
    body: B,
    now: u64,
) -> Result<FullResponse, ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct SignInBody {
        token: String,
    }
    if BodyFormat::from_headers(headers) != Some(BodyFormat::Json) {
        return Err(ApiError::JsonRequired);
    }
    let invalid = ApiError::InvalidSession;
    let body = body::read(body, MAX_BODY_BYTES, invalid.clone(), invalid.clone()).await?;
    let SignInBody { token: presented } = serde_json::from_slice(&body).map_err(|_| invalid)?;
    // Without a configured token, every client that gets here is already authorized.
    let Some(token) = token else { return Ok(response::no_content()) };
    if !token.matches(presented.trim().as_bytes()) {
        return Err(ApiError::WrongToken);
    }
    let until = now.saturating_add(u64::try_from(LIFETIME.as_millis()).unwrap_or(u64::MAX));
    Ok(with_cookie(&cookie(token, &format!("{until:x}.{}", token.signature(until)), LIFETIME)))
}

pub(crate) fn sign_out(token: Option<&Token>) -> FullResponse {
    match token {
        Some(token) => with_cookie(&cookie(token, "", Duration::ZERO)),
        None => response::no_content(),
    }
}

/// Whether the request carries a valid session cookie.
pub(crate) fn is_signed_in(token: &Token, headers: &HeaderMap, now: u64) -> bool {
    let name = token.cookie_name();
    let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    cookies.flat_map(|cookies| cookies.split(';')).any(|cookie| {
        let Some((given, value)) = cookie.trim().split_once('=') else { return false };
        let Some((until, signature)) = value.split_once('.').filter(|_| given == name) else { return false };
        let until = u64::from_str_radix(until, 16).unwrap_or(0);
        until > now && token.verify(until, signature)
    })
}

/// `HttpOnly` hides the cookie from scripts; `SameSite=Strict` keeps it out of cross-site requests.
fn cookie(token: &Token, value: &str, max_age: Duration) -> String {
    let name = token.cookie_name();
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}", max_age.as_secs())
}

fn with_cookie(cookie: &str) -> FullResponse {
    let mut response = response::no_content();
    // Always valid: the cookie consists of ASCII letters, digits and punctuation.
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use http::header::CONTENT_TYPE;
    use http_body_util::Full;

    fn headers(name: http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    async fn try_sign_in(token: &Token, presented: &str) -> Result<FullResponse, ApiError> {
        let body = serde_json::json!({ "token": presented }).to_string();
        let headers = headers(CONTENT_TYPE, "application/json");
        sign_in(Some(token), &headers, Full::new(Bytes::from(body)), 1_000).await
    }

    #[tokio::test]
    async fn a_cookie_is_valid_until_it_expires_and_only_for_its_token() {
        let token = Token::new("s3cret");
        assert_eq!(try_sign_in(&token, "s3cre").await.unwrap_err(), ApiError::WrongToken);
        let response = try_sign_in(&token, " s3cret\n").await.unwrap();
        let set = response.headers()[SET_COOKIE].to_str().unwrap().to_owned();
        assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200"), "{set}");
        assert!(!set.contains("s3cret"));
        let pair = set.split(';').next().unwrap();
        let sent = headers(COOKIE, &format!("other=1; {pair}; more=2"));
        let end = 1_000 + 43_200_000;
        assert!(is_signed_in(&token, &sent, 1_000) && is_signed_in(&token, &sent, end - 1));
        assert!(!is_signed_in(&token, &sent, end));
        assert!(!is_signed_in(&Token::new("other"), &sent, 1_000));
    }

    #[tokio::test]
    async fn a_cookie_cannot_be_forged_or_extended() {
        let token = Token::new("s3cret");
        let response = try_sign_in(&token, "s3cret").await.unwrap();
        let pair = response.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
        let (name, value) = pair.split_once('=').unwrap();
        let (until, signature) = value.split_once('.').unwrap();
        for forged in [
            format!("{name}=f{until}.{signature}"),
            format!("{name}={until}.{}", "0".repeat(64)),
            format!("{name}={until}."),
            format!("{name}={until}"),
            format!("{name}="),
            format!("x{name}={value}"),
            format!("{name}={until}.é"),
        ] {
            let Ok(sent) = HeaderValue::from_bytes(forged.as_bytes()) else { continue };
            let sent = HeaderMap::from_iter([(COOKIE, sent)]);
            assert!(!is_signed_in(&token, &sent, 1_000), "{forged}");
        }
    }

    #[tokio::test]
    async fn malformed_sign_ins_are_refused_and_signing_out_clears_the_cookie() {
        let token = Token::new("s3cret");
        let send = async |kind: &str, body: &'static str| {
            let body = Full::new(Bytes::from_static(body.as_bytes()));
            sign_in(Some(&token), &headers(CONTENT_TYPE, kind), body, 0)
                .await
                .map(|response| response.status())
        };
        assert_eq!(send("application/json", "{\"token\":\"s3cret\"}").await, Ok(StatusCode::NO_CONTENT));
        assert_eq!(send("text/plain", "{\"token\":\"s3cret\"}").await, Err(ApiError::JsonRequired));
        for bad in ["", "s3cret", "{}", "{\"token\":1}", "{\"token\":\"s3cret\",\"more\":1}"] {
            assert_eq!(send("application/json", bad).await, Err(ApiError::InvalidSession), "{bad}");
        }
        let out = sign_out(Some(&token));
        assert!(out.headers()[SET_COOKIE].to_str().unwrap().contains("=; Path=/;"));
    }
}
