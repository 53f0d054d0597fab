use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use super::stat::Stat;

/// Sets the name of this process, as `ps`, `pkill` and `pidof` see it.
///
/// If that fails, the process keeps its name: nothing else depends on it.
pub(crate) fn set(title: &str) {
    if let Ok(name) = CString::new(title) {
        let _ = rustix::thread::set_name(&name);
    }
    let _ = overwrite_arguments(title);
}

/// The kernel reads the arguments from the memory of the process.
fn overwrite_arguments(title: &str) -> Option<()> {
    let stat = fs::read("/proc/self/stat").ok()?;
    let stat = Stat::parse(&stat)?;
    // arg_start and arg_end.
    let (start, end) = (stat.value::<u64>(48)?, stat.value::<u64>(49)?);
    let room = usize::try_from(end.checked_sub(start)?).ok()?;
    let mut arguments: Vec<u8> = title.bytes().take(room.checked_sub(1)?).collect();
    arguments.resize(room, 0);
    OpenOptions::new().write(true).open("/proc/self/mem").ok()?.write_all_at(&arguments, start).ok()
}
