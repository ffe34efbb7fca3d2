//! The PostgreSQL server freezes, dies and restarts with its data.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure message")]

use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;
use tidegate_testkit::PostgresServer;

#[tokio::test]
async fn committed_data_survives_a_crash_and_a_stop() {
    let server = PostgresServer::start().await;
    let port = server.port();
    server.psql("create table kept (line text)").await;
    server.psql("insert into kept values ('a|b'), ('ü')").await;
    server.restart().await;
    assert_eq!(server.psql("select line from kept order by line").await, "a|b\nü");
    server.stop().await;
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    server.restart().await;
    assert_eq!((server.port(), server.psql("select count(*) from kept").await), (port, "2".to_owned()));
}

#[tokio::test]
async fn a_frozen_server_accepts_connections_but_does_not_answer() {
    let server = PostgresServer::start().await;
    server.freeze();
    let mut connection = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    // A request for TLS, which a server answers with one byte.
    std::io::Write::write_all(&mut connection, &[0, 0, 0, 8, 4, 210, 22, 47]).unwrap();
    connection.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut answer = [0];
    assert!(connection.read(&mut answer).is_err());
    server.thaw();
    connection.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    connection.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"N");
}
