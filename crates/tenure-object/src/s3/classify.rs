//! Meaning of an answer. Its status and its code decide, never the report of the client library.

use tenure_store::Reason;

use crate::wire::{AnswerText, ServerAnswer};

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Read,
    /// A read with `If-None-Match`: returns a value only if it has changed.
    ReadAgain,
    /// A write with `If-None-Match: *`.
    Create,
    /// A write with `If-Match`.
    Replace,
    List,
}

/// Meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerMeaning {
    /// The request succeeded.
    Done,
    /// The object does not exist.
    Absent,
    /// The object has not changed.
    Unchanged,
    /// The object is not the expected one, so the write did not happen.
    Conflict,
    /// The write may have happened, or may still happen.
    Unknown,
    /// The store requests fewer calls.
    Throttled,
    /// The request certainly had no effect.
    Refused(Reason),
}

pub(super) fn classify(asked: RequestKind, answer: &ServerAnswer) -> AnswerMeaning {
    let write = matches!(asked, RequestKind::Create | RequestKind::Replace);
    match answer.status {
        _ if answer.is_success() => AnswerMeaning::Done,
        412 if write => AnswerMeaning::Conflict,
        // Old versions of MinIO answer this to a create of an existing object.
        304 if write => AnswerMeaning::Conflict,
        304 if asked == RequestKind::ReadAgain => AnswerMeaning::Unchanged,
        404 if is_one_of(answer, NO_BUCKET) => AnswerMeaning::Refused(Reason::Invalid),
        404 => missing(asked, answer),
        // Another write was in progress. S3 does not say which of the two was applied.
        409 => AnswerMeaning::Unknown,
        // A proxy that answers this forwards nothing.
        407 => AnswerMeaning::Refused(Reason::Unreachable),
        429 => AnswerMeaning::Throttled,
        503 if answer.retry_after.is_some() || is_one_of(answer, THROTTLING) => AnswerMeaning::Throttled,
        400 => bad_request(answer),
        401 | 403 => AnswerMeaning::Refused(Reason::Denied),
        405 | 501 => AnswerMeaning::Refused(Reason::Unsupported),
        // A new bucket whose name is not known everywhere yet.
        307 => AnswerMeaning::Refused(Reason::Unreachable),
        301 | 302 | 303 | 308 => AnswerMeaning::Refused(Reason::Invalid),
        _ => AnswerMeaning::Unknown,
    }
}

fn missing(asked: RequestKind, answer: &ServerAnswer) -> AnswerMeaning {
    match asked {
        // No S3 server answers with an HTML page.
        _ if answer.text == AnswerText::Foreign => match asked {
            RequestKind::Read | RequestKind::ReadAgain | RequestKind::List => {
                AnswerMeaning::Refused(Reason::Unsupported)
            }
            RequestKind::Create | RequestKind::Replace => AnswerMeaning::Unknown,
        },
        RequestKind::Read | RequestKind::ReadAgain => AnswerMeaning::Absent,
        RequestKind::Replace => AnswerMeaning::Conflict,
        RequestKind::Create | RequestKind::List => AnswerMeaning::Unknown,
    }
}

fn bad_request(answer: &ServerAnswer) -> AnswerMeaning {
    match answer {
        _ if is_one_of(answer, STALE_TOKEN) => AnswerMeaning::Refused(Reason::Denied),
        _ if is_one_of(answer, OTHER_REGION) || is_one_of(answer, BAD_NAME) => {
            AnswerMeaning::Refused(Reason::Invalid)
        }
        // The request arrived damaged. It is unknown whether it had another effect.
        _ if is_one_of(answer, DAMAGED_ON_THE_WAY) => AnswerMeaning::Unknown,
        _ => AnswerMeaning::Refused(Reason::Unsupported),
    }
}

pub(super) fn is_one_of(answer: &ServerAnswer, codes: &[&str]) -> bool {
    codes.contains(&answer.code())
}

/// Describes what happened and what to do about it, as the end of a sentence.
pub(super) fn words(asked: RequestKind, answer: &ServerAnswer, bucket: &str) -> String {
    let advice = advice(asked, answer, bucket);
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

fn advice(asked: RequestKind, answer: &ServerAnswer, bucket: &str) -> Option<String> {
    if answer.status == 407 {
        return Some(match &answer.proxy {
            Some(proxy) => proxy.wants_password(),
            None => {
                "a proxy requires a name and a password: put them into HTTPS_PROXY or HTTP_PROXY".to_owned()
            }
        });
    }
    match (&answer.text, &answer.proxy) {
        (AnswerText::WantsTls, _) => {
            return Some("it is encrypted there: write https:// in the endpoint".to_owned());
        }
        (AnswerText::Foreign, Some(proxy)) => {
            return Some(format!("the proxy {proxy}, or the server behind it, does not speak S3"));
        }
        (AnswerText::Foreign, None) => return Some("the server there does not speak S3".to_owned()),
        (AnswerText::Nothing | AnswerText::Error { .. }, _) => {}
    }
    if is_one_of(answer, &["RequestTimeTooSkewed"]) {
        return Some(match answer.ahead() {
            Some(ahead) => format!(
                "this machine's clock is {} s {} the store's, which refuses requests with so wrong a time: set the \
                 clock",
                ahead.abs(),
                if ahead < 0 { "behind" } else { "ahead of" }
            ),
            None => "this machine's clock is too far off from the store's: set it".to_owned(),
        });
    }
    if is_one_of(answer, NO_BUCKET) {
        return Some(format!("there is no bucket {bucket:?}: create it, or correct the URL"));
    }
    if is_one_of(answer, OTHER_REGION) || matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
        let region = answer.region.as_ref().map(|region| format!(": write region={region} in the URL"));
        let otherwise = ": name its region and endpoint in the URL".to_owned();
        return Some(format!("the bucket {bucket:?} is not here{}", region.unwrap_or(otherwise)));
    }
    if is_one_of(answer, STALE_TOKEN) {
        return Some("the session token is invalid or has expired: get new credentials".to_owned());
    }
    if is_one_of(answer, &["InvalidAccessKeyId", "SignatureDoesNotMatch"]) {
        return Some(
            "the access key is not known there, or its secret is wrong: correct the credentials".to_owned(),
        );
    }
    // AWS requires a checksum for buckets with retention. Tenure does not send one: see `RETENTION_RULE`.
    if let AnswerText::Error { message, .. } = &answer.text
        && (message.contains("Object Lock") || message.contains("Content-MD5"))
    {
        return Some(format!("the bucket {bucket:?} keeps every write: {RETENTION_RULE}"));
    }
    if is_one_of(answer, BAD_NAME) {
        return Some("it rejects the name of the object: choose a shorter key".to_owned());
    }
    match (answer.status, asked) {
        (401 | 403, RequestKind::List) => {
            Some(format!("the credentials may not list: allow s3:ListBucket on {bucket}"))
        }
        (401 | 403, RequestKind::Read | RequestKind::ReadAgain) => Some(format!(
            "the credentials may not read: allow s3:GetObject on the objects, and s3:ListBucket on {bucket}: without \
             it, S3 hides that an object is missing"
        )),
        (401 | 403, _) => Some(
            "the credentials may not write: allow s3:PutObject and s3:GetObject on the objects, which no lock or \
             retention rule may protect"
                .to_owned(),
        ),
        (400 | 405 | 501, RequestKind::Create | RequestKind::Replace) => {
            Some("it rejects conditional writes, which leases need: use another store".to_owned())
        }
        _ => None,
    }
}

/// Problem of a bucket whose retention rule locks every written version.
pub(super) const RETENTION_RULE: &str = "its retention rule would lock a version at every renewal, and no user could \
remove it: use a bucket without such a rule";

const NO_BUCKET: &[&str] = &["NoSuchBucket"];

const THROTTLING: &[&str] = &[
    "SlowDown",
    "SlowDownRead",
    "SlowDownWrite",
    "Throttling",
    "ThrottlingException",
    "RequestLimitExceeded",
    "TooManyRequests",
];

const STALE_TOKEN: &[&str] = &[
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidToken",
    "InvalidTokenId",
    "TokenRefreshRequired",
    "RequestExpired",
];

const OTHER_REGION: &[&str] = &[
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "PermanentRedirect",
    "TemporaryRedirect",
];

/// Some servers accept fewer bytes than S3 between two slashes.
const BAD_NAME: &[&str] = &["KeyTooLongError", "KeyTooLong", "XMinioInvalidObjectName", "InvalidObjectName"];

const DAMAGED_ON_THE_WAY: &[&str] =
    &["RequestTimeout", "IncompleteBody", "BadDigest", "XAmzContentSHA256Mismatch"];

/// Message for repeated refusals of a replace of the current version.
pub(super) fn wrong_quoting(bare: bool) -> String {
    let advice = if bare {
        "it seems to want ETags with their quotes: take etags=bare out of the URL"
    } else {
        "it seems to want ETags without their quotes: write etags=bare in the URL"
    };
    format!("the server refuses to replace the version that it shows; {advice}, and run tenure probe")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use AnswerMeaning::{Absent, Conflict, Done, Refused, Throttled, Unknown};
    use Reason::{Denied, Invalid, Unreachable, Unsupported};
    use RequestKind::{Create, List, Read, ReadAgain, Replace};

    use super::*;

    fn answer(status: u16, code: &str) -> ServerAnswer {
        let text = match code {
            "" => AnswerText::Nothing,
            "<html>" => AnswerText::Foreign,
            code => AnswerText::Error { code: code.into(), message: "Told so.".into() },
        };
        ServerAnswer { status, text, ..ServerAnswer::default() }
    }

    /// Every row: status, code, and its meaning for a read, a create, a replace and a listing.
    #[test]
    fn each_answer_means_one_thing_to_each_call() {
        let all = |meaning| [meaning; 4];
        let table: [(u16, &str, [AnswerMeaning; 4]); 46] = [
            (200, "", all(Done)),
            (204, "", all(Done)),
            // Another writer was first, or the object exists.
            (412, "PreconditionFailed", [Unknown, Conflict, Conflict, Unknown]),
            (412, "", [Unknown, Conflict, Conflict, Unknown]),
            (304, "", [Unknown, Conflict, Conflict, Unknown]),
            // It is unknown which of two writes was applied.
            (409, "ConditionalRequestConflict", all(Unknown)),
            (409, "OperationAborted", all(Unknown)),
            (409, "ConcurrentModification", all(Unknown)),
            (409, "", all(Unknown)),
            // The object was deleted, unless the bucket was.
            (404, "NoSuchKey", [Absent, Unknown, Conflict, Unknown]),
            (404, "", [Absent, Unknown, Conflict, Unknown]),
            (404, "NoSuchBucket", all(Refused(Invalid))),
            (404, "<html>", [Refused(Unsupported), Unknown, Unknown, Refused(Unsupported)]),
            // The server requests a pause.
            (429, "TooManyRequests", all(Throttled)),
            (429, "", all(Throttled)),
            (503, "SlowDown", all(Throttled)),
            (503, "SlowDownWrite", all(Throttled)),
            (503, "ThrottlingException", all(Throttled)),
            // The request may have been carried out.
            (503, "ServiceUnavailable", all(Unknown)),
            (503, "", all(Unknown)),
            (500, "InternalError", all(Unknown)),
            (500, "", all(Unknown)),
            (502, "<html>", all(Unknown)),
            (504, "", all(Unknown)),
            (599, "", all(Unknown)),
            (408, "", all(Unknown)),
            (499, "", all(Unknown)),
            (418, "", all(Unknown)),
            (400, "RequestTimeout", all(Unknown)),
            (400, "IncompleteBody", all(Unknown)),
            // The server does not support the request.
            (501, "NotImplemented", all(Refused(Unsupported))),
            (405, "MethodNotAllowed", all(Refused(Unsupported))),
            (400, "InvalidArgument", all(Refused(Unsupported))),
            (400, "", all(Refused(Unsupported))),
            // Access is denied, or denied in this form.
            (401, "", all(Refused(Denied))),
            (403, "<html>", all(Refused(Denied))),
            (407, "<html>", all(Refused(Unreachable))),
            (403, "AccessDenied", all(Refused(Denied))),
            (403, "RequestTimeTooSkewed", all(Refused(Denied))),
            (403, "SignatureDoesNotMatch", all(Refused(Denied))),
            (400, "ExpiredToken", all(Refused(Denied))),
            (400, "AuthorizationHeaderMalformed", all(Refused(Invalid))),
            (400, "XMinioInvalidObjectName", all(Refused(Invalid))),
            (301, "PermanentRedirect", all(Refused(Invalid))),
            (303, "", all(Refused(Invalid))),
            (307, "TemporaryRedirect", all(Refused(Unreachable))),
        ];
        for (status, code, expected) in table {
            let answer = answer(status, code);
            let got = [Read, Create, Replace, List].map(|asked| classify(asked, &answer));
            assert_eq!(got, expected, "{status} {code}");
            let again = if status == 304 { AnswerMeaning::Unchanged } else { expected[0] };
            assert_eq!(classify(ReadAgain, &answer), again, "{status} {code}, to a read with a condition");
        }
    }

    #[test]
    fn a_503_that_names_a_time_is_throttling_whatever_it_is_called() {
        let answer = ServerAnswer { retry_after: Some(Duration::from_secs(1)), ..answer(503, "") };
        assert_eq!(classify(Replace, &answer), Throttled);
    }

    #[test]
    fn a_wrong_clock_is_reported_with_seconds_and_direction() {
        let at = |second| Some(jiff::Timestamp::from_second(second).unwrap());
        let skewed = |signed, date| ServerAnswer {
            signed: at(signed),
            date: at(date),
            ..answer(403, "RequestTimeTooSkewed")
        };
        let sentence = words(Replace, &skewed(1_000_000, 1_001_200), "b");
        assert!(sentence.starts_with("this machine's clock is 1200 s behind the store's"), "{sentence}");
        let sentence = words(Read, &skewed(1_001_200, 1_000_000), "b");
        assert!(sentence.starts_with("this machine's clock is 1200 s ahead of the store's"), "{sentence}");
    }

    #[test]
    fn each_problem_that_a_user_can_fix_has_its_own_message() {
        let region = ServerAnswer { region: Some("eu-west-1".into()), ..answer(301, "PermanentRedirect") };
        assert!(words(Read, &region, "b").contains("region=eu-west-1"));
        assert!(words(Create, &answer(404, "NoSuchBucket"), "b").starts_with("there is no bucket \"b\""));
        assert!(words(List, &answer(403, "AccessDenied"), "b").contains("s3:ListBucket"));
        assert!(words(Read, &answer(403, "AccessDenied"), "b").contains("s3:GetObject"));
        assert!(words(Create, &answer(403, "AccessDenied"), "b").contains("s3:PutObject"));
        assert!(words(Create, &answer(501, "NotImplemented"), "b").contains("conditional writes"));
        assert!(words(Read, &answer(404, "<html>"), "b").contains("does not speak S3"));
        assert!(words(Create, &answer(400, "<html>"), "b").contains("does not speak S3"));
        let tls = ServerAnswer { text: AnswerText::WantsTls, ..answer(400, "") };
        assert!(words(Create, &tls, "b").starts_with("it is encrypted there: write https://"));
        let proxy = crate::wire::Proxy::parse("http://me:hush@proxy:3128").ok();
        let sentence = words(Read, &ServerAnswer { proxy: proxy.clone(), ..answer(407, "") }, "b");
        assert!(sentence.starts_with("the proxy http://proxy:3128 does not take"), "{sentence}");
        let sentence = words(Read, &ServerAnswer { proxy, ..answer(502, "<html>") }, "b");
        assert!(sentence.starts_with("the proxy http://proxy:3128, or"), "{sentence}");
        let lock = "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock \
        parameters";
        let text = AnswerText::Error { code: "InvalidRequest".into(), message: lock.into() };
        assert!(
            words(Create, &ServerAnswer { text, ..answer(400, "") }, "b")
                .starts_with("the bucket \"b\" keeps every write")
        );
        assert!(words(Read, &answer(403, "InvalidTokenId"), "b").starts_with("the session token is invalid"));
        let plain = ServerAnswer { request_id: Some("17A".into()), ..answer(500, "InternalError") };
        assert_eq!(words(Read, &plain, "b"), "it answered 500 InternalError: Told so, request 17A");
    }
}
