//! The URLs of containers of Azure that are accepted, the errors of the others, and the canonical form.
#![cfg(feature = "az")]

mod support;

use support::{canonical, refused};
use tenure_connect::StoreUrl;

#[test]
fn a_plain_url_is_its_own_canonical_form() {
    for text in [
        "az://my-container",
        "az://my-container/prod/locks?account=acme",
        "az://my-container/x?endpoint=http://127.0.0.1:10000/acme&account=acme",
        "az://my-container/x?account=acme&credentials=instance&ca=/etc/ssl/my-ca.pem",
        "az://my-container/x?proxy=http://proxy.example.org:3128&accept=http&accept=server-clock",
    ] {
        assert_eq!(canonical(text), text);
    }
    assert_eq!(canonical("AZ://my-container/my%20locks/"), "az://my-container/my%20locks");
}

#[test]
fn an_error_shows_a_valid_url_and_repeats_no_secret() {
    refused("az:my-container", "lacks two slashes");
    refused("az://", "names no container");
    refused("az://hush@acme.blob.core.windows.net/x", "AZURE_STORAGE_KEY");
    refused("az://Container/x", "not the name of a container");
    refused("az://my-container/a./b", "not a prefix on Azure");
    refused("az://my-container?sv=2024&sig=hush", "AZURE_STORAGE_SAS_TOKEN");
    refused("az://my-container?region=eu", "no option \"region\": it has account");
    refused("az://my-container?account=a&account=b", "twice");
    refused("az://my-container?account=Acme", "3 to 24 lowercase letters");
    refused("az://my-container?credentials=hush", "instance");
    refused("az://my-container?accept=nfs", "accept can be http");
    refused("az://my-container?endpoint=https://acme.dfs.core.windows.net", "not the endpoint of blobs");
}

#[test]
fn the_guarantees_of_a_container_need_no_credentials() {
    let url: StoreUrl = "az://my-container/locks?account=acme".parse().unwrap();
    let guarantees = url.guarantees().unwrap();
    assert!(guarantees.missing_for_leases().is_empty() && guarantees.unique_versions);
    assert!(url.is_there().unwrap() && !url.has_removal() && url.with_other_etags().is_none());
    assert_eq!(url.identity(), "az://my-container/locks?account=acme");
}
