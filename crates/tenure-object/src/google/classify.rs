//! Meaning of an answer. Its status and its code decide, never the report of the client library.

use tenure_store::Reason;

use crate::inner::{AnswerMeaning, CredentialsFlaw, RequestKind};
use crate::wire::ServerAnswer;

pub(super) fn classify(asked: RequestKind, answer: &ServerAnswer) -> AnswerMeaning {
    match answer.status {
        _ if answer.is_success() => AnswerMeaning::Done,
        // One write per second and object is the limit. The code decides: it arrives with 403, 429 and 503.
        _ if answer.is_throttling(THROTTLING) => AnswerMeaning::Throttled,
        // Not about the condition of the write: the next attempt is refused too.
        412 if is_about_a_policy(answer) => AnswerMeaning::Refused(Reason::Denied),
        412 if asked.is_write() => AnswerMeaning::Conflict,
        304 if asked == RequestKind::ReadAgain => AnswerMeaning::Unchanged,
        404 if answer.is_one_of(NO_BUCKET) => AnswerMeaning::Refused(Reason::Missing),
        // A replace of such an object is answered with 412.
        404 if answer.is_one_of(NO_OBJECT) => asked.meaning_of_missing(),
        // A proxy that answers this forwards nothing.
        407 => AnswerMeaning::Refused(Reason::Unreachable),
        400 => bad_request(answer),
        401 | 403 => AnswerMeaning::Refused(Reason::Denied),
        405 | 501 => AnswerMeaning::Refused(Reason::Unsupported),
        // The bucket is at another address.
        301..=303 | 307 | 308 => AnswerMeaning::Refused(Reason::Missing),
        // Also a 404 without that code: a load balancer or a server that is starting may have sent it.
        _ => AnswerMeaning::Unknown,
    }
}

fn bad_request(answer: &ServerAnswer) -> AnswerMeaning {
    match answer {
        _ if answer.is_one_of(EXPIRED_TOKEN) || is_about_a_key(answer) || is_about_the_bill(answer) => {
            AnswerMeaning::Refused(Reason::Denied)
        }
        _ if answer.is_one_of(BAD_NAME) => AnswerMeaning::Refused(Reason::Invalid),
        // The request arrived damaged. It is unknown whether it had another effect.
        _ if answer.is_one_of(DAMAGED_ON_THE_WAY) => AnswerMeaning::Unknown,
        _ => AnswerMeaning::Refused(Reason::Unsupported),
    }
}

/// A token has no name: Google says only that it does not accept it.
pub(super) fn credentials_flaw(answer: &ServerAnswer) -> Option<CredentialsFlaw> {
    if answer.is_one_of(EXPIRED_TOKEN) {
        return Some(CredentialsFlaw::Expired);
    }
    (answer.status == 401 || answer.is_one_of(INVALID_TOKEN)).then_some(CredentialsFlaw::NotKnown)
}

fn is_about_a_key(answer: &ServerAnswer) -> bool {
    answer.code().starts_with("CloudKms")
}

fn is_about_the_bill(answer: &ServerAnswer) -> bool {
    answer.code().starts_with("UserProject")
}

fn is_about_a_policy(answer: &ServerAnswer) -> bool {
    answer.code().starts_with("OrgPolicy")
}

/// The cause of an error and the next step.
pub(super) fn advice(asked: RequestKind, answer: &ServerAnswer, bucket: &str) -> Option<String> {
    if answer.is_one_of(NO_BUCKET) {
        return Some(format!("there is no bucket {bucket:?}: create it, or correct the URL"));
    }
    if answer.is_one_of(RETAINED) {
        return Some(retains_every_write(bucket));
    }
    if is_about_a_key(answer) {
        return Some(format!(
            "the key that encrypts the bucket {bucket:?} cannot be used: check its state, and that the service agent \
             of Cloud Storage may use it"
        ));
    }
    if is_about_the_bill(answer) {
        return Some(format!(
            "the bucket {bucket:?} bills its requesters, which Tenure does not support: turn Requester Pays off, or \
             use another bucket"
        ));
    }
    if is_about_a_policy(answer) {
        return Some(format!("a policy of the organization forbids the request to the bucket {bucket:?}"));
    }
    if answer.is_one_of(NO_ACCOUNT) {
        return Some(format!(
            "Google has blocked the project of the bucket {bucket:?}: check its billing account"
        ));
    }
    if credentials_flaw(answer).is_some() {
        return Some(
            "the access token is not valid or has expired: get new credentials, and check this machine's clock if \
             they are a service account key, which signs its tokens with that time"
                .to_owned(),
        );
    }
    if answer.is_one_of(BAD_NAME) {
        return Some("it rejects the name of the object: choose a shorter key".to_owned());
    }
    match (answer.status, asked) {
        (301..=303 | 307 | 308, _) => {
            Some(format!("the bucket {bucket:?} is not here: correct the endpoint in the URL"))
        }
        (403, RequestKind::List) => {
            Some(format!("the credentials may not list: allow storage.objects.list on {bucket} ({ROLE})"))
        }
        (403, RequestKind::Read | RequestKind::ReadAgain) => Some(format!(
            "the credentials may not read: allow storage.objects.get and storage.objects.list on {bucket} ({ROLE}): \
             without the latter, Google hides that an object is missing"
        )),
        (403, RequestKind::Create | RequestKind::Replace) => Some(format!(
            "the credentials may not write: allow storage.objects.create and storage.objects.delete on {bucket} \
             ({ROLE}): Google requires both to replace an object"
        )),
        (400 | 405 | 501, RequestKind::Create | RequestKind::Replace) => {
            Some("it rejects conditional writes, which leases need: use another store".to_owned())
        }
        _ => None,
    }
}

/// Problem of a bucket whose objects cannot be replaced for a period.
pub(super) fn retains_every_write(bucket: &str) -> String {
    format!(
        "the bucket {bucket:?} has a retention policy or holds its objects, so no lease in it can be renewed: use a \
         bucket without retention policy and holds"
    )
}

const NO_BUCKET: &[&str] = &["NoSuchBucket"];

/// The only code that says that an object does not exist.
const NO_OBJECT: &[&str] = &["NoSuchKey"];

/// Codes that ask for fewer requests, besides those that contain `Throttl`.
const THROTTLING: &[&str] = &[
    "SlowDown",
    "TooManyRequests",
    "RateLimitExceeded",
    "rateLimitExceeded",
    "UserRateLimitExceeded",
    "userRateLimitExceeded",
];

const RETAINED: &[&str] = &["RetentionPolicyNotMet", "ObjectUnderActiveHold"];

const NO_ACCOUNT: &[&str] = &["AccountProblem", "AccountDisabled"];

const EXPIRED_TOKEN: &[&str] = &["ExpiredToken"];

const INVALID_TOKEN: &[&str] = &["InvalidSecurity"];

const BAD_NAME: &[&str] = &["KeyTooLong", "InvalidObjectName", "InvalidURI"];

const DAMAGED_ON_THE_WAY: &[&str] = &["RequestTimeout", "IncompleteBody", "BadDigest", "CrcMismatch"];

/// The smallest predefined role with all rights that Tenure needs.
pub(super) const ROLE: &str = "the role roles/storage.objectUser contains it";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use AnswerMeaning::{Absent, Conflict, Done, Refused, Throttled, Unchanged, Unknown};
    use Reason::{Denied, Invalid, Missing, Unreachable, Unsupported};
    use RequestKind::{Create, List, Read, ReadAgain, Replace};

    use super::*;
    use crate::google::GoogleDialect;
    use crate::inner::words;
    use crate::wire::AnswerText;

    fn words(asked: RequestKind, answer: &ServerAnswer) -> String {
        words::of(&GoogleDialect { bucket: "b".to_owned(), is_google: true }, asked, answer)
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
        let table: [(u16, &str, [AnswerMeaning; 4]); 46] = [
            (200, "", all(Done)),
            (204, "", all(Done)),
            // Another writer was first, the object exists, or it was deleted.
            (412, "PreconditionFailed", [Unknown, Conflict, Conflict, Unknown]),
            (412, "", [Unknown, Conflict, Conflict, Unknown]),
            (412, "OrgPolicyConstraintFailed", all(Refused(Denied))),
            (304, "", all(Unknown)),
            (409, "", all(Unknown)),
            (409, "OperationAborted", all(Unknown)),
            (404, "NoSuchKey", [Absent, Unknown, Conflict, Unknown]),
            (404, "", all(Unknown)),
            (404, "<html>", all(Unknown)),
            (404, "NoSuchVersion", all(Unknown)),
            (404, "NoSuchBucket", all(Refused(Missing))),
            // The server requests a pause.
            (429, "", all(Throttled)),
            (429, "SlowDown", all(Throttled)),
            (429, "rateLimitExceeded", all(Throttled)),
            (403, "UserRateLimitExceeded", all(Throttled)),
            (503, "SlowDown", all(Throttled)),
            (400, "ThrottlingException", all(Throttled)),
            // The request may have been carried out.
            (503, "ServiceUnavailable", all(Unknown)),
            (503, "", all(Unknown)),
            (500, "InternalError", all(Unknown)),
            (502, "<html>", all(Unknown)),
            (504, "", all(Unknown)),
            (408, "", all(Unknown)),
            (499, "", all(Unknown)),
            (400, "IncompleteBody", all(Unknown)),
            (400, "BadDigest", all(Unknown)),
            // The server does not support the request.
            (501, "NotImplemented", all(Refused(Unsupported))),
            (405, "MethodNotAllowed", all(Refused(Unsupported))),
            (400, "InvalidArgument", all(Refused(Unsupported))),
            (400, "", all(Refused(Unsupported))),
            // Access is denied, or denied in this form.
            (401, "AuthenticationRequired", all(Refused(Denied))),
            (401, "", all(Refused(Denied))),
            (403, "AccessDenied", all(Refused(Denied))),
            (403, "<html>", all(Refused(Denied))),
            (403, "RetentionPolicyNotMet", all(Refused(Denied))),
            (403, "ObjectUnderActiveHold", all(Refused(Denied))),
            (400, "ExpiredToken", all(Refused(Denied))),
            (400, "CloudKmsDisabledKey", all(Refused(Denied))),
            (400, "UserProjectMissing", all(Refused(Denied))),
            (403, "AccountProblem", all(Refused(Denied))),
            (400, "KeyTooLong", all(Refused(Invalid))),
            (301, "", all(Refused(Missing))),
            (307, "", all(Refused(Missing))),
            (407, "<html>", all(Refused(Unreachable))),
        ];
        for (status, code, expected) in table {
            let answer = answer(status, code);
            let found = [Read, Create, Replace, List].map(|asked| classify(asked, &answer));
            assert_eq!(found, expected, "{status} {code:?}");
        }
        assert_eq!(classify(ReadAgain, &answer(304, "")), Unchanged);
        assert_eq!(classify(ReadAgain, &answer(404, "NoSuchKey")), Absent);
        let waits = ServerAnswer { retry_after: Some(Duration::from_secs(1)), ..answer(503, "") };
        assert_eq!(classify(Replace, &waits), Throttled);
    }

    #[test]
    fn a_refused_token_may_be_replaced_and_a_missing_right_may_not() {
        let flaw = |status, code| credentials_flaw(&answer(status, code));
        assert_eq!(flaw(401, "AuthenticationRequired"), Some(CredentialsFlaw::NotKnown));
        assert_eq!(flaw(403, "InvalidSecurity"), Some(CredentialsFlaw::NotKnown));
        assert_eq!(flaw(400, "ExpiredToken"), Some(CredentialsFlaw::Expired));
        assert_eq!((flaw(403, "AccessDenied"), flaw(412, "PreconditionFailed")), (None, None));
    }

    #[test]
    fn each_problem_that_a_user_can_fix_has_its_own_message() {
        let says = |asked, status, code, part: &str| {
            let sentence = words(asked, &answer(status, code));
            assert!(sentence.contains(part), "{sentence}");
        };
        says(Create, 404, "NoSuchBucket", "there is no bucket \"b\": create it");
        says(List, 403, "AccessDenied", "storage.objects.list on b (the role roles/storage.objectUser");
        says(Read, 403, "AccessDenied", "storage.objects.get and storage.objects.list");
        says(Replace, 403, "AccessDenied", "storage.objects.create and storage.objects.delete");
        says(Replace, 403, "RetentionPolicyNotMet", "has a retention policy or holds its objects");
        says(Replace, 403, "ObjectUnderActiveHold", "no lease in it can be renewed");
        says(Read, 401, "AuthenticationRequired", "the access token is not valid or has expired");
        says(Create, 403, "CloudKmsDisabledKey", "the key that encrypts the bucket \"b\" cannot be used");
        says(Create, 400, "UserProjectMissing", "turn Requester Pays off");
        says(Create, 412, "OrgPolicyConstraintFailed", "a policy of the organization forbids");
        says(Read, 403, "AccountProblem", "check its billing account");
        says(Create, 400, "InvalidArgument", "rejects conditional writes");
        says(Read, 404, "<html>", "does not speak Google Cloud Storage");
        says(Create, 400, "KeyTooLong", "choose a shorter key");
        let plain = ServerAnswer { request_id: Some("AB-1".into()), ..answer(500, "InternalError") };
        assert_eq!(words(Read, &plain), "it answered 500 InternalError: Told so, request AB-1");
    }
}
