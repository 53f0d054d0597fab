use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use tenure::Key;
use tenure::fence::{Fence, FenceError, FencedFile, FencedLog, FencedValue, FencingToken};
use tenure_connect::StoreUrl;
use tenure_postgres::{PostgresFence, tokio_postgres};
use tenure_redis::redis::{self, Cmd};
use tenure_redis::{Redis, RedisFence};
use tenure_sqlite::SqliteFence;
use tenure_sqlite::rusqlite::{self, TransactionBehavior};
use tokio::runtime::Runtime;

/// A resource as a writer has opened it.
pub(super) enum Target {
    File(FencedFile),
    Log(FencedLog),
    Value(FencedValue, Runtime),
    Postgres {
        client: tokio_postgres::Client,
        fence: PostgresFence,
        runtime: Runtime,
    },
    Redis {
        fence: RedisFence,
        key: String,
        runtime: Runtime,
    },
    Sqlite {
        connection: rusqlite::Connection,
        fence: SqliteFence,
    },
    /// The same without a fence: a check of the lease was made long before.
    Plain(Plain),
}

/// A write without a fence.
pub(super) enum Plain {
    /// Every resource that has a path, and an object: an ordinary file stands for all of them.
    File(PathBuf),
    Postgres(tokio_postgres::Client, Runtime),
    Redis(redis::Client, String),
    Sqlite(rusqlite::Connection),
}

impl Target {
    pub(super) fn open(address: &str, fenced: bool) -> Self {
        let words: Vec<&str> = address.split(' ').collect();
        match (&words[..], fenced) {
            (["file", path], true) => Self::File(FencedFile::new(path)),
            (["log", path], true) => Self::Log(FencedLog::new(path)),
            (["value", path], true) => {
                fs::create_dir_all(path).unwrap();
                let store = tenure::store::File::open(path).unwrap();
                let key = Key::fenced_value(&Key::parse("report").unwrap()).unwrap();
                Self::Value(FencedValue::on(Arc::new(store), key), runtime())
            }
            (["object", url], true) => {
                let (store, key) = url.parse::<StoreUrl>().unwrap().open_object().unwrap().unwrap();
                Self::Value(FencedValue::on(store, key), runtime())
            }
            (["postgres", url, resource], true) => {
                let runtime = runtime();
                let client = runtime.block_on(postgres(url));
                Self::Postgres { client, fence: PostgresFence::new(*resource), runtime }
            }
            (["redis", url, name], true) => {
                let store = Redis::builder(url.trim_start_matches("redis://")).open().unwrap();
                let fence = RedisFence::new(&store, name).unwrap();
                Self::Redis { fence, key: (*name).to_owned(), runtime: runtime() }
            }
            (["sqlite", path], true) => {
                let connection = sqlite(path);
                SqliteFence::install(&connection).unwrap();
                Self::Sqlite { connection, fence: SqliteFence::new("entries").unwrap() }
            }
            (["postgres", url, _], false) => {
                let runtime = runtime();
                Self::Plain(Plain::Postgres(runtime.block_on(postgres(url)), runtime))
            }
            (["redis", url, name], false) => {
                Self::Plain(Plain::Redis(redis::Client::open(*url).unwrap(), (*name).to_owned()))
            }
            (["sqlite", path], false) => Self::Plain(Plain::Sqlite(sqlite(path))),
            (["file" | "log" | "value", path], false) => {
                Self::Plain(Plain::File(format!("{path}.plain").into()))
            }
            _ => panic!("no such resource: {address}"),
        }
    }

    pub(super) fn write(&mut self, token: &FencingToken, number: u64) -> Result<(), FenceError> {
        let row = format!("{token} {number}\n");
        match self {
            Self::File(file) => file.put_blocking(token, row.as_bytes()),
            Self::Log(log) => log.append_blocking(token, row.as_bytes()).map(drop),
            Self::Value(value, runtime) => runtime.block_on(value.write(token, row)),
            Self::Postgres { client, fence, runtime } => runtime.block_on(async {
                let transaction = client.transaction().await.unwrap();
                fence.write(token, &transaction).await?;
                transaction.execute(INSERT, &[&row]).await.unwrap();
                transaction.commit().await.unwrap();
                Ok(())
            }),
            Self::Redis { fence, key, runtime } => {
                let push = [Cmd::rpush(&*key, &row)];
                runtime.block_on(fence.write(token, &push)).map(drop)
            }
            Self::Sqlite { connection, fence } => {
                let transaction =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
                fence.admit(&transaction, token)?;
                transaction.execute("INSERT INTO entries VALUES (?1)", [&row]).unwrap();
                transaction.commit().unwrap();
                Ok(())
            }
            Self::Plain(plain) => {
                plain.write(&row);
                Ok(())
            }
        }
    }
}

impl Plain {
    fn write(&mut self, row: &str) {
        match self {
            Self::File(path) => {
                let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
                file.write_all(row.as_bytes()).unwrap();
            }
            Self::Postgres(client, runtime) => {
                runtime.block_on(client.execute(INSERT, &[&row])).unwrap();
            }
            Self::Redis(client, key) => {
                let mut connection = client.get_connection().unwrap();
                Cmd::rpush(&*key, row).exec(&mut connection).unwrap();
            }
            Self::Sqlite(connection) => {
                connection.execute("INSERT INTO entries VALUES (?1)", [row]).unwrap();
            }
        }
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn postgres(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn sqlite(path: &str) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
    connection.execute_batch("CREATE TABLE IF NOT EXISTS entries (line TEXT)").unwrap();
    connection
}

const INSERT: &str = "INSERT INTO entries VALUES ($1)";
