//! Rules that choose the requests for a fault.

use percent_encoding::percent_decode_str;

use super::Fault;
use super::request::ProxiedRequest;

/// A fault, and the requests that it happens to: all of them, unless restricted.
#[derive(Debug, Clone)]
pub struct Rule {
    pub(crate) fault: Fault,
    pub(crate) orderly: bool,
    writes: Option<bool>,
    method: Option<String>,
    path: Option<String>,
    header: Option<String>,
    nth: Option<u64>,
    times: Option<u64>,
    chance: Option<(f64, fastrand::Rng)>,
    seen: u64,
    fired: u64,
}

impl Rule {
    /// This fault, for every request.
    pub fn new(fault: Fault) -> Self {
        Self {
            fault,
            orderly: false,
            writes: None,
            method: None,
            path: None,
            header: None,
            nth: None,
            times: None,
            chance: None,
            seen: 0,
            fired: 0,
        }
    }

    /// Only writes of records: a PUT, or a command of a database that contains a record.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.writes = Some(true);
        self
    }

    /// Only requests that write no record.
    #[must_use]
    pub fn reads(mut self) -> Self {
        self.writes = Some(false);
        self
    }

    /// Only requests with this method.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        self.method = Some(method.to_owned());
        self
    }

    /// Only requests whose path or query contains this. Clients differ in the characters that they escape, so escapes
    /// in the request count as what they stand for.
    #[must_use]
    pub fn path(mut self, part: &str) -> Self {
        self.path = Some(part.to_owned());
        self
    }

    /// Only commands of a database whose text contains this: the SQL or a parameter, or an argument of a command of
    /// Redis. `method` is the name of the command, such as `EVALSHA`, or for PostgreSQL `QUERY`, `EXECUTE` or `PREPARE`.
    #[must_use]
    pub fn containing(self, part: &str) -> Self {
        self.path(part)
    }

    /// Only requests with this header, such as `if-match`.
    #[must_use]
    pub fn header(mut self, name: &str) -> Self {
        self.header = Some(name.to_ascii_lowercase());
        self
    }

    /// Only the nth of them, counted from one since the rule was installed.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = Some(nth);
        self
    }

    /// At most this many times.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Each of them with this probability, from zero to one. The same seed chooses the same requests.
    #[must_use]
    pub fn chance(mut self, probability: f64, seed: u64) -> Self {
        self.chance = Some((probability, fastrand::Rng::with_seed(seed)));
        self
    }

    /// Closes cut connections in order instead of resetting them: clients detect that at another place in their code.
    #[must_use]
    pub fn orderly(mut self) -> Self {
        self.orderly = true;
        self
    }

    /// True if the fault applies to this request. It is called exactly once per request, so that counts and chances do
    /// not depend on the other rules.
    pub(crate) fn wants(&mut self, request: &dyn ProxiedRequest) -> bool {
        let matches = self.writes.is_none_or(|writes| writes == request.is_write())
            && self.method.as_ref().is_none_or(|method| *method == request.method())
            && self.path.as_ref().is_none_or(|part| contains(request.target(), part))
            && self.header.as_ref().is_none_or(|name| request.header(name).is_some());
        if !matches {
            return false;
        }
        self.seen += 1;
        let drawn = self.chance.as_mut().is_none_or(|(probability, rng)| rng.f64() < *probability);
        drawn
            && self.nth.is_none_or(|nth| nth == self.seen)
            && self.times.is_none_or(|times| self.fired < times)
    }

    pub(crate) fn fires(&mut self) {
        self.fired += 1;
    }
}

fn contains(target: &str, part: &str) -> bool {
    target.contains(part) || percent_decode_str(target).decode_utf8_lossy().contains(part)
}
