//! A minimal HTTP/1.1 implementation for the demo: only bodies with a `content-length`.

use std::io::{BufRead, BufReader, Error, Read, Write};
use std::net::TcpStream;

/// A request or a response.
#[derive(Debug)]
pub(super) struct Message {
    /// The request line or status line.
    pub(super) start: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Message {
    /// Reads the next message, or returns `None` at the end of the connection.
    pub(super) fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Message>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            lines.push(line.to_owned());
        }
        let mut lines = lines.into_iter();
        let start = lines.next().unwrap_or_default();
        let split = |line: String| {
            line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers: Vec<(String, String)> = lines.filter_map(split).collect();
        let mut message = Message { start, headers, body: Vec::new() };
        let length = message.header("content-length").and_then(|length| length.parse().ok());
        let length: usize = length.ok_or_else(|| Error::other("message without content-length"))?;
        message.body.resize(length, 0);
        stream.read_exact(&mut message.body)?;
        Ok(Some(message))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Writes a message with a JSON body.
pub(super) fn write(stream: &mut TcpStream, start: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let head = format!(
        "{start}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    stream.flush()
}
