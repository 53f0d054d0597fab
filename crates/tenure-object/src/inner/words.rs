//! Messages for answers that are not results.

use super::{Dialect, RequestKind};
use crate::wire::{AnswerText, ServerAnswer};

/// Describes what happened and what to do about it, as the end of a sentence.
pub(crate) fn of<D: Dialect>(dialect: &D, asked: RequestKind, answer: &ServerAnswer) -> String {
    with(general::<D>(answer).or_else(|| dialect.advice(asked, answer)), answer)
}

/// Describes an answer with this advice.
pub(super) fn with(advice: Option<String>, answer: &ServerAnswer) -> String {
    let said = match &answer.text {
        AnswerText::Error { code, message } if message.is_empty() => format!("{} {code}", answer.status),
        AnswerText::Error { code, message } => {
            format!("{} {code}: {}", answer.status, message.trim_end_matches('.'))
        }
        AnswerText::Nothing | AnswerText::WantsTls | AnswerText::Foreign => answer.status.to_string(),
    };
    let request = answer.request_id.as_ref().map(|id| format!(", request {id}")).unwrap_or_default();
    match advice {
        Some(advice) => format!("{advice} (it answered {said}{request})"),
        None => format!("it answered {said}{request}"),
    }
}

/// Advice that does not depend on the dialect: the answer does not come from the store itself.
fn general<D: Dialect>(answer: &ServerAnswer) -> Option<String> {
    if answer.status == 407 {
        return Some(match &answer.proxy {
            Some(proxy) => proxy.wants_password(),
            None => {
                "a proxy requires a name and a password: put them into HTTPS_PROXY or HTTP_PROXY".to_owned()
            }
        });
    }
    if let Some(age) = answer.cached_for {
        return Some(format!(
            "a cache on the way answered, with a state that is {} s old: make it forward every request to the store",
            age.as_secs()
        ));
    }
    let protocol = D::PROTOCOL;
    match (&answer.text, &answer.proxy) {
        (AnswerText::WantsTls, _) => Some("it is encrypted there: write https:// in the endpoint".to_owned()),
        (AnswerText::Foreign, Some(proxy)) => {
            Some(format!("the proxy {proxy}, or the server behind it, does not speak {protocol}"))
        }
        (AnswerText::Foreign, None) => Some(format!("the server there does not speak {protocol}")),
        (AnswerText::Nothing | AnswerText::Error { .. }, _) => None,
    }
}

/// Message for a machine whose clock the server does not accept.
pub(crate) fn wrong_clock(answer: &ServerAnswer) -> String {
    match answer.ahead() {
        Some(ahead) => format!(
            "this machine's clock is {} s {} the store's, which refuses requests with such a time: set the clock",
            ahead.abs(),
            if ahead < 0 { "behind" } else { "ahead of" }
        ),
        None => "this machine's clock is too far off from the store's: set it".to_owned(),
    }
}
