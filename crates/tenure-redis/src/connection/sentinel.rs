//! Sentinels, which know the address of the primary server.

use std::pin::pin;

use futures_util::future::{Either, select};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, Value, cmd};
use tenure_store::Reason;

use super::Dialer;
use super::pool::CONNECT_MAX;
use crate::open::{Address, OpenError};

/// The address of the primary server, from one sentinel.
pub(super) async fn ask(dialer: &Dialer, sentinel: &Address, master: &str) -> Result<Address, OpenError> {
    let failed = |why: String| {
        OpenError::new(
            Reason::Unreachable,
            format!("the sentinel {sentinel} names no master {master:?}: {why}"),
        )
    };
    let stream = dialer.dial(sentinel).await?;
    let nothing = RedisConnectionInfo::default().set_skip_set_lib_name();
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(CONNECT_MAX));
    let connected = MultiplexedConnection::new_with_config(&nothing, stream, config).await;
    let (mut client, driver) = connected.map_err(|error| failed(error.to_string()))?;
    let command = cmd("SENTINEL").arg("get-master-addr-by-name").arg(master).clone();
    let answer = match select(pin!(client.send_packed_command(&command)), pin!(driver)).await {
        Either::Left((answer, _)) => answer.map_err(|error| failed(error.to_string()))?,
        Either::Right(_) => return Err(failed("it closed the connection".to_owned())),
    };
    let parts = match answer {
        Value::Array(parts) => parts,
        Value::ServerError(error) => return Err(failed(error.to_string())),
        _ => return Err(failed("it does not know it".to_owned())),
    };
    let [Value::BulkString(host), Value::BulkString(port)] = &parts[..] else {
        return Err(failed("its answer is not an address".to_owned()));
    };
    let (host, port) = (String::from_utf8_lossy(host), String::from_utf8_lossy(port));
    let host = if host.contains(':') { format!("[{host}]") } else { host.into_owned() };
    Address::parse(&format!("{host}:{port}"), 0)
}
