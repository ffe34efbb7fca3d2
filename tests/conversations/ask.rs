//! Questions to the admin API and to the command.

use crate::support::client::exchange;
use crate::support::command::{Output, command};
use crate::support::reply::Reply;
use crate::support::tidegate::Tidegate;
use crate::support::within;
use serde_json::Value;
use std::net::SocketAddr;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

/// One request to the admin address, as a program on this machine sends it.
pub(crate) async fn api(admin: SocketAddr, method: &str, target: &str, headers: &[(&str, &str)]) -> Reply {
    exchange(admin, head(method, target, headers) + "\r\n").await
}

/// The same with a body of this type.
pub(crate) async fn put(
    admin: SocketAddr,
    target: &str,
    headers: &[(&str, &str)],
    kind: &str,
    body: impl AsRef<[u8]>,
) -> Reply {
    let body = body.as_ref();
    let lines = format!("content-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
    exchange(admin, [(head("PUT", target, headers) + &lines).as_bytes(), body].concat()).await
}

fn head(method: &str, target: &str, headers: &[(&str, &str)]) -> String {
    let mut request = format!("{method} {target} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        request.push_str("host: localhost\r\n");
    }
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request
}

/// The JSON that a path answers with.
pub(crate) async fn json(tidegate: &Tidegate, target: &str) -> Value {
    let reply = api(tidegate.admin, "GET", target, &[]).await;
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    serde_json::from_slice(&reply.body).unwrap()
}

/// Waits until so many requests have been counted. They are when the answer is over already.
pub(crate) async fn counted(tidegate: &Tidegate, requests: u64) -> Value {
    let look = async {
        loop {
            let page = json(tidegate, "/api/conversations").await;
            let all = page["conversations"].as_array().unwrap().iter();
            if all.map(|one| one["requests"].as_u64().unwrap()).sum::<u64>() == requests {
                return page;
            }
        }
    };
    within(&format!("{requests} requests are counted"), look).await
}

/// `tidegate conversations` with these arguments, somewhere else than the process that is asked.
pub(crate) async fn conversations(args: &[&str], env: &[(&str, &str)]) -> Output {
    fed(args, env, b"").await
}

/// The same with something on its standard input.
pub(crate) async fn fed(args: &[&str], env: &[(&str, &str)], input: &[u8]) -> Output {
    let elsewhere = TempDir::new().unwrap();
    let mut command = command(elsewhere.path());
    command.arg("conversations").args(args).envs(env.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that has read enough closes it.
    let _ = stdin.write_all(input).await;
    drop(stdin);
    within("the command ends", child.wait_with_output()).await.unwrap().into()
}

/// The same about a running process, which must succeed.
pub(crate) async fn told(tidegate: &Tidegate, args: &[&str]) -> String {
    let admin = tidegate.admin.to_string();
    let said = conversations(&[args, &["--admin", &admin]].concat(), &[]).await;
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    said.out
}

/// The same about a store that nobody has open.
pub(crate) async fn told_by_store(data: &TempDir, args: &[&str], env: &[(&str, &str)]) -> Output {
    told_by(&super::talk::url(data), args, env).await
}

/// The same about a store by its address.
pub(crate) async fn told_by(store: &str, args: &[&str], env: &[(&str, &str)]) -> Output {
    conversations(&[args, &["--admin", "127.0.0.1:0", "--store", store]].concat(), env).await
}
