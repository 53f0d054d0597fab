//! Servers whose clock is years off.
#![allow(clippy::disallowed_methods, reason = "real servers count in real time")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use tenure::Coordinator;
use tenure_redis::Redis;
use tenure_store::Store;
use tenure_testkit::{RedisKind, RedisServer, key};

const TEN_YEARS: i64 = 10 * 365 * 24 * 3600;

/// Forwards connections to the server, and shifts the seconds of every time in its answers.
fn shifting(server: SocketAddr, seconds: i64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(upstream) = TcpStream::connect(server) else { continue };
            let (mut from, mut to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            std::thread::spawn(move || shift(upstream, client, seconds));
        }
    });
    address
}

fn shift(mut server: TcpStream, mut client: TcpStream, seconds: i64) {
    let mut buffer = [0; 65536];
    while let Ok(length @ 1..) = server.read(&mut buffer) {
        let answer = &mut buffer[..length];
        // A time is an array element of ten digits.
        for at in 0..length.saturating_sub(14) {
            let (head, digits) = answer[at..].split_at_mut(5);
            let Ok(text) = std::str::from_utf8(&digits[..10]) else { continue };
            if head == b"$10\r\n"
                && let Ok(time) = text.parse::<i64>()
            {
                digits[..10].copy_from_slice(format!("{:010}", time + seconds).as_bytes());
            }
        }
        if client.write_all(answer).is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_grow_whatever_the_server_says_the_time_is() {
    let Some(server) = RedisServer::shared(RedisKind::Redis) else { return };
    let mut latest = None;
    for seconds in [0, -TEN_YEARS, TEN_YEARS, 0, -TEN_YEARS] {
        let address = shifting(server.address(), seconds).to_string();
        let store = Redis::builder(&address).prefix("clock:").accept_restart().open().unwrap();
        let direct =
            Redis::builder(&server.address().to_string()).prefix("clock:").accept_restart().open().unwrap();
        let told = store.get(&key("k")).await.unwrap().time.unwrap().as_micros() as i64 / 1_000_000;
        let real = direct.get(&key("k")).await.unwrap().time.unwrap().as_micros() as i64 / 1_000_000;
        assert!((told - real - seconds).abs() < 60, "the time is shifted");
        let coordinator = Coordinator::connect(store).await.unwrap();
        let lease = coordinator.lease("k").unwrap().without_witness().acquire().await.unwrap();
        assert!(Some(lease.token()) > latest, "{seconds}: {} after {latest:?}", lease.token());
        latest = Some(lease.token());
        lease.release().await.unwrap();
    }
}
