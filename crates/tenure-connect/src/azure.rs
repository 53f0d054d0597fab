use tenure_object::{Azure, AzureBuilder};

use crate::UrlError;
use crate::container::{ContainerBuilder, ContainerPlace, ContainerWords, container_builder};

/// A container of Azure Blob Storage.
pub(crate) type AzurePlace = ContainerPlace<AzureBuilder>;

impl ContainerBuilder for AzureBuilder {
    const WORDS: ContainerWords = ContainerWords {
        scheme: "az",
        a_container: "a container",
        example: EXAMPLE,
        credentials: "AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN",
        others: "the environment",
    };

    fn own_option(self, name: &str, value: &str) -> Result<Self, UrlError> {
        match (name, value) {
            ("account", account) => Ok(self.account(account)),
            ("sig" | "sv" | "sas" | "key", _) => Err(UrlError::new(format!(
                "the URL of a store carries no credentials: put the SAS token into AZURE_STORAGE_SAS_TOKEN, or the key \
                 into AZURE_STORAGE_KEY, and write it like {EXAMPLE}"
            ))),
            (name, _) => Err(UrlError::new(format!(
                "a container has no option {name:?}: it has account, endpoint, credentials, ca, proxy and accept, as \
                 in {EXAMPLE}"
            ))),
        }
    }

    container_builder!(Azure, AzureBuilder);
}

const EXAMPLE: &str = "az://my-container/locks?account=myaccount";
