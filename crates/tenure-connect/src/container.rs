use std::fmt;
use std::sync::Arc;

use tenure::Error;
use tenure_object::OpenError;
use tenure_store::{Guarantees, Key, Store, StoreError};

use crate::UrlError;
use crate::decode::decode;

/// A bucket or a container, and the way to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerPlace<B>(Box<B>);

/// A builder of a store in a bucket or a container. [`container_builder`] writes the methods that every builder has.
pub(crate) trait ContainerBuilder: Clone + fmt::Display {
    const WORDS: ContainerWords;

    /// Sets an option that only this kind of store has.
    fn own_option(self, name: &str, value: &str) -> Result<Self, UrlError>;

    fn of_container(name: &str) -> Self;
    fn prefix(self, prefix: &str) -> Self;
    fn endpoint(self, url: &str) -> Self;
    fn ca(self, path: &str) -> Self;
    fn proxy(self, url: &str) -> Self;
    fn instance_credentials(self) -> Self;
    fn accept_http(self) -> Self;
    fn accept_server_clock(self) -> Self;
    fn check(&self) -> Result<(), OpenError>;
    fn open(&self) -> Result<(Arc<dyn Store>, Option<&'static str>), OpenError>;
    fn store_name(&self) -> Result<String, OpenError>;
    fn resolved(&self) -> Result<Self, OpenError>;
    fn guarantees(&self) -> Guarantees;
    fn object(self) -> Result<(Self, Key), OpenError>;
}

/// The words of messages about the URL of a bucket or a container.
pub(crate) struct ContainerWords {
    pub(crate) scheme: &'static str,
    /// `a bucket` or `a container`.
    pub(crate) a_container: &'static str,
    /// A valid URL.
    pub(crate) example: &'static str,
    /// The place for credentials.
    pub(crate) credentials: &'static str,
    /// The place of credentials other than those of the machine.
    pub(crate) others: &'static str,
}

impl<B: ContainerBuilder> ContainerPlace<B> {
    /// Parses the part after the scheme. Errors never repeat it: it may contain a secret.
    pub(crate) fn parse(rest: &str) -> Result<Self, UrlError> {
        let ContainerWords { scheme, a_container, example, credentials, .. } = B::WORDS;
        let Some(rest) = rest.strip_prefix("//") else {
            return Err(UrlError::new(format!("{scheme}: lacks two slashes: write it like {example}")));
        };
        if rest.contains('#') {
            return Err(UrlError::new(
                "the URL of a store cannot have a part after '#': write %23 where it belongs to the prefix",
            ));
        }
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (rest, None),
        };
        let (container, prefix) = place.split_once('/').unwrap_or((place, ""));
        if container.contains('@') {
            return Err(UrlError::new(format!(
                "the URL of a store carries no credentials: put them into {credentials}, and write it like {example}"
            )));
        }
        if container.is_empty() {
            let container = a_container.trim_start_matches("a ");
            return Err(UrlError::new(format!("{scheme}:// names no {container}: write it like {example}")));
        }
        let prefix = decode(prefix.strip_suffix('/').unwrap_or(prefix))?;
        let mut builder = B::of_container(container).prefix(&prefix);
        let mut seen = Vec::new();
        for option in crate::options::options(query) {
            let (name, value) = option.split_once('=').unwrap_or((&option, ""));
            // Each risk is accepted by its own name.
            if seen.iter().any(|seen| seen == name) && name != "accept" {
                return Err(UrlError::new(format!(
                    "{a_container} has one {name}, and this URL says it twice"
                )));
            }
            seen.push(name.to_owned());
            builder = option_of(builder, name, &decode(value)?)?;
        }
        builder.check().map_err(|error| UrlError::new(error.to_string()))?;
        Ok(Self(Box::new(builder)))
    }

    #[cfg(feature = "s3")]
    pub(crate) fn builder(&self) -> &B {
        &self.0
    }

    pub(crate) fn of(builder: B) -> Self {
        Self(Box::new(builder))
    }

    pub(crate) fn open(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(self.0.open().map_err(StoreError::from)?.0)
    }

    /// Opens the bucket with exact names. Returns the key of the object that the URL names, too.
    pub(crate) fn open_object(&self) -> Result<(Arc<dyn Store>, Key), Error> {
        let (builder, key) = (*self.0).clone().object().map_err(StoreError::from)?;
        Ok((builder.open().map_err(StoreError::from)?.0, key))
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.0.store_name().is_ok_and(|called| called == name)
    }

    pub(crate) fn identity(&self) -> Option<String> {
        self.0.store_name().ok()
    }

    pub(crate) fn resolved(&self) -> Option<Self> {
        self.0.resolved().ok().map(Self::of)
    }

    pub(crate) fn provider(&self) -> Result<Option<&'static str>, Error> {
        Ok(self.0.open().map_err(StoreError::from)?.1)
    }

    /// Needs no credentials, and does not read the endpoint from the environment.
    pub(crate) fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }
}

/// Sets an option that every bucket and container has, or one that only this kind has.
fn option_of<B: ContainerBuilder>(builder: B, name: &str, value: &str) -> Result<B, UrlError> {
    match (name, value) {
        ("endpoint", url) => Ok(builder.endpoint(url)),
        ("credentials", "instance") => Ok(builder.instance_credentials()),
        ("credentials", _) => Err(UrlError::new(format!(
            "credentials can only be instance, for those of the machine; all others come from {}",
            B::WORDS.others
        ))),
        ("ca", path) => Ok(builder.ca(path)),
        ("proxy", url) => Ok(builder.proxy(url)),
        ("accept", "http") => Ok(builder.accept_http()),
        ("accept", "server-clock") => Ok(builder.accept_server_clock()),
        ("accept", _) => Err(UrlError::new(
            "accept can be http, for an endpoint that is not encrypted, or server-clock, for ages by the server's wall \
             clock",
        )),
        (name, value) => builder.own_option(name, value),
    }
}

impl<B: fmt::Display> fmt::Display for ContainerPlace<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The methods of [`ContainerBuilder`] that every builder has under the same name, for `$builder` of `$store`.
macro_rules! container_builder {
    ($store:ident, $builder:ident) => {
        fn of_container(name: &str) -> Self {
            $store::builder(name)
        }

        fn prefix(self, prefix: &str) -> Self {
            $builder::prefix(self, prefix)
        }

        fn endpoint(self, url: &str) -> Self {
            $builder::endpoint(self, url)
        }

        fn ca(self, path: &str) -> Self {
            $builder::ca(self, path)
        }

        fn proxy(self, url: &str) -> Self {
            $builder::proxy(self, url)
        }

        fn instance_credentials(self) -> Self {
            $builder::instance_credentials(self)
        }

        fn accept_http(self) -> Self {
            $builder::accept_http(self)
        }

        fn accept_server_clock(self) -> Self {
            $builder::accept_server_clock(self)
        }

        fn check(&self) -> Result<(), tenure_object::OpenError> {
            $builder::check(self)
        }

        fn open(
            &self,
        ) -> Result<(std::sync::Arc<dyn tenure_store::Store>, Option<&'static str>), tenure_object::OpenError>
        {
            let store = $builder::open(self)?;
            let provider = store.offered_by();
            Ok((std::sync::Arc::new(store), provider))
        }

        fn store_name(&self) -> Result<String, tenure_object::OpenError> {
            $builder::store_name(self)
        }

        fn resolved(&self) -> Result<Self, tenure_object::OpenError> {
            $builder::resolved(self)
        }

        fn guarantees(&self) -> tenure_store::Guarantees {
            $builder::guarantees(self)
        }

        fn object(self) -> Result<(Self, tenure_store::Key), tenure_object::OpenError> {
            $builder::object(self)
        }
    };
}

pub(crate) use container_builder;
