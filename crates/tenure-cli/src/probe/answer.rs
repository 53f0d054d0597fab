use serde_json::{Value, json};
use tenure_probe::{
    Advice, CheckOutcome, Clause, CleanUp, Fitness, Judged, Latency, Measured, Probe, Qualification, Quoting,
    Taken, Weight, WriteRate,
};
use tenure_store::Reach;

use crate::output::plain;
use crate::store::ChosenStore;
use crate::{args, duration, table};

/// The result of a probe, as text and as JSON.
pub(crate) struct ProbeAnswer<'a> {
    pub(crate) qualification: &'a Qualification,
    pub(crate) store: &'a ChosenStore,
    pub(crate) provider: Option<&'static str>,
    pub(crate) probe: &'a Probe,
    pub(crate) args: &'a args::Probe,
    pub(crate) cleaned: Option<&'a CleanUp>,
}

impl ProbeAnswer<'_> {
    pub(crate) fn words(&self) -> String {
        let mut text = table::lines(["CHECKED", "VERDICT", "WHAT WAS SEEN"], self.check_rows());
        text.push('\n');
        text.push_str(&table::lines(["ALSO SEEN", "WHAT IT MEANS"], self.other_rows()));
        text.push('\n');
        if let Some(advice) = &self.qualification.advice {
            let ttl = duration::exact(advice.timing.ttl().as_duration());
            text.push_str(&format!("A ttl of {ttl} or longer is recommended:\n"));
            for line in &advice.arithmetic {
                text.push_str(&format!("  {line}\n"));
            }
            text.push('\n');
        }
        let url = plain(&self.store.url());
        let fitness = &self.qualification.fitness;
        text.push_str(&match fitness {
            Fitness::Fit => format!("{url}: fit, for {}\n", self.reach()),
            Fitness::FitWithLimits(_) => format!("{url}: fit with limits, for {}\n", self.reach()),
            Fitness::Refused(_) => format!("{url}: refused\n"),
        });
        for reason in fitness.reasons() {
            text.push_str(&format!("  {}\n", plain(reason)));
        }
        text
    }

    /// A row for each clause, and another one for each of its failed checks.
    fn check_rows(&self) -> Vec<[String; 3]> {
        let mut rows = Vec::new();
        for clause in Clause::ALL {
            let of = |check: &&Judged| check.clause.name == clause.name;
            let checks: Vec<_> = self.qualification.checks.iter().filter(of).collect();
            let kept = checks.iter().filter(|check| check.verdict == CheckOutcome::Passed).count();
            let skipped = checks.iter().find_map(|check| match &check.verdict {
                CheckOutcome::Skipped(why) => Some(why.as_str()),
                _ => None,
            });
            let broken: Vec<_> =
                checks.iter().filter_map(|check| Some((check.check, check.broken()?))).collect();
            let mut seen = match kept {
                0 => Vec::new(),
                _ => vec![format!("{kept} of {} checks", checks.len())],
            };
            if clause.name == "races" {
                seen.push(format!("{} racers in {} rounds", self.args.racers, self.args.rounds));
            }
            let rest = if kept > 0 { "not tried: " } else { "" };
            seen.extend(skipped.map(|why| format!("{rest}{why}")));
            let verdict = match (broken.is_empty(), kept, clause.weight) {
                (true, 0, _) => "not tried",
                (true, _, _) => "kept",
                (false, _, Weight::Refuses) => "BROKEN",
                (false, _, Weight::Limits) => "limited",
            };
            rows.push([clause.title.to_owned(), verdict.to_owned(), plain(&seen.join("; "))]);
            for (check, why) in broken {
                rows.push([String::new(), String::new(), format!("not so: {check}: {}", plain(why))]);
            }
        }
        rows
    }

    fn other_rows(&self) -> Vec<[String; 2]> {
        let qualification = self.qualification;
        let equal_bytes = equal_bytes(qualification.equal_bytes_share_a_version);
        let provider = self.provider.map(|name| ["provider".to_owned(), format!("{name}, by its address")]);
        let mut rows: Vec<_> = provider.into_iter().collect();
        rows.push(["equal bytes".to_owned(), equal_bytes.to_owned()]);
        rows.extend(qualification.quoting.as_ref().map(|quoting| ["ETags".to_owned(), quoting.sentence()]));
        if let Some(measured) = &qualification.measured {
            let declared = self.store_guarantees().write_interval;
            rows.extend([
                ["its clock".to_owned(), measured.clock.sentence()],
                ["a read".to_owned(), measured.read.to_string()],
                ["a create".to_owned(), measured.create.to_string()],
                ["a replace".to_owned(), measured.replace.to_string()],
                ["writes of one key".to_owned(), measured.rate.sentence(declared)],
            ]);
        }
        let calls = self.probe.calls();
        rows.push([
            "calls".to_owned(),
            format!(
                "{} in all: {} writes, {} reads, {} listings, {} removals",
                calls.total(),
                calls.writes,
                calls.reads,
                calls.lists,
                calls.removals
            ),
        ]);
        rows
    }

    fn reach(&self) -> &'static str {
        match self.store_guarantees().reach {
            Reach::Network => "any number of machines",
            Reach::Machine => "all processes of one machine",
            // Unknown reaches count as the smallest.
            _ => "one process",
        }
    }

    fn store_guarantees(&self) -> tenure_store::Guarantees {
        self.probe.guarantees()
    }

    pub(crate) fn json(&self) -> Value {
        let qualification = self.qualification;
        let calls = self.probe.calls();
        json!({
            "store": self.store.url(),
            "provider": self.provider,
            "fitness": match &qualification.fitness {
                Fitness::Fit => "fit",
                Fitness::FitWithLimits(_) => "fit-with-limits",
                Fitness::Refused(_) => "refused",
            },
            "reasons": qualification.fitness.reasons(),
            "reach": self.store_guarantees().reach.to_string(),
            "checks": qualification.checks.iter().map(check).collect::<Vec<_>>(),
            "equal_bytes_share_a_version": qualification.equal_bytes_share_a_version,
            "etags": qualification.quoting.as_ref().map(etags),
            "measured": qualification.measured.as_ref().map(|measured| self.measured(measured)),
            "ttl": qualification.advice.as_ref().map(ttl),
            "calls": {
                "writes": calls.writes,
                "reads": calls.reads,
                "lists": calls.lists,
                "removals": calls.removals,
                "total": calls.total(),
                "expected": self.probe.calls_expected(),
            },
            "cleaned": self.cleaned.map(|cleaned| json!({
                "scratch_area": cleaned.scratch_area,
                "removed": cleaned.removed,
                "left": cleaned.left,
                "why": cleaned.why,
                "older": cleaned.older,
            })),
        })
    }

    fn measured(&self, measured: &Measured) -> Value {
        let WriteRate { writes, throttled, failed, took, .. } = measured.rate;
        let clock = &measured.clock;
        json!({
            "read": latency(&measured.read),
            "create": latency(&measured.create),
            "replace": latency(&measured.replace),
            "writes_of_one_key": {
                "applied": writes,
                "throttled": throttled,
                "failed": failed,
                "took_ms": took.as_millis() as u64,
                "interval_us": measured.rate.interval().map(|interval| interval.as_micros() as u64),
                "declared_interval_ms": self.store_guarantees().write_interval.as_millis() as u64,
            },
            "clock": {
                "told": clock.told,
                "untold": clock.untold,
                "implausible": clock.implausible,
                "back_ms": clock.back.as_millis() as u64,
                "ahead_ms": clock.ahead_ms,
                "means": clock.sentence(),
            },
        })
    }
}

fn check(check: &Judged) -> Value {
    let (verdict, seen) = match &check.verdict {
        CheckOutcome::Passed => ("kept", None),
        CheckOutcome::Failed(why) => ("broken", Some(why)),
        CheckOutcome::Skipped(why) => ("not-tried", Some(why)),
    };
    let weight = match check.clause.weight {
        Weight::Refuses => "refuses",
        Weight::Limits => "limits",
    };
    json!({
        "clause": check.clause.name,
        "check": check.check,
        "verdict": verdict,
        "seen": seen,
        "note": Some(&check.note).filter(|note| !note.is_empty()),
        "weight": weight,
    })
}

fn etags(quoting: &Quoting) -> Value {
    let word = |taken: Taken| match taken {
        Taken::Compared => "compared",
        Taken::NeverMatches => "never-matches",
        Taken::Ignored => "ignored",
        _ => "unclear",
    };
    json!({
        "quoted": word(quoting.quoted),
        "bare": word(quoting.bare),
        "used": if quoting.bare_is_used { "bare" } else { "quoted" },
        "means": quoting.sentence(),
    })
}

fn latency(latency: &Latency) -> Value {
    let micros = |span: std::time::Duration| span.as_micros() as u64;
    json!({
        "samples": latency.samples,
        "failed": latency.failed,
        "p50_us": micros(latency.p50),
        "p90_us": micros(latency.p90),
        "p99_us": micros(latency.p99),
        "max_us": micros(latency.max),
    })
}

fn ttl(advice: &Advice) -> Value {
    let millis = |span: std::time::Duration| span.as_millis() as u64;
    json!({
        "recommended_ms": advice.timing.ttl().as_millis(),
        "timeout_ms": millis(advice.timing.timeout()),
        "period_ms": millis(advice.timing.period()),
        "call_ms": millis(advice.call),
        "interval_ms": millis(advice.interval),
        "arithmetic": advice.arithmetic,
    })
}

fn equal_bytes(share: Option<bool>) -> &'static str {
    match share {
        Some(true) => "have an equal version, which does no harm: every write of a lease has different bytes",
        Some(false) => "have another version with each write",
        None => "not known: the writes were not applied",
    }
}
