use std::time::Duration;

use crate::words::short;

/// Rate of sequential writes to one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteRate {
    /// Number of applied writes.
    pub writes: u32,
    /// Number of throttled writes.
    pub throttled: u32,
    /// Number of writes without a clear answer.
    pub failed: u32,
    /// Time until the last write was applied.
    pub took: Duration,
}

impl WriteRate {
    /// Mean interval between applied writes; `None` if no write was applied.
    pub fn interval(&self) -> Option<Duration> {
        (self.writes > 0).then(|| self.took / self.writes)
    }

    /// The observation, compared with the interval that the store declares, as a sentence.
    pub fn sentence(&self, declared: Duration) -> String {
        let Some(interval) = self.interval() else { return "not one was applied".to_owned() };
        let took = format!("{} in a row were applied, one every {}", self.writes, short(interval));
        let throttled = match self.throttled {
            0 => "none was throttled".to_owned(),
            throttled => format!("{throttled} more were throttled"),
        };
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(", {failed} had no clear answer"),
        };
        let declares = match declared {
            Duration::ZERO => "it declares no limit".to_owned(),
            declared => format!("it declares one every {}", short(declared)),
        };
        format!("{took}; {throttled}{failed}; {declares}")
    }

    /// The shortest sensible interval between writes of a key: the declared one, or longer if writes were throttled.
    pub(crate) fn sensible_interval(&self, declared: Duration) -> Duration {
        match self.interval() {
            Some(interval) if self.throttled > 0 => declared.max(interval),
            _ => declared,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_store_that_throttles_is_written_more_slowly_than_it_declares() {
        let second = Duration::from_secs(1);
        let quick = WriteRate { writes: 10, took: second, ..WriteRate::default() };
        assert_eq!(quick.interval(), Some(second / 10));
        assert_eq!(quick.sensible_interval(Duration::ZERO), Duration::ZERO);
        let throttled = WriteRate { throttled: 3, ..quick };
        assert_eq!(throttled.sensible_interval(Duration::ZERO), second / 10);
        assert_eq!(throttled.sensible_interval(second), second);
        assert_eq!(WriteRate::default().interval(), None);
    }
}
