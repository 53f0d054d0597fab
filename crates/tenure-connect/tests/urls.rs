//! The accepted URLs, the errors of the others, and the canonical form.
#![cfg(feature = "file")]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proptest::prelude::*;
use tenure_connect::StoreUrl;

fn canonical(text: &str) -> String {
    let url: StoreUrl = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let canonical = url.to_string();
    assert_eq!(canonical.parse::<StoreUrl>().unwrap(), url, "{canonical} does not come back");
    canonical
}

#[track_caller]
fn refused(text: &str, sentence: &str) {
    let error = text.parse::<StoreUrl>().expect_err(text);
    assert_eq!(error.to_string(), sentence);
}

#[test]
fn a_plain_url_is_its_own_canonical_form() {
    for text in ["file:///var/lib/tenure", "file:///a/b-c_d.e~f+g,h:i=j@k", "file:///srv/x?accept=nfs"] {
        assert_eq!(canonical(text), text);
    }
    assert_eq!(canonical("FILE:///x"), "file:///x");
    assert_eq!(canonical("file:///jürgen/my%20jobs"), "file:///j%C3%BCrgen/my%20jobs");
    assert_eq!(canonical("file:///x%3fy%23z%25"), "file:///x%3Fy%23z%25");
    assert_eq!(
        canonical("file:///x?accept=nfs&accept=writable-by-others&accept=NFS&accept=foreign-owner"),
        "file:///x?accept=foreign-owner&accept=writable-by-others&accept=nfs"
    );
    assert_eq!(
        canonical("file:///x?accept=foreign-owner&share=group"),
        "file:///x?share=group&accept=foreign-owner"
    );
}

#[test]
fn one_directory_has_one_identity_whether_or_not_a_group_shares_it() {
    let [alone, shared]: [StoreUrl; 2] =
        ["file:///srv/leases", "file:///srv/leases?share=group"].map(|text| text.parse().unwrap());
    assert_eq!(alone.identity(), shared.identity());
    for name in ["file:///srv/leases", "file:///srv/leases?share=group"] {
        assert!(alone.is_called(name) && shared.is_called(name), "{name}");
    }
    assert!(!shared.is_called("file:///srv/other?share=group"));
}

#[test]
fn an_error_shows_a_valid_url() {
    refused("", "the URL of a store is empty: write it like file:///path");
    refused(
        "/var/lib/my jobs",
        "\"/var/lib/my jobs\" is a path, but a store needs a URL: write file:///var/lib/my%20jobs",
    );
    refused("leases", "\"leases\" is not the URL of a store: write it like file:///path");
    refused("./a:b", "\"./a:b\" is not the URL of a store: write it like file:///path");
    refused(
        "file:leases",
        "file:leases has a relative path, which depends on the current directory: write it like \
         file:///var/lib/tenure",
    );
    refused("file:/var/lib", "file:/var/lib lacks two slashes: write file:///var/lib");
    for empty in ["file://", "file:///", "file:////"] {
        refused(empty, &format!("{empty} names no directory: write it like file:///var/lib/tenure"));
    }
    refused(
        "file://var/lib",
        "file://var/lib names a host, \"var\", but a file store is on this machine: write file:///var/lib",
    );
    refused(
        "file://localhost/var/lib",
        "file://localhost/var/lib names a host, \"localhost\", but a file store is on this machine: write \
         file:///var/lib",
    );
    refused(
        "file:///x#y",
        "the URL of a store cannot have a part after '#': write %23 where it belongs to the path",
    );
    for bad in ["file:///100%", "file:///%4", "file:///%zz"] {
        refused(
            bad,
            &format!(
                "{bad} has a '%' without two hexadecimal digits: write %25 where it belongs to the path"
            ),
        );
    }
    refused("file:///a%00b", "a path cannot contain a zero byte (%00): write it like file:///var/lib/tenure");
    refused("file:///a/..", "\"/a/..\" cannot be a store: write it like file:///var/lib/tenure");
    refused(
        "file:///x?acept=nfs",
        "a file store has no option \"acept=nfs\": it has accept, as in \
         file:///var/lib/tenure?accept=foreign-owner, and share, as in file:///var/lib/tenure?share=group",
    );
    refused(
        "file:///x?",
        "a file store has no option \"\": it has accept, as in file:///var/lib/tenure?accept=foreign-owner, and share, \
         as in file:///var/lib/tenure?share=group",
    );
    refused(
        "file:///x?share=world",
        "a file store cannot be shared with \"world\": write share=group, which shares it with the users in the \
         group of its directory",
    );
    refused(
        "file:///x?accept=foreign-ownr",
        "\"foreign-ownr\" is not a risk that a file store can accept: use foreign-owner, writable-by-others, or the \
         name of a file system such as nfs",
    );
}

/// The stores of this build, as a part of a sentence.
fn known() -> String {
    let built = [
        ("file:///path", true),
        ("memory:", cfg!(feature = "memory")),
        ("redis://host:6379", cfg!(feature = "redis")),
        ("s3://bucket/prefix", cfg!(feature = "s3")),
        ("az://container/prefix", cfg!(feature = "az")),
        ("gs://bucket/prefix", cfg!(feature = "gs")),
        ("postgres://role@host/database", cfg!(feature = "postgres")),
    ];
    let built: Vec<&str> = built.iter().filter(|(_, is_built)| *is_built).map(|(url, _)| *url).collect();
    match built.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => built.concat(),
    }
}

#[cfg(not(feature = "memory"))]
#[test]
fn the_error_about_a_store_of_another_build_repeats_no_password() {
    let known = known();
    let not_built =
        |scheme: &str| format!("{scheme}: stores are not built into this version, which has {known}");
    let with_feature = |scheme: &str, feature: &str| {
        format!(
            "{}: build it with the feature {feature}, as by cargo install --locked --path crates/tenure-cli --features {feature}",
            not_built(scheme)
        )
    };
    let with = |scheme: &str| with_feature(scheme, scheme);
    refused("etcd://me:secret@db/leases", &not_built("etcd"));
    if !cfg!(feature = "postgres") {
        refused("postgres://me:secret@db/leases", &with("postgres"));
        refused("postgresql://me:secret@db/leases", &with_feature("postgresql", "postgres"));
    }
    if !cfg!(feature = "redis") {
        refused("rediss://me:secret@cache", &with_feature("rediss", "redis"));
        refused("redis+sentinel://me:secret@cache/main", &with_feature("redis+sentinel", "redis"));
    }
    refused("memory:", &with("memory"));
    refused("gopher://secret", &format!("\"gopher\" is not a kind of store: this version has {known}"));
    if !cfg!(feature = "s3") {
        refused("s3://bucket/prefix", &with("s3"));
    }
}

#[cfg(feature = "memory")]
#[test]
fn each_open_of_memory_is_a_separate_store() {
    assert_eq!(canonical("memory:"), "memory:");
    assert_eq!(canonical("memory:jobs"), "memory:jobs");
    refused("memory:///x", "memory:///x has more than a plain name: write memory: or memory:name");
    let sentence = format!("\"gopher\" is not a kind of store: this version has {}", known());
    refused("gopher://secret", &sentence);
    let url: StoreUrl = "memory:jobs".parse().unwrap();
    assert_eq!(url.open().unwrap().to_string(), "memory:jobs");
    assert!(url.open_to_read().unwrap().is_some());
}

#[test]
fn a_directory_is_opened_created_and_inspected_through_its_url() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("connect-{}", std::process::id()));
    let directory = directory.join(OsStr::from_bytes(b"not utf-8: \xff %41"));
    let url = StoreUrl::of_directory(&directory).unwrap();
    assert!(url.open_to_read().unwrap().is_none());
    assert!(!directory.exists());
    let store = url.open().unwrap();
    assert!(directory.exists(), "byte for byte");
    // The display name of a store is a URL that opens it.
    let again: StoreUrl = store.to_string().parse().unwrap();
    assert_eq!(again, url);
    assert!(again.open_to_read().unwrap().is_some());
    std::fs::remove_dir_all(directory.parent().unwrap()).unwrap();
}

#[test]
fn what_is_accepted_in_the_url_reaches_the_store() {
    use std::os::unix::fs::PermissionsExt;
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("accept-{}", std::process::id()));
    let url = StoreUrl::of_directory(&directory).unwrap();
    url.open().unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o770)).unwrap();
    let error = url.open().unwrap_err().to_string();
    assert!(error.contains("?accept=writable-by-others"), "{error}");
    let accepting: StoreUrl = format!("{url}?accept=writable-by-others").parse().unwrap();
    accepting.open().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
}

proptest! {
    #[test]
    fn every_path_comes_back_byte_for_byte(name in proptest::collection::vec(1..=255u8, 1..40)) {
        let path = [b"/x/".as_slice(), &name].concat();
        if let Ok(url) = StoreUrl::of_directory(OsStr::from_bytes(&path)) {
            let text = url.to_string();
            prop_assert!(text.is_ascii() && !text.contains(char::is_whitespace));
            prop_assert_eq!(text.parse::<StoreUrl>().unwrap(), url);
        }
    }

    #[test]
    fn no_text_causes_a_panic(text in ".{0,60}", rest in "(//)?[a-z/%?#=&]{0,30}") {
        let _ = text.parse::<StoreUrl>();
        let _ = format!("file:{rest}").parse::<StoreUrl>();
    }
}
