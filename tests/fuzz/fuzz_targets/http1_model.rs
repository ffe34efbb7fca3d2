//! A strict reading of HTTP/1 requests, written without a look at the guard: anything doubtful ends it.

/// A request whose end is beyond doubt.
#[derive(Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) method: String,
    pub(crate) body: Vec<u8>,
}

/// The requests at the start of `bytes`, up to the first that is doubtful or incomplete.
pub(crate) fn messages(mut bytes: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    while let Some((message, rest)) = message(bytes) {
        messages.push(message);
        bytes = rest;
    }
    messages
}

fn message(mut bytes: &[u8]) -> Option<(Message, &[u8])> {
    while let Some(rest) = bytes.strip_prefix(b"\r\n") {
        bytes = rest;
    }
    let (request_line, mut bytes) = line(bytes)?;
    let words: Vec<&str> = request_line.split(' ').collect();
    let [method, _, "HTTP/1.1" | "HTTP/1.0"] = words[..] else { return None };
    let (mut length, mut chunked) = (None, false);
    loop {
        let (header, rest) = line(bytes)?;
        bytes = rest;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':')?;
        let value = value.trim_matches([' ', '\t']);
        if name.eq_ignore_ascii_case("content-length") {
            let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let first = length.replace(value.parse::<usize>().ok().filter(|_| digits)?).is_none();
            first.then_some(())?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            (value.eq_ignore_ascii_case("chunked") && !chunked).then_some(())?;
            chunked = true;
        }
    }
    let (body, rest) = match (length, chunked) {
        (Some(_), true) => return None,
        (None, true) => chunks(bytes)?,
        (length, false) => {
            let (body, rest) = bytes.split_at_checked(length.unwrap_or(0))?;
            (body.to_vec(), rest)
        }
    };
    Some((Message { method: method.to_owned(), body }, rest))
}

fn chunks(mut bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut body = Vec::new();
    loop {
        let (size, rest) = line(bytes)?;
        let size = size.split(';').next()?;
        let digits = !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = usize::from_str_radix(size, 16).ok().filter(|_| digits)?;
        bytes = rest;
        if size == 0 {
            break;
        }
        let (data, rest) = bytes.split_at_checked(size)?;
        body.extend_from_slice(data);
        bytes = rest.strip_prefix(b"\r\n")?;
    }
    // The trailers, and the empty line behind them.
    loop {
        let (trailer, rest) = line(bytes)?;
        bytes = rest;
        if trailer.is_empty() {
            return Some((body, bytes));
        }
    }
}

/// One line without its CR LF. A bare CR or LF ends the reading. Bytes that are not UTF-8 are read as Latin-1 is.
fn line(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let (line, rest) = bytes.split_at(end);
    let clean = !line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
    clean.then(|| (line.iter().copied().map(char::from).collect(), &rest[2..]))
}
