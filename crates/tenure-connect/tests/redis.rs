//! The URLs of Redis stores, and the errors of the others.
#![cfg(feature = "redis")]

use std::time::Duration;

use proptest::prelude::*;
use tenure_connect::StoreUrl;

fn canonical(text: &str) -> String {
    let url: StoreUrl = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let canonical = url.to_string();
    assert_eq!(canonical.parse::<StoreUrl>().unwrap(), url, "{canonical} does not come back");
    canonical
}

#[track_caller]
fn refused(text: &str, part: &str) {
    let error = text.parse::<StoreUrl>().expect_err(text).to_string();
    assert!(error.contains(part), "{text}: {error}");
    assert!(!error.contains("hush"), "{error}");
}

#[test]
fn a_url_has_one_canonical_form() {
    for (text, form) in [
        ("redis://localhost", "redis://localhost:6379"),
        ("REDIS://Host:7000/3", "redis://host:7000?db=3"),
        ("redis://host?db=3", "redis://host:6379?db=3"),
        ("redis://host/?prefix=tenure:", "redis://host:6379"),
        ("rediss://me@[::1]:7000?prefix=prod:", "rediss://me@[::1]:7000?prefix=prod:"),
        ("redis+unix:///run/redis.sock", "redis+unix:///run/redis.sock"),
        ("redis://h?quarantine=10s", "redis://h:6379?quarantine=10000ms"),
        ("redis://h?accept=failover&accept=restart", "redis://h:6379?accept=restart&accept=failover"),
        (
            "redis+sentinel://a,b:7/mymaster?accept=failover&wait=1",
            "redis+sentinel://a:26379,b:7/mymaster?wait=1&accept=failover",
        ),
        ("redis://a,b:7?accept=failover", "redis://a:6379,b:7?accept=failover"),
        (
            "rediss://h?ca=/etc/ca.pem&password-file=/run/pw",
            "rediss://h:6379?ca=/etc/ca.pem&password-file=/run/pw",
        ),
    ] {
        assert_eq!(canonical(text), form);
    }
}

#[test]
fn a_wrong_url_is_refused_with_a_sentence_that_repeats_no_password() {
    refused("redis://me:hush@host", "the URL of a store carries no password: put it into REDISCLI_AUTH");
    refused("redis://:hush@host", "carries no password");
    refused("redis:host", "lacks two slashes");
    refused("redis://", "names no server");
    refused("redis://host/jobs", "a database has a number");
    refused("redis://host:port", "is not the address of a server");
    refused("redis://host?accept=everything", "accept can be restart");
    refused("redis://host?ttl=5", "a Redis store has no option \"ttl\"");
    refused("redis://host?db=1&db=2", "says it twice");
    refused("redis://host?quarantine=2m", "quarantine is a time such as 10s");
    refused("redis://host?quarantine=90s", "between 100ms and 60s");
    refused("redis://host?prefix=a{b", "no braces");
    refused("redis://host?ca=ca.pem", "not the absolute path of a certificate file");
    refused("redis://host?wait=1", "accept=failover");
    refused("redis://a,b", "accept=failover");
    refused("redis+sentinel://a/mymaster", "accept=failover");
    refused("redis+sentinel://a?accept=failover", "name the master");
    refused("redis+unix://run/redis.sock", "not the absolute path of a socket");
}

#[test]
fn the_guarantees_follow_from_the_url() {
    let of = |text: &str| text.parse::<StoreUrl>().unwrap().guarantees().unwrap();
    let default = of("redis://h");
    assert!(default.missing_for_leases().is_empty());
    assert!(default.quarantine && !default.keeps_acknowledged);
    assert_eq!(default.ttl_max, Some(Duration::from_secs(60)));
    assert_eq!(of("redis://h?quarantine=10s").ttl_max, Some(Duration::from_secs(10)));
    let accepted = of("redis://h?accept=restart");
    assert!(!accepted.quarantine && !accepted.keeps_acknowledged);
    assert_eq!(accepted.accepted_loss, Some("accept=restart"));
    assert!(accepted.missing_for_leases().is_empty() && accepted.allows_plain_keys());
    let evicting = of("redis://h?accept=eviction");
    assert!(evicting.quarantine && !evicting.allows_plain_keys(), "a restart may still lose a key");
    assert_eq!(accepted.ttl_max, None);
}

#[test]
fn the_page_of_the_store_has_every_option_and_every_risk() {
    let page = include_str!("../../../docs/stores/redis.md");
    let message = |url: &str| url.parse::<StoreUrl>().unwrap_err().to_string();
    let options = message("redis://h?nothing=1");
    let (_, options) = options.split_once("it has ").expect("the message names the options");
    let (options, _) = options.split_once(", as in").expect("an example follows");
    for option in options.split([',', ' ']).filter(|option| !["", "and"].contains(option)) {
        let is_option = |line: &str| line.starts_with('|') && line.contains(&format!("`{option}="));
        assert!(page.lines().any(is_option), "{option}");
    }
    let risks = message("redis://h?accept=nothing");
    for risk in ["restart", "failover", "eviction", "unknown-settings"] {
        assert!(risks.contains(risk), "{risks}");
        assert!(page.contains(&format!("`accept={risk}`")), "{risk}");
    }
}

#[test]
fn the_name_of_a_store_is_the_same_for_every_user() {
    let url: StoreUrl = "rediss://me@h?ca=/etc/hosts&password-file=/run/pw".parse().unwrap();
    assert_eq!(url.identity(), "rediss://h:6379");
    assert!(url.is_called("rediss://h:6379"));
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(rest in "(//)?[a-z:/%?#=&@,\\[\\]{}0-9]{0,40}") {
        for scheme in ["redis", "rediss", "redis+unix", "redis+sentinel"] {
            let _ = format!("{scheme}:{rest}").parse::<StoreUrl>();
        }
    }
}
