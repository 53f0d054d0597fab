//! Meaning of an answer. Its status and its code decide, never the report of the client library.

use tenure_store::Reason;

use crate::inner::{AnswerMeaning, CredentialsFlaw, RequestKind, words};
use crate::wire::{AnswerText, ServerAnswer};

pub(super) fn classify(asked: RequestKind, answer: &ServerAnswer) -> AnswerMeaning {
    match answer.status {
        _ if answer.is_success() => AnswerMeaning::Done,
        // The code decides: these arrive with 400, 403, 429 and 503.
        _ if answer.is_throttling(THROTTLING) => AnswerMeaning::Throttled,
        412 if asked.is_write() => AnswerMeaning::Conflict,
        // Old versions of MinIO answer this to a create of an existing object.
        304 if asked.is_write() => AnswerMeaning::Conflict,
        304 if asked == RequestKind::ReadAgain => AnswerMeaning::Unchanged,
        404 if answer.is_one_of(NO_BUCKET) => AnswerMeaning::Refused(Reason::Missing),
        404 if answer.is_one_of(NO_OBJECT) => asked.meaning_of_missing(),
        // Another write was in progress. S3 does not say which of the two was applied.
        409 => AnswerMeaning::Unknown,
        // A proxy that answers this forwards nothing.
        407 => AnswerMeaning::Refused(Reason::Unreachable),
        400 => bad_request(answer),
        401 | 403 => AnswerMeaning::Refused(Reason::Denied),
        405 | 501 => AnswerMeaning::Refused(Reason::Unsupported),
        // A new bucket whose name is not known everywhere yet.
        307 => AnswerMeaning::Refused(Reason::Unreachable),
        // The bucket is in another region, or at another address.
        301 | 302 | 303 | 308 => AnswerMeaning::Refused(Reason::Missing),
        // Also a 404 without that code: a load balancer or a server that is starting may have sent it.
        _ => AnswerMeaning::Unknown,
    }
}

fn bad_request(answer: &ServerAnswer) -> AnswerMeaning {
    match answer {
        _ if is_about_a_token(answer) || is_about_a_key(answer) => AnswerMeaning::Refused(Reason::Denied),
        _ if answer.is_one_of(OTHER_REGION) => AnswerMeaning::Refused(Reason::Missing),
        _ if answer.is_one_of(BAD_NAME) => AnswerMeaning::Refused(Reason::Invalid),
        // The request arrived damaged. It is unknown whether it had another effect.
        _ if answer.is_one_of(DAMAGED_ON_THE_WAY) => AnswerMeaning::Unknown,
        _ => AnswerMeaning::Refused(Reason::Unsupported),
    }
}

fn is_about_a_token(answer: &ServerAnswer) -> bool {
    answer.is_one_of(EXPIRED_TOKEN) || answer.is_one_of(INVALID_TOKEN)
}

pub(super) fn credentials_flaw(answer: &ServerAnswer) -> Option<CredentialsFlaw> {
    if answer.is_one_of(EXPIRED_TOKEN) {
        return Some(CredentialsFlaw::Expired);
    }
    let not_known = answer.is_one_of(INVALID_TOKEN) || answer.is_one_of(UNKNOWN_KEY);
    not_known.then_some(CredentialsFlaw::NotKnown)
}

/// True if the service that encrypts the bucket's objects refused the key.
fn is_about_a_key(answer: &ServerAnswer) -> bool {
    answer.code().starts_with("KMS.")
}

/// The cause of an error and the next step.
pub(super) fn advice(asked: RequestKind, answer: &ServerAnswer, bucket: &str) -> Option<String> {
    if answer.is_one_of(&["RequestTimeTooSkewed"]) {
        return Some(words::wrong_clock(answer));
    }
    if answer.is_one_of(NO_BUCKET) {
        return Some(format!("there is no bucket {bucket:?}: create it, or correct the URL"));
    }
    if answer.is_one_of(OTHER_REGION) || matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
        let region = answer.region.as_ref().map(|region| format!(": write region={region} in the URL"));
        let otherwise = ": name its region and endpoint in the URL".to_owned();
        return Some(format!("the bucket {bucket:?} is not here{}", region.unwrap_or(otherwise)));
    }
    if is_about_a_token(answer) {
        return Some("the session token is invalid or has expired: get new credentials".to_owned());
    }
    if answer.is_one_of(&["InvalidAccessKeyId", "SignatureDoesNotMatch"]) {
        return Some(
            "the access key is not known there, or its secret is wrong: correct the credentials".to_owned(),
        );
    }
    if is_about_a_key(answer) {
        return Some(format!(
            "the key that encrypts the bucket {bucket:?} cannot be used: check its state, and that these credentials \
             may use it"
        ));
    }
    if answer.is_one_of(ARCHIVED) {
        return Some(
            "the object is archived and cannot be read: restore it, and exclude the store's prefix from the rules \
             that archive objects"
                .to_owned(),
        );
    }
    // AWS requires a checksum for buckets with retention. Tenure does not send one: see `retains_every_write`.
    if let AnswerText::Error { message, .. } = &answer.text
        && (message.contains("Object Lock") || message.contains("Content-MD5"))
    {
        return Some(retains_every_write(bucket));
    }
    if answer.is_one_of(BAD_NAME) {
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
pub(super) fn retains_every_write(bucket: &str) -> String {
    format!(
        "the bucket {bucket:?} keeps every write: its retention rule would lock a version at every renewal, and no \
         user could remove it: use a bucket without such a rule"
    )
}

const NO_BUCKET: &[&str] = &["NoSuchBucket"];

/// The only code that says that an object does not exist.
const NO_OBJECT: &[&str] = &["NoSuchKey"];

/// Codes that ask for fewer requests, besides those that contain `Throttl`.
const THROTTLING: &[&str] =
    &["SlowDown", "SlowDownRead", "SlowDownWrite", "RequestLimitExceeded", "TooManyRequests"];

const ARCHIVED: &[&str] = &["InvalidObjectState"];

const EXPIRED_TOKEN: &[&str] = &["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"];

const INVALID_TOKEN: &[&str] = &["InvalidToken", "InvalidTokenId", "RequestExpired"];

/// MinIO forgets the keys that it has handed out when they expire.
const UNKNOWN_KEY: &[&str] = &["InvalidAccessKeyId"];

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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use AnswerMeaning::{Absent, Conflict, Done, Refused, Throttled, Unknown};
    use Reason::{Denied, Invalid, Missing, Unreachable, Unsupported};
    use RequestKind::{Create, List, Read, ReadAgain, Replace};

    use super::*;
    use crate::s3::S3Dialect;

    fn words(asked: RequestKind, answer: &ServerAnswer, bucket: &str) -> String {
        let dialect = S3Dialect { bucket: bucket.to_owned(), offered_by: "", bare_etags: false };
        words::of(&dialect, asked, answer)
    }

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
        let table: [(u16, &str, [AnswerMeaning; 4]); 52] = [
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
            (404, "", all(Unknown)),
            (404, "NoSuchBucket", all(Refused(Missing))),
            (404, "<html>", all(Unknown)),
            (404, "NoSuchVersion", all(Unknown)),
            // The server requests a pause.
            (429, "TooManyRequests", all(Throttled)),
            (429, "", all(Throttled)),
            (503, "SlowDown", all(Throttled)),
            (503, "SlowDownWrite", all(Throttled)),
            (503, "ThrottlingException", all(Throttled)),
            (400, "ThrottlingException", all(Throttled)),
            (400, "KMS.ThrottlingException", all(Throttled)),
            (403, "SlowDown", all(Throttled)),
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
            (400, "KMS.DisabledException", all(Refused(Denied))),
            (403, "InvalidObjectState", all(Refused(Denied))),
            (400, "AuthorizationHeaderMalformed", all(Refused(Missing))),
            (400, "XMinioInvalidObjectName", all(Refused(Invalid))),
            (301, "PermanentRedirect", all(Refused(Missing))),
            (303, "", all(Refused(Missing))),
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
