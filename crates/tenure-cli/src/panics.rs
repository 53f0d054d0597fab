/// From now on, a panic aborts this process. It must not unwind, which would release the lease while the work under it
/// still runs.
pub(crate) fn abort() {
    let panicked = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        panicked(info);
        std::process::abort();
    }));
}
