//! An HTTP/2 upstream that sends exactly the frames it is given, right or wrong.

use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PREFACE: usize = 24;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 0x1;
const ACK: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const INTERNAL_ERROR: u32 = 2;

/// What the upstream does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Send(Vec<u8>),
    /// Closes the connection.
    Close,
}

/// Decides what to do with a request, by its number and its stream.
pub(crate) type Script = Arc<dyn Fn(usize, u32) -> Vec<Act> + Send + Sync>;

/// Listens and plays the script. Requests are numbered across all connections. It never opens a window beyond the first 64 KiB.
pub(crate) async fn raw_http2(script: Script) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (script, requests) = (script.clone(), requests.clone());
            tokio::spawn(async move {
                // The client may leave at any time, which ends the connection.
                let _ = serve(stream, &script, &requests).await;
            });
        }
    });
    address
}

async fn serve(
    mut stream: TcpStream,
    script: &Script,
    requests: &std::sync::atomic::AtomicUsize,
) -> std::io::Result<()> {
    stream.read_exact(&mut [0; PREFACE]).await?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await?;
        match kind {
            SETTINGS if flags & ACK == 0 => stream.write_all(&frame(SETTINGS, ACK, 0, &[])).await?,
            PING if flags & ACK == 0 => stream.write_all(&frame(PING, ACK, 0, &payload)).await?,
            HEADERS | DATA if flags & END_STREAM != 0 => {
                let number = requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                for act in script(number, id) {
                    match act {
                        Act::Send(bytes) => stream.write_all(&bytes).await?,
                        Act::Close => {
                            // Closing with something unread would discard what was sent.
                            stream.shutdown().await?;
                            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
                            return Ok(());
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Headers, each as a literal that is not indexed.
pub(crate) fn headers(stream: u32, ends: bool, pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in pairs {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.as_bytes());
        }
    }
    frame(HEADERS, END_HEADERS | if ends { END_STREAM } else { 0 }, stream, &block)
}

pub(crate) fn data(stream: u32, ends: bool, text: &str) -> Vec<u8> {
    frame(DATA, if ends { END_STREAM } else { 0 }, stream, text.as_bytes())
}

pub(crate) fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub(crate) fn go_away(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}
