use tenure_object::{Google, GoogleBuilder};

use crate::UrlError;
use crate::container::{ContainerBuilder, ContainerPlace, ContainerWords, container_builder};

/// A bucket of Google Cloud Storage.
pub(crate) type GooglePlace = ContainerPlace<GoogleBuilder>;

impl ContainerBuilder for GoogleBuilder {
    const WORDS: ContainerWords = ContainerWords {
        scheme: "gs",
        a_container: "a bucket",
        example: EXAMPLE,
        credentials: "the file that GOOGLE_APPLICATION_CREDENTIALS names",
        others: "the environment",
    };

    fn own_option(self, name: &str, _: &str) -> Result<Self, UrlError> {
        Err(UrlError::new(format!(
            "a bucket of Google has no option {name:?}: it has endpoint, credentials, ca, proxy and accept, as in \
             {EXAMPLE}?credentials=instance"
        )))
    }

    container_builder!(Google, GoogleBuilder);
}

const EXAMPLE: &str = "gs://my-bucket/locks";
