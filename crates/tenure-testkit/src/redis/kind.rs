//! Servers with the protocol of Redis.

use crate::program::Program;

/// A server with the protocol of Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RedisKind {
    /// Redis 7, from Debian's packages.
    Redis,
    /// Valkey 9, from PyPI. That build has no TLS.
    Valkey,
}

impl RedisKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Redis, Self::Valkey];

    pub(crate) fn program(self) -> Program {
        match self {
            Self::Redis => Program::of_system("redis-server", "/usr/bin/redis-server"),
            Self::Valkey => Program::in_cache("valkey-server"),
        }
    }
}
