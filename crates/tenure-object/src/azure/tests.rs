//! Opening a store: valid and invalid settings, both without a request.

use std::time::Duration;

use tenure_store::{Reason, Store, StoreClock};

use super::*;
use crate::{Environment, OpenError};

type Variables<'a> = &'a [(&'a str, &'a str)];

const KEY: Variables<'_> = &[("AZURE_STORAGE_KEY", "aHVzaA==")];

fn open(builder: &AzureBuilder, more: Variables<'_>) -> Result<Azure, OpenError> {
    builder.open_in(&KEY.iter().chain(more).copied().collect())
}

fn name(builder: &AzureBuilder, more: Variables<'_>) -> String {
    open(builder, more).unwrap().to_string()
}

#[track_caller]
fn refused(builder: &AzureBuilder, more: Variables<'_>, reason: Reason, part: &str) {
    let error = open(builder, more).expect_err(part);
    let sentence = error.to_string();
    assert!(sentence.contains(part), "{sentence}");
    assert_eq!(error.reason(), reason, "{sentence}");
    assert!(!sentence.contains("hush"), "{sentence}");
}

fn locks() -> AzureBuilder {
    Azure::builder("locks")
}

#[test]
fn the_name_of_a_store_says_where_it_is_and_not_who_asks() {
    let builder = locks().prefix("prod/my locks").account("acme").sas_token("sv=1&sig=hush");
    let store = open(&builder, &[]).unwrap();
    assert_eq!(store.to_string(), "az://locks/prod/my%20locks?account=acme");
    assert_eq!(store.offered_by(), Some("Azure Blob Storage"));
    let text = format!("{store:?} {builder:?} {builder}");
    assert!(!text.contains("hush"), "{text}");
}

#[test]
fn the_account_comes_from_the_url_the_endpoint_or_the_environment() {
    let variables: Variables<'_> =
        &[("AZURE_STORAGE_ACCOUNT", "other"), ("AZURE_STORAGE_ACCOUNT_NAME", "third")];
    assert_eq!(name(&locks().account("acme"), variables), "az://locks?account=acme");
    assert_eq!(name(&locks(), variables), "az://locks?account=other");
    assert_eq!(name(&locks(), &variables[1..]), "az://locks?account=third");
    let endpoint = locks().endpoint("https://acme.blob.core.usgovcloudapi.net");
    assert_eq!(
        name(&endpoint, variables),
        "az://locks?endpoint=https://acme.blob.core.usgovcloudapi.net&account=acme"
    );
    refused(&locks(), &[], Reason::Invalid, "write account=NAME in the URL");
    refused(&endpoint.account("other"), &[], Reason::Invalid, "and not of \"other\"");
}

/// A variable that belongs to another account must not redirect requests for the one in the URL.
#[test]
fn an_endpoint_of_the_environment_is_not_that_of_an_account_in_the_url() {
    let variables: Variables<'_> = &[("AZURE_STORAGE_SERVICE_ENDPOINT", "https://blobs.example.org")];
    let account = ("AZURE_STORAGE_ACCOUNT", "acme");
    assert_eq!(name(&locks().account("acme"), variables), "az://locks?account=acme");
    let both = [variables[0], account];
    for builder in [locks(), locks().account("acme")] {
        assert_eq!(name(&builder, &both), "az://locks?endpoint=https://blobs.example.org&account=acme");
    }
    assert_eq!(name(&locks().account("other"), &both), "az://locks?account=other");
}

#[test]
fn one_store_has_one_name_however_its_endpoint_is_written() {
    let azurite = "az://locks?endpoint=http://127.0.0.1:10000/devstoreaccount1&account=devstoreaccount1";
    let endpoint = locks().endpoint("http://127.0.0.1:10000");
    assert_eq!(name(&endpoint.account("devstoreaccount1"), &[]), azurite);
    assert_eq!(name(&locks().endpoint("http://127.0.0.1:10000/devstoreaccount1/"), &[]), azurite);
    let connection = "AccountName=devstoreaccount1;AccountKey=aHVzaA==;BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1";
    assert_eq!(name(&locks(), &[("AZURE_STORAGE_CONNECTION_STRING", connection)]), azurite);
    let usual = locks().endpoint("https://acme.blob.core.windows.net").account("acme");
    assert_eq!(name(&usual, &[]), "az://locks?account=acme");
    let connection = "AccountName=acme;AccountKey=aHVzaA==;EndpointSuffix=core.windows.net";
    assert_eq!(name(&locks(), &[("AZURE_STORAGE_CONNECTION_STRING", connection)]), "az://locks?account=acme");
}

#[test]
fn an_endpoint_that_addresses_something_else_is_refused() {
    let at = |url: &str| locks().endpoint(url);
    refused(
        &at("https://acme.dfs.core.windows.net"),
        &[],
        Reason::Invalid,
        "https://acme.blob.core.windows.net",
    );
    refused(&at("https://acme-secondary.blob.core.windows.net"), &[], Reason::Unsupported, "lags behind");
    refused(
        &at("https://acme.blob.core.windows.net/locks"),
        &[],
        Reason::Invalid,
        "ends in the name of the container",
    );
    refused(&at("http://127.0.0.1:1/acme/locks").account("acme"), &[], Reason::Invalid, "ends in the name");
    refused(&at("http://blobs.example.org").account("acme"), &[], Reason::Invalid, "accept=http");
    assert!(open(&at("http://blobs.example.org").account("acme").accept_http(), &[]).is_ok());
    // An account and a container of one name.
    assert!(open(&at("http://127.0.0.1:1/locks"), &[]).is_ok());
}

#[test]
fn without_credentials_nothing_is_opened() {
    let builder = locks().account("acme");
    let error = builder.open_in(&Environment::default()).unwrap_err();
    assert_eq!(error.reason(), Reason::Denied);
    assert!(error.to_string().contains("AZURE_STORAGE_KEY"), "{error}");
    refused(&builder.clone().access_key("hush!"), &[], Reason::Denied, "not an access key");
    refused(&builder.sas_token("sig=hush\n"), &[], Reason::Denied, "line break");
}

#[test]
fn an_invalid_container_account_and_prefix_are_reported() {
    for container in ["", "ab", "Locks", "a_b_c", "-abc", "abc-", "a--b", "a.b.c", "$root", &"x".repeat(64)] {
        let error = Azure::builder(container).check().expect_err(container).to_string();
        assert!(error.contains("not the name of a container"), "{error}");
    }
    for account in ["", "ab", "Acme", "ac-me", &"x".repeat(25)] {
        let error = locks().account(account).check().expect_err(account).to_string();
        assert!(error.contains("not the name of a storage account"), "{error}");
    }
    for prefix in ["/", "a/", "a//b", "..", "a\\b", "a./b", "a/b."] {
        let error = locks().prefix(prefix).check().expect_err(prefix).to_string();
        assert!(error.contains("not a prefix"), "{error}");
    }
    assert!(Azure::builder("my-container-1").prefix("prod/v1.2/locks").check().is_ok());
}

#[test]
fn the_guarantees_suffice_for_leases_and_versions_never_return() {
    let guarantees = locks().guarantees();
    assert_eq!(guarantees.missing_for_leases(), <[&str; 0]>::default());
    assert_eq!((guarantees.clock, guarantees.unique_versions), (StoreClock::Floors, true));
    let trusting = locks().account("acme").accept_server_clock();
    assert_eq!(open(&trusting, &[]).unwrap().guarantees().clock, StoreClock::Ages);
    assert_eq!(
        name(&trusting, &[]),
        "az://locks?account=acme",
        "it is the same store for those who do not trust it"
    );
    assert_eq!(trusting.write_interval(Duration::ZERO).guarantees().write_interval, Duration::ZERO);
}
