use redis::Value;
use tenure_core::Token;
use tenure_fence::FencingToken;

/// Answer of the script.
#[derive(Debug, PartialEq)]
pub(crate) enum FenceAnswer {
    /// All commands were applied.
    Applied(Vec<Value>),
    /// A command failed with this error. Those before it were applied and have these replies; those behind it did not run.
    Failed { error: String, replies: Vec<Value> },
    /// The mark is of a greater token, or of another lease. Nothing was written.
    Mark(FencingToken),
    /// The mark shows less than this process has seen. Nothing was written.
    WentBack(Token),
    /// The latest grant in the record of the lease has another token. Nothing was written.
    Granted(Token),
    /// The mark is none. Nothing was written.
    ForeignMark,
    /// The record of the lease is none. Nothing was written.
    ForeignRecord,
}

impl FenceAnswer {
    /// The answer in this value; `None` if it is not an answer of the script. A proxy may have given it, and the commands may
    /// have been applied.
    pub(crate) fn of(value: Value) -> Option<Self> {
        let Value::Array(parts) = value else { return None };
        let mut parts = parts.into_iter();
        let word = match parts.next()? {
            Value::Int(1) => return Some(Self::Applied(parts.collect())),
            word => text(word)?,
        };
        let mut next = || parts.next().unwrap_or_default();
        Some(match word.as_str() {
            "failed" => {
                let error = text(next())?;
                // The replies have the number of an answer in front of them.
                let Self::Applied(replies) = Self::of(next())? else { return None };
                Self::Failed { error, replies }
            }
            "mark" => text(next())?.parse().map_or(Self::ForeignMark, Self::Mark),
            "went back" => text(next())?.parse().map_or(Self::ForeignMark, Self::WentBack),
            "granted" => text(next())?.parse().map_or(Self::ForeignRecord, Self::Granted),
            "foreign mark" => Self::ForeignMark,
            "foreign record" => Self::ForeignRecord,
            _ => return None,
        })
    }
}

/// A text. The error of a command may repeat bytes of its arguments.
fn text(value: Value) -> Option<String> {
    let Value::BulkString(bytes) = value else { return None };
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Value {
        Value::Array(texts.iter().map(|text| Value::BulkString(text.as_bytes().to_vec())).collect())
    }

    #[test]
    fn what_the_script_does_not_answer_is_no_answer() {
        for value in [
            Value::Nil,
            Value::Okay,
            Value::Array(Vec::new()),
            Value::Array(vec![Value::Int(0)]),
            texts(&["other"]),
            texts(&["failed", "error"]),
            texts(&["failed"]),
            texts(&["mark"]),
        ] {
            assert_eq!(FenceAnswer::of(value.clone()), None, "{value:?}");
        }
        assert_eq!(FenceAnswer::of(texts(&["mark", "billing=0"])), Some(FenceAnswer::ForeignMark));
        assert_eq!(FenceAnswer::of(texts(&["granted", "x"])), Some(FenceAnswer::ForeignRecord));
        let replies = vec![Value::Okay, Value::Int(1)];
        let all = Value::Array([&[Value::Int(1)], &replies[..]].concat());
        assert_eq!(FenceAnswer::of(all), Some(FenceAnswer::Applied(replies)));
    }
}
