//! Connects to a server.

use super::error::{at, is_forbidden};
use super::url::{Address, Login};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisConnectionInfo, RedisResult, Value};
use rustls::pki_types::ServerName;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// A multiplexed connection. It is driven by a task on the runtime that made it.
#[derive(Clone)]
pub(super) struct Connection {
    inner: MultiplexedConnection,
    driver: Arc<Driver>,
}

/// The driving task, aborted with the last clone. Otherwise a server that never responds would keep it and its socket forever.
struct Driver(JoinHandle<()>);

/// Opens connections.
#[derive(Clone)]
pub(super) struct Dialer {
    pub(super) login: Login,
    pub(super) db: u32,
    pub(super) tls: Option<TlsConnector>,
}

/// What the server must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    Alive,
    Master,
}

/// The number of commands that may wait to be written. Further callers wait for room.
const QUEUE: usize = 256;

impl Dialer {
    /// Connects and waits for a response: a frozen server still accepts connections, and must be detected here, not by a request.
    pub(super) async fn dial(&self, address: &Address, expect: Expect) -> RedisResult<Connection> {
        let server = address.to_string();
        let tcp = TcpStream::connect((address.host.as_str(), address.port)).await;
        let tcp =
            tcp.and_then(|tcp| tcp.set_nodelay(true).map(|()| tcp)).map_err(|error| at(&server, &error))?;
        let connection = match &self.tls {
            None => connect(tcp).await?,
            Some(tls) => {
                let name = ServerName::try_from(address.host.clone())
                    .map_err(|error| at(&server, &io::Error::new(io::ErrorKind::InvalidInput, error)))?;
                connect(tls.connect(name, tcp).await.map_err(|error| at(&server, &error))?).await?
            }
        };
        self.handshake(&connection, expect, &server).await?;
        Ok(connection)
    }

    async fn handshake(&self, connection: &Connection, expect: Expect, server: &str) -> RedisResult<()> {
        let mut commands = Pipeline::new();
        if let Some(password) = &self.login.password {
            commands.cmd("AUTH").arg(&self.login.user).arg(password);
        }
        if self.db != 0 {
            commands.cmd("SELECT").arg(self.db);
        }
        commands.cmd(match expect {
            Expect::Alive => "PING",
            Expect::Master => "ROLE",
        });
        let mut responses = connection.pipeline(&commands).await?;
        let last = responses.pop().unwrap_or(Value::Nil);
        for response in responses {
            response.extract_error()?;
        }
        match last.extract_error() {
            // The user may be restricted to the commands that the store needs. It is enough that the server responds.
            Err(error) if is_forbidden(&error) => Ok(()),
            Err(error) => Err(error),
            Ok(role) if expect == Expect::Master && !is_master(&role) => {
                let text = "not a master, although the sentinels named it as one";
                Err(at(server, &io::Error::new(io::ErrorKind::NotConnected, text)))
            }
            Ok(_) => Ok(()),
        }
    }
}

impl Connection {
    pub(super) async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        self.clone().inner.send_packed_command(command).await?.extract_error()
    }

    /// Sends a command to the server that a slot is migrating to.
    pub(super) async fn send_asking(&self, command: &Cmd) -> RedisResult<Value> {
        let mut both = Pipeline::new();
        both.cmd("ASKING").add_command(command.clone());
        let response =
            self.pipeline(&both).await?.pop().ok_or((ErrorKind::Client, "no response to a command"))?;
        response.extract_error()
    }

    /// Whether the server has closed the connection.
    pub(super) fn is_closed(&self) -> bool {
        self.driver.0.is_finished()
    }

    pub(super) async fn pipeline(&self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        self.clone().inner.send_packed_commands(commands, 0, commands.len()).await
    }
}

async fn connect<S>(stream: S) -> RedisResult<Connection>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // We log in ourselves, because the library reports every refusal as a wrong password. We also set deadlines ourselves: they
    // must include the wait for a connection.
    let info = RedisConnectionInfo::default().set_skip_set_lib_name();
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(QUEUE);
    let (inner, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
    Ok(Connection { inner, driver: Arc::new(Driver(tokio::spawn(driver))) })
}

fn is_master(role: &Value) -> bool {
    matches!(role, Value::Array(parts) if parts.first() == Some(&Value::BulkString(b"master".to_vec())))
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("login", &self.login).field("db", &self.db).finish_non_exhaustive()
    }
}
