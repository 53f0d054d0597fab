use tenure_core::{Holder, HolderError};

use super::this_process::host_name;

/// A holder named after this host and a process on it, such as `host-a:4711`.
pub fn process_holder(process: u32) -> Result<Holder, HolderError> {
    let host = host_name();
    let host = if host.is_empty() { "unnamed-host" } else { &host };
    Holder::new(&format!("{host}:{process}"))
}
