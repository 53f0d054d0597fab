use serde_json::{Value, json};

/// Outcome of an attack, with the evidence for it.
#[derive(Clone, Debug)]
pub(crate) enum AttackVerdict {
    /// The promise held.
    Held(String),
    /// The promise did not hold, or a step of the attack failed.
    Broken(String),
    /// This machine lacks something that the attack needs.
    Skipped(String),
    /// The documentation says that Tenure does not promise this.
    KnownLimit(String),
}

/// Result of an attack. The error is the evidence: a required step failed.
pub(crate) type AttackOutcome = Result<AttackVerdict, String>;

impl AttackVerdict {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Held(_) => "held",
            Self::Broken(_) => "BROKEN",
            Self::Skipped(_) => "SKIPPED",
            Self::KnownLimit(_) => "known limit",
        }
    }

    /// The evidence, on one line.
    pub(crate) fn evidence(&self) -> String {
        match self {
            Self::Held(text) | Self::Broken(text) | Self::Skipped(text) | Self::KnownLimit(text) => {
                text.lines().collect::<Vec<_>>().join(" | ")
            }
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({ "verdict": self.word(), "evidence": self.evidence() })
    }

    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let text = value.get("evidence")?.as_str()?.to_owned();
        match value.get("verdict")?.as_str()? {
            "held" => Some(Self::Held(text)),
            "BROKEN" => Some(Self::Broken(text)),
            "SKIPPED" => Some(Self::Skipped(text)),
            "known limit" => Some(Self::KnownLimit(text)),
            _ => None,
        }
    }
}

/// The promise held.
pub(crate) fn held(evidence: impl Into<String>) -> AttackOutcome {
    Ok(AttackVerdict::Held(evidence.into()))
}

/// The promise did not hold.
pub(crate) fn broken(evidence: impl Into<String>) -> AttackOutcome {
    Ok(AttackVerdict::Broken(evidence.into()))
}

/// This machine lacks something that the attack needs.
pub(crate) fn skipped(why: impl Into<String>) -> AttackOutcome {
    Ok(AttackVerdict::Skipped(why.into()))
}

/// A limit that the documentation names. The verdict is `Broken` if `page` does not contain `phrase`.
pub(crate) fn known_limit(page: &str, phrase: &str, evidence: &str) -> AttackOutcome {
    let path = format!("{}/../../{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{page}: {error}"))?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.contains(phrase) {
        Ok(AttackVerdict::KnownLimit(format!("{evidence}; {page}: {phrase:?}")))
    } else {
        broken(format!("{evidence}; {page} does not contain {phrase:?}"))
    }
}
