//! Meaning of an answer. Its status and its code decide, never the report of the client library.
//!
//! Azure sends the code of each error in a header, so an error without a code does not come from Azure itself.

use tenure_store::Reason;

use super::credentials::CredentialKind;
use crate::inner::{AnswerMeaning, CredentialsFlaw, RequestKind, words};
use crate::wire::{AnswerText, ServerAnswer};

pub(super) fn classify(asked: RequestKind, answer: &ServerAnswer) -> AnswerMeaning {
    match answer.status {
        _ if answer.is_success() => AnswerMeaning::Done,
        _ if answer.is_throttling(THROTTLING) => AnswerMeaning::Throttled,
        304 if asked == RequestKind::ReadAgain => AnswerMeaning::Unchanged,
        // A replace of another version, or of a blob that was deleted, and on some paths a create of an existing blob.
        412 if asked.is_write() && answer.is_one_of(CONDITION) => AnswerMeaning::Conflict,
        412 if answer.is_one_of(LEASED) => AnswerMeaning::Refused(Reason::Denied),
        404 if answer.is_one_of(NO_BLOB) => asked.meaning_of_missing(),
        404 | 409 if answer.is_one_of(NO_CONTAINER) => AnswerMeaning::Refused(Reason::Missing),
        409 if asked == RequestKind::Create && answer.is_one_of(EXISTS) => AnswerMeaning::Conflict,
        409 if answer.is_one_of(RETAINED) => AnswerMeaning::Refused(Reason::Unsupported),
        409 if answer.is_one_of(ARCHIVED) || answer.is_one_of(OTHER_KEY) => {
            AnswerMeaning::Refused(Reason::Denied)
        }
        // A proxy that answers this forwards nothing.
        407 => AnswerMeaning::Refused(Reason::Unreachable),
        400 => bad_request(answer),
        401 | 403 => AnswerMeaning::Refused(Reason::Denied),
        405 | 501 => AnswerMeaning::Refused(Reason::Unsupported),
        // Also a 404 or a 412 without such a code: a load balancer or a proxy may have sent it.
        _ => AnswerMeaning::Unknown,
    }
}

fn bad_request(answer: &ServerAnswer) -> AnswerMeaning {
    match answer {
        _ if answer.is_one_of(BAD_TOKEN) => AnswerMeaning::Refused(Reason::Denied),
        _ if answer.is_one_of(BAD_NAME) || answer.is_one_of(WANTS_HTTPS) => {
            AnswerMeaning::Refused(Reason::Invalid)
        }
        // The request arrived damaged. It is unknown whether it had another effect.
        _ if answer.is_one_of(DAMAGED_ON_THE_WAY) => AnswerMeaning::Unknown,
        _ => AnswerMeaning::Refused(Reason::Unsupported),
    }
}

/// The flaw of a refused token of Microsoft Entra: one code has several causes.
pub(super) fn credentials_flaw(answer: &ServerAnswer) -> Option<CredentialsFlaw> {
    let is_token = answer.is_one_of(BAD_TOKEN) && matches!(answer.status, 401 | 403);
    is_token.then_some(CredentialsFlaw::NotKnown)
}

/// The cause of an error and the next step.
pub(super) fn advice(
    asked: RequestKind,
    answer: &ServerAnswer,
    container: &str,
    credentials: CredentialKind,
) -> Option<String> {
    let sentence = match answer.code() {
        "ContainerNotFound" => {
            format!("there is no container {container:?}: create it, or correct the URL")
        }
        "ContainerBeingDeleted" | "ContainerDisabled" => {
            format!("the container {container:?} is being deleted: use another one")
        }
        "AuthenticationFailed" if answer.ahead().is_some_and(|ahead| ahead.abs() > SKEW_MAX) => {
            words::wrong_clock(answer)
        }
        "AuthenticationFailed" | "InvalidAuthenticationInfo" | "NoAuthenticationInformation" => {
            credentials.refused().to_owned()
        }
        // Azurite has one code for a wrong signature and for a missing permission.
        "AuthorizationFailure" if is_about_authentication(answer) => credentials.refused().to_owned(),
        "KeyBasedAuthenticationNotPermitted" => {
            "the account accepts no access keys: use an identity of Microsoft Entra, or allow access keys".to_owned()
        }
        "AuthorizationFailure" => format!(
            "the firewall of the account refuses this network, or the credentials lack a permission: allow the \
             network, and {}",
            credentials.lacks(asked, container)
        ),
        "AuthorizationSourceIPMismatch" => {
            "the SAS token is for other addresses than this machine's: get another token".to_owned()
        }
        "AuthorizationProtocolMismatch" | "AccountRequiresHttps" => {
            "it accepts only encrypted requests: write https:// in the endpoint".to_owned()
        }
        "UnauthorizedBlobOverwrite" => {
            "the SAS token may not replace blobs: add the permission w (write)".to_owned()
        }
        "AccountIsDisabled" => "the account is disabled: enable it".to_owned(),
        code if LEASED.contains(&code) => {
            "another program holds an Azure lease on the blob itself, which Tenure does not use: break that lease, \
             and keep other programs away from the prefix of this store"
                .to_owned()
        }
        code if RETAINED.contains(&code) => retains_every_write(container),
        code if ARCHIVED.contains(&code) => {
            "the blob is archived and cannot be read: rehydrate it, and exclude the store's prefix from the rules \
             that move blobs to the archive tier"
                .to_owned()
        }
        code if code.starts_with("KeyVault") || OTHER_KEY.contains(&code) => format!(
            "the key that encrypts the container {container:?} cannot be used: check its state, and that the account \
             may use it"
        ),
        code if BAD_NAME.contains(&code) => {
            "it rejects the name of the blob: choose a shorter key".to_owned()
        }
        _ => return of_status(asked, answer, container, credentials),
    };
    Some(sentence)
}

fn is_about_authentication(answer: &ServerAnswer) -> bool {
    matches!(&answer.text, AnswerText::Error { message, .. } if message.contains("failed to authenticate"))
}

fn of_status(
    asked: RequestKind,
    answer: &ServerAnswer,
    container: &str,
    credentials: CredentialKind,
) -> Option<String> {
    match answer.status {
        401 | 403 => {
            Some(format!("the credentials lack a permission: {}", credentials.lacks(asked, container)))
        }
        300..400 if answer.status != 304 => {
            Some("it redirects to another address: correct the endpoint".to_owned())
        }
        400 | 405 | 501 if asked.is_write() => {
            Some("it rejects conditional writes, which leases need: use another store".to_owned())
        }
        _ => None,
    }
}

/// Problem of a container whose immutability policy locks every written blob.
pub(super) fn retains_every_write(container: &str) -> String {
    format!(
        "the container {container:?} has an immutability policy or a legal hold, so no blob in it can be replaced: use \
         a container without one"
    )
}

const CONDITION: &[&str] = &["ConditionNotMet"];

const EXISTS: &[&str] = &["BlobAlreadyExists"];

/// The only code that says that a blob does not exist.
const NO_BLOB: &[&str] = &["BlobNotFound"];

const NO_CONTAINER: &[&str] = &["ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled"];

/// Another program has leased the blob with Azure's own leases.
const LEASED: &[&str] = &[
    "LeaseIdMissing",
    "LeaseIdMismatchWithBlobOperation",
    "LeaseIdMismatchWithContainerOperation",
    "LeaseLost",
    "LeaseNotPresentWithBlobOperation",
];

/// `OperationTimedOut` is not among them: the write may have been carried out.
const THROTTLING: &[&str] = &["ServerBusy", "TooManyRequests"];

const RETAINED: &[&str] =
    &["BlobImmutableDueToPolicy", "BlobImmutableDueToLegalHold", "ContainerImmutableDueToPolicy"];

const ARCHIVED: &[&str] = &["BlobArchived", "BlobBeingRehydrated"];

const OTHER_KEY: &[&str] = &["BlobUsesCustomerSpecifiedEncryption"];

const BAD_TOKEN: &[&str] = &["InvalidAuthenticationInfo", "AuthenticationFailed"];

const BAD_NAME: &[&str] =
    &["InvalidUri", "InvalidResourceName", "RequestUrlFailedToParse", "OutOfRangeInput"];

const WANTS_HTTPS: &[&str] = &["AccountRequiresHttps"];

const DAMAGED_ON_THE_WAY: &[&str] = &["Md5Mismatch", "Crc64Mismatch", "IncompleteBody"];

/// Azure refuses signatures whose time is further off than this, in seconds.
const SKEW_MAX: i64 = 15 * 60;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use AnswerMeaning::{Absent, Conflict, Done, Refused, Throttled, Unknown};
    use Reason::{Denied, Invalid, Missing, Unreachable, Unsupported};
    use RequestKind::{Create, List, Read, ReadAgain, Replace};

    use super::*;
    use crate::azure::AzureDialect;

    fn words(asked: RequestKind, answer: &ServerAnswer, credentials: CredentialKind) -> String {
        let dialect = AzureDialect { container: "c".to_owned(), is_public: true, credentials };
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
        let table: [(u16, &str, [AnswerMeaning; 4]); 60] = [
            (200, "", all(Done)),
            (201, "", all(Done)),
            (202, "", all(Done)),
            // Another writer was first, or the blob exists.
            (409, "BlobAlreadyExists", [Unknown, Conflict, Unknown, Unknown]),
            (412, "ConditionNotMet", [Unknown, Conflict, Conflict, Unknown]),
            (304, "ConditionNotMet", all(Unknown)),
            (304, "", all(Unknown)),
            // Azure always names the code: another component answered.
            (412, "", all(Unknown)),
            (412, "<html>", all(Unknown)),
            (409, "", all(Unknown)),
            (409, "AccountBeingCreated", all(Unknown)),
            (409, "PendingCopyOperation", all(Unknown)),
            // The blob is leased natively. That is no conflict: a read shows the same version.
            (412, "LeaseIdMissing", all(Refused(Denied))),
            (412, "LeaseIdMismatchWithBlobOperation", all(Refused(Denied))),
            (412, "LeaseLost", all(Refused(Denied))),
            // The blob was deleted, unless the container was.
            (404, "BlobNotFound", [Absent, Unknown, Conflict, Unknown]),
            (404, "ContainerNotFound", all(Refused(Missing))),
            (409, "ContainerBeingDeleted", all(Refused(Missing))),
            (404, "", all(Unknown)),
            (404, "<html>", all(Unknown)),
            (404, "ResourceNotFound", all(Unknown)),
            // The blob cannot be replaced or read.
            (409, "BlobImmutableDueToPolicy", all(Refused(Unsupported))),
            (409, "BlobArchived", all(Refused(Denied))),
            (409, "BlobUsesCustomerSpecifiedEncryption", all(Refused(Denied))),
            // The server requests a pause.
            (503, "ServerBusy", all(Throttled)),
            (429, "TooManyRequests", all(Throttled)),
            (429, "", all(Throttled)),
            (503, "AccountThrottled", all(Throttled)),
            // The request may have been carried out.
            (500, "OperationTimedOut", all(Unknown)),
            (500, "InternalError", all(Unknown)),
            (500, "", all(Unknown)),
            (503, "", all(Unknown)),
            (502, "<html>", all(Unknown)),
            (504, "", all(Unknown)),
            (408, "", all(Unknown)),
            (418, "", all(Unknown)),
            (301, "", all(Unknown)),
            (307, "", all(Unknown)),
            (400, "Md5Mismatch", all(Unknown)),
            // The server does not support the request.
            (400, "InvalidHeaderValue", all(Refused(Unsupported))),
            (400, "ConditionHeadersNotSupported", all(Refused(Unsupported))),
            (400, "UnsupportedHeader", all(Refused(Unsupported))),
            (400, "", all(Refused(Unsupported))),
            (405, "UnsupportedHttpVerb", all(Refused(Unsupported))),
            (501, "", all(Refused(Unsupported))),
            // Access is denied.
            (401, "InvalidAuthenticationInfo", all(Refused(Denied))),
            (401, "NoAuthenticationInformation", all(Refused(Denied))),
            (400, "InvalidAuthenticationInfo", all(Refused(Denied))),
            (403, "AuthenticationFailed", all(Refused(Denied))),
            (403, "AuthorizationFailure", all(Refused(Denied))),
            (403, "AuthorizationPermissionMismatch", all(Refused(Denied))),
            (403, "UnauthorizedBlobOverwrite", all(Refused(Denied))),
            (403, "KeyBasedAuthenticationNotPermitted", all(Refused(Denied))),
            (403, "KeyVaultEncryptionKeyNotFound", all(Refused(Denied))),
            (403, "<html>", all(Refused(Denied))),
            (407, "<html>", all(Refused(Unreachable))),
            (400, "InvalidUri", all(Refused(Invalid))),
            (400, "InvalidResourceName", all(Refused(Invalid))),
            (400, "OutOfRangeInput", all(Refused(Invalid))),
            (400, "AccountRequiresHttps", all(Refused(Invalid))),
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
    fn a_refused_signature_is_the_clock_or_the_key() {
        let at = |second| Some(jiff::Timestamp::from_second(second).unwrap());
        let refused = |signed, date| ServerAnswer {
            signed: at(signed),
            date: at(date),
            ..answer(403, "AuthenticationFailed")
        };
        let sentence = words(Replace, &refused(1_000_000, 1_001_200), CredentialKind::Key);
        assert!(sentence.starts_with("this machine's clock is 1200 s behind the store's"), "{sentence}");
        let sentence = words(Replace, &refused(1_000_000, 1_000_001), CredentialKind::Key);
        assert!(sentence.starts_with("the access key is not one of this account"), "{sentence}");
        let sentence = words(Replace, &answer(403, "AuthenticationFailed"), CredentialKind::Sas);
        assert!(sentence.starts_with("the SAS token is wrong or has expired"), "{sentence}");
        let sentence = words(Replace, &answer(401, "InvalidAuthenticationInfo"), CredentialKind::Identity);
        assert!(sentence.starts_with("the identity's token is not accepted"), "{sentence}");
    }

    #[test]
    fn each_problem_that_a_user_can_fix_has_its_own_message() {
        let words = |asked, status, code| words(asked, &answer(status, code), CredentialKind::Identity);
        assert!(words(Create, 404, "ContainerNotFound").starts_with("there is no container \"c\""));
        for asked in [Create, Read, List] {
            let sentence = words(asked, 403, "AuthorizationPermissionMismatch");
            assert!(sentence.contains("Storage Blob Data Contributor on the container \"c\""), "{sentence}");
        }
        assert!(words(Create, 403, "AuthorizationFailure").starts_with("the firewall of the account"));
        assert!(words(Replace, 412, "LeaseIdMissing").contains("break that lease"));
        assert!(words(Replace, 409, "BlobImmutableDueToPolicy").contains("immutability policy"));
        assert!(words(Read, 409, "BlobArchived").contains("rehydrate"));
        assert!(words(Read, 403, "KeyVaultEncryptionKeyNotFound").starts_with("the key that encrypts"));
        assert!(words(Create, 400, "ConditionHeadersNotSupported").contains("conditional writes"));
        assert!(words(Read, 404, "<html>").contains("does not speak Azure Blob"));
        assert!(words(Read, 302, "").contains("redirects"));
        let plain = ServerAnswer { request_id: Some("17A".into()), ..answer(500, "InternalError") };
        assert_eq!(
            super::words::of(
                &AzureDialect { container: "c".into(), is_public: true, credentials: CredentialKind::Key },
                Read,
                &plain
            ),
            "it answered 500 InternalError: Told so, request 17A"
        );
    }

    #[test]
    fn a_sas_token_is_asked_for_the_permissions_of_the_call() {
        let words =
            |asked| words(asked, &answer(403, "AuthorizationPermissionMismatch"), CredentialKind::Sas);
        assert!(words(Read).contains("r (read)"));
        assert!(words(List).contains("l (list)"));
        assert!(words(Create).contains("c (create) and w (write)"));
    }
}
