//! A cluster with the protocol of Redis.

use super::{RedisKind, RedisServer, RedisSetup};
use crate::server::StartError;
use crate::wait_until;

/// A cluster of three primary servers without replicas, each with a third of the keys.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts it and waits until it serves; `None`, after a call of [`skipped`](crate::skipped), if the program is not
    /// installed.
    #[track_caller]
    pub fn start_or_skip(kind: RedisKind) -> Option<Self> {
        let setup = RedisSetup { cluster: true, ..RedisSetup::new() };
        let nodes = (0..NODES).map(|_| RedisServer::start(kind, setup.clone())).collect();
        let nodes: Vec<_> = StartError::or_skip(nodes)?;
        let bounds: Vec<_> = (0..=NODES).map(|node| SLOTS * node / NODES).collect();
        for (node, bounds) in nodes.iter().zip(bounds.windows(2)) {
            node.command(&["CLUSTER", "ADDSLOTSRANGE", &bounds[0].to_string(), &(bounds[1] - 1).to_string()]);
            // Nodes with different epochs agree on the owner of each slot at once.
            let epoch = (bounds[0] + 1).to_string();
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
            let (port, bus) = (nodes[0].address().port().to_string(), nodes[0].bus_port().to_string());
            node.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        let is_up = |node: &RedisServer| {
            let info = node.command(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains(&format!("cluster_size:{NODES}"))
        };
        wait_until("the nodes have met", || nodes.iter().all(is_up));
        Some(Self { nodes })
    }

    /// Starts a replica of one of its nodes, and returns when it has the data.
    #[track_caller]
    pub fn replica_of(&self, node: usize) -> RedisServer {
        let primary = &self.nodes[node];
        let setup = RedisSetup { cluster: true, ..RedisSetup::new() };
        let replica = RedisServer::start(primary.kind(), setup).unwrap_or_else(|error| panic!("{error}"));
        let (port, bus) = (primary.address().port().to_string(), primary.bus_port().to_string());
        replica.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        let id = primary.command(&["CLUSTER", "MYID"]);
        wait_until("the replica knows its primary server", || {
            replica.try_command(&["CLUSTER", "REPLICATE", &id]).is_ok()
        });
        wait_until("the replica has the data", || replica.info("master_link_status") == "up");
        replica
    }

    /// Its servers.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }
}

const NODES: usize = 3;

/// Number of slots that the keys of every cluster are divided into.
const SLOTS: usize = 16384;
