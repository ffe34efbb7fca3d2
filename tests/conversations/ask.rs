//! Requests to the admin API, and runs of the command.

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

/// Sends one request to the admin address.
pub(crate) async fn api(admin: SocketAddr, method: &str, target: &str, headers: &[(&str, &str)]) -> Reply {
    exchange(admin, head(method, target, headers) + "\r\n").await
}

/// Sends a `PUT` with a body of this type.
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

/// Gets JSON from a path.
pub(crate) async fn json(tidegate: &Tidegate, target: &str) -> Value {
    let reply = api(tidegate.admin, "GET", target, &[]).await;
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    serde_json::from_slice(&reply.body).unwrap()
}

/// Waits until this many requests are counted, which happens after their responses.
pub(crate) async fn until_counted(tidegate: &Tidegate, requests: u64) -> Value {
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

/// Runs `tidegate conversations` with these arguments in an empty directory.
pub(crate) async fn conversations(args: &[&str], env: &[(&str, &str)]) -> Output {
    conversations_with_input(args, env, b"").await
}

/// The same with standard input.
pub(crate) async fn conversations_with_input(args: &[&str], env: &[(&str, &str)], input: &[u8]) -> Output {
    let elsewhere = TempDir::new().unwrap();
    let mut command = command(elsewhere.path());
    command.arg("conversations").args(args).envs(env.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The command may close the pipe early.
    let _ = stdin.write_all(input).await;
    drop(stdin);
    within("the command ends", child.wait_with_output()).await.unwrap().into()
}

/// The standard output of `tidegate conversations` for a running process. Panics if the command fails.
pub(crate) async fn output_of(tidegate: &Tidegate, args: &[&str]) -> String {
    let admin = tidegate.admin.to_string();
    let output = conversations(&[args, &["--admin", &admin]].concat(), &[]).await;
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""), "{}", output.out);
    output.out
}

/// Runs `tidegate conversations` on a directory that no process has open.
pub(crate) async fn run_on_directory(data: &TempDir, args: &[&str], env: &[(&str, &str)]) -> Output {
    run_on_store(&super::scene::url(data), args, env).await
}

/// Runs `tidegate conversations` on a store.
pub(crate) async fn run_on_store(store: &str, args: &[&str], env: &[(&str, &str)]) -> Output {
    conversations(&[args, &["--admin", "127.0.0.1:0", "--store", store]].concat(), env).await
}
