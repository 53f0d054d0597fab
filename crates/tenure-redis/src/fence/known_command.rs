//! The commands that a fenced write may carry, and the places of their keys.
//!
//! The list is closed, because the fence must know every key of a command before it sends anything. It has the commands
//! that read or change the keys that their arguments name. None of them blocks, changes the connection, runs another
//! script, leaves the database, or reaches keys by a pattern.

/// Places of the keys among the words of a command. The name of the command has place 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyPlaces {
    /// No keys.
    None,
    /// Place 1.
    One,
    /// Places 1 and 2.
    Two,
    /// Place 2, behind a subcommand.
    Second,
    /// All places from 1.
    All,
    /// All places from 2.
    FromSecond,
    /// Places 1, 3, 5 …: each key is followed by its value.
    Pairs,
    /// As many as the word at place 1 says, behind it.
    Counted,
    /// Place 1, and as many as the word at place 2 says, behind it.
    OneAndCounted,
}

/// A command that a fenced write may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownCommand {
    pub(super) name: &'static str,
    /// Number of words, as the server counts it: exact, or the least number if it is negative.
    pub(super) arity: i8,
    pub(super) places: KeyPlaces,
}

impl KnownCommand {
    /// The command with this name, in any case.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        KNOWN.iter().find_map(|(places, commands)| {
            let known = commands.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
            known.map(|(name, arity)| Self { name, arity: *arity, places: *places })
        })
    }

    /// True if the command can have this number of words.
    pub(super) fn takes(&self, words: usize) -> bool {
        let least = usize::from(self.arity.unsigned_abs());
        let is_even = words.is_multiple_of(2);
        if self.places == KeyPlaces::Pairs && is_even {
            return false;
        }
        if self.arity < 0 { words >= least } else { words == least }
    }

    /// The keys among the words of a command that [`takes`](Self::takes) as many. `None` if their number is none.
    pub(super) fn keys<'a>(&self, words: &[&'a [u8]]) -> Option<Vec<&'a [u8]>> {
        let counted = |at: usize| -> Option<&[&'a [u8]]> {
            let count: usize = std::str::from_utf8(words[at]).ok()?.parse().ok()?;
            words.get(at + 1..at.checked_add(1)?.checked_add(count)?).filter(|keys| !keys.is_empty())
        };
        Some(match self.places {
            KeyPlaces::None => Vec::new(),
            KeyPlaces::One => vec![words[1]],
            KeyPlaces::Two => vec![words[1], words[2]],
            KeyPlaces::Second => vec![words[2]],
            KeyPlaces::All => words[1..].to_vec(),
            KeyPlaces::FromSecond => words[2..].to_vec(),
            KeyPlaces::Pairs => words[1..].iter().step_by(2).copied().collect(),
            KeyPlaces::Counted => counted(1)?.to_vec(),
            KeyPlaces::OneAndCounted => [&words[1..2], counted(2)?].concat(),
        })
    }

    /// All commands.
    #[cfg(test)]
    pub(super) fn all() -> impl Iterator<Item = Self> {
        KNOWN.iter().flat_map(|(places, commands)| {
            commands.iter().map(|(name, arity)| Self { name, arity: *arity, places: *places })
        })
    }
}

/// Name and arity of each command, by the places of its keys.
#[rustfmt::skip]
const KNOWN: &[(KeyPlaces, &[(&str, i8)])] = &[
    (KeyPlaces::One, &[
        ("SET", -3), ("GET", 2), ("INCR", 2), ("INCRBY", 3), ("HSET", -4), ("HGET", 3), ("XADD", -5), ("RPUSH", -3),
        ("APPEND", 3), ("BITCOUNT", -2), ("BITFIELD", -2), ("BITFIELD_RO", -2), ("BITPOS", -3), ("DECR", 2),
        ("DECRBY", 3), ("EXPIRE", -3), ("EXPIREAT", -3), ("EXPIRETIME", 2), ("GEOADD", -5), ("GEODIST", -4),
        ("GEOHASH", -2), ("GEOPOS", -2), ("GEOSEARCH", -7), ("GETBIT", 3), ("GETDEL", 2), ("GETEX", -2), ("GETRANGE", 4),
        ("GETSET", 3), ("HDEL", -3), ("HEXISTS", 3), ("HGETALL", 2), ("HINCRBY", 4), ("HINCRBYFLOAT", 4), ("HKEYS", 2),
        ("HLEN", 2), ("HMGET", -3), ("HMSET", -4), ("HSETNX", 4), ("HSTRLEN", 3), ("HVALS", 2), ("INCRBYFLOAT", 3),
        ("LINDEX", 3), ("LINSERT", 5), ("LLEN", 2), ("LPOP", -2), ("LPOS", -3), ("LPUSH", -3), ("LPUSHX", -3),
        ("LRANGE", 4), ("LREM", 4), ("LSET", 4), ("LTRIM", 4), ("PERSIST", 2), ("PEXPIRE", -3), ("PEXPIREAT", -3),
        ("PEXPIRETIME", 2), ("PFADD", -2), ("PSETEX", 4), ("PTTL", 2), ("RPOP", -2), ("RPUSHX", -3), ("SADD", -3),
        ("SCARD", 2), ("SETBIT", 4), ("SETEX", 4), ("SETNX", 3), ("SETRANGE", 4), ("SISMEMBER", 3), ("SMEMBERS", 2),
        ("SMISMEMBER", -3), ("SPOP", -2), ("SREM", -3), ("STRLEN", 2), ("TTL", 2), ("TYPE", 2), ("XACK", -4),
        ("XAUTOCLAIM", -6), ("XCLAIM", -6), ("XDEL", -3), ("XLEN", 2), ("XPENDING", -3), ("XRANGE", -4),
        ("XREVRANGE", -4), ("XSETID", -3), ("XTRIM", -4), ("ZADD", -4), ("ZCARD", 2), ("ZCOUNT", 4), ("ZINCRBY", 4),
        ("ZLEXCOUNT", 4), ("ZMSCORE", -3), ("ZPOPMAX", -2), ("ZPOPMIN", -2), ("ZRANGE", -4), ("ZRANGEBYLEX", -4),
        ("ZRANGEBYSCORE", -4), ("ZRANK", 3), ("ZREM", -3), ("ZREMRANGEBYLEX", 4), ("ZREMRANGEBYRANK", 4),
        ("ZREMRANGEBYSCORE", 4), ("ZREVRANGE", -4), ("ZREVRANGEBYLEX", -4), ("ZREVRANGEBYSCORE", -4), ("ZREVRANK", 3),
        ("ZSCORE", 3),
    ]),
    (KeyPlaces::All, &[
        ("DEL", -2), ("UNLINK", -2), ("EXISTS", -2), ("MGET", -2), ("TOUCH", -2), ("PFCOUNT", -2), ("PFMERGE", -2),
        ("SDIFF", -2), ("SDIFFSTORE", -3), ("SINTER", -2), ("SINTERSTORE", -3), ("SUNION", -2), ("SUNIONSTORE", -3),
    ]),
    (KeyPlaces::Two, &[
        ("RENAME", 3), ("RENAMENX", 3), ("SMOVE", 4), ("LMOVE", 5), ("RPOPLPUSH", 3), ("GEOSEARCHSTORE", -8),
        ("ZRANGESTORE", -5), ("LCS", -3),
    ]),
    (KeyPlaces::Pairs, &[("MSET", -3), ("MSETNX", -3)]),
    (KeyPlaces::FromSecond, &[("BITOP", -4)]),
    (KeyPlaces::Second, &[("XGROUP", -3)]),
    (KeyPlaces::Counted, &[
        ("LMPOP", -4), ("SINTERCARD", -3), ("ZDIFF", -3), ("ZINTER", -3), ("ZINTERCARD", -3), ("ZMPOP", -4),
        ("ZUNION", -3),
    ]),
    (KeyPlaces::OneAndCounted, &[("ZDIFFSTORE", -4), ("ZINTERSTORE", -4), ("ZUNIONSTORE", -4)]),
    (KeyPlaces::None, &[("PUBLISH", 3)]),
];

#[cfg(test)]
mod tests {
    use tenure_testkit::{RedisKind, RedisServer};

    use super::*;

    fn keys(words: &[&str]) -> Option<Vec<String>> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let known = KnownCommand::named(words[0]).filter(|known| known.takes(words.len()))?;
        let keys = known.keys(&words)?;
        Some(keys.into_iter().map(|key| String::from_utf8(key.to_vec()).unwrap()).collect())
    }

    #[test]
    fn the_keys_of_a_command_are_found() {
        for (words, expected) in [
            (&["set", "a", "1"][..], &["a"][..]),
            (&["DEL", "a", "b"], &["a", "b"]),
            (&["MSET", "a", "1", "b", "2"], &["a", "b"]),
            (&["SMOVE", "a", "b", "m"], &["a", "b"]),
            (&["BITOP", "AND", "a", "b"], &["a", "b"]),
            (&["XGROUP", "CREATE", "a", "g", "0"], &["a"]),
            (&["ZUNIONSTORE", "a", "2", "b", "c", "WEIGHTS", "1", "2"], &["a", "b", "c"]),
            (&["ZMPOP", "1", "a", "MIN"], &["a"]),
            (&["PUBLISH", "channel", "text"], &[]),
        ] {
            assert_eq!(keys(words).unwrap(), expected, "{words:?}");
        }
    }

    #[test]
    fn a_command_that_is_wrong_or_unknown_has_none() {
        for words in [
            &["SET", "a"][..],
            &["GET", "a", "b"],
            &["MSET", "a", "1", "b"],
            &["ZUNION", "3", "a", "b"],
            &["ZUNION", "0", "a"],
            &["ZUNION", "-1", "a"],
            &["ZUNION", "18446744073709551615", "a"],
            &["BLPOP", "a", "0"],
            &["EVAL", "return 1", "0"],
            &["FLUSHALL"],
            &[""],
        ] {
            assert_eq!(keys(words), None, "{words:?}");
        }
    }

    /// Words for a command, with the least number of them.
    fn sample(known: KnownCommand) -> Vec<String> {
        let mut words: Vec<String> =
            (0..known.arity.unsigned_abs()).map(|place| format!("k{place}")).collect();
        words[0] = known.name.to_owned();
        match known.places {
            // With one word, Redis 7.0 finds no keys in PFMERGE.
            KeyPlaces::All => words.push("more".to_owned()),
            KeyPlaces::Counted => words[1] = "1".to_owned(),
            KeyPlaces::OneAndCounted => words[2] = "1".to_owned(),
            KeyPlaces::Second => words = ["XGROUP", "DESTROY", "k2", "k3"].map(str::to_owned).to_vec(),
            _ => {}
        }
        words
    }

    #[test]
    fn the_servers_have_the_same_keys_and_numbers_of_words_and_allow_every_command_in_a_script() {
        for kind in RedisKind::ALL {
            let Some(server) = RedisServer::shared(kind) else { return };
            for known in KnownCommand::all() {
                let words = sample(known);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let info = server.command(&["COMMAND", "INFO", known.name]);
                let info: Vec<&str> = info.lines().collect();
                let arity: i8 = info[1].parse().unwrap();
                // A later version may take more words, or need a subcommand.
                let is_same = arity == known.arity || (arity < 0 && arity.abs() <= known.arity.abs());
                assert!(is_same, "{kind:?}: {} has {arity} words", known.name);
                for flag in ["blocking", "noscript", "admin"] {
                    assert!(!info.contains(&flag), "{kind:?}: {} is {flag}", known.name);
                }
                if known.places != KeyPlaces::None {
                    let theirs = server.command(&[&["COMMAND", "GETKEYS"], &words[..]].concat());
                    assert_eq!(keys(&words).unwrap().join("\n"), theirs, "{kind:?}: {words:?}");
                }
            }
        }
    }

    #[test]
    fn no_command_is_there_twice() {
        let mut names: Vec<_> = KnownCommand::all().map(|known| known.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
