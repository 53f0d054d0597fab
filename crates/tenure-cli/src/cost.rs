use std::time::Duration;

use serde::Serialize;
use tenure::{Error, Timing};

use crate::args::Run;
use crate::prices::{Charge, Prices};
use crate::{duration, table};

/// The cost of a lease on a store that charges per request. The fields and their names are a contract:
/// `docs/reference/command/status.md`.
#[derive(Debug, Serialize)]
pub(crate) struct Cost {
    ttl_ms: u64,
    /// True if the record has this ttl. Otherwise it is the default of `tenure run`.
    ttl_is_of_the_lease: bool,
    /// Renewals of the holder.
    held: Part,
    /// Reads of each waiting contender.
    waiting: Part,
    prices: Option<PricesTold>,
    #[serde(skip)]
    charge: Charge,
}

/// Requests of one process, all of the same kind.
#[derive(Debug, Serialize)]
struct Part {
    request: &'static str,
    per_hour: u64,
    per_month: u64,
    usd_per_month: Option<f64>,
}

#[derive(Debug, Serialize)]
struct PricesTold {
    of: &'static str,
    date: &'static str,
    usd_per_thousand_writes: f64,
    usd_per_thousand_reads: f64,
    free: Option<&'static str>,
}

impl Cost {
    /// The cost of a lease with this ttl, if its record has one.
    pub(crate) fn of(ttl: Option<Duration>, charge: Charge) -> Result<Self, Error> {
        let timing = Timing::new(ttl.unwrap_or(Run::TTL))?;
        let prices = match charge {
            Charge::Each(prices) => Some(prices),
            _ => None,
        };
        let part = |request, in_span: &dyn Fn(Duration) -> u64, price: Option<u64>| {
            let per_month = in_span(MONTH);
            let usd_per_month = price.map(|price| usd(u128::from(per_month) * u128::from(price)));
            Part { request, per_hour: in_span(HOUR), per_month, usd_per_month }
        };
        Ok(Self {
            ttl_ms: timing.ttl().as_millis(),
            ttl_is_of_the_lease: ttl.is_some(),
            held: part("PUT", &|span| timing.renewals_in(span), prices.map(|prices| prices.write)),
            waiting: part("GET", &|span| timing.looks_in(span), prices.map(|prices| prices.read)),
            prices: prices.map(PricesTold::from),
            charge,
        })
    }

    /// The cost as text.
    pub(crate) fn text(&self) -> String {
        let ttl = duration::exact(Duration::from_millis(self.ttl_ms));
        let whose = if self.ttl_is_of_the_lease {
            format!("With its ttl of {ttl}")
        } else {
            format!("With a ttl of {ttl}, the default of tenure run")
        };
        if self.charge == Charge::Nothing {
            return format!("{whose}, it is renewed {} times per hour, at no cost.\n", self.held.per_hour);
        }
        let row = |who: &str, part: &Part| {
            let counted = |number| format!("{} {}", grouped(number), part.request);
            let money = part.usd_per_month.map_or("?".to_owned(), |usd| format!("{usd:.2} $"));
            [who.to_owned(), counted(part.per_hour), counted(part.per_month), money]
        };
        let rows = vec![row("the holder", &self.held), row("each contender", &self.waiting)];
        let table = table::lines(["WHO", "IN AN HOUR", "IN 30 DAYS", "COSTS IN 30 DAYS"], rows);
        let prices = match &self.prices {
            None => "No price is known for this server.\n".to_owned(),
            Some(prices) => format!(
                "Prices of {}, looked up in {}: {} $ for a thousand PUT, {} $ for a thousand GET{}. Check your own \
                 prices.\n",
                prices.of,
                prices.date,
                prices.usd_per_thousand_writes,
                prices.usd_per_thousand_reads,
                prices.free.map(|free| format!("; {free}")).unwrap_or_default(),
            ),
        };
        format!("{whose}:\n{table}{prices}")
    }
}

impl From<Prices> for PricesTold {
    fn from(prices: Prices) -> Self {
        Self {
            of: prices.of,
            date: prices.date,
            usd_per_thousand_writes: usd(1_000 * u128::from(prices.write)),
            usd_per_thousand_reads: usd(1_000 * u128::from(prices.read)),
            free: prices.free,
        }
    }
}

/// Billionths of a dollar as dollars.
fn usd(nanos: u128) -> f64 {
    nanos as f64 / 1e9
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const HOUR: Duration = Duration::from_secs(3600);
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(15);

    #[test]
    fn a_lease_that_is_held_for_a_month_costs_less_than_three_dollars_at_aws() {
        let cost = Cost::of(Some(TTL), Charge::Each(Prices::of("AWS S3").unwrap())).unwrap();
        let expected = "\
With its ttl of 15s:
WHO             IN AN HOUR   IN 30 DAYS  COSTS IN 30 DAYS
the holder      758 PUT     545,685 PUT  2.73 $
each contender  833 GET     600,253 GET  0.24 $
Prices of AWS S3, us-east-1, looked up in 2026-09: 0.005 $ for a thousand PUT, 0.0004 $ for a thousand GET. Check your own prices.
";
        assert_eq!(anstream::adapter::strip_str(&cost.text()).to_string(), expected);
    }

    #[test]
    fn a_private_server_has_requests_and_no_prices() {
        let cost = Cost::of(Some(TTL), Charge::Unknown).unwrap();
        let text = anstream::adapter::strip_str(&cost.text()).to_string();
        assert!(text.contains("the holder      758 PUT     545,685 PUT  ?\n"), "{text}");
        assert!(text.ends_with("No price is known for this server.\n"), "{text}");
    }

    #[test]
    fn a_directory_costs_nothing() {
        let cost = Cost::of(None, Charge::Nothing).unwrap();
        assert_eq!(
            cost.text(),
            "With a ttl of 15s, the default of tenure run, it is renewed 758 times per hour, at no cost.\n"
        );
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
