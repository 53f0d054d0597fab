//! Messages that carry the token, through a real NATS server: the consumer's gate refuses those of an earlier holder.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{Client, HeaderMap, Message, Subscriber};
use futures_util::StreamExt;
use tenure::fence::message::{self, TokenHeaderError};
use tenure::fence::{FenceError, FencingToken, Gate};
use tenure::{Coordinator, ErrorKind, Lease};
use tenure_testkit::{NatsServer, key, quota};

use support::{World, eventually, spawn};

/// A consumer of one subject. It acts on a message only under a pass of its gate.
struct Consumer {
    gate: Gate,
    done: Arc<Mutex<Vec<(u64, String)>>>,
    /// Messages without a usable token.
    without: Arc<Mutex<Vec<TokenHeaderError>>>,
    seen: Arc<Mutex<u64>>,
}

impl Consumer {
    async fn start(client: &Client, subject: &'static str, lease: &str) -> Self {
        let mut subscriber = client.subscribe(subject).await.unwrap();
        // A flush does not wait for the server. When this message is back, the server knows of the subscription.
        client.publish(subject, "begin".into()).await.unwrap();
        assert_eq!(subscriber.next().await.unwrap().payload, "begin");
        let consumer = Self {
            gate: Gate::new("the consumer", key(lease)),
            done: Arc::default(),
            without: Arc::default(),
            seen: Arc::default(),
        };
        spawn(consume(
            subscriber,
            consumer.gate.clone(),
            Arc::clone(&consumer.done),
            Arc::clone(&consumer.without),
            Arc::clone(&consumer.seen),
        ));
        consumer
    }

    async fn has_seen(&self, count: u64) {
        eventually("the messages arrive", || *self.seen.lock().unwrap() == count).await;
    }

    fn done(&self) -> Vec<(u64, String)> {
        self.done.lock().unwrap().clone()
    }
}

async fn consume(
    mut subscriber: Subscriber,
    gate: Gate,
    done: Arc<Mutex<Vec<(u64, String)>>>,
    without: Arc<Mutex<Vec<TokenHeaderError>>>,
    seen: Arc<Mutex<u64>>,
) {
    while let Some(message) = subscriber.next().await {
        match token_of(&message) {
            Ok(token) => {
                if let Ok(_pass) = gate.enter(&token).await {
                    let text = String::from_utf8_lossy(&message.payload).into_owned();
                    done.lock().unwrap().push((token.token().get(), text));
                }
            }
            Err(error) => without.lock().unwrap().push(error),
        }
        *seen.lock().unwrap() += 1;
    }
}

fn token_of(message: &Message) -> Result<FencingToken, TokenHeaderError> {
    let headers = message.headers.as_ref();
    message::token(headers.into_iter().flat_map(|headers| headers.get_all(message::HEADER)))
}

/// The headers of a message under this token.
fn stamped(token: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(message::HEADER, token);
    headers
}

/// Publishes under the lease, as a program does.
async fn publish(
    client: &Client,
    subject: &'static str,
    lease: &Lease,
    text: &str,
) -> Result<(), tenure::Error> {
    let (name, value) = message::header(lease)?;
    let mut headers = HeaderMap::new();
    headers.insert(name, value);
    client.publish_with_headers(subject, headers, text.to_owned().into()).await.unwrap();
    Ok(())
}

async fn connect(server: &NatsServer) -> Client {
    async_nats::connect(server.url()).await.unwrap()
}

#[tokio::test]
async fn late_messages_of_a_paused_publisher_are_refused_by_the_consumers_gate_and_counted() {
    let Some(server) = NatsServer::shared() else { return };
    let (a, b) = (connect(server).await, connect(server).await);
    let consumer = Consumer::start(&connect(server).await, "orders", "billing").await;
    let send = async |client: &Client, token: &str, text: &str| {
        let text = text.to_owned().into();
        client.publish_with_headers("orders", stamped(token), text).await.unwrap();
        client.flush().await.unwrap();
    };
    send(&a, "billing=7", "first of A").await;
    consumer.has_seen(1).await;
    // A is paused here, with two messages that it is about to send.
    send(&b, "billing=9", "first of B").await;
    send(&b, "billing=9", "second of B").await;
    consumer.has_seen(3).await;
    // A continues.
    send(&a, "billing=7", "second of A").await;
    send(&a, "billing=7", "third of A").await;
    consumer.has_seen(5).await;
    send(&b, "billing=9", "third of B").await;
    consumer.has_seen(6).await;
    let texts: Vec<_> = consumer.done().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["first of A", "first of B", "second of B", "third of B"]);
    assert_eq!(consumer.gate.refused(), 2);
}

#[tokio::test]
async fn messages_without_one_usable_token_of_the_lease_change_nothing() {
    let Some(server) = NatsServer::shared() else { return };
    let client = connect(server).await;
    let consumer = Consumer::start(&connect(server).await, "bad", "billing").await;
    client.publish("bad", "no headers".into()).await.unwrap();
    let mut other = HeaderMap::new();
    other.insert("Trace", "x");
    let mut twice = stamped("billing=7");
    twice.append(message::HEADER, "billing=9");
    let headers = [other, stamped("billing"), stamped("billing=7,billing=9"), twice, stamped("payroll=900")];
    for headers in headers {
        client.publish_with_headers("bad", headers, "x".into()).await.unwrap();
    }
    client.flush().await.unwrap();
    consumer.has_seen(6).await;
    let without = consumer.without.lock().unwrap().clone();
    assert!(
        matches!(
            &without[..],
            [
                TokenHeaderError::Missing,
                TokenHeaderError::Missing,
                TokenHeaderError::NoToken(_),
                TokenHeaderError::Several,
                TokenHeaderError::Several
            ]
        ),
        "{without:?}"
    );
    assert_eq!((consumer.done(), consumer.gate.highest(), consumer.gate.refused()), (vec![], None, 1));
}

#[tokio::test]
async fn a_publisher_that_has_lost_its_lease_publishes_nothing_and_its_delayed_message_is_refused() {
    let Some(server) = NatsServer::shared() else { return };
    let world = World::new();
    let holder = async |name: &str| {
        let process: Coordinator = world.process(name).await;
        let lease = process.lease("billing").unwrap().ttl(Duration::from_secs(16)).acquire().await.unwrap();
        (process, lease)
    };
    let client = connect(server).await;
    let consumer = Consumer::start(&connect(server).await, "takeover", "billing").await;
    let (_a, first) = holder("a").await;
    publish(&client, "takeover", &first, "first of A").await.unwrap();
    // Taken after the check, as by a publisher that is paused right before it sends.
    let delayed = stamped(&first.fencing_token().to_string());
    first.release().await.unwrap();
    assert_eq!(publish(&client, "takeover", &first, "late").await.unwrap_err().kind(), ErrorKind::Lost);

    let (_b, second) = holder("b").await;
    publish(&client, "takeover", &second, "first of B").await.unwrap();
    client.publish_with_headers("takeover", delayed, "late".into()).await.unwrap();
    client.flush().await.unwrap();
    consumer.has_seen(3).await;
    let texts: Vec<_> = consumer.done().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["first of A", "first of B"]);
    assert_eq!(consumer.gate.refused(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_publishers_with_random_tokens_never_make_the_consumer_go_back() {
    let Some(server) = NatsServer::shared() else { return };
    let consumer = Consumer::start(&connect(server).await, "crowd", "billing").await;
    let (publishers, each) = (8_u64, quota(500, 10_000));
    let mut tasks = Vec::new();
    for publisher in 0..publishers {
        let client = connect(server).await;
        tasks.push(spawn(async move {
            for number in 0..each {
                // Old and present tokens in turns.
                let token = 1 + (number / 10).saturating_sub((number * 7 + publisher) % 4);
                let headers = stamped(&format!("billing={token}"));
                client.publish_with_headers("crowd", headers, "x".into()).await.unwrap();
                if number % 50 == 0 {
                    client.flush().await.unwrap();
                }
            }
            client.flush().await.unwrap();
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    consumer.has_seen(publishers * each).await;
    let done = consumer.done();
    assert!(done.is_sorted(), "a smaller token was accepted after a greater one");
    let refused = consumer.gate.refused();
    println!("{} accepted, {refused} refused", done.len());
    assert_eq!(done.len() as u64 + refused, publishers * each);
    assert!(refused > 0 && !done.is_empty());
}

#[tokio::test]
async fn without_the_gate_the_late_message_is_consumed() {
    let Some(server) = NatsServer::shared() else { return };
    let client = connect(server).await;
    let mut subscriber = client.subscribe("ungated").await.unwrap();
    let gate = Gate::new("the consumer", key("billing"));
    let (mut tokens, mut stale) = (Vec::new(), 0);
    for token in ["billing=7", "billing=9", "billing=7"] {
        client.publish_with_headers("ungated", stamped(token), "x".into()).await.unwrap();
        let token = token_of(&subscriber.next().await.unwrap()).unwrap();
        stale += u32::from(matches!(gate.admit(&token), Err(FenceError::Stale { .. })));
        tokens.push(token.token().get());
    }
    assert_eq!((tokens, stale), (vec![7, 9, 7], 1), "the broker delivers it; only the gate refuses");
}
