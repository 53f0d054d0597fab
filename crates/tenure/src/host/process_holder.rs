use tenure_core::{Holder, HolderError};

/// A holder named after this host and a process on it, such as `host-a:4711`.
pub fn process_holder(process: u32) -> Result<Holder, HolderError> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host = if host.is_empty() { "unnamed-host" } else { &host };
    Holder::new(&format!("{host}:{process}"))
}
