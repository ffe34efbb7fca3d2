//! Signing in with a browser, which cannot send a header of its own with every request.
//!
//! Whoever shows the token gets a cookie that says until when it counts, under a signature that only the token can make. Nothing is kept
//! of it here, so that all replicas with the same token take it, and a restart ends nobody's work.

use crate::auth::Token;
use crate::incoming::{self, Format};
use crate::problem::Problem;
use crate::reply::{self, Answer};
use bytes::Bytes;
use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use hyper::body::Body;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long somebody stays signed in.
const LIFE: Duration = Duration::from_secs(12 * 60 * 60);

/// A token is some characters.
const MOST_BYTES: usize = 16 * 1024;

/// What anybody may know.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct State {
    pub(crate) token_required: bool,
    /// Whether this request would be let in.
    pub(crate) admitted: bool,
    pub(crate) version: &'static str,
}

/// Takes a token and gives a cookie for it.
pub(crate) async fn sign_in<B: Body<Data = Bytes>>(
    token: Option<&Token>,
    headers: &HeaderMap,
    body: B,
    now: u64,
) -> Result<Answer, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sent {
        token: String,
    }
    if Format::of(headers) != Some(Format::Json) {
        return Err(Problem::NotJson);
    }
    let shape = Problem::Session;
    let body = incoming::read(body, MOST_BYTES, shape.clone(), shape.clone()).await?;
    let Sent { token: presented } = serde_json::from_slice(&body).map_err(|_| shape)?;
    // Where there is no token, everybody who gets here is let in already.
    let Some(token) = token else { return Ok(reply::no_content()) };
    if !token.matches(presented.trim().as_bytes()) {
        return Err(Problem::WrongToken);
    }
    let until = now.saturating_add(u64::try_from(LIFE.as_millis()).unwrap_or(u64::MAX));
    Ok(with_cookie(&cookie(token, &format!("{until:x}.{}", token.signature(until)), LIFE)))
}

pub(crate) fn sign_out(token: Option<&Token>) -> Answer {
    match token {
        Some(token) => with_cookie(&cookie(token, "", Duration::ZERO)),
        None => reply::no_content(),
    }
}

/// Whether a cookie lets its bearer in.
pub(crate) fn is_signed_in(token: &Token, headers: &HeaderMap, now: u64) -> bool {
    let name = token.cookie_name();
    let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    cookies.flat_map(|cookies| cookies.split(';')).any(|cookie| {
        let Some((given, value)) = cookie.trim().split_once('=') else { return false };
        let Some((until, signature)) = value.split_once('.').filter(|_| given == name) else { return false };
        let until = u64::from_str_radix(until, 16).unwrap_or(0);
        until > now && token.has_signed(until, signature)
    })
}

/// No script can read it, and no other site can have it sent.
fn cookie(token: &Token, value: &str, life: Duration) -> String {
    let name = token.cookie_name();
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}", life.as_secs())
}

fn with_cookie(cookie: &str) -> Answer {
    let mut answer = reply::no_content();
    // It is made of digits.
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        answer.headers_mut().insert(SET_COOKIE, cookie);
    }
    answer
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

    async fn signed(token: &Token, presented: &str) -> Result<Answer, Problem> {
        let body = serde_json::json!({ "token": presented }).to_string();
        let headers = headers(CONTENT_TYPE, "application/json");
        sign_in(Some(token), &headers, Full::new(Bytes::from(body)), 1_000).await
    }

    #[tokio::test]
    async fn a_cookie_lets_in_until_it_ends_and_only_where_its_token_is() {
        let token = Token::new("s3cret");
        assert_eq!(signed(&token, "s3cre").await.unwrap_err(), Problem::WrongToken);
        let answer = signed(&token, " s3cret\n").await.unwrap();
        let set = answer.headers()[SET_COOKIE].to_str().unwrap().to_owned();
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
    async fn nobody_can_make_or_stretch_one() {
        let token = Token::new("s3cret");
        let answer = signed(&token, "s3cret").await.unwrap();
        let pair = answer.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
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
    async fn what_is_no_token_is_refused_and_signing_out_ends_the_cookie() {
        let token = Token::new("s3cret");
        let send = async |kind: &str, body: &'static str| {
            let body = Full::new(Bytes::from_static(body.as_bytes()));
            sign_in(Some(&token), &headers(CONTENT_TYPE, kind), body, 0).await.map(|answer| answer.status())
        };
        assert_eq!(send("application/json", "{\"token\":\"s3cret\"}").await, Ok(StatusCode::NO_CONTENT));
        assert_eq!(send("text/plain", "{\"token\":\"s3cret\"}").await, Err(Problem::NotJson));
        for bad in ["", "s3cret", "{}", "{\"token\":1}", "{\"token\":\"s3cret\",\"more\":1}"] {
            assert_eq!(send("application/json", bad).await, Err(Problem::Session), "{bad}");
        }
        let out = sign_out(Some(&token));
        assert!(out.headers()[SET_COOKIE].to_str().unwrap().contains("=; Path=/;"));
    }
}
