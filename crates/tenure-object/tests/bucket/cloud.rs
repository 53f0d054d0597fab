use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{ClientOptions, ObjectStore};
use tenure_object::{Azure, AzureBuilder, Environment, Google, GoogleBuilder, Requests, S3, S3Builder};
use tenure_store::{Key, Store};
use tenure_testkit::{Kind, Server};

/// One of the clouds, for the tests that all of them share.
pub(crate) trait Cloud: fmt::Debug + Sized + Send + Sync + 'static {
    type Builder: Clone;
    type Store: Store + Clone + fmt::Display;

    /// A builder for a bucket, with the credentials of the server.
    fn builder(server: &Server, name: &str, endpoint: &str) -> Self::Builder;
    fn prefix(builder: Self::Builder, prefix: &str) -> Self::Builder;
    fn write_interval(builder: Self::Builder, interval: Duration) -> Self::Builder;
    fn accept_server_clock(builder: Self::Builder) -> Self::Builder;
    fn exact_names(builder: Self::Builder) -> Self::Builder;
    fn open(builder: &Self::Builder) -> Self::Store;
    fn requests(store: &Self::Store) -> Requests;
    fn object_of(store: &Self::Store, key: &Key) -> String;

    /// Client of an administrator, who acts without the store's knowledge.
    fn administrator(server: &Server, name: &str) -> Arc<dyn ObjectStore>;
}

/// AWS S3, and servers with the same API.
#[derive(Debug)]
pub(crate) struct OnS3;

/// Azure Blob Storage.
#[derive(Debug)]
pub(crate) struct OnAzure;

/// Google Cloud Storage.
#[derive(Debug)]
pub(crate) struct OnGoogle;

/// The methods of [`Cloud`] that every builder and store has under the same name.
macro_rules! cloud {
    ($builder:ident, $store:ident) => {
        type Builder = $builder;
        type Store = $store;

        fn prefix(builder: $builder, prefix: &str) -> $builder {
            builder.prefix(prefix)
        }

        fn write_interval(builder: $builder, interval: Duration) -> $builder {
            builder.write_interval(interval)
        }

        fn accept_server_clock(builder: $builder) -> $builder {
            builder.accept_server_clock()
        }

        fn exact_names(builder: $builder) -> $builder {
            builder.exact_names()
        }

        fn open(builder: &$builder) -> $store {
            builder.open_in(&Environment::default()).unwrap()
        }

        fn requests(store: &$store) -> Requests {
            store.requests()
        }

        fn object_of(store: &$store, key: &Key) -> String {
            store.object_of(key)
        }
    };
}

impl Cloud for OnS3 {
    cloud!(S3Builder, S3);

    fn builder(server: &Server, name: &str, endpoint: &str) -> S3Builder {
        let builder = S3::builder(name).endpoint(endpoint).region(server.region());
        let builder = if server.kind() == Kind::CephRgw { builder.bare_etags() } else { builder };
        builder.keys(server.access_key(), server.secret_key())
    }

    fn administrator(server: &Server, name: &str) -> Arc<dyn ObjectStore> {
        let client = AmazonS3Builder::new()
            .with_bucket_name(name)
            .with_endpoint(server.endpoint())
            .with_allow_http(true)
            .with_region(server.region())
            .with_access_key_id(server.access_key())
            .with_secret_access_key(server.secret_key());
        Arc::new(client.build().unwrap())
    }
}

impl Cloud for OnAzure {
    cloud!(AzureBuilder, Azure);

    fn builder(server: &Server, name: &str, endpoint: &str) -> AzureBuilder {
        Azure::builder(name).account(server.account()).endpoint(endpoint).access_key(server.account_key())
    }

    fn administrator(server: &Server, name: &str) -> Arc<dyn ObjectStore> {
        let client = MicrosoftAzureBuilder::new()
            .with_container_name(name)
            .with_endpoint(server.endpoint())
            .with_allow_http(true)
            .with_account(server.account())
            .with_access_key(server.account_key());
        Arc::new(client.build().unwrap())
    }
}

impl Cloud for OnGoogle {
    cloud!(GoogleBuilder, Google);

    fn builder(server: &Server, name: &str, endpoint: &str) -> GoogleBuilder {
        Google::builder(name).endpoint(endpoint).token(server.bearer_token())
    }

    fn administrator(server: &Server, name: &str) -> Arc<dyn ObjectStore> {
        let client = GoogleCloudStorageBuilder::new()
            .with_bucket_name(name)
            .with_base_url(&server.endpoint())
            .with_client_options(ClientOptions::new().with_allow_http(true))
            .with_bearer_token(server.bearer_token());
        Arc::new(client.build().unwrap())
    }
}
