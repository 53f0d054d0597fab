//! The process under the lease: it writes one number after the other under its token, whatever happens.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use tenure::fence::FencingToken;
use tenure::{Key, Token};

use super::target::Target;
use crate::run_support::appending;

pub(super) const ADDRESS: &str = "ACCIDENT_RESOURCE";
pub(super) const FENCED: &str = "ACCIDENT_FENCED";
pub(super) const LOG: &str = "ACCIDENT_LOG";
pub(super) const PID: &str = "ACCIDENT_PID";

/// The work of the writer, if this process is one. Each line of the log is one append: `begin TOKEN NUMBER` before the write is
/// sent, and `end TOKEN NUMBER OUTCOME` after its answer.
pub(crate) fn serve() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let variable = |name: &str| std::env::var(name).unwrap();
    let token: Token = variable("TENURE_TOKEN").parse().unwrap();
    let token = FencingToken::new(Key::parse(&variable("TENURE_NAME")).unwrap(), token).unwrap();
    let mut target = Target::open(&address, variable(FENCED) == "yes");
    let pid = variable(PID);
    fs::write(format!("{pid}.token"), format!("{}\n", token.token())).unwrap();
    fs::write(&pid, format!("{}\n", std::process::id())).unwrap();
    let mut log = appending(Path::new(&variable(LOG)));
    for number in 0u64.. {
        log.write_all(format!("begin {} {number}\n", token.token()).as_bytes()).unwrap();
        let outcome = match target.write(&token, number) {
            Ok(()) => "ok".to_owned(),
            Err(error) if error.is_stale() => "stale".to_owned(),
            Err(error) => error.to_string().replace('\n', " "),
        };
        log.write_all(format!("end {} {number} {outcome}\n", token.token()).as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// The token in this file, once it is complete.
pub(super) fn token_of(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.strip_suffix('\n')?.parse().ok()
}
