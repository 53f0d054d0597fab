use std::convert::Infallible;
use std::time::Duration;

use serde_json::json;
use tenure::clock::{BootClock, Clock};

use crate::output;
use crate::progress::{Importance, Notice, ProgressOutput};
use crate::repetition::Repetition;
use crate::store_errors::StoreErrors;

/// Messages about a store that fails while a command waits for a lease or a slot. The wait continues, and the user needs to
/// know the cause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreTrouble<'a> {
    pub(crate) progress: &'a ProgressOutput,
    pub(crate) errors: &'a StoreErrors,
}

impl StoreTrouble<'_> {
    /// Waits for the grant of `what`. Meanwhile reports the errors of the store, the same one at growing intervals. The
    /// error of the first attempt is reported already if `is_said`.
    pub(crate) async fn report_while<T>(
        &self,
        what: &str,
        is_said: bool,
        granted: impl Future<Output = T>,
    ) -> T {
        tokio::select! {
            granted = granted => granted,
            never = self.report_each(what, is_said) => match never {},
        }
    }

    async fn report_each(&self, what: &str, is_said: bool) -> Infallible {
        let clock = BootClock::new();
        let mut repetition = Repetition::new();
        if is_said {
            repetition.repeated(clock.now());
        }
        loop {
            self.errors.lasting(SILENT_MAX).await;
            clock.sleep_until(repetition.due(clock.now())).await;
            while let Some(cause) = self.errors.latest() {
                repetition.repeated(clock.now());
                say_unavailable(self.progress, &format!("still waiting for {what}"), &cause);
                tokio::select! {
                    () = clock.sleep_until(repetition.due(clock.now())) => {}
                    () = self.errors.over() => self.say_available(what),
                }
            }
        }
    }

    fn say_available(&self, what: &str) {
        self.progress.say(&Notice {
            name: "available",
            fields: json!({}),
            sentence: format!("the store answers again: still waiting for {what}"),
            importance: Importance::News,
        });
    }
}

/// Reports the cause why the store cannot be used, and what the command does in spite of it.
pub(crate) fn say_unavailable(progress: &ProgressOutput, still: &str, cause: &str) {
    progress.say(&Notice {
        name: "unavailable",
        fields: json!({ "message": cause }),
        sentence: format!("{still}: {}", output::plain(cause)),
        importance: Importance::News,
    });
}

/// Time for which calls may fail without a message: a store that is busy for a moment is no trouble.
const SILENT_MAX: Duration = Duration::from_secs(1);
