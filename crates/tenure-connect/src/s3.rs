use tenure_object::{S3, S3Builder};

use crate::UrlError;
use crate::container::{ContainerBuilder, ContainerPlace, ContainerWords, container_builder};

/// A bucket of AWS S3, or of a server with the same API.
pub(crate) type S3Place = ContainerPlace<S3Builder>;

impl S3Place {
    pub(crate) fn with_other_etags(&self) -> (Self, bool) {
        let (builder, bare) = self.builder().clone().with_other_etags();
        (Self::of(builder), bare)
    }
}

impl ContainerBuilder for S3Builder {
    const WORDS: ContainerWords = ContainerWords {
        scheme: "s3",
        a_container: "a bucket",
        example: EXAMPLE,
        credentials: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile",
        others: "the environment and from profiles",
    };

    fn own_option(self, name: &str, value: &str) -> Result<Self, UrlError> {
        match (name, value) {
            ("region", region) => Ok(self.region(region)),
            ("path-style", "true") => Ok(self.path_style(true)),
            ("path-style", "false") => Ok(self.path_style(false)),
            ("path-style", _) => Err(UrlError::new("path-style is true or false")),
            ("etags", "bare") => Ok(self.bare_etags()),
            ("etags", _) => {
                Err(UrlError::new("etags can only be bare, for servers that require ETags without quotes"))
            }
            ("profile", profile) => Ok(self.profile(profile)),
            (name, _) => Err(UrlError::new(format!(
                "a bucket has no option {name:?}: it has endpoint, region, path-style, etags, profile, credentials, \
                 ca, proxy and accept, as in {EXAMPLE}?region=eu-west-1"
            ))),
        }
    }

    container_builder!(S3, S3Builder);
}

const EXAMPLE: &str = "s3://my-bucket/locks";
