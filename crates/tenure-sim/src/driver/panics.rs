//! Panics that the simulation causes on purpose.

use std::any::Any;
use std::sync::Once;

/// Panics as foreign code may.
pub(super) fn simulated(whose: &str) -> ! {
    panic!("{PREFIX} of {whose}")
}

/// The message of a panic.
pub(super) fn message(payload: &(dyn Any + Send)) -> String {
    text(payload).unwrap_or("without a message").to_owned()
}

fn text(payload: &dyn Any) -> Option<&str> {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
}

/// Keeps simulated panics, and all panics of a mutant, from printing.
pub(super) fn be_quiet_about_simulated() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let said = text(panic.payload()).unwrap_or_default();
            if !said.starts_with(PREFIX) {
                if !super::world::runs_mutant() {
                    print(panic);
                }
                super::world::panicked(said);
            }
        }));
    });
}

const PREFIX: &str = "simulated panic";
