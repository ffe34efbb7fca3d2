//! A TCP proxy that injects network faults between a client and a server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Forwards bytes between its own port and a target, with faults on demand. Dropping it closes everything.
#[derive(Debug)]
pub struct TcpProxy {
    address: SocketAddr,
    target: SocketAddr,
    faults: Arc<Faults>,
    connections: Connections,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

/// Owned separately from the accepting task, so that open connections outlive it.
type Connections = Arc<Mutex<JoinSet<()>>>;

/// The active faults. Open connections watch them, so that changes apply to them as well.
#[derive(Debug)]
struct Faults {
    paused: watch::Sender<bool>,
    deaf: watch::Sender<bool>,
    delay: watch::Sender<Duration>,
    cuts: watch::Sender<u64>,
    accepted: watch::Sender<usize>,
}

impl TcpProxy {
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has a free port");
        let faults = Arc::new(Faults {
            paused: watch::Sender::new(false),
            deaf: watch::Sender::new(false),
            delay: watch::Sender::new(Duration::ZERO),
            cuts: watch::Sender::new(0),
            accepted: watch::Sender::new(0),
        });
        let address = listener.local_addr().expect("a bound socket has an address");
        let connections = Connections::default();
        let accepting = tokio::spawn(accept(listener, target, faults.clone(), connections.clone()));
        TcpProxy { address, target, faults, connections, accepting: Mutex::new(Some(accepting)) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The number of connections accepted so far.
    pub fn connections(&self) -> usize {
        *self.faults.accepted.borrow()
    }

    /// Stops forwarding in both directions. Connections stay open, and new ones are accepted.
    pub fn pause(&self) {
        self.faults.paused.send_replace(true);
    }

    /// Stops forwarding what the target answers, so that it does as it is told and nobody learns of it.
    pub fn pause_answers(&self) {
        self.faults.deaf.send_replace(true);
    }

    pub fn resume(&self) {
        self.faults.paused.send_replace(false);
        self.faults.deaf.send_replace(false);
    }

    /// Delays every piece of data by this long.
    pub fn delay(&self, delay: Duration) {
        self.faults.delay.send_replace(delay);
    }

    /// Resets every open connection on both sides. New ones are served.
    pub fn cut(&self) {
        self.faults.cuts.send_modify(|count| *count += 1);
    }

    /// Closes the port, so that the kernel refuses new connections. Open ones stay.
    pub async fn refuse(&self) {
        let task = self.accepting.lock().expect("no holder panics").take();
        if let Some(task) = task {
            task.abort();
            // The port is closed only once the task has ended.
            let _ = task.await;
        }
    }

    /// Opens the same port again after [`refuse`](Self::refuse).
    pub fn accept(&self) {
        let socket = TcpSocket::new_v4().expect("the system has sockets");
        socket.set_reuseaddr(true).expect("a fresh socket takes the option");
        socket.bind(self.address).expect("the port is still free");
        let listener = socket.listen(1024).expect("a bound socket can listen");
        let task = accept(listener, self.target, self.faults.clone(), self.connections.clone());
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

async fn accept(listener: TcpListener, target: SocketAddr, faults: Arc<Faults>, connections: Connections) {
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // Out of file descriptors: without a pause this loop would spin.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        faults.accepted.send_modify(|count| *count += 1);
        // A cut must find this connection, so it is registered before the task first runs.
        let cuts = faults.cuts.subscribe();
        let mut connections = connections.lock().expect("no holder panics");
        connections.spawn(forward(client, target, faults.clone(), cuts));
        while connections.try_join_next().is_some() {}
    }
}

async fn forward(
    mut client: TcpStream,
    target: SocketAddr,
    faults: Arc<Faults>,
    mut cuts: watch::Receiver<u64>,
) {
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let cut = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let both = async {
            let answers = [faults.paused.subscribe(), faults.deaf.subscribe()];
            tokio::join!(
                pump(from_client, to_server, &faults, [faults.paused.subscribe()]),
                pump(from_server, to_client, &faults, answers)
            );
        };
        tokio::select! {
            () = both => false,
            _ = cuts.changed() => true,
        }
    };
    if cut {
        // With a zero linger the kernel closes with a reset, which both ends notice at once.
        let _ = socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO));
        let _ = socket2::SockRef::from(&server).set_linger(Some(Duration::ZERO));
    }
}

/// Forwards one direction until it ends, and then its end.
async fn pump<const N: usize>(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    faults: &Faults,
    mut pauses: [watch::Receiver<bool>; N],
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count) = from.read(&mut buffer).await {
        let delay = *faults.delay.borrow();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        for paused in &mut pauses {
            let _ = paused.wait_for(|paused| !paused).await;
        }
        if count == 0 || to.write_all(&buffer[..count]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}
