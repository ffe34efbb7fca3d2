//! A TCP proxy between a client and a server under test that makes the network fail on command.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Forwards bytes between its own port and a target, until told to misbehave. Dropping it ends everything.
#[derive(Debug)]
pub struct TcpProxy {
    address: SocketAddr,
    target: SocketAddr,
    weather: Arc<Weather>,
    connections: Connections,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

/// Owned apart from the accepting task, so that open connections outlive a refusal of new ones.
type Connections = Arc<Mutex<JoinSet<()>>>;

/// The faults in force. Connections watch it, so that a change takes hold of those that are already open.
#[derive(Debug)]
struct Weather {
    paused: watch::Sender<bool>,
    delay: watch::Sender<Duration>,
    cuts: watch::Sender<u64>,
    accepted: watch::Sender<usize>,
}

impl TcpProxy {
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let weather = Arc::new(Weather {
            paused: watch::Sender::new(false),
            delay: watch::Sender::new(Duration::ZERO),
            cuts: watch::Sender::new(0),
            accepted: watch::Sender::new(0),
        });
        let address = listener.local_addr().expect("a bound socket has an address");
        let connections = Connections::default();
        let accepting = tokio::spawn(accept(listener, target, weather.clone(), connections.clone()));
        TcpProxy { address, target, weather, connections, accepting: Mutex::new(Some(accepting)) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections were accepted so far.
    pub fn connections(&self) -> usize {
        *self.weather.accepted.borrow()
    }

    /// No byte passes any more, in either direction, but connections stay open and new ones are accepted.
    pub fn pause(&self) {
        self.weather.paused.send_replace(true);
    }

    pub fn resume(&self) {
        self.weather.paused.send_replace(false);
    }

    /// Every piece of data waits this long before it is passed on.
    pub fn delay(&self, delay: Duration) {
        self.weather.delay.send_replace(delay);
    }

    /// Resets every open connection, on both sides. New ones are served.
    pub fn cut(&self) {
        self.weather.cuts.send_modify(|count| *count += 1);
    }

    /// Closes the port, so that the kernel refuses new connections. The open ones stay.
    pub async fn refuse(&self) {
        let task = self.accepting.lock().expect("no holder panics").take();
        if let Some(task) = task {
            task.abort();
            // The port is closed only when the task is gone.
            let _ = task.await;
        }
    }

    /// Opens the same port again after [`refuse`](Self::refuse).
    pub fn accept(&self) {
        let socket = TcpSocket::new_v4().expect("the system has sockets");
        socket.set_reuseaddr(true).expect("a fresh socket takes the option");
        socket.bind(self.address).expect("nobody took the port meanwhile");
        let listener = socket.listen(1024).expect("a bound socket can listen");
        let task = accept(listener, self.target, self.weather.clone(), self.connections.clone());
        self.accepting.lock().expect("no holder panics").replace(tokio::spawn(task));
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        if let Some(task) = self.accepting.lock().expect("no holder panics").take() {
            task.abort();
        }
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, weather: Arc<Weather>, connections: Connections) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // Out of file descriptors: the next accept would fail at once as well, and spin.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        weather.accepted.send_modify(|count| *count += 1);
        // A cut must find this connection, so it is registered before the task first runs.
        let cuts = weather.cuts.subscribe();
        let mut connections = connections.lock().expect("no holder panics");
        connections.spawn(carry(client, target, weather.clone(), cuts));
        while connections.try_join_next().is_some() {}
    }
}

async fn carry(
    mut client: TcpStream,
    target: SocketAddr,
    weather: Arc<Weather>,
    mut cuts: watch::Receiver<u64>,
) {
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let cut = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let both = async {
            tokio::join!(pump(from_client, to_server, &weather), pump(from_server, to_client, &weather));
        };
        tokio::select! {
            () = both => false,
            _ = cuts.changed() => true,
        }
    };
    if cut {
        // With a zero linger the kernel closes with a reset, which tells both ends at once.
        let _ = socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO));
        let _ = socket2::SockRef::from(&server).set_linger(Some(Duration::ZERO));
    }
}

/// Passes one direction on to its end, and then the end itself.
async fn pump(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, weather: &Weather) {
    let mut paused = weather.paused.subscribe();
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count) = from.read(&mut buffer).await {
        let delay = *weather.delay.borrow();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let _ = paused.wait_for(|paused| !paused).await;
        if count == 0 || to.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}
