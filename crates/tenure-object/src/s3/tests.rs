//! Opening a store: valid and invalid settings, both without a request.

use std::time::Duration;

use tenure_store::{Reason, Store, StoreClock};

use super::*;
use crate::{Environment, OpenError};

type Variables<'a> = &'a [(&'a str, &'a str)];

const KEYS: Variables<'_> = &[("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "hush")];

fn open(builder: &S3Builder, more: Variables<'_>) -> Result<S3, OpenError> {
    builder.open_in(&KEYS.iter().chain(more).copied().collect())
}

#[track_caller]
fn refused(builder: &S3Builder, more: Variables<'_>, reason: Reason, part: &str) {
    let error = open(builder, more).expect_err(part);
    let sentence = error.to_string();
    assert!(sentence.contains(part), "{sentence}");
    assert_eq!(error.reason(), reason, "{sentence}");
    assert!(!sentence.contains("hush"), "{sentence}");
}

#[test]
fn the_name_of_a_store_says_where_it_is_and_not_who_asks() {
    let builder = S3::builder("bucket").prefix("prod/my locks").keys("AKIAEXAMPLE", "hush");
    let store = open(&builder, &[("AWS_REGION", "eu-west-1")]).unwrap();
    assert_eq!(store.to_string(), "s3://bucket/prod/my%20locks?region=eu-west-1");
    let text = format!("{store:?} {builder:?} {builder}");
    assert!(!text.contains("hush") && !text.contains("AKIA"), "{text}");
}

#[test]
fn a_proxy_is_part_of_the_place_whatever_its_source_and_its_password_is_not() {
    let builder = S3::builder("bucket").endpoint("http://s3.example.org").accept_http();
    let place = |more: Variables<'_>| open(&builder, more).unwrap().identity().place.unwrap();
    let direct = place(&[]);
    let proxied = place(&[("http_proxy", "http://me:hush@proxy.example.org:3128")]);
    assert_ne!(direct, proxied, "what was found sound was found by another way");
    assert!(proxied.contains("proxy.example.org") && !proxied.contains("hush"), "{proxied}");
    assert_eq!(place(&[("http_proxy", "proxy:1"), ("no_proxy", "s3.example.org")]), direct);
    let chosen = builder.clone().proxy("http://proxy.example.org:3128");
    assert_eq!(open(&chosen, &[]).unwrap().identity().place.unwrap(), proxied);
    assert_eq!(open(&chosen, &[]).unwrap().to_string(), open(&builder, &[]).unwrap().to_string());
}

#[test]
fn the_url_takes_precedence_over_the_environment() {
    let environment: Variables<'_> = &[
        ("AWS_ENDPOINT_URL", "https://general.org"),
        ("AWS_DEFAULT_REGION", "old-1"),
        ("AWS_REGION", "new-1"),
    ];
    let name = |builder: &S3Builder, more: Variables<'_>| {
        let all: Vec<_> = environment.iter().chain(more).copied().collect();
        open(builder, &all).unwrap().to_string()
    };
    let plain = S3::builder("bucket");
    assert_eq!(name(&plain, &[]), "s3://bucket?endpoint=https://general.org&region=new-1");
    let special = ("AWS_ENDPOINT_URL_S3", "https://s3.org");
    assert_eq!(name(&plain, &[special]), "s3://bucket?endpoint=https://s3.org&region=new-1");
    let chosen = plain.endpoint("http://127.0.0.1:9000").region("here");
    assert_eq!(name(&chosen, &[special]), "s3://bucket?endpoint=http://127.0.0.1:9000&region=here");
}

#[test]
fn an_empty_variable_is_as_if_not_set() {
    let environment: Variables<'_> = &[
        ("AWS_ENDPOINT_URL_S3", ""),
        ("AWS_ENDPOINT_URL", "https://general.org"),
        ("AWS_REGION", ""),
        ("AWS_DEFAULT_REGION", "old-1"),
        ("AWS_PROFILE", ""),
        ("AWS_SESSION_TOKEN", ""),
        ("AWS_CA_BUNDLE", ""),
        ("https_proxy", ""),
        ("HTTPS_PROXY", "http://proxy.example.org:3128"),
    ];
    let store = open(&S3::builder("bucket"), environment).unwrap();
    assert_eq!(store.to_string(), "s3://bucket?endpoint=https://general.org&region=old-1");
    assert!(store.identity().place.unwrap().contains("proxy.example.org"), "{store}");
    let unknown: Variables<'_> = &[("AWS_PROFILE", ""), ("AWS_DEFAULT_PROFILE", "unknown")];
    refused(&S3::builder("bucket").region("here"), unknown, Reason::Denied, "no profile \"unknown\"");
}

/// Requests would name the bucket twice, and address `jobs/jobs/...`.
#[test]
fn an_endpoint_that_names_the_bucket_is_refused_with_the_right_one() {
    let bucket = || S3::builder("jobs");
    for (endpoint, advice) in [
        ("https://jobs.s3.org", "write endpoint=https://s3.org&path-style=false in the URL"),
        ("https://s3.org/jobs", "write endpoint=https://s3.org in the URL"),
    ] {
        for builder in [bucket().endpoint(endpoint), bucket().endpoint(endpoint).path_style(false)] {
            refused(&builder, &[], Reason::Invalid, advice);
        }
        // Others may use the same URL with another endpoint, so the URL has to name this one.
        for builder in [bucket(), bucket().path_style(false), bucket().path_style(true)] {
            for variable in ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"] {
                refused(&builder, &[(variable, endpoint)], Reason::Invalid, advice);
                refused(
                    &builder,
                    &[(variable, endpoint)],
                    Reason::Invalid,
                    &format!("{variable}={endpoint} names"),
                );
            }
        }
        let own_name = open(&bucket().endpoint(endpoint).path_style(true), &[]).unwrap().to_string();
        assert_eq!(own_name, format!("s3://jobs?endpoint={endpoint}&region=us-east-1&path-style=true"));
    }
    for endpoint in ["https://jobs:9000", "https://jobs2.org", "https://s3.org/jobs/v1"] {
        assert!(open(&bucket().endpoint(endpoint), &[]).is_ok(), "{endpoint}");
    }
}

#[test]
fn aws_needs_a_region_and_other_servers_do_not() {
    refused(&S3::builder("bucket"), &[], Reason::Invalid, "region=eu-west-1");
    let other = S3::builder("bucket").endpoint("http://localhost:9000");
    let name = open(&other, &[]).unwrap().to_string();
    assert_eq!(name, "s3://bucket?endpoint=http://localhost:9000&region=us-east-1");
}

#[test]
fn an_endpoint_that_is_not_encrypted_is_for_this_machine_unless_it_is_accepted() {
    let far = S3::builder("bucket").endpoint("http://minio.example.org:9000");
    refused(&far, &[], Reason::Invalid, "accept=http");
    assert!(open(&far.accept_http(), &[]).is_ok());
    let by_variable: Variables<'_> = &[("AWS_ENDPOINT_URL", "http://minio.example.org:9000")];
    refused(&S3::builder("bucket"), by_variable, Reason::Invalid, "accept=http");
}

#[test]
fn without_credentials_nothing_is_opened() {
    let builder = S3::builder("bucket").region("eu-west-1");
    let error = builder.open_in(&Environment::default()).unwrap_err();
    assert_eq!(error.reason(), Reason::Denied);
    assert!(error.to_string().contains("AWS_ACCESS_KEY_ID"), "{error}");
}

#[test]
fn credentials_with_a_control_character_are_refused_by_the_name_of_their_variable() {
    let builder = S3::builder("bucket").region("eu-west-1");
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"] {
        for wrong in ["hush\n", "hu\rsh", "hush\u{7}"] {
            refused(&builder, &[(name, wrong)], Reason::Denied, &format!("{name} contains a line break"));
        }
    }
    refused(&builder, &[("AWS_SESSION_TOKEN", "hüsh")], Reason::Denied, "a character outside ASCII");
    assert!(open(&builder, &[("AWS_SECRET_ACCESS_KEY", "pässword")]).is_ok(), "it is not sent");
    let given = S3::builder("bucket").region("eu-west-1").keys("id", "hush\n");
    refused(&given, &[], Reason::Denied, "the secret of the access key contains a line break");
    let container = [
        ("AWS_ACCESS_KEY_ID", ""),
        ("AWS_SECRET_ACCESS_KEY", ""),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/x"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hush\n"),
    ];
    refused(&builder, &container, Reason::Denied, "AWS_CONTAINER_AUTHORIZATION_TOKEN contains a line break");
}

#[test]
fn a_key_in_a_file_with_a_control_character_is_refused_by_the_name_of_its_setting() {
    let file = std::env::temp_dir().join(format!("tenure-object-control-{}", std::process::id()));
    std::fs::write(&file, "[default]\naws_access_key_id=AKIA\naws_secret_access_key=hu\u{1b}sh\n").unwrap();
    let environment = [("AWS_SHARED_CREDENTIALS_FILE", file.to_str().unwrap())].into_iter().collect();
    let error = S3::builder("bucket").region("eu-west-1").open_in(&environment).unwrap_err().to_string();
    std::fs::remove_file(&file).unwrap();
    assert!(error.starts_with("aws_secret_access_key of the profile \"default\" contains"), "{error}");
}

#[test]
fn the_address_of_a_credentials_service_is_an_address() {
    let builder = S3::builder("bucket").region("eu-west-1");
    let role = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/t"), ("AWS_ROLE_ARN", "arn")];
    let refused = |builder: &S3Builder, more: Variables<'_>, part: &str| {
        let error = builder.open_in(&more.iter().copied().collect()).expect_err(part);
        assert!(error.to_string().starts_with(part), "{error}");
        assert_eq!(error.reason(), Reason::Invalid, "{error}");
    };
    for wrong in ["127.0.0.1", "http://a b", "http://x\n", "/x", "http://[::1", "http://x:99999"] {
        let full = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
        refused(&builder, &[(full, wrong)], full);
        let sts = "AWS_ENDPOINT_URL_STS";
        refused(&builder, &[role[0], role[1], (sts, wrong)], sts);
        let metadata = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
        refused(&builder.clone().instance_credentials(), &[(metadata, wrong)], metadata);
    }
    refused(
        &builder,
        &[role[0], role[1], ("AWS_ENDPOINT_URL_STS", "http://x")],
        "AWS_ENDPOINT_URL_STS must begin",
    );
    for wrong in ["x", "@x.org/", "/a b", "/x\n"] {
        let relative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
        refused(&builder, &[(relative, wrong)], relative);
    }
}

#[test]
fn an_invalid_bucket_and_an_invalid_prefix_are_reported() {
    for bucket in ["", "ab", "Bucket", "a_b_c", "-abc", "abc-", "a..b", &"x".repeat(64), "key:hush@bucket"] {
        assert!(S3::builder(bucket).check().is_err(), "{bucket}");
    }
    let express = S3::builder("jobs--use1-az4--x-s3").check().unwrap_err().to_string();
    assert!(express.contains("S3 Express One Zone"), "{express}");
    for prefix in ["/", "a/", "/a", "a//b", "..", "a/./b", "a\nb", "\u{ffff}", "a\\b"] {
        let error = S3::builder("bucket").prefix(prefix).check().expect_err(prefix);
        assert!(error.to_string().contains("not a prefix"), "{error}");
    }
    assert!(S3::builder("my.bucket-1").prefix("prod/locks").check().is_ok());
}

#[test]
fn a_bucket_is_in_the_path_or_in_front_of_the_host() {
    refused(
        &S3::builder("bucket").endpoint("http://127.0.0.1:9000").path_style(false),
        &[],
        Reason::Invalid,
        "path-style=false",
    );
    let store =
        open(&S3::builder("bucket").endpoint("http://localhost:9000").path_style(false), &[]).unwrap();
    assert!(store.to_string().ends_with("&path-style=false"), "{store}");
}

#[test]
fn an_interface_that_is_known_to_ignore_conditions_is_refused() {
    for host in [
        "storage.googleapis.com",
        "bucket.storage.googleapis.com",
        "commondatastorage.googleapis.com",
        "storage.europe-west3.rep.googleapis.com",
        "storage.mtls.googleapis.com",
        "storage.europe-west3.rep.mtls.googleapis.com",
        "storage-mine.p.googleapis.com",
        "STORAGE.googleapis.com:443",
    ] {
        let google = S3::builder("leases").endpoint(&format!("https://{host}"));
        refused(&google, &[], Reason::Unsupported, "ignores the conditions");
        refused(&google, &[], Reason::Unsupported, "use Google's own interface, with gs://leases");
        let anonymous = google.region("r").open_in(&Environment::default()).unwrap_err();
        assert_eq!(
            anonymous.reason(),
            Reason::Unsupported,
            "whether there are credentials or not: {anonymous}"
        );
    }
    let other = S3::builder("leases").endpoint("https://storage.googleapis.com.example.org");
    assert!(open(&other, &[]).is_ok(), "by whole labels");
}

#[test]
fn the_guarantees_suffice_for_leases_at_the_rate_of_the_provider() {
    let aws = S3::builder("bucket").guarantees();
    assert_eq!(aws.missing_for_leases(), <[&str; 0]>::default());
    assert_eq!((aws.clock, aws.unique_versions, aws.watch), (StoreClock::Floors, false, false));
    assert_eq!(aws.write_interval, Duration::from_millis(100));
    let trusting = S3::builder("bucket").region("r").accept_server_clock();
    assert_eq!(trusting.guarantees().clock, StoreClock::Ages);
    let store = open(&trusting, &[]).unwrap();
    assert_eq!(store.guarantees().clock, StoreClock::Ages);
    assert_eq!(
        store.to_string(),
        "s3://bucket?region=r",
        "the same store, also for a program that does not trust its clock"
    );
    let r2 = S3::builder("bucket").endpoint("https://x.r2.cloudflarestorage.com");
    assert_eq!(r2.guarantees().write_interval, Duration::from_millis(1100));
    assert_eq!(r2.write_interval(Duration::ZERO).guarantees().write_interval, Duration::ZERO);
}

#[test]
fn keys_of_a_profile_are_taken_from_the_files_that_the_environment_names() {
    let directory = std::env::temp_dir().join(format!("tenure-object-profile-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let config = write(
        "config",
        "[default]\nregion = eu-central-1\n[profile ci]\nregion = us-west-2\n[profile people]\nregion = us-west-2\nsso_session = x\n",
    );
    let credentials = write("credentials", "[ci]\naws_access_key_id = A\naws_secret_access_key = hush\n");
    let variables = [("AWS_CONFIG_FILE", config.as_str()), ("AWS_SHARED_CREDENTIALS_FILE", &credentials)];
    let environment: Environment = variables.into_iter().collect();
    let open = |builder: S3Builder| builder.open_in(&environment);

    let store = open(S3::builder("bucket").profile("ci")).unwrap();
    assert_eq!(
        store.to_string(),
        "s3://bucket?region=us-west-2",
        "its profile is who asks, and not where it is"
    );
    let error = open(S3::builder("bucket").profile("people")).unwrap_err().to_string();
    assert!(error.contains("aws configure export-credentials --profile people"), "{error}");
    let error = open(S3::builder("bucket").profile("missing")).unwrap_err().to_string();
    assert!(error.contains("no profile \"missing\""), "{error}");
    let error = open(S3::builder("bucket")).unwrap_err().to_string();
    assert!(error.contains("no credentials"), "the default profile has a region and no key: {error}");
    let by_variable: Environment = variables.into_iter().chain([("AWS_PROFILE", "ci")]).collect();
    assert!(S3::builder("bucket").open_in(&by_variable).is_ok());
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn the_object_of_a_url_is_its_prefix_and_has_its_exact_name() {
    let builder = S3::builder("bucket").region("eu-west-1").keys("id", "secret").prefix("reports/today.csv");
    let (bucket, object) = builder.object().unwrap();
    assert_eq!(object.as_str(), "reports/today.csv");
    assert_eq!(bucket.to_string(), "s3://bucket?region=eu-west-1");
    let store = bucket.open_in(&Environment::default()).unwrap();
    assert_eq!(store.object_of(&object), "reports/today.csv");
    assert_eq!(store.guarantees().value_max, S3::OBJECT_MAX);
    let none = S3::builder("bucket").object().unwrap_err();
    assert!(none.to_string().contains("names no object"), "{none}");
    let below = S3::builder("bucket").region("a").keys("id", "secret").prefix("data").exact_names();
    assert_eq!(below.open_in(&Environment::default()).unwrap().object_of(&object), "data/reports/today.csv");
}
