use std::time::Duration;

use crate::Error;
use crate::clock::Instant;

/// The causes of failed reads that were reported since the latest successful read. A cause that lasts is reported again
/// after growing pauses.
#[derive(Debug, Default)]
pub(crate) struct ReportedCauses(Vec<ReportedCause>);

#[derive(Debug)]
struct ReportedCause {
    cause: String,
    /// Time of the next report, and the pause after it.
    next: Instant,
    pause: Duration,
}

impl ReportedCauses {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in a failed read. True if the caller is to report it now.
    pub(crate) fn is_due(&mut self, error: &Error, now: Instant) -> bool {
        let cause = without_ids(&error.to_string());
        if let Some(known) = self.0.iter_mut().find(|known| known.cause == cause) {
            let is_due = known.next <= now;
            if is_due {
                known.next = now + known.pause;
                known.pause = (known.pause * 2).min(PAUSE_MAX);
            }
            return is_due;
        }
        if self.0.len() == CAUSES_MAX {
            self.0.remove(0);
        }
        self.0.push(ReportedCause { cause, next: now + PAUSE_FIRST, pause: 2 * PAUSE_FIRST });
        true
    }
}

/// The sentence without the ids of requests, which are different in each answer: words after *request*, and long words
/// with a digit that are no name of a key or a store.
fn without_ids(sentence: &str) -> String {
    let mut after_request = false;
    let words = sentence.split(' ').map(|word| {
        let id = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let follows = std::mem::replace(&mut after_request, word == "request");
        let is_long = id.len() >= LONG_ID && !id.contains(['/', ':', '.']);
        if (follows || is_long) && id.bytes().any(|byte| byte.is_ascii_digit()) { "#" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Pause before a cause is reported again. Each following pause is twice as long, up to the maximum.
const PAUSE_FIRST: Duration = Duration::from_secs(60);
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// Number of causes to remember. A store that fails has one or two.
const CAUSES_MAX: usize = 8;

/// Length from which a word with a digit is an id. The ids of S3 have 16 characters, those of other stores more.
const LONG_ID: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn error(sentence: &str) -> Error {
        Error::new(ErrorKind::Unavailable, sentence.to_owned())
    }

    #[test]
    fn a_cause_that_lasts_is_reported_after_one_two_and_four_minutes_and_then_every_hour() {
        let mut causes = ReportedCauses::default();
        let hours = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let reports = (0..40_000).filter(|second| causes.is_due(&error("it answered 403"), hours(*second)));
        let reports: Vec<_> = reports.collect();
        assert_eq!(reports[..5], [0, 60, 180, 420, 900], "{reports:?}");
        let last = reports.last_chunk::<2>().unwrap();
        assert_eq!(last[1] - last[0], 3600, "{reports:?}");
    }

    #[test]
    fn another_id_is_the_same_cause_and_another_status_is_not() {
        let mut causes = ReportedCauses::default();
        let now = Instant::from_nanos(1);
        let answers = [
            ("lease k on s3://b: it answered 403 AccessDenied, request 17A", true),
            ("lease k on s3://b: it answered 403 AccessDenied, request 9C", false),
            ("lease k on s3://b: it answered 500 InternalError, request 9C", true),
            ("lease k on s3://b: it answered 500 InternalError, request 9D", false),
            ("lease k on s3://b: it answered 403 AccessDenied, request 9E", false),
            ("lease k on gs://b: it answered 500 (AB4g-xY7_Q12345678)", true),
            ("lease k on gs://b: it answered 500 (QZ9g-xY7_Q99999999)", false),
            ("lease billing/nightly-2026-11-16 on gs://b: it answered 500", true),
            ("lease billing/nightly-2026-11-17 on gs://b: it answered 500", true),
        ];
        for (sentence, is_due) in answers {
            assert_eq!(causes.is_due(&error(sentence), now), is_due, "{sentence}");
        }
    }
}
