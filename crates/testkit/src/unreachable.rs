//! An address that never answers, for tests of connect timeouts.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A port on loopback whose listen queue is full, so that the kernel silently drops connection attempts. Unlike a remote
/// address that should be unused, it behaves the same on every machine.
#[derive(Debug)]
pub struct Unreachable {
    address: SocketAddr,
    _listener: socket2::Socket,
    _queue: Vec<TcpStream>,
}

impl Unreachable {
    pub fn start() -> Self {
        let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
            .expect("the system has sockets");
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("loopback has a free port");
        listener.listen(0).expect("a bound socket can listen");
        let address = listener.local_addr().expect("a bound socket has an address");
        let address = address.as_socket().expect("an IPv4 socket has an IP address");
        let mut queue = Vec::new();
        // The queue holds one connection more than its length of zero. It is full once an attempt times out.
        while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(50)) {
            queue.push(stream);
        }
        Unreachable { address, _listener: listener, _queue: queue }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_attempt_gets_no_answer() {
        let nowhere = Unreachable::start();
        let error = TcpStream::connect_timeout(&nowhere.address(), Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    }
}
