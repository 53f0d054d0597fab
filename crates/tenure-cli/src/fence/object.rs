use std::fmt;

use tenure::fence::FencedValue;
use tenure_connect::StoreUrl;

use crate::exit::Failure;
use crate::store::{self, ChosenStore};

/// An object of a bucket or a container, by its exact name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    url: StoreUrl,
    /// The URL as it was given.
    text: String,
}

impl Object {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let url: StoreUrl = text.parse().map_err(|error| Failure::usage(format!("{text}: {error}")))?;
        let object = Self { url, text: text.to_owned() };
        // A URL without the name of an object is found here, before anything is read or sent.
        object.open()?;
        Ok(object)
    }

    /// The object. Sends nothing.
    pub(super) fn open(&self) -> Result<FencedValue, Failure> {
        let opened = self.url.open_object()?;
        let (store, key) = opened.ok_or_else(|| Failure::usage(format!("{} names no object", self.text)))?;
        Ok(FencedValue::on(store, key))
    }

    /// The folder of the object as a store. The safety check writes there, because a user who may write the object may not
    /// be allowed to write elsewhere.
    pub(super) fn folder(&self) -> Result<ChosenStore, Failure> {
        let (path, query) = match self.text.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (self.text.as_str(), String::new()),
        };
        let folder = path.rsplit_once('/').map_or(path, |(folder, _)| folder);
        store::named(&format!("{folder}{query}"))
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
