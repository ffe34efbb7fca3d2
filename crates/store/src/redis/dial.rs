//! Making a connection to one server.

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

/// Answers any number of questions at once. Its work is done by a task on the runtime that made it.
#[derive(Clone)]
pub(super) struct Connection {
    wire: MultiplexedConnection,
    driver: Arc<Driver>,
}

/// Ended with the last clone, or a server that never answers would keep it and its socket for ever.
struct Driver(JoinHandle<()>);

/// How to get in.
#[derive(Clone)]
pub(super) struct Dialer {
    pub(super) login: Login,
    pub(super) db: u32,
    pub(super) tls: Option<TlsConnector>,
}

/// What a server must be to be of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    Alive,
    Master,
}

/// Commands that wait to be written. One more waits its turn, it is not lost.
const QUEUE: usize = 256;

impl Dialer {
    /// A connection that has answered: a frozen server accepts connections, and is found out here, not by a request.
    pub(super) async fn dial(&self, address: &Address, expect: Expect) -> RedisResult<Connection> {
        let place = address.to_string();
        let tcp = TcpStream::connect((address.host.as_str(), address.port)).await;
        let tcp =
            tcp.and_then(|tcp| tcp.set_nodelay(true).map(|()| tcp)).map_err(|error| at(&place, &error))?;
        let connection = match &self.tls {
            None => connect(tcp).await?,
            Some(tls) => {
                let name = ServerName::try_from(address.host.clone())
                    .map_err(|error| at(&place, &io::Error::new(io::ErrorKind::InvalidInput, error)))?;
                connect(tls.connect(name, tcp).await.map_err(|error| at(&place, &error))?).await?
            }
        };
        self.greet(&connection, expect, &place).await?;
        Ok(connection)
    }

    async fn greet(&self, connection: &Connection, expect: Expect, place: &str) -> RedisResult<()> {
        let mut greeting = Pipeline::new();
        if let Some(password) = &self.login.password {
            greeting.cmd("AUTH").arg(&self.login.user).arg(password);
        }
        if self.db != 0 {
            greeting.cmd("SELECT").arg(self.db);
        }
        greeting.cmd(match expect {
            Expect::Alive => "PING",
            Expect::Master => "ROLE",
        });
        let mut answers = connection.pipeline(&greeting).await?;
        let last = answers.pop().unwrap_or(Value::Nil);
        for answer in answers {
            answer.extract_error()?;
        }
        match last.extract_error() {
            // A user may be allowed nothing but what we need; that the server answers at all is what counts.
            Err(error) if is_forbidden(&error) => Ok(()),
            Err(error) => Err(error),
            Ok(role) if expect == Expect::Master && !is_master(&role) => {
                let text = "not the master that the sentinels say it is";
                Err(at(place, &io::Error::new(io::ErrorKind::NotConnected, text)))
            }
            Ok(_) => Ok(()),
        }
    }
}

impl Connection {
    pub(super) async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        self.clone().wire.send_packed_command(command).await?.extract_error()
    }

    /// Follows a cluster's hint to where a slot is moving to.
    pub(super) async fn send_asking(&self, command: &Cmd) -> RedisResult<Value> {
        let mut both = Pipeline::new();
        both.cmd("ASKING").add_command(command.clone());
        let answer =
            self.pipeline(&both).await?.pop().ok_or((ErrorKind::Client, "no answer to a command"))?;
        answer.extract_error()
    }

    /// Whether the other side has gone.
    pub(super) fn is_closed(&self) -> bool {
        self.driver.0.is_finished()
    }

    pub(super) async fn pipeline(&self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        self.clone().wire.send_packed_commands(commands, 0, commands.len()).await
    }
}

async fn connect<S>(stream: S) -> RedisResult<Connection>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // Logging in is our own: the library reports every reason for a refusal as a wrong password. So is the deadline: it
    // must cover the wait for a connection as well.
    let info = RedisConnectionInfo::default().set_skip_set_lib_name();
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(QUEUE);
    let (wire, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
    Ok(Connection { wire, driver: Arc::new(Driver(tokio::spawn(driver))) })
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
