//! Kinds of servers.

use super::azurite::Azurite;
use super::ceph::CephRgw;
use super::dialect::Dialect;
use super::google::{FakeGcs, GcpEmulator};
use super::minio::Minio;
use super::rclone::Rclone;
use super::recipe::Recipe;
use super::seaweedfs::SeaweedFs;
use crate::program::{OF_SYSTEM, Program, pinned};

/// A kind of server that the test kit can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Correct, fast, and with the status codes of AWS: the server for everyday tests.
    Minio,
    /// Correct, slower, and answers 412 to a replacement of a missing object.
    SeaweedFs,
    /// Not safe: `rclone serve s3` accepts every condition and ignores it.
    Rclone,
    /// Correct, but unusual: it expects ETags without their quotes. It is installed from the system's packages, and its
    /// tests run only with `TENURE_SERVERS=ceph ./test`.
    CephRgw,
    /// Azure Blob Storage: Microsoft's emulator. Correct, and its ETags change even if the content does not.
    ///
    /// * A second create gets 409 `BlobAlreadyExists`, a stale replacement 412 `ConditionNotMet`.
    /// * It writes its index every five seconds. [`Server::stop`](super::Server::stop) loses nothing, but
    ///   [`Server::kill`](super::Server::kill) loses the writes of the last seconds.
    ///
    /// For `object_store`: `MicrosoftAzureBuilder::new().with_endpoint(server.endpoint())`, which ends in the account,
    /// `.with_account(server.account()).with_access_key(server.account_key()).with_allow_http(true)`. Its
    /// `with_use_emulator` does not help: it takes the address from an environment variable.
    Azurite,
    /// Google Cloud Storage: fake-gcs-server behind a translator from the XML API, which clients use, to the JSON API,
    /// where it checks `ifGenerationMatch`. Correct: all conditions are checked by the server, none by the translator.
    ///
    /// * The ETag is the MD5 of the content, as at Google: equal content has an equal ETag, and only the generation
    ///   tells two writes apart. It is in base64; Google's is in hexadecimal digits.
    /// * It accepts more than one write per second to an object. Google answers 429.
    /// * A conditional DELETE, a copy and a multipart upload get 501 from the translator.
    ///
    /// For `object_store`: `GoogleCloudStorageBuilder::new().with_base_url(&server.endpoint())`,
    /// `.with_bearer_token(server.bearer_token())`, and client options with `with_allow_http(true)`.
    FakeGcs,
    /// Google Cloud Storage, not safe: gcp-storage-emulator behind the same translator as [`FakeGcs`](Self::FakeGcs). It
    /// accepts every `ifGenerationMatch` and ignores it. It serves one request at a time, and no empty objects.
    GcpEmulator,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Minio,
        Self::SeaweedFs,
        Self::Rclone,
        Self::CephRgw,
        Self::Azurite,
        Self::FakeGcs,
        Self::GcpEmulator,
    ];

    /// The protocol of its clients.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Minio | Self::SeaweedFs | Self::Rclone | Self::CephRgw => Dialect::S3,
            Self::Azurite => Dialect::Azure,
            Self::FakeGcs | Self::GcpEmulator => Dialect::Google,
        }
    }

    /// Name of its program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Minio => "minio",
            Self::SeaweedFs => "weed",
            Self::Rclone => "rclone",
            Self::CephRgw => "radosgw",
            Self::Azurite => "azurite",
            Self::FakeGcs => "fake-gcs-server",
            Self::GcpEmulator => "gcp-storage-emulator",
        }
    }

    /// The version for which the tests are written.
    pub fn version(self) -> &'static str {
        if self == Self::CephRgw { OF_SYSTEM } else { pinned(self.program()) }
    }

    /// Its program.
    pub(crate) fn installed(self) -> Program {
        match self {
            Self::CephRgw => Program::of_system(self.program(), "/usr/bin/radosgw"),
            _ => Program::in_cache(self.program()),
        }
    }

    pub(crate) fn recipe(self) -> &'static dyn Recipe {
        match self {
            Self::Minio => &Minio,
            Self::SeaweedFs => &SeaweedFs,
            Self::Rclone => &Rclone,
            Self::CephRgw => &CephRgw,
            Self::Azurite => &Azurite,
            Self::FakeGcs => &FakeGcs,
            Self::GcpEmulator => &GcpEmulator,
        }
    }
}
